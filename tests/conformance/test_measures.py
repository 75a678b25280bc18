"""Measures of the official tools' own alignments: every number they printed from them, digit for digit."""

from __future__ import annotations

import csv
import gzip
import math
import re
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pytest

from swsdask.measures import MEASURES, curves
from swsdask.measures.measure import Scored
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from tests.conformance.printed import as_printed, kwseval_queries, kwseval_summary, stdeval_queries
from tests.worlds import Row, make_reference, settings, statistics, with_thresholds
from tests.worlds import numbers as numbers_of

POINTS = {
    "sws13": {"p_target": 0.00015, "c_miss": 100.0, "c_fa": 1.0},
    "sws13E": {"p_target": 0.00015, "c_miss": 100.0, "c_fa": 1.0},
    "sws12": {"p_target": 0.5, "c_miss": 1.0, "c_fa": 15.32},
    "std06": {"p_target": 1e-4, "c_miss": 1.0, "c_fa": 0.1},
    "sws11orig": {"p_target": 1e-4, "c_miss": 1.0, "c_fa": 0.1},
    "sws11in12": {"p_target": 0.5, "c_miss": 1.0, "c_fa": 13.065},
}


def read_alignment(file: TextIO) -> tuple[list[str], np.ndarray, list[Row]]:
    """Query ids, targets and trials; group 1 is what lies outside the evaluated documents."""
    lines = list(csv.DictReader(file))
    ids = sorted({line["termid"] for line in lines})
    targets = np.zeros((len(ids), 2), np.int64)
    rows: list[Row] = []
    for line in lines:
        query, group = ids.index(line["termid"]), int(line.get("type") == "")
        targets[query, group] += line["ref_bt"] != ""
        if line["sys_score"]:
            decision = int(line["sys_decision"] == "YES")
            rows.append((query, group, float(line["sys_score"]), decision, line["ref_bt"] != ""))
    return ids, targets, rows


def numbers(found: dict[type, Any], reference: Reference, asked: EvaluationSettings) -> dict[tuple[Any, ...], float]:
    return {v[:3]: v.value for v in numbers_of(MEASURES, Scored(found, reference, asked))}


def test_kwseval(cases: Path) -> None:
    folder = cases / "kwseval/synthetic"
    with gzip.open(folder / "expected.alignment.csv.gz", "rt") as file:
        ids, targets, rows = read_alignment(file)
    asked = settings(compat="kwseval")
    counted = targets.sum(axis=1) > 0
    reference = with_thresholds(make_reference(targets, {"all": (counted, [True, True], 36000)}), asked)
    found = numbers(statistics([rows], reference), reference, asked)

    summary = kwseval_summary((folder / "expected.sum.txt").read_text())[1:]
    names = (
        "n_queries n_target n_nontarget n_detections n_hit n_correct_nondetection n_false_alarm n_miss p_fa p_miss "
        "atwv actual_threshold mtwv_p_fa mtwv_p_miss mtwv mtwv_threshold otwv_p_fa otwv_p_miss otwv - - stwv_p_miss "
        "stwv - map"
    ).split()
    for name, cell in zip(names, summary, strict=False):
        if name != "-":
            assert as_printed(found["all", None, name], cell) == cell, name

    names = (
        "n_target n_hit n_false_alarm n_miss atwv p_fa p_miss otwv_p_fa otwv_p_miss otwv otwv_threshold - stwv_p_miss "
        "stwv - ap"
    ).split()
    checked = 0
    for query, cells in kwseval_queries((folder / "expected.bsum.txt").read_text()).items():
        for name, cell in zip(names, cells, strict=False):
            if cells[0] and name != "-":
                assert as_printed(found["all", f"q{ids.index(query)}", name], cell) == cell, (query, name)
                checked += 1
    assert checked == 95 * 14


@pytest.mark.parametrize("tag", POINTS)
def test_stdeval(cases: Path, tag: str) -> None:
    folder = cases / "stdeval/occurrences"
    with (folder / f"{tag}.ali.csv").open() as file:
        ids, targets, rows = read_alignment(file)
    asked = settings(compat="stdeval", operating_point=POINTS[tag])
    counted = targets.sum(axis=1) > 0
    conditions = {"all": (counted, [True, True], 975), "cts": (counted, [True, False], 975)}
    reference = with_thresholds(make_reference(targets, conditions), asked)
    found = statistics([rows], reference)
    values = numbers(found, reference, asked)

    report = (folder / f"{tag}.occ.txt").read_text()
    names = "n_target n_hit n_false_alarm n_miss occurrence_weighted_value p_fa p_miss".split()
    for query, cells in stdeval_queries(folder / f"{tag}.occ.txt").items():
        if cells[0] != "0":
            for name, cell in zip(names, cells, strict=True):
                assert as_printed(values["all", f"q{ids.index(query)}", name], cell) == cell, (query, name)
    totals = next(line for line in report.splitlines() if "Totals" in line)
    names[-2:] = ["p_fa_pooled", "p_miss_pooled"]
    for condition, cells in zip(("cts", "all"), totals.strip("|").split("|")[1:], strict=True):
        for name, cell in zip(names, cells.split(), strict=True):
            assert as_printed(values[condition, None, name], cell) == cell, (condition, name)
        row = re.search(rf"\|\s+{condition.upper()} \|\s+(\S+)\s+\|\s+(\S+)\s+\|\s+(\S+)\s+(\S+)\s+(\S+)", report)
        assert row is not None
        for name, cell in zip("mtwv atwv mtwv_p_fa mtwv_p_miss mtwv_threshold".split(), row.groups(), strict=True):
            assert as_printed(values[condition, None, name], cell) == cell, (condition, name)

    official = np.loadtxt(folder / f"{tag}.det.sub00.dat.1", usecols=(0, 3, 4))
    curve = next(iter(curves(Scored(found, reference, asked))))
    for threshold, p_fa, p_miss in zip(curve.threshold, curve.x, curve.y, strict=True):
        if math.isinf(threshold):
            assert (p_miss, p_fa) == (1.0, 0.0)
        else:
            at = official[official[:, 0] == threshold][0]
            assert (p_miss, p_fa) == pytest.approx((at[1], at[2]), abs=1e-9)
