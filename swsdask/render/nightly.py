"""The board of nights: the page, the feed and the metrics; the page of all evaluations; and histories in a terminal.

In a terminal the history is a line per system, or a table and a plot of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from rich.text import Text

from swsdask.model.comparison import written_p
from swsdask.model.leaderboard import NEW, REPLACED, Leaderboard, Move, Record, Refused
from swsdask.model.measures import better, describe, distinct_headings, signed, written
from swsdask.model.safe_text import one_line, visible
from swsdask.model.tables import Row
from swsdask.model.wording import counted
from swsdask.render.console import standard_console, standard_table
from swsdask.render.environment import environment, style

SHOWN_NIGHTS = 60
"""The maximum number of nights on the page, the latest ones."""

SHOWN_MOVES = 20
"""The maximum number of changed systems that are printed."""

DURATION = "duration_seconds"
"""The metric of the duration of a night. All other content of a board follows from the history and the archive."""

_WIDTH, _HEIGHT = 160, 28


@dataclass(frozen=True)
class Trend:
    """The values of the leading measure for a system, night by night."""

    system: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class BoardPage:
    """The content of a board; `leading` is the measure that ranks, `reports` has the files with reports of nights."""

    name: str
    measures: tuple[str, ...]
    leading: str
    numbers: Leaderboard
    nights: tuple[Record, ...]
    reports: frozenset[str]
    refused: tuple[Refused, ...]
    trends: tuple[Trend, ...]
    n_systems: int

    def report_of(self, night: Record) -> str | None:
        """The report of a night, if it exists: an earlier night may have been published elsewhere, or not at all."""
        place = page_of(night)
        return place if place in self.reports else None


def index(page: BoardPage) -> str:
    """Return the page: the current leaderboard, changes of the last night, refused runs, trends, nights."""
    numbers, last = page.numbers, page.nights[-1]
    condition = numbers.conditions[0] if numbers.conditions else "all"
    trends = {trend.system: trend for trend in page.trends}
    new = {move.system for move in last.moves if move.reason == NEW}
    best = {measure: numbers.best(condition, measure) for measure in page.measures}
    span = _span(page.trends)
    return (
        environment()
        .get_template("nightly.html.j2")
        .render(
            name=page.name,
            last=last,
            page=page.report_of(last),
            facts=numbers.facts(condition),
            headings=[
                {"heading": heading, "title": describe(measure).title}
                for measure, heading in zip(page.measures, distinct_headings(page.measures), strict=True)
            ],
            leading=describe(page.leading).heading if page.leading else "",
            rows=[
                {
                    "place": place,
                    "system": system,
                    "is_new": system in new,
                    "cells": [
                        {"text": written(m, value := numbers.value(condition, system, m)), "best": value == best[m]}
                        for m in page.measures
                    ],
                    "trend": _line(trends.get(system), page.nights[-1].number, span),
                }
                for place, system in enumerate(numbers.ranked(condition), 1)
            ],
            moves=[_move(move) for move in _by_size(last.moves)],
            refused=[
                {
                    "url": each.url,
                    "problems": [_within(each.url, problem) for problem in each.problems],
                    "more": each.total - len(each.problems),
                }
                for each in page.refused
            ],
            span=written(page.leading, span) if page.leading else "",
            nights=[
                {"night": night, "page": page.report_of(night), "summary": summary(night)}
                for night in reversed(page.nights[-SHOWN_NIGHTS:])
            ],
            left_out=max(len(page.nights) - SHOWN_NIGHTS, 0),
            width=_WIDTH,
            height=_HEIGHT,
            style=style(),
        )
    )


@dataclass(frozen=True)
class EvaluationState:
    """An evaluation on the page of all; `night` is None if it has no board yet.

    `link` is the relative address of its board, if there is one, and `place` where that is; `best` the system that
    leads, if any, by its `measure`, with its `value`; `gates` are those that failed in the last night.
    """

    name: str
    link: str | None
    place: str
    night: int | None = None
    date: str = ""
    best: str = ""
    measure: str = ""
    value: str = ""
    systems: int = 0
    scored: int = 0
    refused: int = 0
    gates: tuple[str, ...] = ()


def overview(states: Sequence[EvaluationState]) -> str:
    """Return the page of all evaluations, in their order."""
    latest = max((each.date for each in states), default="")
    return environment().get_template("overview.html.j2").render(rows=states, latest=latest, style=style())


def page_of(night: Record) -> str | None:
    """Return the report of a night, relative to the board; None if nothing was scored."""
    return f"nights/{night.number:08d}.html" if night.moves else None


def summary(night: Record) -> str:
    """Return a summary of a night in one line."""
    reasons: dict[str, int] = {}
    for move in night.moves:
        reasons[move.reason] = reasons.get(move.reason, 0) + 1
    parts = [f"{counted(number, 'systems')}: {reason}" for reason, number in reasons.items()]
    parts += [f"{counted(len(night.gates), 'gates')} failed"] if night.gates else []
    parts += [f"{counted(len(night.refused), 'runs')} refused"] if night.refused else []
    parts += [f"{counted(len(night.gone), 'refused runs')} gone"] if night.gone else []
    return "; ".join(parts) or "nothing was scored"


def atom_feed(page: BoardPage) -> str:
    """Return an Atom feed with an entry per night, the last first."""
    identity = f"urn:swsdask:{quote(page.name, safe='')}"
    entries = [
        f"<entry><id>{identity}:{night.number}</id>"
        f"<title>{escape(visible(f'{page.name}, night {night.number}: {summary(night)}'))}</title>"
        f"<updated>{escape(night.date)}T00:00:00Z</updated><author><name>swsdask</name></author>"
        f"<link href={quoteattr(page.report_of(night) or 'index.html')}/>"
        f"<summary>{escape(visible(' '.join((*map(_told, night.moves[:20]), *night.gates))))}</summary></entry>"
        for night in reversed(page.nights[-SHOWN_NIGHTS:])
    ]
    return "\n".join(
        (
            '<?xml version="1.0" encoding="utf-8"?>',
            '<feed xmlns="http://www.w3.org/2005/Atom">',
            f"<id>{identity}</id><title>{escape(visible(page.name))}</title>",
            f'<updated>{escape(page.nights[-1].date)}T00:00:00Z</updated><link rel="self" href="feed.xml"/>',
            *entries,
            "</feed>\n",
        )
    )


def metrics(page: BoardPage, seconds: float) -> str:
    """OpenMetrics: the night, its duration, its rows, new and refused runs, failed gates, and every current number."""
    last = page.nights[-1]
    arrived = [move for move in last.moves if move.reason in (NEW, REPLACED)]
    of = f"{{evaluation={_label(page.name)}}}"
    lines: list[str] = []
    counts = (
        (DURATION, "Seconds from the start to the end of the call that published this.", f"{seconds:.3f}"),
        ("night", "The number of the last night.", last.number),
        ("rows", "Detections that the last night ingested.", last.rows),
        ("systems", "Systems on the board.", page.n_systems),
        ("systems_scored", "Systems that the last night scored.", len(last.moves)),
        ("runs_new", "New and replaced runs that the last night scored.", len(arrived)),
        ("runs_refused", "Runs that are refused.", len(page.refused)),
        ("gates_failed", "Gates that failed in the last night.", len(last.gates)),
    )
    for name, help_text, count in counts:
        lines += [f"# TYPE swsdask_{name} gauge", f"# HELP swsdask_{name} {help_text}", f"swsdask_{name}{of} {count}"]
    lines += ["# TYPE swsdask_value gauge", "# HELP swsdask_value A number over all queries."]
    label = cache(_label)
    evaluation = label(page.name)
    lines += [
        f"swsdask_value{{evaluation={evaluation},condition={label(condition)},system={label(system)},"
        f"measure={label(measure)}}} {_open_metrics(value)}"
        for (condition, system, measure), value in page.numbers.values.items()
    ]
    return "\n".join((*lines, "# EOF\n"))


def _label(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _open_metrics(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return "NaN" if math.isnan(value) else repr(value)


def _within(url: str, problem: str) -> str:
    """Return a problem without the name of its file, which is shown beside it."""
    bare = problem.removeprefix(f"{url}:").strip()
    return f"line {bare}" if bare[:1].isdigit() else bare


def _by_size(moves: Sequence[Move]) -> list[Move]:
    """Return the moves, sorted: the largest loss first, those without a baseline last."""
    return sorted(moves, key=lambda m: (math.isnan(m.value - m.was), better(m.measure) * (m.value - m.was), m.system))


def _move(move: Move) -> dict[str, object]:
    difference = move.value - move.was
    shown = signed(move.measure, difference)
    gain = better(move.measure) * difference if shown.startswith(("+", "-")) else 0.0
    return {
        "system": move.system,
        "reason": move.reason,
        "baseline": move.baseline or "",
        "value": written(move.measure, move.value),
        "was": "" if math.isnan(move.was) else written(move.measure, move.was),
        "difference": shown,
        "kind": "better" if gain > 0 else "worse" if gain < 0 else "",
        "p": "" if math.isnan(move.p) else written_p(move.p),
    }


def _told(move: Move) -> str:
    said = _move(move)
    was = f", {said['was']} of {move.baseline}" if move.baseline and said["was"] else ""
    heading = describe(move.measure).heading if move.measure else ""
    return f"{move.system} ({move.reason}): {heading} {said['value']}{was}."


def _span(trends: Sequence[Trend]) -> float:
    """Return the largest range of the numbers of one system: the height of all trend lines."""
    ranges = [max(values) - min(values) for trend in trends if (values := _finite(trend))]
    return max(ranges, default=0.0)


def _finite(trend: Trend) -> list[float]:
    return [value for _, value in trend.points if math.isfinite(value)]


def _line(trend: Trend | None, last: int, span: float) -> dict[str, object] | None:
    """Return the path of a trend around its middle: a number holds until the night with the next one."""
    points = [] if trend is None else [point for point in trend.points if math.isfinite(point[1])]
    if trend is None or not points:
        return None
    values = _finite(trend)
    middle = (min(values) + max(values)) / 2

    def place(night: int, value: float) -> tuple[float, float]:
        across, up = (night - 1) / max(last - 1, 1), 0.5 + (value - middle) / (span or 1.0)
        return round(2 + across * (_WIDTH - 4), 1), round(2 + (1 - up) * (_HEIGHT - 4), 1)

    steps: list[str] = []
    for number, (night, value) in enumerate(points):
        x, y = place(night, value)
        steps.append(f"M{x} {y}" if number == 0 else f"H{x}V{y}")
    x, y = place(last, points[-1][1])
    return {"path": "".join(steps) + f"H{x}", "x": x, "y": y, "title": f"{len(points)} numbers"}


def night_lines(name: str, out: str, night: Record) -> list[str]:
    """Return the lines that the command prints: changed systems, refused runs, failed gates, place of the board."""
    lines = [f"{name}: night {night.number}, {night.date}: {summary(night)}"]
    lines += [f"  {_told(move)}" for move in _by_size(night.moves)[:SHOWN_MOVES]]
    more = len(night.moves) - SHOWN_MOVES
    lines += [f"  ... and {counted(more, 'systems')} more"] if more > 0 else []
    lines += [
        f"  refused {each.url}: {counted(each.total, 'problems')}, {_within(each.url, each.problems[0])}"
        for each in night.refused
    ]
    lines += [f"  gone {url}, which was refused" for url in night.gone]
    lines += [f"  {gate}" for gate in night.gates]
    return [one_line(line) for line in (*lines, f"  board: {out.rstrip('/')}/index.html")]


_BLOCKS = "▁▂▃▄▅▆▇█"
_COLUMNS, _LINES = 60, 10


def print_history(rows: Sequence[Row], measure: str, n_nights: int) -> None:
    """Print a line for every system: its numbers, and their course over the nights; the best system comes first."""
    by_system: dict[str, list[Row]] = {}
    for row in rows:
        by_system.setdefault(row["system"], []).append(row)
    finite = [row["value"] for row in rows if math.isfinite(row["value"])]
    span = (min(finite), max(finite)) if finite else (0.0, 1.0)
    headings = ("System", "Night", "Date", describe(measure).heading, "Change", f"Nights 1 to {n_nights}")
    table = standard_table(headings, ("System", "Night", "Date", headings[-1]), edge=True)

    def merit(system: str) -> tuple[float, str]:
        value = better(measure) * by_system[system][-1]["value"]
        return (math.inf if math.isnan(value) else -value), system

    for system in sorted(by_system, key=merit):
        own = by_system[system]
        last, change = own[-1], own[-1]["value"] - own[-2]["value"] if len(own) > 1 else math.nan
        table.add_row(
            Text(system),
            str(last["night"]),
            last["date"],
            written(measure, last["value"]),
            signed(measure, change),
            _sparkline(_standing(own, n_nights), span),
        )
    standard_console().print(table)


def print_system(rows: Sequence[Row], measure: str, n_nights: int) -> None:
    """Print a row for every night that scored a system, and a plot over all nights."""
    console = standard_console()
    headings = ("Night", "Date", describe(measure).heading, "Change", "Run", "Signature")
    table = standard_table(headings, ("Night", "Date", "Run", "Signature"), edge=True)
    before = math.nan
    for row in rows:
        change = signed(measure, row["value"] - before)
        number = written(measure, row["value"])
        table.add_row(str(row["night"]), row["date"], number, change, row["content"][:8], Text(row["signature"]))
        before = row["value"]
    console.print(table)
    for line in text_plot(_standing(rows, n_nights), measure):
        console.print(Text(line), soft_wrap=True)


def text_plot(values: Sequence[float], measure: str) -> list[str]:
    """Return the lines of a plot of numbers night by night; NaN means none."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return ["No night has a number."]
    low, high = min(finite), max(finite)
    shown = _thinned(values, _COLUMNS)
    labels = [written(measure, high), written(measure, low)]
    width = max(map(len, labels))
    lines = []
    for line in range(_LINES):
        label = labels[0] if line == 0 else labels[1] if line == _LINES - 1 else ""
        marks = "".join("•" if _place(value, low, high, _LINES) == _LINES - 1 - line else " " for value in shown)
        lines.append(f"{label:>{width}} ┤{marks.rstrip()}")
    axis = f"nights 1 to {len(values)}"
    return [*lines, f"{'':>{width}} └{'─' * max(len(shown), len(axis))}", f"{'':>{width}}  {axis}"]


def _standing(rows: Sequence[Row], n_nights: int) -> list[float]:
    """Return the number that holds in each night, the latest one so far; NaN before the first."""
    scored = {row["night"]: row["value"] for row in rows}
    values, now = [], math.nan
    for night in range(1, n_nights + 1):
        now = scored.get(night, now)
        values.append(now)
    return values


def _sparkline(values: Sequence[float], span: tuple[float, float]) -> str:
    return "".join(
        _BLOCKS[_place(value, *span, len(_BLOCKS))] if math.isfinite(value) else " " for value in _thinned(values, 40)
    )


def _thinned(values: Sequence[float], width: int) -> list[float]:
    """Reduce the numbers to at most `width`: the last of every stretch."""
    if len(values) <= width:
        return list(values)
    return [values[(number + 1) * len(values) // width - 1] for number in range(width)]


def _place(value: float, low: float, high: float, steps: int) -> int:
    if not math.isfinite(value):
        return -1
    return min(int((value - low) / ((high - low) or 1.0) * steps), steps - 1)
