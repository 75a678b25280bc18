"""Small evaluations in memory for tests of the engine, cut into cells at will; an executor that merges in any order."""

from __future__ import annotations

import operator
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import swsdask as sws
from swsdask.archive.protocols import Run
from swsdask.archive.versions import CACHE
from swsdask.execution.executor import Executor, SerialExecutor, Tree, Unseen
from swsdask.measures import select
from swsdask.model.settings import EngineSettings, EvaluationSettings, Settings, requested_thresholds, weights
from swsdask.model.trials import Condition, Detections, Reference
from swsdask.scoring.alignment_table import targets_of
from swsdask.scoring.score import count_archive, score_archive
from tests.alignment import Row, detections, reference, score_range

N_TRIALS = 500


class Forgetful(SerialExecutor):
    """An executor whose tasks do not see what earlier ones held."""

    shares_memory = False


@dataclass(frozen=True, eq=False)
class MemoryCell:
    """A cell whose rows travel with it."""

    system: str
    source: str
    held: Detections
    is_distant = False

    @property
    def rows(self) -> int:
        return len(self.held)

    @property
    def parts(self) -> tuple[int, ...]:
        """Queries come in any order, so each row is a part."""
        return (1,) * len(self.held)

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:
        return Detections(**{name: getattr(self.held, name) for name in {"query", "score", *columns}})

    def confirm(self, columns: Sequence[str]) -> None:
        pass


@dataclass(frozen=True, eq=False)
class CellArchive:
    """An archive that is only runs and cells; `cells` gives what it was made with, whatever size is requested."""

    runs: tuple[Run, ...]
    cut: Mapping[str, Sequence[Any]]
    place = None

    def cells(self, system: str, rows_per_task: int) -> Iterator[Any]:
        yield from self.cut[system]


def run_of(system: str, rows: Sequence[Row], declared: tuple[float, float] | None = None) -> Run:
    return Run(system, len(rows), "", True, score_range(rows, declared))


def cell_of(system: str, rows: Iterable[Row], number: int = 0) -> MemoryCell:
    """A cell of some rows, clustered by query as their queries come; 0.0 for -0.0, as archives have it.

    Positions are at random, but those of the same row always the same.
    """
    held = list(rows)
    first = {query: at for at, query in reversed(list(enumerate(row[0] for row in held)))}
    held.sort(key=lambda row: first[row[0]])
    rows = detections(held)
    position = np.array([crc32(repr(row).encode()) for row in held], np.int64)
    return MemoryCell(system, f"{system}.{number}.parquet", replace(rows, score=rows.score + 0.0, position=position))


def archive_of(systems: Mapping[str, Sequence[Row]], cut: random.Random | None = None) -> CellArchive:
    """One cell per system; or cells at random, no (query, document) in two, rows and cells in any order."""
    cells: dict[str, list[MemoryCell]] = {}
    for system, rows in systems.items():
        if cut is None:
            cells[system] = [cell_of(system, sorted(rows))]
            continue
        number = cut.randint(1, 5)
        place = {pair: cut.randrange(number) for pair in sorted({row[:2] for row in rows})}
        shuffled = cut.sample(list(rows), len(rows))
        parts = [[row for row in shuffled if place[row[:2]] == at] for at in range(number)]
        cells[system] = [cell_of(system, part, at) for at, part in enumerate(parts) if part]
        cut.shuffle(cells[system])
    return CellArchive(tuple(run_of(system, rows) for system, rows in systems.items()), cells)


