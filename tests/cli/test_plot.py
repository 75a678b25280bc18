"""Figures of results: what is drawn, the files, and messages."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure

import swsdask as sws
from swsdask.api.results import FIGURES
from swsdask.model.plots import new_figure
from swsdask.model.results import CURVES, SCORES
from swsdask.render.outputs import write_outputs
from tests.command_line import Outcome

BETA = 500.0
SYSTEMS = {f"s{number:02}": 0.8 - 0.05 * number for number in range(12)}


@pytest.fixture(autouse=True, scope="module")
def _without_windows() -> None:
    mpl.use("Agg")


@pytest.fixture(scope="module")
def result() -> sws.Result:
    """Twelve systems, the first the best, and curves of every kind."""
    rows, points = [], []
    for system, atwv in SYSTEMS.items():
        p_fa = 1e-4
        numbers = {"atwv": atwv, "mtwv": atwv, "p_fa": p_fa, "p_miss": 1 - atwv - BETA * p_fa}
        numbers |= {"mtwv_p_fa": p_fa, "mtwv_p_miss": numbers["p_miss"], "cnxe": 1 - atwv}
        numbers |= {"p_fa_pooled": p_fa, "p_miss_pooled": 0.5}
        rows += [(system, "all", None, name, value) for name, value in numbers.items()]
        for kind in ("det", "det_pooled"):
            points += [(system, "all", kind, -x, 10.0**-x, 1 - atwv / x) for x in (1.0, 2.0, 4.0)]
        for kind in ("actual", "pav", "default", "affine"):
            points += [(system, "all", f"{cost}_{kind}", -x, x, 0.5) for cost in ("ece", "ape") for x in (-1.0, 1.0)]
        for kind in ("precision_recall", "precision_recall_interpolated"):
            points += [(system, "all", kind, -x, x, 1 - x / 2) for x in (0.1, 0.9)]
    table = pa.table([pa.array(column) for column in zip(*rows, strict=True)], schema=SCORES)
    curves = pa.table([pa.array(column) for column in zip(*points, strict=True)], schema=CURVES)
    return sws.Result.of(table, curves, {"signature": "s", "measures": ["atwv", "mtwv"]})


def test_a_det_curve_is_that_of_the_table(result: sws.Result) -> None:
    axes = result.plot_det(systems="s03")
    (line,) = [line for line in axes.get_lines() if line.get_label() == "s03"]
    assert np.asarray(line.get_xdata()).tolist() == [0.1, 0.01, 0.0001]
    assert np.asarray(line.get_ydata()).tolist() == [1 - SYSTEMS["s03"] / x for x in (1.0, 2.0, 4.0)]
    marks = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert [np.asarray(mark.get_xdata()).tolist() for mark in marks] == [[1e-4], [1e-4]]
    equal = [line for line in axes.get_lines() if line.get_color() == "grey"]
    x, y = (np.asarray(data) for data in (equal[0].get_xdata(), equal[0].get_ydata()))
    twv = y + BETA * x
    assert twv == pytest.approx(np.full(len(x), twv[0]))
    axes.figure.draw_without_rendering()
    names = [text for text in axes.texts if text.get_text().startswith("TWV ")]
    assert len(names) == len(equal)
    assert all(text.get_window_extent().y1 <= axes.get_window_extent().y1 for text in names)


def test_the_first_ten_of_the_leaderboard(result: sws.Result) -> None:
    legend = result.plot_precision_recall().get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == list(SYSTEMS)[:10]


def test_interpolated_precision_is_drawn_as_the_stairs_of_the_report(result: sws.Result) -> None:
    (line,) = result.plot_precision_recall(systems="s03").get_lines()
    assert line.get_drawstyle() == "steps-pre"
    assert np.asarray(line.get_xydata()).tolist() == [[0.0, 0.95], [0.1, 0.95], [0.9, 0.55]]
    (line,) = result.plot_precision_recall(systems="s03", interpolated=False).get_lines()
    assert line.get_drawstyle() == "default"
    assert np.asarray(line.get_xydata()).tolist() == [[0.1, 0.95], [0.9, 0.55]]


def test_costs_go_the_other_way(result: sws.Result) -> None:
    axes = result.plot_leaderboard("cnxe", systems=["s02", "s01"])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["s01", "s02"]
    axes = result.plot_leaderboard("mtwv", systems=["s02", "s01"])
    assert [text.get_text() for text in axes.get_yticklabels()] == ["s01", "s02"]


def test_into_axes_of_ones_own(result: sws.Result) -> None:
    left, right = Figure().subplots(1, 2)
    assert result.plot_ece(ax=left) is left
    assert result.plot_ece(cost="ape", ax=right) is right
    assert (left.get_ylabel(), right.get_ylabel()) == ("Cross entropy (bits)", "Error rate")


@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
def test_equal_files_twice(result: sws.Result, tmp_path: Path, kind: str, form: str) -> None:
    first, second = (tmp_path / f"{name}.{form}" for name in "ab")
    for path in (first, second):
        sws.plot(result, path, kind, systems=["s00", "s01"])
    assert len(first.read_bytes()) > 1000
    assert first.read_bytes() == second.read_bytes()


def test_the_command(swsdask: Callable[..., Outcome], result: sws.Result, tmp_path: Path) -> None:
    write_outputs(result, tmp_path)
    ended = swsdask("plot", tmp_path, tmp_path / "bars.svg", "--kind", "leaderboard", "--measure", "mtwv")
    assert (ended.code, ended.err) == (0, "")
    assert (tmp_path / "bars.svg").read_text().count("<path") >= len(SYSTEMS) - 2
    ended = swsdask("plot", tmp_path, tmp_path / "det.bmp")
    assert ended.code == 2
    assert ".svg, .pdf or .png" in ended.err


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda result: result.plot_det(systems="s99"), "no system 's99' was scored. There are: s00"),
        (lambda result: result.plot_det(systems=[]), "no system was named"),
        (lambda result: result.plot_det(condition="oov"), "no condition 'oov' was scored. There are: all"),
        (lambda result: result.plot_ece(cost="dcf"), "no cost 'dcf': there are ece and ape"),
        (lambda result: result.plot_leaderboard("map"), "map was not scored over all queries"),
        (lambda result: sws.plot(result, "a.svg", "roc"), "no figure 'roc': there are det"),
        (lambda result: sws.plot(result, "a.svg", measure="mtwv"), "measure requires kind"),
    ],
)
def test_messages(result: sws.Result, draw: Callable[[sws.Result], object], message: str) -> None:
    with pytest.raises(sws.SettingsError, match=message.replace(".", r"\.")):
        draw(result)


def test_a_curve_that_was_not_computed(result: sws.Result) -> None:
    bare = sws.Result.of(result.table, result.curve_table.slice(0, 0), result.manifest)
    with pytest.raises(sws.SettingsError, match="s00 has no curve det in condition 'all'"):
        bare.plot_det()


def test_a_system_without_the_curve_is_left_out_unless_it_is_named(result: sws.Result) -> None:
    there = pa.compute.not_equal(result.curve_table["system"], "s01")
    partly = sws.Result.of(result.table, result.curve_table.filter(there), result.manifest)
    legend = partly.plot_precision_recall().get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["s00", *list(SYSTEMS)[2:10]]
    assert legend.get_title().get_text() == "Not drawn, without this curve: s01"
    with pytest.raises(sws.SettingsError, match=r"s01 has no curve precision_recall_interpolated .* no detections"):
        partly.plot_precision_recall(systems=["s00", "s01"])


@pytest.mark.parametrize("draw", ["plot_det", "plot_ece", "plot_precision_recall", "plot_leaderboard"])
def test_names_that_mean_something_to_matplotlib(result: sws.Result, draw: str) -> None:
    """Labels that begin with "_" are left out of legends, and two "$" have mathematics between them."""
    names = {"s00": "_baseline", "s01": "a$b$c", "s02": "cost$x^$", "s03": "x"}
    tables = []
    for table in (result.table, result.curve_table):
        own = [names.get(system, system) for system in table["system"].to_pylist()]
        tables.append(table.set_column(0, "system", pa.array(own)))
    axes = getattr(sws.Result.of(*tables, result.manifest), draw)(systems=[*names.values()])
    axes.figure.savefig(io.BytesIO())
    texts = axes.get_yticklabels() if draw == "plot_leaderboard" else axes.get_legend().get_texts()
    shown = [text.get_text() for text in texts]
    assert [text.replace(r"\$", "$") for text in shown[:4]] == [*names.values()]
    assert not any(is_math_text(text) for text in shown)


@pytest.mark.parametrize("draw", ["plot_det", "plot_ece", "plot_precision_recall", "plot_leaderboard"])
def test_long_names_lie_in_the_figure(result: sws.Result, draw: str) -> None:
    """As long as those of OpenKWS, and equal but for the end or the middle."""
    names = {"s00": f"KWS13_{'x' * 64}_1", "s01": f"KWS13_{'x' * 64}_2", "s02": f"KWS13_{'x' * 32}y{'x' * 31}_1"}
    tables = []
    for table in (result.table, result.curve_table):
        own = [names.get(system, system) for system in table["system"].to_pylist()]
        tables.append(table.set_column(0, "system", pa.array(own)))
    figure = new_figure()
    axes = figure.subplots()
    getattr(sws.Result.of(*tables, result.manifest), draw)(systems=[*names.values()], ax=axes)
    figure.draw_without_rendering()
    texts = axes.get_yticklabels() if draw == "plot_leaderboard" else axes.get_legend().get_texts()
    assert [text.get_text().replace("\n", "") for text in texts][:3] == [*names.values()]
    width = figure.bbox.width
    assert all(
        0 <= text.get_window_extent().x0 < text.get_window_extent().x1 <= width for text in [*texts, axes.xaxis.label]
    )
    assert axes.bbox.width > 0.4 * width


def test_without_matplotlib(result: sws.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(sws.SettingsError, match="figures need matplotlib, which is not installed"):
        result.plot_det()


def test_csv_keeps_every_digit(result: sws.Result, tmp_path: Path) -> None:
    text = result.to_csv()
    assert text is not None
    assert result.to_csv(str(tmp_path / "scores.csv")) is None
    assert (tmp_path / "scores.csv").read_text() == text
    assert pyarrow.csv.read_csv(tmp_path / "scores.csv")["value"].to_pylist() == result.table["value"].to_pylist()
    assert result.to_arrow().equals(result.table.cast(SCORES))
