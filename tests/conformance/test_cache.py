"""A cache gives the same bits as computing again: every measure of every case, statistics and results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from tests.conformance.conftest import CASES, OWN_CASES
from tests.conformance.test_kwseval_cases import CASES as OF_KWSEVAL
from tests.conformance.test_mediaeval import IMPUTE
from tests.engines import bytes_of, forget_results

STDEVAL = {"compat": "stdeval"}


def of_terms(folder: Path, run: str) -> dict[str, Any]:
    named = {"ecf": "*ecf.xml", "rttm": "*.rttm*", "queries": "*list.xml"}
    found = {name: next(each for each in sorted(folder.glob(of)) if each.name != run) for name, of in named.items()}
    return {**found, "runs": folder / run}


def of_kwseval(folder: Path, **settings: Any) -> dict[str, Any]:
    asked = {"preset": "openkws13", "compat": "kwseval", "settings": {"evaluation": settings}}
    return {**of_terms(folder, "kwslist.xml"), **asked}


OWN: dict[str, dict[str, Any]] = {
    **{f"kwseval/{case}": of_kwseval(OWN_CASES / "kwseval" / case, **said) for case, said in OF_KWSEVAL.items()},
    **{
        f"kwseval/{case}": of_kwseval(OWN_CASES / "kwseval" / case, no_targets="false_alarms_only")
        for case in ("conditions", "inc-conditions", "inc-none", "inc-one")
    },
    "kwseval/every-segment": of_kwseval(OWN_CASES / "kwseval/every-segment", trials="segment"),
    **{f"kwseval/{case}": of_kwseval(OWN_CASES / "kwseval" / case) for case in ("no-targets", "one-query")},
    "kwseval/unlisted": of_kwseval(OWN_CASES / "kwseval/unlisted", unlisted_queries="exclude"),
    **{
        f"stdeval/{case}": {**of_terms(OWN_CASES / "stdeval" / case, "s.stdlist.xml"), **STDEVAL}
        for case in (
            "ecf-filter",
            "one-term",
            "outside",
            "silent",
            "source-types",
            "three-types",
            "types-alike",
            "words",
        )
    },
    **{
        f"quesst/{case}": {
            **of_terms(OWN_CASES / "quesst" / case, "run.stdlist.xml"),
            "preset": "quesst2014",
            "compat": "mediaeval",
            "settings": {"evaluation": {"impute": "min"}},
        }
        for case in ("ids", "ties")
    },
    **{
        f"trec_eval/{case}": {
            "qrels": OWN_CASES / "trec_eval" / case / "judgments.qrels",
            "runs": OWN_CASES / "trec_eval" / case / "run.trec",
            "preset": "trec",
        }
        for case in ("averages", "graded", "ids", "terms")
    },
}
SHARED: dict[str, dict[str, Any]] = {
    **{
        f"kwseval/{case}": of_kwseval(CASES / "kwseval" / case)
        for case in ("synthetic", *(f"edges/r{number}" for number in ("1", "1b", "2", "2b", *range(3, 10))))
        if CASES.is_dir()
    },
    **{
        f"mediaeval/{case}": {
            "reference": CASES / "mediaeval" / case,
            "runs": CASES / "mediaeval" / case / "s.stdlist.xml",
            "preset": "quesst2014",
            "compat": "mediaeval",
            "settings": {} if impute is None else {"evaluation": {"impute": impute}},
        }
        for case, impute in IMPUTE.items()
    },
    "stdeval/occurrences": {
        "reference": CASES / "stdeval/occurrences",
        "runs": CASES / "stdeval/occurrences/s.stdlist.xml",
        **STDEVAL,
    },
}


def check(archive: Path, asked: dict[str, Any]) -> None:
    arguments = {name: {"case": str(said)} if name == "runs" else said for name, said in asked.items()}
    sws.ingest(archive, **arguments)
    by = ("source_type",) if "qrels" not in asked and asked.get("compat") != "mediaeval" else ()
    computed = bytes_of(sws.score(archive, by=by, cache=False))
    assert bytes_of(sws.score(archive, by=by)) == computed
    again = sws.score(archive, by=by)
    assert again.manifest["run"]["results"] == {"kept": 1, "computed": 0}
    assert bytes_of(again) == computed
    forget_results(archive)
    of_statistics = sws.score(archive, by=by)
    assert of_statistics.manifest["run"]["statistics"]["counted"] == 0
    assert bytes_of(of_statistics) == computed


@pytest.mark.parametrize("case", OWN)
def test_same_bits(tmp_path: Path, case: str) -> None:
    check(tmp_path / "archive", OWN[case])


@pytest.mark.parametrize("case", SHARED)
def test_same_bits_of_official_files(tmp_path: Path, cases: Path, case: str) -> None:
    check(tmp_path / "archive", SHARED[case])


def test_same_bits_of_events(tmp_path: Path) -> None:
    table = tmp_path / "events.tsv"
    rows = (OWN_CASES / "kws-assessment/negatives/events.dat").read_text()
    table.write_text(f"document query relevance score\n{rows}".replace(" ", "\t"))
    check(tmp_path / "archive", {"qrels": table, "runs": table, "preset": "kws-assessment"})


def test_no_case_is_left_out() -> None:
    """`archives` are archives of earlier versions; of events one case is enough, and discovery keeps nothing."""
    folders = {f"{path.parent.name}/{path.name}" for path in OWN_CASES.glob("*/*") if path.is_dir()}
    others = {"kws-assessment/negatives", "simplekwseval/single-precision", "tde/folds"}
    assert {name for name in folders if not name.startswith("archives/")} - OWN.keys() == others
