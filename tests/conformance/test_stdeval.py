"""NIST STDEval's printed numbers for six sets of options, digit for digit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import swsdask as sws
from tests.conformance.printed import as_printed, stdeval_queries, stdeval_report
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


BLOCKS = {
    "ALL": "all",
    "BNEWS": "source_type=bnews",
    "CTS": "source_type=cts",
    "CONFMTG": "source_type=confmtg",
}


@pytest.mark.parametrize(
    ("case", "outside"),
    [("source-types", "false_alarm"), ("three-types", "false_alarm"), ("ecf-filter", "drop"), ("words", "false_alarm")],
)
def test_every_number_of_a_report(own_cases: Path, case: str, outside: str) -> None:
    """Terms, totals, means and maxima, of all sources and of each type of source."""
    folder = own_cases / "stdeval" / case
    evaluation = sws.open(
        str(folder), preset="std2006", compat="stdeval", settings={"evaluation": {"outside": outside}}
    )
    frame = sws.score(evaluation, runs=str(folder / "s.stdlist.xml"), by=["source_type"]).scores
    found: dict[tuple[str, str | None], dict[str, float]] = {}
    for condition, query, measure, value in frame[["condition", "query", "measure", "value"]].itertuples(index=False):
        found.setdefault((condition, query if isinstance(query, str) else None), {})[measure] = value

    def compare(block: str, query: str | None, names: list[str], cells: list[str]) -> None:
        values = found[BLOCKS[block], query]
        for name, cell in zip(names, cells, strict=True):
            if name != "-":
                assert as_printed(values[name], cell) == cell, (block, query, name)

    report = stdeval_report((folder / "expected.occ.txt").read_text())
    names = "n_target n_hit n_false_alarm n_miss occurrence_weighted_value p_fa p_miss".split()
    for (block, title), cells in report.items():
        if title == "Totals":
            values = found[BLOCKS[block], None]
            for name, digits in (("occurrence_weighted_value", 4), ("p_fa_pooled", 8), ("p_miss_pooled", 4)):
                values[name] = round(values[name], digits)  # STDEval rounds these twice.
            compare(
                block,
                None,
                "n_target n_hit - n_miss occurrence_weighted_value p_fa_pooled p_miss_pooled".split(),
                cells,
            )
        elif title == "Means":
            compare(block, None, "- - - - - p_fa p_miss".split(), cells)
        elif title == "maximum":
            compare(block, None, ["mtwv", "atwv", "mtwv_p_fa", "mtwv_p_miss", "mtwv_threshold"], cells)
        elif cells[0] == "0":
            assert (BLOCKS[block], title) not in found
        else:
            compare(block, title, names, cells)
    assert {title for _, title in report} >= {"Totals", "Means", *({"maximum"} if case != "words" else {})}
    assert len(report) > 6
