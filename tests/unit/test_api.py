"""What the Python functions take, and how their objects look in a notebook."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import swsdask as sws
from swsdask.execution.executor import SerialExecutor
from swsdask.simulate.discovery import DISCOVERERS, simulate_classes, simulate_corpus, write_classes, write_corpus
from tests.small_evaluation import Files


def test_paths_strings_lists_and_generators_mean_the_same(files: Files) -> None:
    evaluation = sws.open(files.reference)
    by_name = sws.open(
        ecf=files.reference / "x.ecf.xml", rttm=files.reference / "x.rttm", queries=files.reference / "x.kwlist.xml"
    )
    expected = sws.score(evaluation, ["atwv"], runs=str(files.run), by=["source_type"])
    for result in (
        sws.score(evaluation, "atwv", runs=files.run, by="source_type"),
        sws.score(by_name, (name for name in ["atwv"]), runs=(path for path in [files.run]), by=("source_type",)),
        sws.score(files.reference, ["atwv"], runs={"first": files.run}, by=["source_type"]),
    ):
        assert result.table.equals(expected.table)


def test_ingest_and_validate_take_paths(files: Files) -> None:
    archive = sws.ingest(files.folder / "archive", files.reference, runs=(path for path in [files.run]))
    assert [run.rows for run in archive.runs] == [4]
    assert sws.validate(files.run, files.reference).total == 0


def test_no_runs_are_not_all_runs(files: Files) -> None:
    sws.ingest(files.folder / "archive", files.reference, runs=files.run)
    with pytest.raises(sws.SettingsError, match="No runs"):
        sws.score(files.folder / "archive", runs=[])


def test_objects_look_short(files: Files) -> None:
    evaluation = sws.open(files.reference, preset="sws2013")
    assert repr(evaluation).startswith("<Evaluation: 2 excerpts, 3 queries, 0 runs; outside=false_alarm")
    result = sws.score(evaluation, runs=files.run)
    assert repr(result).startswith("<Result: 1 system, ")
    assert len(repr(result)) < 200


def test_a_result_is_a_key(files: Files) -> None:
    result, other = (sws.score(files.reference, runs=files.run) for _ in range(2))
    assert {result: 1, other: 2}[result] == 1
    assert result.scores.equals(other.scores)


def test_errors_are_reported_apart(files: Files, tmp_path: Path) -> None:
    with pytest.raises(sws.InputError) as caught:
        sws.open(tmp_path / "nowhere")
    assert caught.value.problems[0].file.endswith("nowhere")
    with pytest.raises(sws.SettingsError):
        sws.open(files.reference, preset="nonsense")


def test_the_temporary_archive_is_removed_after_workers_that_still_write(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Workers(SerialExecutor):
        shares_memory = False

    @contextmanager
    def slow_to_end(*_: object, **__: object) -> Iterator[Workers]:
        yield Workers()
        (folder,) = tmp_path.glob("swsdask-tmp-*")
        (folder / "late").write_text("rows")

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("swsdask.execution.open.open_executor", slow_to_end)
    assert sws.score(files.reference, "stwv", runs=files.run).table.num_rows
    sws.calibrate(files.reference, files.run)
    assert not list(tmp_path.glob("swsdask-tmp-*"))


def test_progress_of_another_kind_is_refused_by_every_function(files: Files, tmp_path: Path) -> None:
    archive, found = files.folder / "archive", tmp_path / "found"
    sws.ingest(archive, files.reference, runs={"a": files.run, "b": files.run})
    corpus = simulate_corpus(1, n_phones=2000)
    write_corpus(corpus, tmp_path)
    write_classes(simulate_classes(corpus, DISCOVERERS[0]), found)
    alignments = {"phones": tmp_path / "sim.phn", "words": tmp_path / "sim.wrd"}
    given: dict[str, tuple[tuple[object, ...], dict[str, object]]] = {
        "apply_calibration": ((sws.calibrate(archive, "a"), files.run, tmp_path / "applied"), {}),
        "benchmark": ((archive,), {}),
        "calibrate": ((archive, "a"), {}),
        "compare": ((archive,), {}),
        "discover": ((found,), alignments),
        "errors": ((archive,), {}),
        "ingest": ((files.folder / "new", files.reference), {"runs": files.run}),
        "ingest_discovery": ((tmp_path / "new", found), alignments),
        "score": ((archive,), {}),
        "validate": ((files.run,), {}),
        "verify": ((archive,), {}),
    }
    functions = {name for name in sws.__all__ if inspect.isfunction(getattr(sws, name))}
    assert {name for name in functions if "progress" in inspect.signature(getattr(sws, name)).parameters} == set(given)
    for name, (arguments, more) in given.items():
        with pytest.raises(sws.SettingsError, match=r"progress: expected .* begin and advance; found True"):
            getattr(sws, name)(*arguments, **more, progress=True)
    assert not (files.folder / "new").exists()
    assert not (tmp_path / "new").exists()
    assert not (tmp_path / "applied").exists()
