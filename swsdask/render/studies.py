"""The coverage study and the GAP study as pages, tables in a terminal, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from swsdask.model.measures import describe
from swsdask.model.studies import CoverageStudy, GapStudy
from swsdask.model.tables import Row, as_json
from swsdask.places.reading import Location
from swsdask.places.writing import together
from swsdask.render.console import standard_console, standard_table
from swsdask.render.environment import environment, style

_INTERVAL_WIDTH, _INTERVAL_ROW, _INTERVAL_LEFT, _INTERVAL_TOP = 760, 30, 280, 26
_SCALES = {"interval": (0.85, 1.0, 0.05), "test": (0.0, 0.15, 0.05)}
"""The ends of the scales of intervals and tests, and the distance between ticks."""

_WORDS = {
    "bca interval": "BCa interval",
    "p_bootstrap": "bootstrap test",
    "p_randomization": "approximate randomization",
    "p_sign": "sign test",
    "p_wilcoxon": "Wilcoxon's test",
}


def print_coverage_study(study: CoverageStudy) -> None:
    """Print the table to stdout."""
    console = standard_console(120)
    headings = ("Measure", "Interval or test", "Should be", "Is", "95 %\nfrom", "\nto")
    table = standard_table(headings, ("Measure", "Interval or test"))
    for row in study.rows:
        shares = (f"{row[name]:.1%}" for name in ("expected", "share", "low", "high"))
        table.add_row(describe(row["measure"]).heading, _WORDS.get(row["name"], row["name"]), *shares)
    console.print(table)


def coverage_json(study: CoverageStudy, signature: str) -> str:
    """Return the table as JSON, with the signature of the study."""
    made = {
        "signature": signature,
        "seed": study.seed,
        "evaluations": len(study.found),
        "queries": study.n_queries,
        "replicates": study.how.replicates,
        "truth": study.truth,
        "rows": study.rows,
    }
    return as_json(made, indent=2) + "\n"


def write_coverage_study(study: CoverageStudy, directory: Location, signature: str) -> list[str]:
    """Write `compare.html` and `compare.json`; return their names. Equal studies give equal bytes.

    Raises `OSError` if the directory cannot be written.
    """
    with together(directory) as hidden:
        (hidden / "compare.html").write_text(coverage_page(study, signature), encoding="utf-8")
        (hidden / "compare.json").write_text(coverage_json(study, signature), encoding="utf-8")
    return ["compare.html", "compare.json"]


def coverage_page(study: CoverageStudy, signature: str) -> str:
    """Return the study as one HTML file."""
    kinds = {
        "interval": "Intervals that hold the true value",
        "test": "Tests that reject the equality of equal systems",
    }
    return (
        environment()
        .get_template("coverage_study.html.j2")
        .render(
            study=study,
            evaluations=len(study.found),
            signature=signature,
            truth={describe(measure).heading: f"{value:.4f}" for measure, value in study.truth.items()},
            figures=[{"title": title, **_figure(study, kind)} for kind, title in kinds.items()],
            style=style(),
        )
    )


def _figure(study: CoverageStudy, kind: str) -> dict[str, object]:
    """Return a dot and its interval for each row of one kind."""
    low, high, step = _SCALES[kind]
    rows = [row for row in study.rows if row["name"].endswith("interval") == (kind == "interval")]

    def x(share: float) -> float:
        return round(
            _INTERVAL_LEFT
            + (min(max(share, low), high) - low) / (high - low) * (_INTERVAL_WIDTH - _INTERVAL_LEFT - 24),
            1,
        )

    return {
        "width": _INTERVAL_WIDTH,
        "height": _INTERVAL_TOP + _INTERVAL_ROW * len(rows) + 34,
        "top": _INTERVAL_TOP,
        "bottom": _INTERVAL_TOP + _INTERVAL_ROW * len(rows),
        "expected": x(rows[0]["expected"]),
        "ticks": [
            {"at": x(low + k * step), "label": f"{low + k * step:.0%}"} for k in range(round((high - low) / step) + 1)
        ],
        "rows": [
            {
                "y": _INTERVAL_TOP + _INTERVAL_ROW * place + _INTERVAL_ROW / 2,
                "text": f"{describe(row['measure']).heading}, {_WORDS.get(row['name'], row['name'])}",
                "share": f"{row['share']:.1%}",
                "at": x(row["share"]),
                "low": x(row["low"]),
                "high": x(row["high"]),
            }
            for place, row in enumerate(rows)
        ],
    }


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


def gap_numbers(study: GapStudy) -> list[Row]:
    """Return a row for every function: medians and ranges over the other functions, averaged over replicates.

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


def print_gap_study(study: GapStudy) -> None:
    """Print the table of functions to stdout."""
    console = standard_console(120)
    headings = ("", "Penalty function", "Median tau", "Lowest", "Highest", "Range", "Best in")
    table = standard_table(headings, ("Penalty function",))
    for _, rows in groupby(gap_numbers(study), key=lambda row: row["family"]):
        if table.row_count:
            table.add_section()
        for row in rows:
            taus = (f"{row[name]:.4f}" for name in ("median", "lowest", "highest", "range"))
            table.add_row(str(row["number"]), row["function"], *taus, f"{row['best']:.1%}")
    console.print(table)


def write_gap_study(study: GapStudy, directory: Location, signature: str) -> list[str]:
    """Write `gap.html`, `gap.json` (the table of functions) and `gap.parquet` (rows of `TAU`); return their names.

    Equal studies give equal bytes. Raises `OSError` if the directory cannot be written.
    """
    with together(directory) as hidden:
        (hidden / "gap.html").write_text(gap_page(study, signature), encoding="utf-8")
        (hidden / "gap.json").write_text(gap_json(study, signature), encoding="utf-8")
        pq.write_table(_rows(study), hidden / "gap.parquet", compression="zstd")
    return ["gap.html", "gap.json", "gap.parquet"]


def gap_json(study: GapStudy, signature: str) -> str:
    """Return the table of functions as JSON, with the signature of the study."""
    made = {"signature": signature, "seed": study.seed, "replicates": len(study.tau), "functions": gap_numbers(study)}
    return as_json(made, indent=2) + "\n"


def gap_page(study: GapStudy, signature: str) -> str:
    """Return the study as one HTML file."""
    rows = gap_numbers(study)
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


def _families(rows: list[Row]) -> list[Row]:
    """Return the kinds of functions, each with its colour and its best function."""
    found = []
    for colour, (family, members) in enumerate(groupby(rows, key=lambda row: row["family"])):
        own = list(members)
        spread = sum(row["range"] for row in own) / len(own)
        best = max(own, key=lambda row: row["median"])
        found.append({"name": family, "colour": colour, "rows": own, "range": spread, "best": best})
    return found


def _medians(rows: list[Row]) -> dict[str, object]:
    """Return the first figure: a dot and a line per function."""
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


def _matrix(study: GapStudy) -> dict[str, object]:
    """Return the second figure: the mean tau of every pair in grey; darker is higher."""
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


def _boxes(
    functions: tuple[str, ...], tau: list[list[float]], grey: Callable[[float], int]
) -> Iterator[dict[str, object]]:
    for i, line in enumerate(tau):
        for j, value in enumerate(line):
            yield {
                "x": MARGIN + CELL * j,
                "y": MARGIN + CELL * i,
                "grey": grey(value),
                "title": f"{functions[i]}, {functions[j]}: {value:.3f}",
            }
