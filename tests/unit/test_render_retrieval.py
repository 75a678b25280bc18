"""Ranked retrieval in the report: its table, and where precision-recall curves stand."""

from __future__ import annotations

import pyarrow as pa
import pytest

from swsdask.model.leaderboard import leaderboard_of
from swsdask.model.results import CURVES, SCORES, Result
from swsdask.render import sections
from swsdask.render.html import page
from swsdask.render.sections import retrieval
from tests.rankings import Event, tables_of
from tests.results import table, three_systems
from tests.unit.test_average_precision import with_options

EVENTS = [Event(0, "a", 3.0, True), Event(0, "b", 2.0, False), Event(0, "c", 1.0, True), Event(0, "d", 0.5, False)]
EVENTS += [Event(0, "e", None, True)]


def curves() -> list[tuple[str, float, float, float]]:
    found = tables_of(with_options(), 1, "abcde", EVENTS).curves.table.to_pylist()
    return [(row["curve"], row["threshold"], row["x"], row["y"]) for row in found if "recall" in row["curve"]]


def result() -> Result:
    made = three_systems()
    points = [("good", "all", *point) for point in curves()]
    scores = [("good", "all", None, name, value) for name, value in (("ap", 0.5), ("precision_at_rank@5", 0.25))]
    return Result.of(
        pa.concat_tables([made.table.cast(SCORES), table(scores, SCORES)]),
        pa.concat_tables([made.curve_table.cast(CURVES), table(points, CURVES)]),
        made.manifest,
        made.notes,
    )


def test_curves_of_a_ranking() -> None:
    assert curves() == [
        ("precision_recall", 3.0, 1 / 3, 1.0),
        ("precision_recall", 1.0, 2 / 3, 2 / 3),
        ("precision_recall", 0.5, 2 / 3, 0.5),
        ("precision_recall_interpolated", 3.0, 1 / 3, 1.0),
        ("precision_recall_interpolated", 1.0, 2 / 3, 2 / 3),
        ("precision_recall_interpolated", 0.5, 2 / 3, 2 / 3),
    ]


def test_curves_are_where_they_should_be() -> None:
    made = result()
    section = retrieval(made.curve_table, leaderboard_of(made.table))["all"]
    assert [column["heading"] for column in section["columns"]] == ["AP", "P@5"]
    assert [row["cells"][1]["text"] for row in section["rows"] if row["system"] == "good"] == ["0.2500"]
    (picture,) = section["open"]
    across, down = (
        sections.WIDTH - sections.RIGHT - sections.LEFT,
        sections.HEIGHT - sections.BOTTOM - sections.TOP,
    )

    def unscaled(path: str) -> list[tuple[float, float]]:
        places = [[float(number) for number in place.split()] for place in path[1:].split("L")]
        return [((x - sections.LEFT) / across, (sections.HEIGHT - sections.BOTTOM - y) / down) for x, y in places]

    raw, stairs = (unscaled(curve["path"]) for curve in picture["plots"][0]["curves"])
    assert raw == [pytest.approx(point, abs=1e-3) for point in [(1 / 3, 1), (2 / 3, 2 / 3), (2 / 3, 1 / 2)]]
    corners = [(0, 1), (1 / 3, 1), (1 / 3, 2 / 3), (2 / 3, 2 / 3)]
    assert stairs == [pytest.approx(point, abs=1e-3) for point in corners]


def test_the_report_shows_them() -> None:
    text = page(result())
    assert "Ranked retrieval" in text
    assert 'aria-label="Precision against recall of good: Precision"' in text
    assert "Ranked retrieval" not in page(three_systems())
