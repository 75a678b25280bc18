"""Arguments of a wrong type or value raise `SettingsError` or `InputError`, before anything is read or written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import swsdask as sws
from swsdask.places.reading import parted
from tests.small_evaluation import Files

TABLE = pd.DataFrame({"query": ["q"], "document": ["d"]})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda f: sws.score(f.reference, runs=f.run, negate_scores="yes"), "negate_scores is 'yes'"),
        (
            lambda f: sws.errors(f.reference, runs=f.run, top=1.5),
            "top is 1.5; expected a whole",
        ),
        (lambda f: sws.errors(f.reference, runs=f.run, false_alarms="2"), "false_alarms is '2'"),
        (
            lambda f: sws.ingest(f.folder / "new", f.reference, runs=f.run, buckets=8.0),
            "buckets is",
        ),
        (
            lambda f: sws.ingest(f.folder / "new", f.reference, runs=f.run, buckets=0),
            "buckets is 0",
        ),
        (
            lambda f: sws.ingest(f.folder / "new", f.reference, runs=f.run, buckets=True),
            "buckets is",
        ),
        (
            lambda f: sws.ingest(None, f.reference, runs=f.run),
            "expected a path or URL; found the type N",
        ),
        (lambda f: sws.verify(None), "expected a path or URL; found the type NoneType"),
        (lambda f: sws.history(None), "expected a path or URL; found the type NoneType"),
        (lambda f: sws.score(f.reference, runs=f.run, segments=TABLE), "found the type DataFrame"),
        (lambda f: sws.compare(TABLE), "found the type DataFrame"),
        (lambda f: sws.rank_correlation(TABLE), "found the type DataFrame"),
        (lambda f: sws.read_result(TABLE), "found the type DataFrame"),
        (lambda f: sws.open(f.reference, version="1"), "version is '1'; expected a whole number, 1 or more"),
        (lambda f: sws.expire(f.folder, keep="1"), "keep is '1'; expected a whole number"),
        (lambda f: sws.compare(f.reference, runs=f.run, pair={"a", "b"}), "expected the names of two systems"),
        (lambda f: sws.compare(f.reference, runs=f.run, fail_if=[3]), "expected names; found 3"),
        (lambda f: sws.apply_calibration(f.folder / "map.toml", {"a": f.run}, f.folder), "expected files; found the t"),
        (lambda f: sws.score(f.reference, 3, runs=f.run), "expected names and measures; found 3"),
        (lambda f: sws.score(f.reference, sws.list_measures()[0], runs=f.run), "expected names and measures; found"),
        (lambda f: sws.score(f.reference, runs=f.run, by=3), "expected names; found 3"),
        (lambda f: sws.report(TABLE, "new"), "expected a Result, as score or discover returns; found"),
        (lambda f: sws.write(None, f.folder / "new"), "expected a Result, as score or discover returns; found None"),
        (lambda f: sws.plot(TABLE, f.folder / "new.svg"), "expected a Result, .* found DataFrame"),
        (lambda f: sws.write_comparison(TABLE, f.folder / "new"), "expected a Comparison, as compare returns; found D"),
    ],
)
def test_wrong_arguments(files: Files, call: Callable[[Files], object], said: str) -> None:
    with pytest.raises(sws.SettingsError, match=said):
        call(files)
    assert not (files.folder / "new").exists()


def test_a_directory_without_a_result(files: Files) -> None:
    for call in (sws.read_result, lambda folder: sws.report(folder, "new"), lambda folder: sws.plot(folder, "new.svg")):
        with pytest.raises(sws.InputError, match=r"manifest\.json: expected"):
            call(files.folder)


def test_whole_numbers_of_numpy_are_accepted(files: Files) -> None:
    archive = files.folder / "archive"
    sws.ingest(archive, files.reference, runs=files.run, buckets=np.int64(3))
    assert len(sws.open(archive).systems) == 1
    assert len(list(sws.open(archive).detections(["first", "first"]).read_all())) >= 1


def test_runs_and_their_encoding_do_not_go_with_a_result(files: Files) -> None:
    result = sws.score(files.reference, "atwv", runs=files.run)
    for given in ({"runs": TABLE}, {"negate_scores": True}, {"frame_shift": 0.01}, {"by": "oov"}):
        with pytest.raises(sws.SettingsError, match="A result has its runs and conditions"):
            sws.compare(result, **given)


def test_numbers_that_no_column_holds(files: Files) -> None:
    for grade in (10**30, {"a": 1}):
        with pytest.raises(sws.InputError, match="qrels"):
            sws.open(qrels={"q": {"d": 1, "e": grade}})
    with pytest.raises(sws.InputError, match="run"):
        sws.score(files.reference, runs=[{"query": "q", "document": "d", "start": 0, "duration": 1, "score": 2**70}])


def test_whole_numbers_that_would_be_rounded_are_refused(files: Files) -> None:
    rows = {"query": ["K1", "K1"], "document": ["a", "a"], "start": [0.0, 2.0], "duration": [1.0, 1.0]}
    for score in ([2**53, 2**53 + 2], [-(2**60), 0]):
        with pytest.raises(sws.InputError, match=r"a whole number up to 2\^53; found -?\d{16,}"):
            sws.score(files.reference, runs={**rows, "score": score})
    sws.score(files.reference, "mtwv", runs={**rows, "score": [2**53, -(2**53)]})


def test_systems_named_twice_are_read_once(files: Files) -> None:
    sws.ingest(files.folder / "archive", files.reference, runs=files.run)
    evaluation = sws.open(files.folder / "archive")
    (name,) = evaluation.systems
    assert evaluation.table("detections", [name, name]).equals(evaluation.table("detections", name))


def test_a_pav_map_leaves_missing_scores_missing(files: Files) -> None:
    fitted = sws.calibrate(files.reference, files.run, "pav")
    found = fitted(np.array([np.nan, 1e9]))
    assert np.isnan(found[0])
    assert found[1] == max(fitted.map.llr)


@pytest.mark.parametrize("measures", [["atwv", "gap"], ["isf"], ["otwv_threshold"]])
def test_a_measure_without_an_overall_number_leaves_no_column(files: Files, measures: list[str]) -> None:
    result = sws.score(files.reference, measures, runs=files.run)
    defined = {*result.overall.column("measure").to_pylist()}
    assert list(result.leaderboard().columns) == [name for name in measures if name in defined]
    assert result.to_markdown() == result.to_markdown([name for name in measures if name in defined])


def test_a_place_directly_in_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: Files) -> None:
    assert parted("memory://c.toml") == ("memory://", "c.toml")
    assert parted("s3://bucket/a/c.toml") == ("s3://bucket/a", "c.toml")
    fitted = sws.calibrate(files.reference, files.run)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    fitted.write("memory://c.toml")
    assert sws.Calibration.read("memory://c.toml").map == fitted.map
    assert not list((tmp_path / "here").iterdir())


def test_a_comparison_of_other_measures_or_conditions_is_not_written_beside_a_result(files: Files) -> None:
    result = sws.score(files.reference, "atwv", runs={"a": files.run, "b": files.run})
    sws.write(result, files.folder / "results")
    evaluation = sws.open(files.reference)
    runs = {"a": files.run, "b": files.run}
    for other in (
        sws.compare(evaluation, "mtwv", runs=runs, replicates=99),
        sws.compare(evaluation, "atwv", runs=runs, by="source_type", replicates=99),
    ):
        with pytest.raises(sws.SettingsError, match="of different runs or settings"):
            sws.write_comparison(other, files.folder / "results")
    same = sws.compare(evaluation, "atwv", runs=runs, replicates=99)
    assert "report.html" in sws.write_comparison(same, files.folder / "results")


def test_rank_correlation_takes_the_directory_of_a_result(files: Files) -> None:
    result = sws.score(files.reference, ["atwv", "mtwv"], runs={"a": files.run, "b": files.run, "c": files.run})
    sws.write(result, files.folder / "results")
    assert sws.rank_correlation(files.folder / "results").equals(sws.rank_correlation(result))