def evaluation(occurrences: Iterable[tuple[int, ...]], groups: Sequence[int], **more: Any) -> Reference:
    """A reference with targets, classes and the conditions "all", "first group" and "even queries"."""
    bare = reference(occurrences, groups=groups, n_documents=len(groups) - 1, **more)
    targets = np.zeros((bare.n_queries, int(max(groups)) + 1), np.int64)
    wanted = targets_of(bare)
    np.add.at(targets, (wanted.query, bare.group_of_document[wanted.document]), 1)
    every_query, every_group = np.ones(bare.n_queries, np.bool_), np.ones(targets.shape[1], np.bool_)
    first_group = np.arange(targets.shape[1]) == 0
    even = np.arange(bare.n_queries) % 2 == 0
    conditions = (
        Condition("all", every_query, every_query & (targets.sum(1) > 0), every_group, N_TRIALS),
        Condition("first group", every_query, every_query & (targets[:, 0] > 0), first_group, N_TRIALS // 2),
        Condition("even queries", even, even & (targets.sum(1) > 0), every_group, N_TRIALS),
    )
    class_of = np.full(targets.shape, -1, np.int32)
    classes: dict[tuple[int, ...], int] = {}
    for query, group in np.ndindex(*targets.shape):
        said = tuple(
            int(targets[query, c.groups].sum()) if c.queries[query] and c.groups[group] else -1 for c in conditions
        )
        if max(said) >= 0:
            class_of[query, group] = classes.setdefault(said, len(classes))
    whole = replace(bare, targets=targets, conditions=conditions, class_of=class_of, n_classes=len(classes))
    asked = EvaluationSettings()
    return replace(
        whole,
        thresholds=requested_thresholds(asked),
        prior_log_odds=weights(whole, asked).prior_log_odds,
    )


class Seen:
    """Progress that notes each phase: its name, its rows, and those that are done."""

    def __init__(self) -> None:
        self.phases: list[list[Any]] = []

    def begin(self, phase: str, rows: int) -> None:
        self.phases.append([phase, rows, 0])

    def advance(self, rows: int) -> None:
        self.phases[-1][2] += rows


class AnyOrder:
    """An executor that works in this process like one on a cluster: items end in any order, parts merge as a tree."""

    shares_memory = True
    folder = None

    def __init__(self, order: random.Random, fan_in: int, workers: int) -> None:
        self.workers = workers
        self._order = order
        self._fan_in = fan_in

    def share(self, value: Any) -> Any:
        return value

    def keep(self, function: Callable[[Any, Any], Any], items: Iterable[Any], shared: Any = None, **_: Any) -> Any:
        return list(self.map(function, items, shared))

    def map_reduce(
        self,
        function: Callable[[Any, Any], Any],
        items: Iterable[Any],
        merge: Callable[[Any, Any], Any],
        shared: Any = None,
        *,
        label: Callable[[Any], str] = str,
        done: Callable[[Any], None] | None = None,
        name: str = "map",
    ) -> Any:
        def join(parts: list[Any]) -> Any:
            self._order.shuffle(parts)
            total = parts[0]
            for part in parts[1:]:
                total = merge(total, part)
            return total

        tree: Tree[Any] = Tree(join, self._fan_in)
        drawn = list(items)
        self._order.shuffle(drawn)
        for item in drawn:
            tree.add(function(item, shared))
            if done:
                done(item)
        return tree.total()

    def map(
        self,
        function: Callable[[Any, Any], Any],
        items: Iterable[Any],
        shared: Any = None,
        *,
        label: Callable[[Any], str] = str,
        done: Callable[[Any], None] | None = None,
        name: str = "map",
    ) -> Iterator[Any]:
        drawn = list(enumerate(items))
        self._order.shuffle(drawn)
        found = {}
        for number, item in drawn:
            found[number] = function(item, shared)
            if done:
                done(item)
        return iter([found[number] for number in range(len(drawn))])

    def close(self) -> None:
        pass


class Apart(SerialExecutor):
    """An executor in this process whose tasks share nothing with it, as those of workers: everything is pickled."""

    shares_memory = False

    def share(self, value: Any) -> Any:
        return pickle.dumps(value)

    def keep(self, function: Callable[[Any, Any], Any], items: Iterable[Any], shared: Any = None, **_: Any) -> Any:
        return [self.share(each) for each in self.map(function, items, shared)]

    def map(self, function: Callable[[Any, Any], Any], items: Iterable[Any], shared: Any = None, **more: Any) -> Any:
        def called(item: Any, shared: Any) -> Any:
            given = tuple(map(pickle.loads, shared)) if isinstance(shared, tuple) else pickle.loads(shared)
            return pickle.loads(pickle.dumps(function(pickle.loads(pickle.dumps(item)), given)))

        return super().map(called, items, shared, **more)


def settings(rows_per_task: int = 2_000_000, **asked: Any) -> Settings:
    return Settings(evaluation=EvaluationSettings(**asked), engine=EngineSettings(rows_per_task=rows_per_task))


def score(
    archive: Any, evaluated: Reference, executor: Executor, using: Settings | None = None
) -> tuple[bytes, bytes, bytes]:
    """scores, curves and alignment of every run, as the bytes of a Parquet file each."""
    tables = score_archive(
        archive,
        [run.system for run in archive.runs],
        evaluated,
        select(None),
        using or settings(),
        executor,
        alignment=True,
    )
    assert tables.alignment is not None
    return b"".join(tables.scores.parts()), b"".join(tables.curves.parts()), b"".join(tables.alignment.parts())


def statistics(archive: Any, evaluated: Reference, executor: Executor, using: Settings | None = None) -> dict[str, Any]:
    """The statistics of every run, as plain values that can be compared."""
    systems = [run.system for run in archive.runs]
    engine = (using or settings()).engine
    found = count_archive(archive, systems, evaluated, select(None), executor, engine, Unseen())
    return {system: {kind.__name__: plain(value) for kind, value in of.items()} for system, of in found}


def plain(value: Any) -> Any:
    """Arrays as their type, shape and bytes."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    return value


def parquet(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    names = [pa.field(f.name, pa.string(), f.nullable) if pa.types.is_dictionary(f.type) else f for f in table.schema]
    pq.write_table(table.cast(pa.schema(names)), sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def bytes_of(found: sws.Result) -> tuple[bytes, bytes, tuple[str, ...]]:
    return parquet(found.table), parquet(found.curve_table), found.notes


def forget_results(archive: Path) -> None:
    """Leave only statistics in the cache."""
    for file in (archive / CACHE).rglob("results-*"):
        file.unlink()


def most_ahead(executor: Executor, n: int) -> int:
    """The largest number of items that an executor has drawn and not ended, of `n`."""
    drawn = ended = most = 0

    def items() -> Iterator[int]:
        nonlocal drawn, most
        for item in range(n):
            drawn += 1
            most = max(most, drawn - ended)
            yield item

    def end(item: int) -> None:
        nonlocal ended
        ended += 1

    executor.map_reduce(operator.add, items(), operator.add, 0, done=end)
    assert drawn == ended == n
    return most
