"""The errors of systems: a table in a terminal, JSON, and files to listen by.

Of each system SYSTEM/, and of each document in it, labels of Audacity (start, end and text, by tabs) and a TextGrid of
Praat, whose tiers are the false alarms and the misses, as many of each as overlap. SYSTEM.ctm has a line per event, as
a CTM: document, channel, start, duration, text, score; `-` where there is none. Events without times are in none of
them. Names are those of systems and documents with what file names cannot have as %XX.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from swsdask.model.listening import Errors
from swsdask.places.reading import Location
from swsdask.places.writing import together
from swsdask.render.records import tables_as

Event = Mapping[str, Any]

_SHOWN = {"false_alarm": "FA", "miss": "MISS"}


def print_errors(found: Errors, console: Console | None = None) -> None:
    """Print the queries of each system; without `console` to stdout, at full width if that is no terminal."""
    if console is None:
        console = Console(width=None if sys.stdout.isatty() else 10_000, highlight=False, markup=False, emoji=False)
    lists: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in found.query_table.to_pylist():
        lists[row["system"], row["condition"]].append(row)
    for (system, condition), rows in lists.items():
        console.print(Text(system if condition == "all" else f"{system}, {condition}", "bold"))
        console.print(Text(f"Cost of a query: P_miss + {found.beta:.10g} P_fa", "dim"))
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for heading in ("Query", "Cost", "Targets", "Misses", "False alarms", "Confused with"):
            table.add_column(heading, justify="left" if heading in ("Query", "Confused with") else "right")
        for row in rows:
            numbers = (f"{row[name]:,}" for name in ("n_target", "n_miss", "n_false_alarm"))
            table.add_row(Text(row["query"]), f"{row['cost']:.4f}", *numbers, Text(", ".join(row["confused_with"][:5])))
        console.print(table)
        console.print()
    for line in (*found.notes, f"Signature: {found.signature}"):
        console.print(Text(line), soft_wrap=not console.is_terminal)


def errors_as(form: str, found: Errors) -> str:
    """Errors as text: "json" is one object with the lists `queries` and `events`, CSV has the queries."""
    return tables_as(form, found.tables, "queries")


def write_errors(found: Errors, directory: Location) -> list[str]:
    """Write `queries.parquet`, `events.parquet` and the files to listen by; what they are.

    Equal errors give equal bytes. Raises `OSError` where the directory cannot be written.
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
    """A label track: start, end and text of each event, by tabs, in seconds."""
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
    """The events, by start, in as few lists as their overlaps allow; those without a duration are left out."""
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
    """Intervals from 0 to `end`, empty between the events."""
    intervals, at = [], 0.0
    for event in events:
        if event["start"] > at:
            intervals.append((at, event["start"], ""))
        intervals.append((event["start"], event["end"], _label(event)))
        at = event["end"]
    return [*intervals, (at, end, "")] if end > at else intervals
