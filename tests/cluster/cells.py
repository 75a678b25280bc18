"""What worker processes are given in these tests: cells that wait or fail, and functions; importable over there."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swsdask.discovery.score import FragmentTask
from swsdask.execution.dask import DaskExecutor
from swsdask.measures.measure import Scored
from swsdask.model.errors import InputError, Problem
from swsdask.model.samples import Averages
from swsdask.model.trials import F64, I32, Detections
from swsdask.statistics.counts import Counts
from tests import engines
from tests.engines import MemoryCell


@dataclass(frozen=True, eq=False)
class WaitingCell(MemoryCell):
    """A cell that notes which process reads it, and is read when the file `go` is there."""

    folder: Path

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:
        (self.folder / f"reader-{os.getpid()}").touch()
        wait_for(self.folder / "go")
        return super().read(columns, checked=checked)


@dataclass(frozen=True, eq=False)
class BrokenCell(MemoryCell):
    """A cell that cannot be read."""

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:
        raise OSError("the disk is on fire")


@dataclass(frozen=True, eq=False)
class FaultyCell(MemoryCell):
    """A cell whose file is not what it must be."""

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:
        raise InputError(Problem(self.source, None, "a table", "a picture", "Ingest it again."))


@dataclass(frozen=True)
class WaitingTask:
    """A task that notes which process works on it, and is done when the file `go` is there."""

    task: FragmentTask
    folder: Path
    rows: int = 1

    def count(self, shared: Any) -> Any:
        (self.folder / f"reader-{os.getpid()}").touch()
        wait_for(self.folder / "go")
        return self.task.count(shared)

    def __str__(self) -> str:
        return str(self.task)


class BrokenTask:
    """A task whose cell is gone."""

    rows = 1

    def count(self, shared: Any) -> Any:
        raise OSError("the disk is on fire")

    def __str__(self) -> str:
        return "system a: ned, cell 7"


def wait_for(file: Path, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not file.exists():
        assert time.monotonic() < deadline, f"{file} never came"
        time.sleep(0.02)


def linear(item: int, shared: Any) -> int:
    factor, plus = shared
    return item * factor + plus


def add(one: int, other: int) -> int:
    return one + other


def invert(item: int, shared: None) -> int:
    return 1 // (item - 3)


def wait(folder: Path, shared: None) -> int:
    (folder / f"reader-{os.getpid()}").touch()
    wait_for(folder / "go")
    return 1


def die(item: int, shared: None) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return item


def fail_once(folder: Path, shared: None) -> int:
    """Fails, as a full disk does, until it has been tried."""
    tried = folder / "tried"
    if not tried.exists():
        tried.touch()
        raise OSError("no space left on device")
    return 1


def unmergeable(one: int, other: int) -> int:
    raise ArithmeticError("they do not add up")


def where(item: int, shared: Any) -> set[tuple[int, int]]:
    """Which process works on an item, and which object is shared with it."""
    time.sleep(0.01)
    return {(os.getpid(), id(shared))}


def union(one: set[tuple[int, int]], other: set[tuple[int, int]]) -> set[tuple[int, int]]:
    return one | other


def first_fails(item: int, _: object) -> int:
    """Finds bad input in the item 0, and takes a moment over the others."""
    if item == 0:
        raise InputError(Problem("runs/b-0007.parquet", None, "a table", "a picture", "Ingest it again."))
    time.sleep(0.3)
    return item


@dataclass(frozen=True, eq=False)
class NotedAverages(Averages):
    """Averages that note which process computes their replicates."""

    folder: Path

    def replicates(self, weights: I32) -> F64:
        (self.folder / f"resampler-{os.getpid()}").touch()
        return super().replicates(weights)


class NotedSystems:
    """An observer that takes which process computes the numbers of a system, and how many hits it has."""

    needs = (Counts,)
    apart = False

    def observe(self, system: str, scored: Scored) -> tuple[int, str, int]:
        return os.getpid(), system, int(scored[Counts].mapped.sum())


class Noting(DaskExecutor):
    """An executor over the workers of a client whose tasks note, in a folder, which processes they run in."""

    def __init__(self, client: Any, folder: Path) -> None:
        super().__init__(client)
        self._folder = folder
        folder.mkdir()

    def map(
        self, function: Callable[[Any, Any], Any], items: Iterable[Any], shared: Any = None, **more: Any
    ) -> Iterator[Any]:
        return super().map(Noted(function, self._folder), items, shared, **more)

    def keep(
        self, function: Callable[[Any, Any], Any], items: Sequence[Any], shared: Any = None, **more: Any
    ) -> list[Any]:
        return super().keep(Noted(function, self._folder), items, shared, **more)

    def map_reduce(
        self,
        function: Callable[[Any, Any], Any],
        items: Iterable[Any],
        merge: Callable[[Any, Any], Any],
        shared: Any = None,
        **more: Any,
    ) -> Any:
        return super().map_reduce(Noted(function, self._folder), items, merge, shared, **more)

    @property
    def processes(self) -> set[int]:
        """Those where tasks ran."""
        return {int(each.name.partition("-")[2]) for each in self._folder.iterdir()}


@dataclass(frozen=True)
class Noted:
    """A function of tasks that notes which process calls it."""

    function: Callable[[Any, Any], Any]
    folder: Path

    def __call__(self, item: Any, shared: Any) -> Any:
        (self.folder / f"worker-{os.getpid()}").touch()
        return self.function(item, shared)


CHANCE = random.Random(7)
SYSTEMS = {
    name: [
        (
            CHANCE.randrange(6),
            CHANCE.randrange(4),
            1,
            CHANCE.randrange(300),
            CHANCE.randrange(1, 9),
            CHANCE.choice([0.0, 0.25, 0.5, CHANCE.random()]),
            CHANCE.randrange(2),
            1,
        )
        for _ in range(150)
    ]
    for name in ("a", "b", "c")
}
OCCURRENCES = [(i % 6, i % 4, 1, start, start + 6) for i, start in enumerate(range(0, 290, 7))]


def by_query(system: str, rows: list[Any], folder: Path) -> Iterator[engines.MemoryCell]:
    """A cell per query; the later half of them waits."""
    for query in range(6):
        cell = engines.cell_of(system, [row for row in rows if row[0] == query], query)
        yield cell if query < 3 else WaitingCell(cell.system, cell.source, cell.held, folder)
