"""NIST KWSEval's printed numbers, digit for digit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from tests.conformance.printed import as_printed, kwseval_queries, kwseval_summary

SUMMARY = (
    "n_queries n_target n_nontarget n_detections n_hit n_correct_nondetection n_false_alarm n_miss p_fa p_miss atwv "
    "actual_threshold mtwv_p_fa mtwv_p_miss mtwv mtwv_threshold"
).split()


def scored(folder: Path, settings: dict[str, object] | None = None, **options: Any) -> sws.Result:
    rttm = folder / "ref.rttm"
    evaluation = sws.open(
        ecf=str(folder / "ecf.xml"),
        rttm=str(rttm if rttm.exists() else folder / "ref.rttm.gz"),
        queries=str(folder / "kwlist.xml"),
        preset="openkws13",
        compat="kwseval",
        settings={"evaluation": settings or {}},
    )
    return sws.score(evaluation, runs=str(folder / "kwslist.xml"), **options)


def overall(result: sws.Result) -> dict[str, float]:
    frame = result.scores
    frame = frame[frame["query"].isna() & (frame["condition"] == "all")]
    return dict(zip(frame["measure"], frame["value"], strict=True))


def per_query(result: sws.Result) -> dict[str, dict[str, float]]:
    frame = result.scores
    frame = frame[frame["query"].notna() & (frame["condition"] == "all")]
    return {query: dict(zip(rows["measure"], rows["value"], strict=True)) for query, rows in frame.groupby("query")}


def compare(values: dict[str, float], names: list[str], cells: list[str]) -> None:
    for name, cell in zip(names, cells, strict=False):
        if name != "-" and cell not in ("", "NA"):
            assert as_printed(values[name], cell) == cell, name


@pytest.fixture(scope="module")
def synthetic(cases: Path) -> sws.Result:
    return scored(cases / "kwseval/synthetic")


def test_synthetic_summary(cases: Path, synthetic: sws.Result) -> None:
    row = kwseval_summary((cases / "kwseval/synthetic/expected.sum.txt").read_text())[1:]
    values = overall(synthetic)
    compare(values, SUMMARY, row)
    compare(values, ["otwv_p_fa", "otwv_p_miss", "otwv", "-", "-", "stwv_p_miss", "stwv"], row[len(SUMMARY) :])
    assert f"{100 * values['map']:.1f}" == "72.1"


def test_synthetic_per_query(cases: Path, synthetic: sws.Result) -> None:
    names = (
        "n_target n_hit n_false_alarm n_miss atwv p_fa p_miss otwv_p_fa otwv_p_miss otwv otwv_threshold - stwv_p_miss "
        "stwv - ap"
    ).split()
    expected = kwseval_queries((cases / "kwseval/synthetic/expected.bsum.txt").read_text())
    values = per_query(synthetic)
    assert len(expected) == 100
    for query, cells in expected.items():
        if cells[0]:
            compare(values[query], names, cells)


def test_short(cases: Path) -> None:
    text = (cases / "kwseval/short/expected.txt").read_text()
    result = scored(cases / "kwseval/short")
    compare(overall(result), SUMMARY, kwseval_summary(text)[1:])
    names = "n_target n_hit n_false_alarm n_miss atwv p_fa p_miss".split()
    queries = kwseval_queries(text.partition("Block Summary")[2])
    assert queries
    for query, cells in queries.items():
        if cells[0]:
            compare(per_query(result)[query], names, cells)


def test_segments(cases: Path) -> None:
    text = (cases / "kwseval/segments/expected.txt").read_text()
    result = scored(cases / "kwseval/segments", {"trials": "segment"})
    compare(overall(result), SUMMARY, kwseval_summary(text)[1:])
    names = "n_target n_hit n_correct_nondetection n_false_alarm n_miss atwv p_fa p_miss".split()
    queries = kwseval_queries(text.partition("Block Summary")[2])
    assert set(queries) == {"TERM-01", "TERM-02", "TERM-03"}
    for query, cells in queries.items():
        compare(per_query(result)[query], names, cells)
