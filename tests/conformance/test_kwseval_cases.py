"""KWSEval's printed numbers for small cases of our own, each on one of its rules (`tests/cases/README.md`)."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from swsdask.archive.validate import validate
from swsdask.measures import MEASURES
from swsdask.measures.measure import Scored, Values
from swsdask.statistics.counts import Counts
from swsdask.statistics.ladder import Hits, Ladder
from tests.conformance.printed import as_printed, kwseval_conditions, kwseval_queries, kwseval_summary
from tests.conformance.test_kwseval import SUMMARY, overall, per_query, scored

CASES: dict[str, dict[str, Any]] = {
    "audio-time": {},
    "ends": {},
    "filters": {"text_filters": ["charsplit", "notascii", "deletehyphens"]},
    "halves": {},
    "inc": {"no_targets": "false_alarms_only"},
    "letters": {},
    "negative": {},
    "no-yes": {},
    "nothing-found": {},
    "optimum": {},
    "rounded-precision": {},
    "segments": {"trials": "segment"},
    "segments-order": {"trials": "segment"},
    "segments-shared": {"trials": "segment"},
    "text-order": {},
    "threshold": {},
    "words": {},
    "zero": {},
}
BEST = "otwv_p_fa otwv_p_miss otwv - - stwv_p_miss stwv -".split()
MORE = [*BEST, "map%"]
OF_QUERY = "n_target n_hit n_correct_nondetection n_false_alarm n_miss atwv p_fa p_miss".split()
MORE_OF_QUERY = "otwv_p_fa otwv_p_miss otwv otwv_threshold - stwv_p_miss stwv - ap ap%".split()


def compare(values: dict[str, float], names: list[str], cells: list[str], with_inc: bool) -> None:
    for name, cell in zip(names, cells, strict=True):
        # With -inc KWSEval has no OTWV, or that of some of the queries (QUIRK of `measures.twv`).
        if name != "-" and cell and not (with_inc and name.startswith("otwv")):
            value = values[name.rstrip("%")] * (100 if name.endswith("%") else 1)
            assert math.isnan(value) if cell in ("NA", "NaN") else as_printed(value, cell) == cell, (name, value, cell)


def rows_of_csv(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))[1:]


@pytest.mark.parametrize("case", CASES)
def test_printed_numbers(own_cases: Path, case: str) -> None:
    folder = own_cases / "kwseval" / case
    settings = CASES[case]
    with_inc = "no_targets" in settings
    result = scored(folder, settings)
    cells = kwseval_summary((folder / "expected.sum.txt").read_text())[1:]
    compare(overall(result), [*SUMMARY, *BEST, "map", "map%"], cells, with_inc)
    names = [name for name in OF_QUERY if "trials" in settings or name != "n_correct_nondetection"] + MORE_OF_QUERY
    queries = kwseval_queries((folder / "expected.bsum.txt").read_text())
    assert queries
    found = per_query(result)
    for query, cells in queries.items():
        if query in found:
            compare(found[query], names, cells, with_inc)
        else:
            assert cells[0] in ("", "0")


@pytest.mark.parametrize(("curve", "file"), [("det", "expected.det.dat"), ("det_pooled", "expected.pooled.dat")])
def test_points_of_the_error_tradeoff(own_cases: Path, curve: str, file: str) -> None:
    """Two of the queries have no targets: the pooled curve counts their false alarms."""
    lines = (own_cases / "kwseval/optimum" / file).read_text().splitlines()
    printed = {
        float(score): (float(p_miss), float(p_fa))
        for score, _, _, p_miss, p_fa, *_ in (line.split() for line in lines if line and not line.startswith("#"))
    }
    rows = scored(own_cases / "kwseval/optimum").to_arrow("curves").to_pylist()
    points = {row["threshold"]: (row["y"], row["x"]) for row in rows if row["curve"] == curve}
    assert points.pop(math.inf) == (1, 0)
    assert min(points) == min(printed)
    assert len(points) > 5
    for threshold, point in points.items():
        assert point == pytest.approx(printed[threshold], rel=1e-12)


OF_A_SWEEP = [family.names[0] for family in MEASURES if Ladder in family.needs]


@pytest.mark.parametrize("measure", OF_A_SWEEP)
def test_curves_are_the_same_beside_every_measure(own_cases: Path, measure: str) -> None:
    """The pooled curve counts the false alarms of a query without targets, which most measures do not need."""
    whole, alone = (
        scored(own_cases / "kwseval/letters", measures=measures).to_arrow("curves").to_pylist()
        for measures in (None, [measure])
    )
    assert {"det", "det_pooled"} <= {row["curve"] for row in alone}
    assert [row for row in alone if row not in whole] == []


def test_no_pooled_curve_without_the_false_alarms_that_it_counts(own_cases: Path) -> None:
    class Own:
        names = ("own",)
        needs = (Counts, Hits, Ladder)

        def values(self, scored: Scored) -> Iterator[Values]:
            yield scored.whole.overall({"own": 1.0})

    curves = {
        row["curve"] for row in scored(own_cases / "kwseval/optimum", measures=Own()).to_arrow("curves").to_pylist()
    }
    assert "det" in curves
    assert "det_pooled" not in curves


def test_inc_counts_a_query_without_targets_where_the_system_detects_it(own_cases: Path) -> None:
    """And everywhere if it has no trial at all. Of telephone speech no query has targets: there is no TWV."""
    folder = own_cases / "kwseval/inc-conditions"
    result = scored(folder, {"no_targets": "false_alarms_only"}, by=["source_type"])
    compare(overall(result), SUMMARY + MORE, kwseval_summary((folder / "expected.sum.txt").read_text())[1:], True)
    expected = kwseval_conditions((folder / "expected.cond.sum.txt").read_text())
    assert {title: cells[0] for title, cells in expected.items()} == {"bnews": "3", "cts": "2"}
    frame = result.scores[result.scores["query"].isna()]
    for title, cells in expected.items():
        rows = frame[frame["condition"] == f"source_type={title}"]
        compare(dict(zip(rows["measure"], rows["value"], strict=True)), SUMMARY + MORE, cells, True)
    alone = scored(folder, {"no_targets": "false_alarms_only"}, by=["source_type"], measures=["map_n_averaged"])
    assert alone.scores["value"].tolist() == [3.0, 3.0, 2.0]


def test_inc_puts_a_query_without_trials_into_every_group_of_terms(own_cases: Path) -> None:
    """K2 is nowhere: KWSEval's -T counts it in both groups, which do not name it."""
    folder = own_cases / "kwseval/inc-conditions"
    groups = {"A": "query~^K1$", "B": "query~^K[01]$"}
    by = [name.replace("query~", "query_pattern:") for name in groups.values()]
    result = scored(folder, {"no_targets": "false_alarms_only"}, by=by)
    expected = kwseval_conditions((folder / "expected.terms.sum.txt").read_text())
    assert {title: cells[0] for title, cells in expected.items()} == {"A": "2", "B": "3"}
    frame = result.scores[result.scores["query"].isna()]
    for title, cells in expected.items():
        rows = frame[frame["condition"] == groups[title]]
        compare(dict(zip(rows["measure"], rows["value"], strict=True)), SUMMARY + MORE, cells, True)


