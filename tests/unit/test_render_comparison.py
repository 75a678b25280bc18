"""The report of a comparison: whiskers, ties, matrices, losses, worst queries; its files beside those of a result."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import swsdask as sws
from swsdask.model.comparison import Comparison
from swsdask.model.results import SCORES, Result
from swsdask.render import comparison
from swsdask.render.comparison import LEVELS, print_comparison
from swsdask.render.html import page
from swsdask.render.outputs import read_outputs
from swsdask.render.worst_queries import WORST_LISTED
from tests.results import MANIFEST, made_up, made_up_result, three_systems

TARGETS = [3, 5, 2, 4, 6, 3, 2, 8, 4, 3, 5, 2, 4, 3, 6]


@pytest.fixture(scope="module")
def result() -> Result:
    qualities = {"good": 3.0, "likewise": 2.9, "weak": 0.2}
    systems = [made_up(name, quality, TARGETS, seed=k) for k, (name, quality) in enumerate(qualities.items())]
    return made_up_result(systems, TARGETS)


@pytest.fixture(scope="module")
def compared(result: Result) -> Comparison:
    return sws.compare(result, "atwv", replicates=500)


def test_of_many_pairs_those_with_the_best_are_printed(
    compared: Comparison, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_comparison(compared)
    assert re.search("^likewise +weak ", capsys.readouterr().out, re.MULTILINE)
    monkeypatch.setattr(comparison, "MOST_PAIRS", 2)
    print_comparison(compared)
    shown = capsys.readouterr().out
    assert re.search("^good +likewise ", shown, re.MULTILINE)
    assert re.search("^good +weak ", shown, re.MULTILINE)
    assert not re.search("^likewise +weak ", shown, re.MULTILINE)
    assert "\n1 more pair: --out writes them, --format json prints them.\n" in shown


def test_a_difference_of_equal_systems_has_no_sign() -> None:
    systems = [made_up(name, 2.0, TARGETS, seed=0) for name in ("one", "same")]
    result = made_up_result(systems, TARGETS)
    shown = page(replace(result, comparison=sws.compare(result, "atwv", replicates=50)))
    assert ">0.0000<" in shown
    assert ">-0.0000<" not in shown


def test_intervals_are_whiskers_and_under_the_numbers(result: Result, compared: Comparison) -> None:
    without, shown = page(result), page(replace(result, comparison=compared))
    assert without.count('class="whisker"') == 0
    assert shown.count('class="whisker" d="M') == 1 + 3  # one in the key
    for row in compared.intervals_of("all", "atwv"):
        assert f"<small>{row['low']:.4f}…{row['high']:.4f}</small>" in shown
        ends = [round(140 * min(1.0, max(0.0, end)), 1) for end in (row["low"], row["high"])]
        assert f'class="whisker" d="M{ends[0]} 9H{ends[1]}' in shown


def test_who_is_tied_with_the_best_is_marked(result: Result, compared: Comparison) -> None:
    tied = compared.tied("all", "atwv")
    assert tied is not None
    assert (tied.best, tied.others) == ("good", ("likewise",))
    shown = page(replace(result, comparison=compared))
    rows = re.findall(r'<tr><th scope="row" class="name">.*?</tr>', shown, re.DOTALL)[:3]
    assert [("tied with the best" in row) for row in rows] == [False, True, False]


def test_a_matrix_has_every_difference_shaded_by_p(result: Result, compared: Comparison) -> None:
    shown = page(replace(result, comparison=compared))
    matrix = shown[shown.index("sortable matrix") :]
    matrix = matrix[: matrix.index("</table>")]
    cells = re.findall(r'<td data-value="([^"]*)"(.*?)>([^<]*)</td>', matrix)
    assert len(cells) == 9
    assert [cells[k][0] for k in (0, 4, 8)] == ["", "", ""]
    for row in compared.differences_of("all", "atwv"):
        for sign in (1, -1):
            (cell,) = [cell for cell in cells if cell[0] == repr(sign * row["difference"])]
            share = next((share for level, share in LEVELS if row["p_adjusted"] < level), 0)
            assert (f"--share: {share}%" in cell[1]) == bool(share)
            assert cell[2].lstrip("+") == f"{sign * row['difference']:.4f}"
            if share:
                assert f'class="{"alike" if sign * row["difference"] > 0 else "unlike"}"' in cell[1]


def test_a_comparison_with_a_baseline_has_one_column_and_no_ties(result: Result) -> None:
    against = sws.compare(result, "atwv", baseline="weak", replicates=100)
    shown = page(replace(result, comparison=against))
    matrix = shown[shown.index("sortable matrix") :]
    assert "tied with the best" not in shown
    assert len(re.findall(r"<td ", matrix[: matrix.index("</table>")])) == 9
    assert sum(cell != "" for cell in re.findall(r'<td data-value="([^"]*)"', matrix[: matrix.index("</table>")])) == 4


@pytest.mark.parametrize(
    ("threshold", "atwv", "widths"),
    [
        (0.1, 0.4, [88.0, 22.0, 22.0, 44.0, 44.0]),
        (-0.05, 0.55, [121.0, 11.0, 44.0, 44.0]),
        (-0.1, 0.6, [132.0, 44.0, 44.0]),
        (math.nan, 0.4, [88.0]),
    ],
)
def test_losses_are_a_stacked_bar(threshold: float, atwv: float, widths: list[float]) -> None:
    parts = {"loss_across_queries": 0.1, "loss_within_query": 0.2, "loss_not_found": 0.2, "loss_threshold": threshold}
    table = pa.table(
        {
            "system": ["s"] * 5,
            "condition": ["all"] * 5,
            "query": pa.nulls(5, pa.string()),
            "measure": ["atwv", *parts],
            "value": [atwv, *parts.values()],
        },
        SCORES,
    )
    shown = page(Result.of(table, three_systems().curve_table, MANIFEST))
    section = shown[shown.index("Losses of systems") :]
    bar = section[section.index('class="track"') :]
    found = re.findall(r'<rect class="(\w+)" x="([\d.]+)" y="1" width="([\d.]+)"', bar[: bar.index("</svg>")])
    assert [float(width) for _, _, width in found] == widths
    assert [float(x) for _, x, _ in found] == [sum(widths[:k]) for k in range(len(widths))], "none lies over another"
    if not math.isnan(threshold):
        assert sum(widths) == 220.0
        assert [name for name, _, _ in found][-2:] == ["loss_within_query", "loss_not_found"]


def test_worst_queries_link_to_their_rows(result: Result) -> None:
    shown = page(result)
    section = shown[shown.index('id="worst-queries"') :]
    section = section[: section.index("</section>")]
    links = re.findall(r'data-system="(\w+)" data-query="(\w+)">\w+</a> (\S+?)<', section)
    for system in ("good", "likewise", "weak"):
        values = [
            (row["value"], row["query"])
            for row in result.table.to_pylist()
            if (row["system"], row["condition"], row["measure"]) == (system, "all", "atwv")
            and row["query"] is not None
            and row["value"] < 1
        ]
        expected = [(system, query, f"{value:.4f}") for value, query in sorted(values)[:WORST_LISTED]]
        assert [link for link in links if link[0] == system] == expected


def test_a_comparison_becomes_part_of_a_result_until_another_replaces_it(
    result: Result, compared: Comparison, tmp_path: Path
) -> None:
    sws.write(result, tmp_path)
    assert read_outputs(tmp_path).comparison is None
    names = sws.write_comparison(compared, tmp_path)
    assert names == ["intervals.parquet", "differences.parquet", "comparison.json", "report.html"]
    assert "Differences between systems" in (tmp_path / "report.html").read_text()
    back = read_outputs(tmp_path).comparison
    assert back is not None
    assert back.interval_table.equals(compared.interval_table)
    assert back.difference_table.to_pandas().equals(compared.difference_table.to_pandas())
    assert (back.how, back.notes, back.signature) == (compared.how, compared.notes, compared.signature)
    sws.renew_report(tmp_path)
    assert "Differences between systems" in (tmp_path / "report.html").read_text()
    sws.write(result, tmp_path)
    assert read_outputs(tmp_path).comparison is None
    assert not any((tmp_path / name).exists() for name in names[:3])


def test_long_tables_are_not_repeated_in_json(
    compared: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_rows = compared.interval_table.num_rows + compared.difference_table.num_rows
    found = {}
    for most in (n_rows, n_rows - 1):
        monkeypatch.setattr(comparison, "MOST_RECORDS", most)
        sws.write_comparison(compared, tmp_path)
        found[most] = json.loads((tmp_path / "comparison.json").read_text())
    whole, short = found.values()
    assert len(whole.pop("intervals")) + len(whole.pop("differences")) == n_rows
    assert short == whole


def test_a_comparison_of_other_numbers_is_refused(result: Result, tmp_path: Path) -> None:
    sws.write(three_systems(), tmp_path)
    other = sws.compare(result, "atwv", replicates=10)
    with pytest.raises(sws.SettingsError, match="of different runs or settings"):
        sws.write_comparison(other, tmp_path)
    with pytest.raises(sws.SettingsError, match="of different runs or settings"):
        sws.report(three_systems(), tmp_path / "page.html", comparison=other)


def test_a_damaged_comparison_is_refused(result: Result, compared: Comparison, tmp_path: Path) -> None:
    sws.write(result, tmp_path)
    sws.write_comparison(compared, tmp_path)
    (tmp_path / "comparison.json").write_text("{}")
    with pytest.raises(sws.InputError, match=r"comparison\.json"):
        read_outputs(tmp_path)


def test_a_comparison_as_csv_is_what_the_command_prints(compared: Comparison, tmp_path: Path) -> None:
    assert compared.to_csv() == comparison.comparison_as("csv", compared)
    assert compared.to_csv(tmp_path / "intervals.csv", "intervals") is None
    assert (tmp_path / "intervals.csv").read_text() == compared.intervals.to_csv(index=False)
    with pytest.raises(sws.SettingsError, match="there is no table 'scores' here"):
        compared.to_csv(table="scores")
