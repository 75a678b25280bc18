"""The queries that cost systems most: a section of the report, tables in a terminal, JSON and files for audio tools.

Errors are written as files for audio tools. The folder SYSTEM/ has for each document a label track of Audacity (start,
end and text, separated by tabs) and a TextGrid of Praat. Its tiers are the false alarms and the misses, with several
tiers of a kind if events overlap. SYSTEM.ctm has a line per event, as a CTM: document, channel, start, duration, text,
score; `-` for none. Events without times are left out. File names are the names of systems and documents, with %XX for
characters that file names cannot have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from urllib.parse import quote

import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.text import Text

from swsdask.model.leaderboard import Leaderboard
from swsdask.model.measures import written
from swsdask.model.name_columns import names_of, rows_with
from swsdask.model.system_rows import SystemRows
from swsdask.model.tables import Row, tables_as
from swsdask.model.worst_queries import Errors
from swsdask.places.reading import Location
from swsdask.places.writing import together
from swsdask.render.console import standard_console, standard_table
from swsdask.render.pages import mark

WORST_LISTED = 10
"""The number of queries that are listed for a system."""

UNFOLDED = 6
"""The number of systems whose queries are shown unfolded."""

Event = Row

_SHOWN = {"false_alarm": "FA", "miss": "MISS"}


def print_errors(found: Errors) -> None:
    """Print the queries of each system to stdout, at full width unless stdout is a terminal."""
    console = standard_console()
    lists: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in found.query_table.to_pylist():
        lists[row["system"], row["condition"]].append(row)
    for (system, condition), rows in lists.items():
        console.print(Text(system if condition == "all" else f"{system}, {condition}", "bold"))
        console.print(Text(f"Cost of a query: P_miss + {found.beta:.10g} P_fa", "dim"))
        headings = ("Query", "Cost", "Targets", "Misses", "False alarms", "Confused with")
        table = standard_table(headings, ("Query", "Confused with"))
        for row in rows:
            numbers = (f"{row[name]:,}" for name in ("n_target", "n_miss", "n_false_alarm"))
            table.add_row(Text(row["query"]), f"{row['cost']:.4f}", *numbers, Text(", ".join(row["confused_with"][:5])))
        console.print(table)
        console.print()
    for line in (*found.notes, f"Signature: {found.signature}"):
        console.print(Text(line), soft_wrap=not console.is_terminal)


def errors_as(form: str, found: Errors) -> str:
    """Return errors as text: "json" is one object with the lists `queries` and `events`, CSV has the queries."""
    return tables_as(form, found.tables, "queries")


def write_errors(found: Errors, directory: Location) -> list[str]:
    """Write `queries.parquet`, `events.parquet` and the files for audio tools. Returns a description of the files.

    Equal errors give equal bytes. Raises `OSError` if the directory cannot be written.
    """
    with together(directory) as hidden:
        for name, table in (("queries", found.query_table), ("events", found.event_table)):
            pq.write_table(table, hidden / f"{name}.parquet", compression="zstd")
        by_document: dict[tuple[str, str], list[Event]] = defaultdict(list)
        of_several = found.event_table.drop_columns(["condition"]).to_pylist()
        for event in {repr(event): event for event in of_several}.values():
            if event["start"] is not None and event["document"]:
                by_document[event["system"], event["document"]].append(event)
        lines: dict[str, list[str]] = defaultdict(list)
        for (system, document), events in sorted(by_document.items()):
            events.sort(key=lambda event: (event["start"], event["end"], event["event"], event["query"]))
            folder = hidden / quote(system, safe=" ")
            folder.mkdir(exist_ok=True)
            name = quote(document, safe=" ")
            (folder / f"{name}.txt").write_text(audacity_labels(events), encoding="utf-8")
            (folder / f"{name}.TextGrid").write_text(textgrid(events), encoding="utf-8")
            lines[system] += [_ctm_line(event) for event in events]
        for system, own in lines.items():
            (hidden / f"{quote(system, safe=' ')}.ctm").write_text("".join(own), encoding="utf-8")
    return ["queries.parquet", "events.parquet", "SYSTEM.ctm", "SYSTEM/DOCUMENT.txt", "SYSTEM/DOCUMENT.TextGrid"]


def audacity_labels(events: Iterable[Event]) -> str:
    """Return a label track: start and end in seconds and text of each event, separated by tabs."""
    return "".join(f"{event['start']:.4f}\t{event['end']:.4f}\t{_label(event)}\n" for event in events)


def _label(event: Event) -> str:
    score = "" if event["score"] is None else f" {event['score']:.6g}"
    confused = f" ({', '.join(event['confused_with'])})" if event["confused_with"] else ""
    return f"{_SHOWN[event['event']]} {event['query']}{score}{confused}"


def _ctm_line(event: Event) -> str:
    duration = event["end"] - event["start"]
    score = "-" if event["score"] is None else f"{event['score']:.6g}"
    text = f"{_SHOWN[event['event']]}:{event['query']}"
    document = "%20".join(event["document"].split(" "))
    return f"{document} {event['channel']} {event['start']:.4f} {duration:.4f} {'%20'.join(text.split(' '))} {score}\n"


def textgrid(events: Sequence[Event]) -> str:
    """A TextGrid of Praat in its long text form, whose interval tiers cover the time from 0 to the last event's end."""
    end = max(event["end"] for event in events)
    tiers = [
        (f"{_SHOWN[kind]} {number}", tier)
        for kind in _SHOWN
        for number, tier in enumerate(_apart([event for event in events if event["event"] == kind]), 1)
    ]
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', "", "xmin = 0", f"xmax = {end:.4f}"]
    lines += ["tiers? <exists>", f"size = {len(tiers)}", "item []:"]
    for number, (name, tier) in enumerate(tiers, 1):
        intervals = _tiling(tier, end)
        lines += [f"    item [{number}]:", '        class = "IntervalTier"', f'        name = "{name}"']
        lines += ["        xmin = 0", f"        xmax = {end:.4f}", f"        intervals: size = {len(intervals)}"]
        for place, (begin, stop, text) in enumerate(intervals, 1):
            quoted = text.replace('"', '""')
            lines += [f"        intervals [{place}]:", f"            xmin = {begin:.4f}"]
            lines += [f"            xmax = {stop:.4f}", f'            text = "{quoted}"']
    return "\n".join(lines) + "\n"