def test_a_query_that_a_run_does_not_list_has_an_oov_count_of_0(own_cases: Path) -> None:
    """K2, which is spoken: in KWSEval's -w only. Otherwise its count is not known."""
    folder = own_cases / "kwseval/unlisted"
    frame = scored(folder, by=["oov_count:0/1"]).scores
    frame = frame[frame["query"].isna()]
    expected = {title: cells for title, *cells in rows_of_csv(folder / "expected.oov.cond.sum.csv")}
    assert expected.keys() == {"IV", "OOV"}
    for title, condition in (("IV", "oov_count=0"), ("OOV", "oov_count=1+")):
        own = frame[frame["condition"] == condition]
        cells = [cell.strip() or "1" for cell in expected[title]]
        compare(dict(zip(own["measure"], own["value"], strict=True)), SUMMARY, cells, False)
    files = {"ecf": folder / "ecf.xml", "rttm": folder / "ref.rttm", "queries": folder / "kwlist.xml"}
    own = sws.score(sws.open(**files), "n_queries", runs=str(folder / "kwslist.xml"), by=["oov_count:0/1"]).scores
    assert own["value"].tolist() == [3, 1, 1]


def test_queries_that_a_run_does_not_list(own_cases: Path, tmp_path: Path) -> None:
    """Of every run its own, also in an archive; a table has no lists."""
    folder = own_cases / "kwseval/unlisted"
    text = (folder / "kwslist.xml").read_text()
    (tmp_path / "all.xml").write_text(text.replace('kwid="K6"', 'kwid="K2"'))
    (tmp_path / "table.csv").write_text("query,document,start,duration,score,decision\nK1,a,1.0,0.4,0.9,YES\n")
    files: dict[str, Any] = {"ecf": folder / "ecf.xml", "rttm": folder / "ref.rttm", "queries": folder / "kwlist.xml"}
    asked: dict[str, Any] = {"settings": {"evaluation": {"unlisted_queries": "exclude"}}}
    runs = {"some": str(folder / "kwslist.xml"), "more": str(tmp_path / "all.xml")}
    wanted = {"some": [2, 4], "more": [3, 6]}
    sws.ingest(tmp_path / "archive", **files, **asked, runs=runs)
    for result in (
        sws.score(sws.open(**files, **asked), ["n_queries", "n_target"], runs=runs),
        sws.score(tmp_path / "archive", ["n_queries", "n_target"]),
    ):
        frame = result.scores[result.scores["query"].isna()]
        assert {system: rows["value"].tolist() for system, rows in frame.groupby("system")} == wanted
        assert "both systems: Left out because the run does not list them: 2 queries." in result.notes
        assert "Left out of all averages: 1 query without target trials (K5)." in result.notes
    with pytest.raises(sws.InputError, match=r"table\.csv: expected a query that is listed"):
        sws.score(sws.open(**files, **asked), "atwv", runs={"table": str(tmp_path / "table.csv")})


