"""Rank correlation between measures: a matrix, the winners in words, a table in a terminal, and files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from rich.text import Text

from swsdask.model.leaderboard import Leaderboard
from swsdask.model.measures import distinct_headings, written
from swsdask.model.results import RankCorrelation
from swsdask.model.wording import counted, listed
from swsdask.places.reading import Location
from swsdask.places.writing import together
from swsdask.render.console import standard_console, standard_table
from swsdask.render.environment import environment, style
from swsdask.render.pages import mark

WIDTH, HEIGHT, LETTER = 42, 30, 7.2
"""The size of a box of the matrix, and the approximate width of a letter of its labels."""

STRONGEST = 46
"""The opacity of a box with tau = 1 or -1, in percent: its number stays readable."""

DIGIT, DIGITS = 11, 24
"""The size of the number in a disc, and the maximum of size times digits: three digits of full size are too wide."""

DISCS = 2
"""The maximum number of winners that a box of the diagonal shows; more are only counted."""

NAMED = 4
"""The number of winners that are named; others are counted."""

_NUMBER, _BETWEEN = 5, 3
"""The width of a column of numbers in a terminal, and the space between two."""


def print_rank_correlation(found: RankCorrelation, scores: Leaderboard, console: Console | None = None) -> None:
    """Print the winner under each measure and the matrix: tau-b below the diagonal, symmetric tau_AP above.

    A matrix that is wider than the terminal continues below. Without `console` it is printed to stdout, in full width
    unless stdout is a terminal.
    """
    if console is None:
        console = standard_console()
    headings = distinct_headings(found.measures)
    who = standard_table(("", "Measure", "Best", "Winner"), ("Measure", "Winner"), overflow="fold")
    for number, (measure, heading, winners) in enumerate(zip(found.measures, headings, found.winners, strict=True), 1):
        best = _best(found, scores, measure, winners)
        who.add_row(str(number), heading, best, Text(listed(winners, NAMED) or "-"))
    facts = (counted(len(found.systems), "systems"), counted(len(found.measures), "measures"))
    console.print(Text.assemble((found.condition, "bold"), *(f"  {fact}" for fact in facts)))
    console.print(Text(_summary(found)), soft_wrap=not console.is_terminal)
    console.print(who)
    console.print(f"\n{WHAT_IS_WHERE}")
    room = console.width - len(str(len(headings))) - _BETWEEN - max(map(len, headings))
    at_once = max(1, room // (_BETWEEN + _NUMBER))
    for first in range(0, len(headings), at_once):
        console.print(_taus(found, headings, range(first, min(first + at_once, len(headings)))))
    for line in notes(found):
        console.print(Text(line), soft_wrap=not console.is_terminal)


WHAT_IS_WHERE = "Below the diagonal: Kendall's tau-b. Above: tau_AP, the mean of both directions."


def write_rank_correlation(found: RankCorrelation, scores: Leaderboard, directory: Location, signature: str) -> None:
    """Write `rank_correlation.parquet` (rows of `RANK_CORRELATION`) and `rank_correlation.html`, one page.

    Equal comparisons give equal bytes. Raises `OSError` if the directory cannot be written.
    """
    with together(directory) as hidden:
        (hidden / "rank_correlation.html").write_text(page(found, scores, signature), encoding="utf-8")
        pq.write_table(found.table, hidden / "rank_correlation.parquet", compression="zstd")


def page(found: RankCorrelation, scores: Leaderboard, signature: str) -> str:
    """Return the comparison as one HTML file."""
    template = environment().get_template("rank_correlation.html.j2")
    return template.render(
        condition=found.condition,
        facts=[counted(len(found.systems), "systems"), counted(len(found.measures), "measures")],
        signature=signature,
        compared=compared(found, scores),
        style=style(),
    )


def compared(found: RankCorrelation, scores: Leaderboard) -> dict[str, object]:
    """Return the template's data: the winner under each measure, and the matrix."""
    return {
        "summary": _summary(found),
        "winners": list(_winners(found, scores)),
        "matrix": _matrix(found, scores),
        "notes": notes(found),
    }


def notes(found: RankCorrelation) -> list[str]:
    """Notes on the numbers: their resolution, and the systems that are left out."""
    n = len(found.systems)
    lines = [f"With {counted(n, 'systems')}, one pair that swaps ranks changes tau-b by {4 / (n * (n - 1)):.2g}."]
    for heading, there in zip(distinct_headings(found.measures), found.n_systems.diagonal().tolist(), strict=True):
        if there < n:
            lines.append(f"{heading}: left out {counted(n - there, 'systems')} without this measure.")
    return lines


