from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import swsdask.render.sections as rendered
from swsdask.model.leaderboard import leaderboard_of
from swsdask.model.measures import describe, written
from swsdask.render import pages
from swsdask.render.html import page
from swsdask.render.sections import COLUMNS, KINDS, _ticks, calibration, plots
from tests.results import GRID, THRESHOLD, calibrated_systems, entropy, error_rate, three_systems


def points_of(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in (point.split() for point in path[1:].split("L"))]


def test_curves_are_where_their_numbers_say() -> None:
    result = calibrated_systems()
    section = calibration(result.curve_table, leaderboard_of(result.table))["oov=true"]
    assert [system["name"] for system in section["open"]] == list(leaderboard_of(result.table).ranked("oov=true"))
    middling = next(system for system in section["open"] if system["name"] == "middling")
    costs = [
        ("ece", 1.25, lambda x: 1.0),
        ("ece", 1.25, entropy),
        ("ape", 0.6, lambda x: 1.0),
        ("ape", 1.25, error_rate),
    ]
    for plot, (cost, highest, over) in zip(middling["plots"], costs, strict=True):
        across = (plot["right"] - plot["left"]) / (GRID[-1] - GRID[0])
        up = (plot["bottom"] - plot["top"]) / highest
        assert plot["prior"] == pytest.approx(plot["left"] + (-THRESHOLD - GRID[0]) * across, abs=0.06)
        drawn = {curve["kind"]: points_of(curve["path"]) for curve in plot["curves"]}
        assert list(drawn) == list(KINDS)
        rows = result.curve_table.to_pylist()
        for kind, found in drawn.items():
            own = [
                r
                for r in rows
                if (r["system"], r["condition"], r["curve"]) == ("middling", "oov=true", f"{cost}_{kind}")
            ]
            expected = [
                (plot["left"] + (r["x"] - GRID[0]) * across, plot["bottom"] - r["y"] / over(r["x"]) * up) for r in own
            ]
            assert found == [pytest.approx(point, abs=0.06) for point in expected]


def test_the_second_plot_shows_cnxe_at_the_prior() -> None:
    result = calibrated_systems()
    found = leaderboard_of(result.table)
    grid = [x for x in GRID if x == pytest.approx(-THRESHOLD, abs=0.13)]
    (system,) = [s for s in calibration(result.curve_table, found)["all"]["open"] if s["name"] == "weak"]
    plot = system["plots"][1]
    actual = next(points_of(c["path"]) for c in plot["curves"] if c["kind"] == "actual")
    near = min(actual, key=lambda point: abs(point[0] - plot["prior"]))
    value = (plot["bottom"] - near[1]) / (plot["bottom"] - plot["top"]) * 1.25
    assert value == pytest.approx(found.value("all", "weak", "cnxe"), abs=0.02)
    assert grid


def test_the_table_holds_every_number_and_what_was_imputed() -> None:
    result = calibrated_systems()
    found = leaderboard_of(result.table)
    section = calibration(result.curve_table, found)["all"]
    assert section["threshold"] == "4.2000"
    assert [column["heading"] for column in section["columns"]] == [describe(m).heading for m in COLUMNS]
    for row in section["rows"]:
        assert [cell["text"] for cell in row["cells"]] == [
            written(measure, found.value("all", row["system"], measure)) for measure in COLUMNS
        ]
    assert "59,858" in [cell["text"] for cell in section["rows"][0]["cells"]]


def test_the_page_says_what_is_pooled_and_draws_each_system_four_times_in_each_condition() -> None:
    text = page(calibrated_systems())
    assert "It pools the trials of all queries, while TWV averages over queries." in " ".join(text.split())
    assert text.count('<section class="calibration">') == 3
    assert len(re.findall(r'<svg class="ece c\d"', text)) == 3 * 3 * 4
    assert text.count('class="actual" d="M54') == 3 * 3 * 4


def test_no_section_without_cnxe_and_no_pictures_without_curves() -> None:
    plain = three_systems()
    assert calibration(plain.curve_table, leaderboard_of(plain.table)) == {}
    assert 'class="calibration"' not in page(plain)
    assert "C_nxe" not in page(plain)
    without = replace(calibrated_systems(), curve_rows=plain.curve_rows)
    assert all(
        section["open"] == [] for section in calibration(without.curve_table, leaderboard_of(without.table)).values()
    )
    assert 'class="calibration"' in page(without)
    assert "Not drawn:" not in page(without)


def test_many_systems_are_folded_and_then_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendered, "DRAWN", 1)
    monkeypatch.setattr(pages, "MOST_DRAWN", 6)
    result = calibrated_systems()
    section = calibration(result.curve_table, leaderboard_of(result.table))["all"]
    assert [len(section[part]) for part in ("open", "folded")] == [1, 1]
    assert section["not_drawn"] == 1
    text = page(result)
    assert "1 more system<" in text
    assert "Not drawn: 1 further system; curves.parquet has all curves." in text


def test_a_prior_beyond_the_grid_has_no_line_and_a_curve_beyond_the_frame_stays_finite() -> None:
    rows = {"ece_default": [(x, entropy(x)) for x in GRID], "ece_actual": [(x, 1e9) for x in GRID]}
    curves = {name: np.array(points) for name, points in rows.items()}
    bits, relative = plots(curves, -40.0)
    assert bits["prior"] is None
    assert relative["prior"] is None
    assert all(y > -1000 for _, y in points_of(bits["curves"][1]["path"]))
    assert plots({"ece_actual": curves["ece_actual"]}, 0.0) == []


@pytest.mark.parametrize(("low", "high"), [(-10.0, 10.0), (-0.5, 0.5), (-9.3, 0.9), (-40.0, 7.0)])
def test_ticks_are_whole_and_few(low: float, high: float) -> None:
    found = _ticks(low, high)
    assert 1 <= len(found) <= 9
    assert all(low <= tick <= high and tick == int(tick) for tick in found)


def test_hostile_names_stay_text() -> None:
    text = page(calibrated_systems(('"><script>alert(1)</script>', "b", "c")))
    assert "<script>alert" not in text
