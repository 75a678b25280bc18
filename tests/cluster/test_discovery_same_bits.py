"""Law 1 for term discovery on worker processes, also when workers are killed mid-way."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from swsdask.api import discovering
from swsdask.api.discovery_inputs import discovery_inputs
from swsdask.discovery.score import FragmentSource
from swsdask.execution.dask import DaskExecutor
from swsdask.execution.executor import SerialExecutor
from swsdask.model.discovery import DEFAULT_READINGS, Definition, Discovered, Readings
from swsdask.model.errors import ExecutionError, InputError
from tests.cluster import cells
from tests.cluster.cells import Noting
from tests.cluster.conftest import killing
from tests.discoveries import DEFINITIONS, corpus_of, scored
from tests.discovery_worlds import random_world
from tests.engines import parquet
from tests.readings import LITERAL, read

pytestmark = pytest.mark.cluster

WORLD = random_world(3, n_files=6, words_per_file=20, n_classes=20)


@pytest.mark.parametrize(
    ("definition", "readings"), [*((definition, DEFAULT_READINGS) for definition in DEFINITIONS), ("document", LITERAL)]
)
def test_the_same_bytes_as_in_one_process(executor: DaskExecutor, definition: Definition, readings: Readings) -> None:
    corpus = read(corpus_of(WORLD, definition), readings)
    systems = [WORLD.fragments(corpus, name) for name in "ab"]
    assert scored(corpus, systems, executor, 200) == scored(corpus, systems, SerialExecutor())


@pytest.mark.parametrize("killed", [1, 2])
def test_workers_killed_in_the_middle(
    executor: DaskExecutor, tmp_path: Path, killed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The killed workers hold parts that were done, parts that were merged, and the corpus and the systems."""
    corpus = corpus_of(WORLD, "document")
    systems = [WORLD.fragments(corpus, name) for name in "ab"]
    whole = scored(corpus, systems, SerialExecutor())
    monkeypatch.setattr(FragmentSource, "_tasks", waiting(FragmentSource._tasks, tmp_path))
    with killing(tmp_path, killed) as dead:
        found = scored(corpus, systems, executor, 200)
    assert len(set(dead)) == killed
    assert found == whole


@pytest.mark.parametrize("few", [0, 10**9, None], ids=["cut", "whole", "both"])
@pytest.mark.parametrize("stored", [False, True], ids=["files", "archive"])
def test_workers_read_systems(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int | None, stored: bool
) -> None:
    """Systems are read, placed, cut and scored away from the client, which keeps their order and sees no fragment."""
    files = WORLD.write(tmp_path)
    named = {"phones": files.phones, "words": files.words, "folds": files.folds}
    content = (tmp_path / "w.classes").read_text()
    classes = {"z": str(tmp_path / "w.classes"), "b": str(tmp_path / "b.classes"), "a": str(tmp_path / "a.classes")}
    Path(classes["b"]).write_text(content.split("\n\n")[0] + "\n\n")
    Path(classes["a"]).write_text("\n\n".join(content.split("\n\n")[2:]))
    where: dict[str, Any] = {"classes": classes, **named}
    if stored:
        sws.ingest_discovery(tmp_path / "archive", classes, **named)
        where = {"classes": list(classes), "archive": tmp_path / "archive"}
    here = sws.discover(**where)
    sizes = sorted(each.rows for each in inputs_of(**where))
    monkeypatch.setattr(discovering, "FEW_FRAGMENTS", sizes[1] if few is None else few)
    executor = Noting(client, tmp_path / "noted")
    monkeypatch.setattr(Discovered, "__setstate__", refuse, raising=False)  # of this process alone
    there = sws.discover(**where, executor=executor)
    assert parquet(there.table) == parquet(here.table)
    assert parquet(there.curve_table) == parquet(here.curve_table)
    assert there.notes == here.notes
    assert [*there.manifest["runs"].items()] == [*here.manifest["runs"].items()]
    assert [*there.manifest["classes"].items()] == [*here.manifest["classes"].items()]
    assert there.manifest["signature"] == here.manifest["signature"]
    assert executor.processes
    assert os.getpid() not in executor.processes


@pytest.mark.parametrize("few", [0, 10**9], ids=["cut", "whole"])
def test_a_faulty_system_is_refused_as_in_one_process(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    files = WORLD.write(tmp_path)
    named = {"phones": files.phones, "words": files.words}
    faulty = tmp_path / "faulty.classes"
    faulty.write_text("Class 1\nnowhere 0.0 1.0\nnowhere 2.0 x\n\n")
    classes = {"good": str(tmp_path / "w.classes"), "faulty": str(faulty)}
    said = []
    monkeypatch.setattr(discovering, "FEW_FRAGMENTS", few)
    for executor in (SerialExecutor(), DaskExecutor(client)):
        with pytest.raises(InputError) as caught:
            sws.discover(classes, **named, executor=executor)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "faulty.classes:" in said[0]


def refuse(*_: object) -> None:
    raise AssertionError("the client was sent fragments")


def test_workers_ingest(client: Any, tmp_path: Path) -> None:
    files = WORLD.write(tmp_path)
    classes = {name: str(tmp_path / "w.classes") for name in "ab"}
    named = {"phones": files.phones, "words": files.words}
    executor = Noting(client, tmp_path / "noted")
    here, there = (
        sws.ingest_discovery(tmp_path / place, classes, **named, executor=each)
        for place, each in (("here", None), ("there", executor))
    )
    for one, other in zip(here.systems, there.systems, strict=True):
        assert (one.system, one.content, one.fragments.hash) == (other.system, other.content, other.fragments.hash)
    assert executor.processes
    assert os.getpid() not in executor.processes
    faulty = tmp_path / "faulty.classes"
    faulty.write_text("Class 1\nnowhere 0.0 x\n\n")
    wrong = {"c": str(faulty), "d": str(tmp_path / "none.classes"), "e": str(tmp_path / "other.classes")}
    said = []
    for place, each in (("here", None), ("there", executor)):
        with pytest.raises(InputError) as caught:
            sws.ingest_discovery(tmp_path / place, wrong, executor=each)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert [part in said[0] for part in ("faulty.classes:2", "none.classes", "other.classes")] == [True] * 3


def inputs_of(classes: Any, archive: Path | None = None, **named: Any) -> Any:
    return discovery_inputs(classes, archive, named).systems


def waiting(tasks: Any, folder: Path) -> Any:
    """The same tasks, of which the later ones wait to be killed."""

    def made(*given: Any) -> Iterator[Any]:
        for task in tasks(*given):
            yield task if task.system == "a" else cells.WaitingTask(task, folder)

    return made


def test_a_failing_cell_is_named(executor: DaskExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = corpus_of(WORLD, "tdev2")
    monkeypatch.setattr(FragmentSource, "_tasks", lambda *_: iter([cells.BrokenTask()]))
    with pytest.raises(ExecutionError, match=r"^system a: ned, cell 7: OSError: the disk is on fire"):
        scored(corpus, [WORLD.fragments(corpus, "a")], executor)