def _summary(found: RankCorrelation) -> str:
    """Return the summary in one sentence. A measure that is equal for all systems has no winner."""
    n = counted(len(found.measures), "measures")
    always = set(found.systems).intersection(*found.winners)
    if always:
        return f"{' and '.join(sorted(always))}: first under {'both' if len(found.measures) == 2 else f'all {n}'}."
    first = {system for winners in found.winners if len(winners) < len(found.systems) for system in winners}
    return f"The winner depends on the measure; first under at least one of {n}: {counted(len(first), 'systems')}."


def _winners(found: RankCorrelation, scores: Leaderboard) -> Iterator[dict[str, object]]:
    for measure, heading, winners in zip(found.measures, distinct_headings(found.measures), found.winners, strict=True):
        yield {
            "heading": heading,
            "systems": [{"name": system, **mark(scores, system)} for system in winners[:NAMED]],
            "others": len(winners[NAMED:]),
            "best": _best(found, scores, measure, winners),
        }


def _best(found: RankCorrelation, scores: Leaderboard, measure: str, winners: Sequence[str]) -> str:
    return written(measure, scores.value(found.condition, winners[0], measure) if winners else math.nan)


def _taus(found: RankCorrelation, headings: Sequence[str], columns: range) -> Table:
    table = standard_table()
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(str(column + 1), justify="right", no_wrap=True, min_width=_NUMBER)
    for row, heading in enumerate(headings):
        table.add_row(str(row + 1), heading, *(_number(_tau(found, row, column)) for column in columns))
    return table


def _tau(found: RankCorrelation, row: int, column: int) -> float:
    """Return the number in each box of the matrix; NaN on the diagonal."""
    if row == column:
        return math.nan
    return float((found.tau_b if row > column else found.tau_ap_symmetric)[row, column])


def _number(tau: float) -> str:
    return "-" if math.isnan(tau) else f"{tau:z.2f}"


def _matrix(found: RankCorrelation, scores: Leaderboard) -> dict[str, object]:
    headings = distinct_headings(found.measures)
    n, lengths = len(headings), [LETTER * len(heading) for heading in headings]
    left, top = round(max(lengths) + 14), round(max(lengths) * math.sqrt(0.5) + 26)
    right, bottom = left + n * WIDTH, top + n * HEIGHT
    reach = max(left + WIDTH * (k + 0.5) + length * math.sqrt(0.5) for k, length in enumerate(lengths))
    return {
        "left": left,
        "top": top,
        "right": right,
        "bottom": bottom,
        "width": round(max(right, reach) + 14),
        "height": bottom + 4,
        "box": {"width": WIDTH, "height": HEIGHT},
        "rows": [{"heading": heading, "at": top + HEIGHT * (k + 0.5)} for k, heading in enumerate(headings)],
        "columns": [{"heading": heading, "at": left + WIDTH * (k + 0.5)} for k, heading in enumerate(headings)],
        "boxes": [
            _box(found, headings, row, column, left, top) for row in range(n) for column in range(n) if row != column
        ],
        "diagonal": [_firsts(found, scores, k, left, top) for k in range(n)],
        "scale": [{"tau": f"{tau:.1f}", **_colour(tau)} for tau in (1.0, 0.5, 0.0, -0.5, -1.0)],
    }


def _box(
    found: RankCorrelation, headings: Sequence[str], row: int, column: int, left: int, top: int
) -> dict[str, object]:
    tau = _tau(found, row, column)
    name = "tau-b" if row > column else "tau_AP, mean of both directions"
    return {
        "x": left + WIDTH * column,
        "y": top + HEIGHT * row,
        "text": _number(tau),
        **_colour(tau),
        "changes": not found.same_winner[row][column],
        "title": f"{headings[row]}, {headings[column]}: {name} {tau:z.4f}, "
        f"{counted(int(found.n_systems[row, column]), 'systems')}"
        + ("" if found.same_winner[row][column] else "; different winner"),
    }


def _colour(tau: float) -> dict[str, object]:
    """Return the colour and opacity of a box; none for NaN."""
    share = 0 if math.isnan(tau) else round(STRONGEST * abs(tau))
    return {"colour": "unlike" if tau < 0 else "alike", "share": share}


def _firsts(found: RankCorrelation, scores: Leaderboard, place: int, left: int, top: int) -> dict[str, object]:
    """Return the discs of the winners in a box of the diagonal."""
    winners = found.winners[place]
    x, y = left + WIDTH * (place + 0.5), top + HEIGHT * (place + 0.5)
    marks = [mark(scores, system) for system in winners] if len(winners) <= DISCS else []
    return {
        "x": left + WIDTH * place,
        "y": top + HEIGHT * place,
        "middle": {"x": x, "y": y},
        "discs": [
            {
                **own,
                "x": x + 22 * (k - (len(marks) - 1) / 2),
                "y": y,
                "size": min(DIGIT, DIGITS // len(str(own["number"]))),
            }
            for k, own in enumerate(marks)
        ],
        "text": f"{len(winners)} tied" if winners and not marks else "",
        "title": listed(winners) or "no system has this measure",
    }
