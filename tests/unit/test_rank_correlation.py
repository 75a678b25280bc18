"""Rank correlation of a result: which measures, which systems, who wins; and its section of the report."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from scipy.stats import kendalltau

import swsdask as sws
from swsdask.comparison.rank_correlation import rank_correlation, rank_correlations
from swsdask.model.errors import SettingsError
from swsdask.model.leaderboard import leaderboard_of
from swsdask.model.results import RANK_CORRELATION, RankCorrelation, Result
from swsdask.render.html import page as report
from swsdask.render.rank_correlation import page, print_rank_correlation, write_rank_correlation
from tests.rank_correlations import in_two_conditions, of_numbers, slow_tau_ap

NAN = math.nan
NUMBERS: dict[str, list[float]] = {
    "n_hit": [9, 1, 2, 3],
    "atwv": [0.4, 0.3, 0.2, 0.1],
    "mtwv": [0.4, 0.5, 0.3, NAN],
    "cnxe": [0.4, 0.3, 0.2, 0.1],
    "map": [0.6, 0.6, 0.1, 0.2],
    "eer": [NAN, NAN, NAN, NAN],
    "beta": [66.0, 66.0, 66.0, 66.0],
}


def of_pair(found: RankCorrelation, one: str, other: str) -> dict[str, Any]:
    (row,) = [row for row in found.table.to_pylist() if (row["measure"], row["other"]) == (one, other)]
    return dict(row)


def text(result: Result, found: RankCorrelation, width: int = 200) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=True)
    print_rank_correlation(found, leaderboard_of(result.table, result.requested), console)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_measures_that_balance_both_errors_unless_others_are_named() -> None:
    result = of_numbers(NUMBERS)
    assert rank_correlation(result).measures == ("atwv", "mtwv", "cnxe", "map")
    assert rank_correlation(result, ["map", "n_hit", "map"]).measures == ("map", "n_hit")
    asked = of_numbers(NUMBERS, asked=["n_hit", "beta", "cnxe"])
    assert rank_correlation(asked).measures == ("n_hit", "cnxe")
    points = of_numbers({"twv@0.5": [1.0, 2.0], "twv@1.0": [2.0, 1.0], "atwv": [1.0, 2.0]})
    assert rank_correlation(points, ["twv@", "atwv"]).measures == ("twv@0.5", "twv@1.0", "atwv")


def test_less_is_better_where_it_is() -> None:
    found = rank_correlation(of_numbers(NUMBERS), ["atwv", "cnxe"])
    assert found.tau_b[0, 1] == found.tau_ap[0, 1] == -1.0
    assert found.winners == (("a",), ("d",))
    assert found.same_winner == [[True, False], [False, True]]


def test_every_pair_goes_by_the_systems_that_have_both() -> None:
    found = rank_correlation(of_numbers(NUMBERS))
    merits = {"atwv": [0.4, 0.3, 0.2, 0.1], "map": [0.6, 0.6, 0.1, 0.2]}
    row = of_pair(found, "atwv", "map")
    assert (row["n_systems"], row["n_left_out"]) == (4, 0)
    assert row["tau_b"] == pytest.approx(kendalltau(*merits.values()).statistic, abs=1e-15)
    forth, back = slow_tau_ap(*merits.values()), slow_tau_ap(*reversed(merits.values()))
    assert (row["tau_ap"], of_pair(found, "map", "atwv")["tau_ap"]) == pytest.approx((forth, back), abs=1e-15)
    assert forth != back
    assert row["tau_ap_symmetric"] == pytest.approx((forth + back) / 2, abs=1e-15)
    assert of_pair(found, "map", "mtwv")["n_left_out"] == 1
    assert of_pair(found, "map", "mtwv")["tau_b"] == pytest.approx(2 / math.sqrt(2 * 3), abs=1e-15)
    assert found.winners[found.measures.index("map")] == ("a", "b")
    assert (np.diagonal(found.tau_b) == 1).all()
    assert (found.tau_b == found.tau_b.T).all()


def test_systems_in_another_order_give_the_same_bits() -> None:
    order = [2, 0, 3, 1]
    moved = {measure: [values[k] for k in order] for measure, values in NUMBERS.items()}
    one = rank_correlation(of_numbers(NUMBERS))
    other = rank_correlation(of_numbers(moved, ["abcd"[k] for k in order]))
    for name in ("n_systems", "tau_b", "tau_ap"):
        assert getattr(one, name).tobytes() == getattr(other, name).tobytes()
    assert [set(own) for own in one.winners] == [set(own) for own in other.winners]


def test_a_measure_that_no_system_has_when_it_is_named() -> None:
    result = of_numbers(NUMBERS)
    found = rank_correlation(result, ["atwv", "eer"])
    assert np.isnan(found.tau_b[0, 1])
    assert found.n_systems.tolist() == [[4, 0], [0, 0]]
    assert found.winners == (("a",), ())
    assert "No system has this measure." in page(found, leaderboard_of(result.table), "s")
    assert "EER: left out 4 systems without this measure." in text(result, found)


@pytest.mark.parametrize(
    ("measures", "condition", "message"),
    [
        (["atwv", "cnxf"], "all", "'cnxf' is not in the result. Nearest: cnxe"),
        (["atwv", "beta"], "all", "'beta' has no order of merit"),
        (["atwv", "twv@"], "all", r"'twv@' is not in the result. Nearest: [am]twv"),
        (["atwv"], "all", "two or more measures to compare; found atwv. The result has, for example: atwv, mtwv"),
        ([], "all", "found none"),
        (None, "oov", "'oov' is not in the result. It has: all"),
    ],
)
def test_what_cannot_be_compared(measures: list[str] | None, condition: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        rank_correlation(of_numbers(NUMBERS), measures, condition)


def test_one_system_has_no_ranking() -> None:
    with pytest.raises(SettingsError, match="at least two systems; the result has only a"):
        rank_correlation(of_numbers({"atwv": [0.1], "mtwv": [0.2]}))


def test_a_data_frame() -> None:
    frame = sws.rank_correlation(of_numbers(NUMBERS), ["cnxe", "mtwv"])
    assert list(frame.columns) == RANK_CORRELATION.names
    wide = frame.pivot(index="measure", columns="other", values="tau_b")
    assert wide.to_dict() == {
        "cnxe": {"cnxe": 1.0, "mtwv": pytest.approx(-1 / 3)},
        "mtwv": {"cnxe": pytest.approx(-1 / 3), "mtwv": 1.0},
    }


def test_conditions_with_enough_systems_are_in_the_report() -> None:
    result = in_two_conditions(NUMBERS)
    assert [found.condition for found in rank_correlations(result)] == ["all", "oov=true"]
    two = {measure: values[:3] for measure, values in NUMBERS.items()}
    assert [found.condition for found in rank_correlations(in_two_conditions(two))] == ["all"]
    assert rank_correlations(of_numbers({"atwv": [1.0, 2.0, 3.0]})) == ()
    assert rank_correlations(of_numbers({})) == ()


def test_the_report_says_who_wins_and_shows_every_pair() -> None:
    result = in_two_conditions(NUMBERS)
    whole = report(result, rank_correlations(result))
    assert "Rank correlation between measures" not in report(result)
    assert whole.count('class="matrix-plot"') == 2
    first = whole[whole.index('class="verdict"') : whole.index("</section>", whole.index('class="verdict"'))]
    assert "The winner depends on the measure; first under at least one of 4 measures: 3 systems." in first
    said = [" ".join(re.sub(r"<[^>]*>", " ", line).split()) for line in re.findall(r"<li>.*?</li>", first, re.DOTALL)]
    assert said == [
        "ATWV 1 a is first with 0.4000.",
        "MTWV 2 b is first with 0.5000.",
        "C_nxe 4 d is first with 0.1000.",
        "MAP 1 a, 2 b tie for first with 0.6000.",
    ]
    shown = re.findall(r'<text class="tau"[^>]*>([^<]*)</text>', first)
    found = rank_correlation(result)
    lower, upper = found.tau_b, found.tau_ap_symmetric
    expected = [(lower if i > j else upper)[i, j] for i in range(4) for j in range(4) if i != j]
    assert shown == [f"{tau:z.2f}" for tau in expected]
    assert first.count('rect class="changes"') == sum(not same for line in found.same_winner for same in line)
    assert "MTWV: left out 1 system without this measure." in first


def test_a_winner_under_all_measures_is_said_to_be() -> None:
    result = of_numbers({"atwv": [0.1, 0.2], "map": [0.1, 0.2], "cnxe": [0.1, 0.1]})
    assert "b: first under all 3 measures." in text(result, rank_correlation(result))
    assert "b: first under both." in text(result, rank_correlation(result, ["map", "cnxe"]))


def test_of_many_that_tie_a_few_are_named_and_none_is_the_winner() -> None:
    names = [f"s{number:02}" for number in range(30)]
    values = np.arange(30.0).tolist()
    result = of_numbers({"atwv": values, "mtwv": values[::-1], "map": [0.5] * 30}, names)
    found = rank_correlation(result)
    shown = text(result, found)
    assert "The winner depends on the measure; first under at least one of 3 measures: 2 systems." in shown
    assert "s00, s01, s02, s03 and 26 more" in shown
    made = page(found, leaderboard_of(result.table), "")
    assert "and 26 more tie for first with 0.5000." in made
    assert "<title>s00, s01" in made
    assert made.count("s29") == 2, "first by ATWV, in words and on the diagonal"


def test_names_cannot_become_markup() -> None:
    result = of_numbers(NUMBERS, ["<script>", "[bold]b", '"><c', "d"])
    found = rank_correlation(result)
    made = page(found, leaderboard_of(result.table), "<s>")
    assert "<script" not in made
    assert "&lt;script&gt;" in made
    assert "[bold]b" in text(result, found)


@pytest.mark.parametrize("width", [32, 40, 41, 47, 48, 49, 60, 200])
def test_a_matrix_goes_on_below_where_the_terminal_is_narrow(width: int) -> None:
    names = ["atwv", "mtwv", "otwv", "cnxe", "cnxe_min", "ap", "map", "f1"]
    rng = np.random.default_rng(5)
    result = of_numbers({name: rng.normal(size=6).tolist() for name in names})
    found = rank_correlation(result)
    printed = text(result, found, width)
    assert max(len(line.rstrip()) for line in printed.splitlines()) <= width
    shown = re.findall(r"(?<=\s)-?\d\.\d\d(?=\s)", printed)
    assert len(shown) == len(names) * (len(names) - 1)
    assert sorted(shown) == sorted(
        f"{(found.tau_b if i > j else found.tau_ap_symmetric)[i, j]:z.2f}" for i in range(8) for j in range(8) if i != j
    )


def test_files(tmp_path: Path) -> None:
    result = of_numbers(NUMBERS)
    found = rank_correlation(result)
    for folder in ("one", "two"):
        write_rank_correlation(found, leaderboard_of(result.table), tmp_path / folder, "the signature")
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "two"))
    assert one == two
    assert sorted(one) == ["rank_correlation.html", "rank_correlation.parquet"]
    stored = pq.read_table(tmp_path / "one" / "rank_correlation.parquet")
    assert stored.schema.equals(RANK_CORRELATION)
    assert stored.num_rows == 16
    text = one["rank_correlation.html"].decode()
    assert "the signature" in text
    assert not re.search(r"(?i)https?:|\bsrc\s*=|url\(", text)
