"""An archive of judged documents takes runs of further documents, and then equals one that was made of all at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from swsdask.archive.change import Change
from swsdask.archive.cleaning import expire, vacuum
from swsdask.archive.storage import Storage
from swsdask.cli import main
from swsdask.execution.executor import SerialExecutor
from swsdask.model.errors import ArchiveError, InputError
from tests import engines

SETTINGS: list[dict[str, Any]] = [{"preset": "trec"}, {}, {"settings": {"evaluation": {"impute": -9.0}}}]
"""Ties by the ids of documents; ties as one rank, with trials that are not given; the same with another score."""


@pytest.fixture
def qrels(tmp_path: Path) -> Path:
    file = tmp_path / "judged.qrels"
    pairs = [(query, document) for query in "12" for document in range(9)]
    file.write_text("".join(f"{query} 0 d{document:02d} {document % 3 - 1}\n" for query, document in pairs))
    return file


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Of documents that were judged and of others, before, between and behind these; c is a table."""
    draw = random.Random(3)
    files = []
    for name, others in (("a", ["c9", "d050"]), ("b", ["c1", "d050", "x"]), ("c", ["a", "x", "d07.wav"])):
        lines = []
        for query in "12":
            documents = [*draw.sample([f"d{n:02d}" for n in range(9)], 6), *others]
            lines += [(query, document, draw.choice((1.0, 2.0, 3.5))) for document in documents]
        file = tmp_path / (f"{name}.csv" if name == "c" else f"{name}.trec")
        if name == "c":
            file.write_text("query,document,score\n" + "".join(f"{q},{d},{s}\n" for q, d, s in lines))
        else:
            file.write_text("".join(f"{q} Q0 {d} 1 {s} {name}\n" for q, d, s in lines))
        files.append(file)
    return files


def bits(archive: Path | str) -> list[bytes]:
    result = sws.score(str(archive), cache=False)
    return [engines.parquet(result.table), engines.parquet(result.curve_table)]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("again", [True, False], ids=["judgments again", "runs alone"])
def test_it_equals_an_archive_of_all_runs_at_once(
    tmp_path: Path, qrels: Path, runs: Sequence[Path], settings: dict[str, Any], again: bool
) -> None:
    sws.ingest(tmp_path / "whole", qrels=qrels, runs=runs, **settings)
    expected = bits(tmp_path / "whole")
    for number, (first, *later) in enumerate(permutations(runs)):
        archive = tmp_path / f"grown{number}"
        sws.ingest(archive, qrels=qrels, runs=first, **settings)
        for run in later:
            sws.ingest(archive, runs=run, **({"qrels": qrels, **settings} if again else {}))
        assert bits(archive) == expected
        assert sws.verify(archive).damaged == {}


def test_what_was_there_stays_and_old_versions_keep_their_collection(
    tmp_path: Path, qrels: Path, runs: Sequence[Path]
) -> None:
    archive = tmp_path / "archive"
    sws.ingest(archive, qrels=qrels, runs=runs[0])
    before = Storage(str(archive)).files(below=True)
    of_first = sws.score(str(archive), cache=False)
    grown = sws.ingest(archive, runs=runs[1])
    there = ["c9", *(f"d{n:02d}" for n in range(6)), "d050", "d06", "d07", "d08"]
    assert grown.documents["document"].to_pylist() == [*sorted(there), "c1", "x"]
    assert set(before) <= set(Storage(str(archive)).files(below=True))
    old = sws.score(sws.open(str(archive), version=1), cache=False)
    assert engines.parquet(old.table) == engines.parquet(of_first.table)
    assert sws.ingest(archive, qrels=qrels, runs=runs[:2]).version == 2
    expire(str(archive), keep=1)
    assert sws.verify(archive).damaged == {}
    assert sws.score(str(archive), "map").overall.num_rows == 2


def test_other_judgments_are_refused(tmp_path: Path, qrels: Path, runs: Sequence[Path]) -> None:
    sws.ingest(tmp_path / "archive", qrels=qrels, runs=runs[0])
    other = tmp_path / "other.qrels"
    other.write_text(qrels.read_text() + "2 0 zz 1\n")
    with pytest.raises(ArchiveError, match=r"differs in .*judgments"):
        sws.ingest(tmp_path / "archive", qrels=other, runs=runs[1])


