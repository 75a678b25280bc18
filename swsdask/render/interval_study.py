"""The study of intervals and tests as a page, a table in a terminal, and files."""

from __future__ import annotations

import sys
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from swsdask.model.comparison import CoverageStudy
from swsdask.model.measures import describe
from swsdask.places.reading import Location
from swsdask.places.writing import together
from swsdask.render.pages import environment, style
from swsdask.render.records import as_json

WIDTH, ROW, LEFT, TOP = 760, 30, 280, 26
_SCALES = {"interval": (0.85, 1.0, 0.05), "test": (0.0, 0.15, 0.05)}
"""The ends of the scales of intervals and tests, and the distance of their ticks."""

_WORDS = {
    "bca interval": "BCa interval",
    "p_bootstrap": "bootstrap test",
    "p_randomization": "approximate randomization",
    "p_sign": "sign test",
    "p_wilcoxon": "Wilcoxon's test",
}


def print_study(study: CoverageStudy, console: Console | None = None) -> None:
    """Print the table; without `console` to stdout."""
    if console is None:
        console = Console(width=None if sys.stdout.isatty() else 120, highlight=False, markup=False, emoji=False)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("Measure", "Interval or test", "Should be", "Is", "95 %\nfrom", "\nto"):
        table.add_column(heading, justify="left" if not table.columns or len(table.columns) == 1 else "right")
    for row in study.rows:
        shares = (f"{row[name]:.1%}" for name in ("expected", "share", "low", "high"))
        table.add_row(describe(row["measure"]).heading, _WORDS.get(row["name"], row["name"]), *shares)
    console.print(table)


def study_json(study: CoverageStudy, signature: str) -> str:
    """The table as JSON, with the signature of the study."""
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


def write_study(study: CoverageStudy, directory: Location, signature: str) -> list[str]:
    """Write `compare.html` and `compare.json`; their names. Equal studies give equal bytes.

    Raises `OSError` if the directory cannot be written.
    """
    with together(directory) as hidden:
        (hidden / "compare.html").write_text(page(study, signature), encoding="utf-8")
        (hidden / "compare.json").write_text(study_json(study, signature), encoding="utf-8")
    return ["compare.html", "compare.json"]


def page(study: CoverageStudy, signature: str) -> str:
    """The study as one HTML file."""
    kinds = {"interval": "Intervals that hold the true value", "test": "Tests that reject that equal systems are equal"}
    return (
        environment()
        .get_template("interval_study.html.j2")
        .render(
            study=study,
            evaluations=len(study.found),
            signature=signature,
            truth={describe(measure).heading: f"{value:.4f}" for measure, value in study.truth.items()},
            figures=[{"title": title, **_figure(study, kind)} for kind, title in kinds.items()],
            style=style(),
        )
    )


def _figure(study: CoverageStudy, kind: str) -> dict[str, Any]:
    """A dot and its interval for each row of one kind."""
    low, high, step = _SCALES[kind]
    rows = [row for row in study.rows if row["name"].endswith("interval") == (kind == "interval")]

    def x(share: float) -> float:
        return round(LEFT + (min(max(share, low), high) - low) / (high - low) * (WIDTH - LEFT - 24), 1)

    return {
        "width": WIDTH,
        "height": TOP + ROW * len(rows) + 34,
        "top": TOP,
        "bottom": TOP + ROW * len(rows),
        "expected": x(rows[0]["expected"]),
        "ticks": [
            {"at": x(low + k * step), "label": f"{low + k * step:.0%}"} for k in range(round((high - low) / step) + 1)
        ],
        "rows": [
            {
                "y": TOP + ROW * place + ROW / 2,
                "text": f"{describe(row['measure']).heading}, {_WORDS.get(row['name'], row['name'])}",
                "share": f"{row['share']:.1%}",
                "at": x(row["share"]),
                "low": x(row["low"]),
                "high": x(row["high"]),
            }
            for place, row in enumerate(rows)
        ],
    }