def test_a_calibration_is_of_the_queries_that_its_run_lists(own_cases: Path, tmp_path: Path) -> None:
    """The map is that of a list of queries without them."""
    folder = own_cases / "kwseval/unlisted"
    files: dict[str, Any] = {"ecf": folder / "ecf.xml", "rttm": folder / "ref.rttm"}
    lines = (folder / "kwlist.xml").read_text().splitlines(keepends=True)
    (tmp_path / "listed.xml").write_text("".join(line for line in lines if "K2" not in line and "K4" not in line))
    settings: dict[str, Any] = {"evaluation": {"unlisted_queries": "exclude"}}
    excluded = sws.open(**files, queries=folder / "kwlist.xml", settings=settings)
    listed, whole = (sws.open(**files, queries=path) for path in (tmp_path / "listed.xml", folder / "kwlist.xml"))
    one, same, other = (sws.calibrate(each, folder / "kwslist.xml") for each in (excluded, listed, whole))
    counts = {"n_given_target", "n_imputed_target", "n_given_nontarget", "n_imputed_nontarget"}
    assert one.map == same.map
    assert one.fitted_on.model_dump(include=counts) == same.fitted_on.model_dump(include=counts)
    assert one.map != other.map


def test_what_the_reference_repeats_is_noted(own_cases: Path) -> None:
    folder = own_cases / "kwseval/words"
    assert "The reference repeats 1 record of words: compat=kwseval counts them again." in scored(folder).notes
    own = sws.open(ecf=folder / "ecf.xml", rttm=folder / "ref.rttm", queries=folder / "kwlist.xml")
    result = sws.score(own, runs=str(folder / "kwslist.xml"))
    assert "The reference repeats 1 record of words: they count once." in result.notes
    assert (overall(result)["n_target"], overall(scored(folder))["n_target"]) == (9, 10)


def test_repeated_segments_are_noted_too(own_cases: Path, tmp_path: Path) -> None:
    folder = own_cases / "kwseval/segments"
    text = (folder / "ref.rttm").read_text()
    line = next(line for line in text.splitlines(keepends=True) if line.startswith("SPEAKER"))
    (tmp_path / "ref.rttm").write_text(text + line)
    own = sws.open(ecf=folder / "ecf.xml", rttm=tmp_path / "ref.rttm", queries=folder / "kwlist.xml")
    result = sws.score(own, runs=str(folder / "kwslist.xml"))
    assert "The reference repeats 1 record of segments: they count once." in result.notes
    assert any(check.counts.get("repeated records") == 1 for check in validate([str(tmp_path / "ref.rttm")]).files)


@pytest.mark.parametrize("score", ["-0.95", "10.5"])
def test_rankings_of_scores_whose_text_has_another_order_are_noted(own_cases: Path, tmp_path: Path, score: str) -> None:
    folder = own_cases / "kwseval/words"
    for file in folder.iterdir():
        (tmp_path / file.name).write_text(file.read_text().replace('score="0.95"', f'score="{score}"'))
    note = "KWSEval sorts scores as text"
    numbers = {"average_precision": {"score_order": "number"}}
    assert note in " ".join(scored(tmp_path, settings=numbers).notes)
    assert note not in " ".join(scored(tmp_path).notes)
    assert note not in " ".join(scored(tmp_path, measures=["atwv"], settings=numbers).notes)
    assert note not in " ".join(scored(folder, settings=numbers).notes)


def test_types_that_rttm_does_not_have_and_decisions_without_a_threshold_are_noted(
    own_cases: Path, tmp_path: Path
) -> None:
    folder = own_cases / "kwseval/words"
    for file in folder.glob("*.xml"):
        (tmp_path / file.name).write_text(file.read_text().replace('score="0.95"', 'score="0.05"'))
    (tmp_path / "ref.rttm").write_text((folder / "ref.rttm").read_text() + "LEXEM news 1 1 1 x y z 1\n")
    notes = " ".join(scored(tmp_path).notes)
    assert "of types that RTTM does not have: 1 LEXEM." in notes
    assert "No single threshold explains the YES/NO decisions: the lowest YES, 0.05, lies below the highest NO" in notes
    assert "No single threshold" not in " ".join(scored(folder).notes)