def test_two_that_let_it_grow_at_once_both_succeed(
    tmp_path: Path, qrels: Path, runs: Sequence[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second to commit writes its run again: its documents have other places. Nothing is left of the first try."""
    sws.ingest(tmp_path / "whole", qrels=qrels, runs=runs)
    for made_of in (runs[:1], []):
        archive = tmp_path / f"raced{len(made_of)}"
        if made_of:
            sws.ingest(archive, qrels=qrels, runs=made_of)
        with monkeypatch.context() as patched:
            overtaken = overtaking(patched, partial(sws.ingest, archive, qrels=qrels, runs=runs[1]))
            sws.ingest(archive, qrels=qrels, runs=[*runs[: 1 - len(made_of)], runs[2]])
        assert overtaken == [2]
        assert bits(archive) == bits(tmp_path / "whole")
        assert vacuum(str(archive)) == []


def overtaking(patched: pytest.MonkeyPatch, work: Callable[[], object]) -> list[int]:
    """Do some work before the first commit. The list has at the end the number of later tries."""
    commit: Callable[..., Any] = Change.commit
    tried = [0]

    def late(self: Any, entries: Any) -> Any:
        if tried[0] == 0:
            patched.setattr(Change, "commit", commit)
            work()
            patched.setattr(Change, "commit", late)
        tried[0] += 1
        return commit(self, entries)

    patched.setattr(Change, "commit", late)
    return tried


def test_a_run_beside_the_archive_adds_its_documents(tmp_path: Path, qrels: Path, runs: Sequence[Path]) -> None:
    sws.ingest(tmp_path / "archive", qrels=qrels, runs=runs[0])
    found = sws.score(str(tmp_path / "archive"), runs=runs[1])
    expected = sws.score(sws.open(qrels=qrels, collection=runs[:2]), runs=runs[1])
    assert repr(found.table.to_pylist()) == repr(expected.table.to_pylist())
    with pytest.raises(InputError, match="give these runs there too"):
        sws.Scorer(str(tmp_path / "archive")).update(runs[1])


class Watched(SerialExecutor):
    """An executor that notes the labels of its tasks."""

    def __init__(self) -> None:
        self.labels: list[str] = []

    def map(self, function: Any, items: Any, *shared: Any, label: Any, **how: Any) -> Any:
        self.labels += map(label, items)
        return super().map(function, items, *shared, label=label, **how)


def test_each_run_is_looked_through_by_a_task(tmp_path: Path, qrels: Path, runs: Sequence[Path]) -> None:
    watched = Watched()
    sws.ingest(tmp_path / "archive", qrels=qrels, runs=runs, executor=watched)
    assert [label for label in watched.labels if label.startswith("documents")] == [
        f"documents of {run}" for run in runs
    ]


def test_the_command_line_reports_how_it_grew(
    tmp_path: Path, qrels: Path, runs: Sequence[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    archive = str(tmp_path / "archive")
    main(["ingest", archive, "--qrels", str(qrels), "--run", str(runs[0]), "-q"])
    assert capsys.readouterr().out.splitlines()[1:] == ["  a: 16 detections"]
    main(["ingest", archive, *(word for run in runs[1:] for word in ("--run", str(run))), "-q"])
    grown = "  documents: 11 before, 15 now"
    new = ["  b: 18 detections", "  c: 18 detections"]
    assert capsys.readouterr().out.splitlines()[1:] == [grown, *new, "  1 run already there"]
    main(["show", archive, "--diff", "1", "2"])
    assert capsys.readouterr().out.splitlines()[1:] == ["  added: b", "  added: c", grown]


@pytest.mark.parametrize("first", [True, False], ids=["new", "there"])
def test_runs_that_another_process_committed_meanwhile_are_not_reported_as_written(
    tmp_path: Path,
    qrels: Path,
    runs: Sequence[Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    first: bool,
) -> None:
    archive = str(tmp_path / "archive")
    if not first:
        sws.ingest(archive, qrels=qrels, runs=runs[2])
    ingest = sws.ingest

    def after_another(*arguments: Any, **options: Any) -> sws.StoredArchive:
        ingest(archive, qrels=qrels, runs=runs[1])
        return ingest(*arguments, **options)

    monkeypatch.setattr(sws, "ingest", after_another)
    main(["ingest", archive, "--qrels", str(qrels), "--run", str(runs[0]), "-q"])
    said = capsys.readouterr().out.splitlines()[1:]
    assert said[0].startswith("  documents: ")
    assert said[1:] == ["  a: 16 detections", "  1 run already there" if first else "  2 runs already there"]