def _apart(events: Sequence[Event]) -> list[list[Event]]:
    """Return the events, sorted by start, in as few lists without overlaps as possible.

    Events of no duration are left out.
    """
    tiers: list[list[Event]] = []
    for event in events:
        if event["end"] > event["start"]:
            free = next((tier for tier in tiers if tier[-1]["end"] <= event["start"]), None)
            if free is None:
                tiers.append([event])
            else:
                free.append(event)
    return tiers


def _tiling(events: Sequence[Event], end: float) -> list[tuple[float, float, str]]:
    """Return intervals from 0 to `end`, empty between the events."""
    intervals, at = [], 0.0
    for event in events:
        if event["start"] > at:
            intervals.append((at, event["start"], ""))
        intervals.append((event["start"], event["end"], _label(event)))
        at = event["end"]
    return [*intervals, (at, end, "")] if end > at else intervals


def worst_queries(scores: SystemRows, found: Leaderboard, systems: Sequence[str]) -> dict[str, object] | None:
    """List the queries of each system with the lowest ATWV in the first condition, ascending, equal ones by id.

    Queries with ATWV 1 cost nothing and are not listed. None without ATWV by query.
    """
    rows = rows_with(scores.among(systems), condition=found.conditions[:1], measure=["atwv"])
    rows = rows.filter(pc.and_(pc.is_valid(rows["query"]), pc.less(rows["value"], 1)))
    values: dict[str, list[tuple[float, str]]] = {system: [] for system in systems}
    names = (names_of(rows[column]) for column in ("system", "query"))
    for system, query, value in zip(*names, rows["value"].to_pylist(), strict=True):
        values[system].append((value, query))
    listed = [
        {
            "system": system,
            **mark(found, system),
            "queries": [{"query": query, "text": written("atwv", value)} for value, query in worst[:WORST_LISTED]],
            "others": max(0, len(worst) - WORST_LISTED),
        }
        for system, worst in ((system, sorted(own)) for system, own in values.items())
        if worst
    ]
    return {"open": listed[:UNFOLDED], "folded": listed[UNFOLDED:]} if listed else None
