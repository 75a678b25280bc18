"""The Monte Carlo study of GAP as a page, a table in a terminal, and files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich import box
from rich.console import Console
from rich.table import Table

from swsdask.model.results import GapStudy
from swsdask.places.reading import Location
from swsdask.places.writing import together
from swsdask.render.pages import environment, style
from swsdask.render.records import as_json

TAU = pa.schema(
    [
        pa.field("replicate", pa.int32(), nullable=False),
        pa.field("function", pa.string(), nullable=False),
        pa.field("other", pa.string(), nullable=False),
        pa.field("tau", pa.float64(), nullable=False),
    ]
)
"""Kendall's tau between the rankings of the simulated systems under two penalty functions."""

WIDTH, HEIGHT = 1080, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 16, 64
GAP = 0.8
"""The gap between families, in units of the distance between functions."""

CELL, MARGIN = 20, 56
"""The size of a box of the matrix, and the margin for numbers."""

BLACK = 24
"""The grey of tau = 1; the lowest tau is white."""


def numbers(study: GapStudy) -> list[dict[str, Any]]:
    """A row for every function: medians and ranges over the other functions, averaged over replicates.

    `low` and `high` are the 5th and the 95th percentile of the median over replicates, `best` the share of replicates
    in which the median is the highest.
    """
    low, high = np.quantile(study.median, [0.05, 0.95], axis=0)
    return [
        {
            "number": place + 1,
            "function": name,
            "family": name.partition(" ")[0],
            "median": float(study.median[:, place].mean()),
            "low": float(low[place]),
            "high": float(high[place]),
            "lowest": float(study.lowest[:, place].mean()),
            "highest": float(study.highest[:, place].mean()),
            "range": float((study.highest - study.lowest)[:, place].mean()),
            "best": float(study.best[place]),
        }
        for place, name in enumerate(study.functions)
    ]


def print_study(study: GapStudy, console: Console | None = None) -> None:
    """Print the table of functions; without `console` to stdout."""
    if console is None:
        console = Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False, emoji=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("", "Penalty function", "Median tau", "Lowest", "Highest", "Range", "Best in"):
        table.add_column(heading, justify="left" if heading == "Penalty function" else "right")
    for _, rows in groupby(numbers(study), key=lambda row: row["family"]):
        if table.row_count:
            table.add_section()
        for row in rows:
            taus = (f"{row[name]:.4f}" for name in ("median", "lowest", "highest", "range"))
            table.add_row(str(row["number"]), row["function"], *taus, f"{row['best']:.1%}")
    console.print(table)


def write_study(study: GapStudy, directory: Location, signature: str) -> list[str]:
    """Write `gap.html`, `gap.json` (the table of functions) and `gap.parquet` (rows of `TAU`); their names.

    Equal studies give equal bytes. Raises `OSError` if the directory cannot be written.
    """
    with together(directory) as hidden:
        (hidden / "gap.html").write_text(page(study, signature), encoding="utf-8")
        (hidden / "gap.json").write_text(study_json(study, signature), encoding="utf-8")
        pq.write_table(_rows(study), hidden / "gap.parquet", compression="zstd")
    return ["gap.html", "gap.json", "gap.parquet"]


def study_json(study: GapStudy, signature: str) -> str:
    """The table of functions as JSON, with the signature of the study."""
    made = {"signature": signature, "seed": study.seed, "replicates": len(study.tau), "functions": numbers(study)}
    return as_json(made, indent=2) + "\n"


def page(study: GapStudy, signature: str) -> str:
    """The study as one HTML file."""
    rows = numbers(study)
    template = environment().get_template("gap_study.html.j2")
    return template.render(
        seed=study.seed,
        replicates=len(study.tau),
        signature=signature,
        best=max(rows, key=lambda row: row["median"]),
        rows=rows,
        families=_families(rows),
        medians=_medians(rows),
        matrix=_matrix(study),
        style=style(),
    )


def _rows(study: GapStudy) -> pa.Table:
    names = pa.array(study.functions)
    replicate, function, other = (axis.ravel().astype(np.int32) for axis in np.indices(study.tau.shape))
    return pa.table([replicate, names.take(function), names.take(other), study.tau.ravel()], schema=TAU)


def _families(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The kinds of functions, each with its colour and its best function."""
    found = []
    for colour, (family, members) in enumerate(groupby(rows, key=lambda row: row["family"])):
        own = list(members)
        spread = sum(row["range"] for row in own) / len(own)
        best = max(own, key=lambda row: row["median"])
        found.append({"name": family, "colour": colour, "rows": own, "range": spread, "best": best})
    return found


def _medians(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The first figure: a dot and a line per function."""
    families = _families(rows)
    low: float = min(0.0, *(row["lowest"] for row in rows))
    bottom = HEIGHT - BOTTOM
    step = (WIDTH - LEFT - RIGHT) / (len(rows) + GAP * len(families))
    x = LEFT + (GAP + 1) * step / 2

    def y(tau: float) -> float:
        return round(bottom - (tau - low) / (1.0 - low) * (bottom - TOP), 1)

    drawn = []
    for family in families:
        marks = []
        for row in family["rows"]:
            marks.append({**row, "x": round(x, 1), "y": {name: y(row[name]) for name in _ENDS}})
            x += step
        drawn.append({**family, "marks": marks, "middle": (marks[0]["x"] + marks[-1]["x"]) / 2})
        x += GAP * step
    ticks = [{"at": y(tick / 10), "label": f"{tick / 10:.1f}"} for tick in range(int(np.ceil(low * 10)), 11, 2)]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "bottom": bottom,
        "ticks": ticks,
        "families": drawn,
    }


_ENDS = ("median", "low", "high", "lowest", "highest")


def _matrix(study: GapStudy) -> dict[str, Any]:
    """The second figure: the mean tau of every pair in grey, the darker the higher."""
    tau = study.tau.mean(axis=0)
    least = float(tau.min())

    def grey(value: float) -> int:
        return round(255 - (255 - BLACK) * (value - least) / (1.0 - least)) if least < 1.0 else BLACK

    side = CELL * len(study.functions)
    return {
        "size": MARGIN + side + 4,
        "side": side,
        "margin": MARGIN,
        "cell": CELL,
        "numbers": [
            {"number": place + 1, "at": MARGIN + CELL * (place + 0.5)} for place in range(len(study.functions))
        ],
        "boxes": list(_boxes(study.functions, tau.tolist(), grey)),
        "scale": [{"tau": f"{value:.2f}", "grey": grey(value)} for value in np.linspace(least, 1.0, 6).tolist()],
    }


def _boxes(functions: tuple[str, ...], tau: list[list[float]], grey: Any) -> Iterator[dict[str, Any]]:
    for i, line in enumerate(tau):
        for j, value in enumerate(line):
            yield {
                "x": MARGIN + CELL * j,
                "y": MARGIN + CELL * i,
                "grey": grey(value),
                "title": f"{functions[i]}, {functions[j]}: {value:.3f}",
            }
