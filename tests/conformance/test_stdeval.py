"""NIST STDEval's printed numbers for six sets of options, digit for digit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import swsdask as sws
from tests.conformance.printed import as_printed, stdeval_queries
from tests.conformance.test_kwseval import overall, per_query

POINTS = {
    "sws13": (0.5, 0.5, {"p_target": 0.00015, "c_miss": 100.0, "c_fa": 1.0}, {}),
    "sws13E": (0.5, 0.5, {"p_target": 0.00015, "c_miss": 100.0, "c_fa": 1.0}, {"outside": "drop"}),
    "sws12": (1.0, 0.5, {"p_target": 0.5, "c_miss": 1.0, "c_fa": 15.32}, {}),
    "std06": (0.5, 0.5, {"p_target": 1e-4, "c_miss": 1.0, "c_fa": 0.1}, {}),
    "sws11orig": (20.0, 20.0, {"p_target": 1e-4, "c_miss": 1.0, "c_fa": 0.1}, {}),
    "sws11in12": (20.0, 20.0, {"p_target": 0.5, "c_miss": 1.0, "c_fa": 13.065}, {}),
}


@pytest.mark.parametrize("tag", POINTS)
def test_printed_numbers(cases: Path, tag: str) -> None:
    folder = cases / "stdeval/occurrences"
    tolerance, gap, point, more = POINTS[tag]
    evaluation = sws.open(
        str(folder),
        compat="stdeval",
        settings={"evaluation": {"tolerance_s": tolerance, "find_gap_s": gap, "operating_point": point, **more}},
    )
    result = sws.score(evaluation, runs=str(folder / "s.stdlist.xml"), by=["source_type"])
    report = folder / f"{tag}.occ.txt"
    values, queries = overall(result), per_query(result)

    expected = stdeval_queries(report)
    assert len(expected) == 12
    names = "n_target n_hit n_false_alarm n_miss occurrence_weighted_value p_fa p_miss".split()
    for query, cells in expected.items():
        if cells[0] != "0":
            for name, cell in zip(names, cells, strict=True):
                assert as_printed(queries[query][name], cell) == cell, (query, name)

    names = ["mtwv", "atwv", "mtwv_p_fa", "mtwv_p_miss", "mtwv_threshold"]
    frame = result.scores
    frame = frame[frame["query"].isna() & (frame["condition"] == "source_type=cts")]
    telephone = dict(zip(frame["measure"], frame["value"], strict=True))
    for title, numbers in (("ALL", values), ("CTS", telephone)):
        row = re.search(rf"\| +{title} \| +(\S+) +\| +(\S+) +\| +(\S+) +(\S+) +(\S+) \|", report.read_text())
        assert row is not None
        for name, cell in zip(names, row.groups(), strict=True):
            assert as_printed(numbers[name], cell) == cell, (title, name)


def test_words_and_totals(own_cases: Path) -> None:
    folder = own_cases / "stdeval/words"
    result = sws.score(sws.open(str(folder), preset="std2006", compat="stdeval"), runs=str(folder / "s.stdlist.xml"))
    report = folder / "expected.occ.txt"
    names = "n_target n_hit n_false_alarm n_miss occurrence_weighted_value p_fa p_miss".split()
    queries = per_query(result)
    expected = stdeval_queries(report)
    assert len(expected) == 6
    for query, cells in expected.items():
        if cells[0] == "0":
            assert query not in queries
        else:
            for name, cell in zip(names, cells, strict=True):
                assert as_printed(queries[query][name], cell) == cell, (query, name)
    totals = re.search(r"Totals, Actual Occ. Weighted Value +\S+ \|([^|]*)\|", report.read_text())
    assert totals is not None
    _, _, _, n_miss, value, p_fa, p_miss = totals[1].split()
    values = overall(result)
    for name, cell in (
        ("n_miss", n_miss),
        ("occurrence_weighted_value", value),
        ("p_fa_pooled", p_fa),
        ("p_miss_pooled", p_miss),
    ):
        rounded_first = float(f"{values[name]:.{8 if name == 'p_fa_pooled' else 4}f}")
        assert as_printed(rounded_first, cell) == cell, name
    assert as_printed(values["atwv"], "-0.764") == "-0.764"
