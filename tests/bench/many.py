"""Hundreds of systems, each with 100 thousand detections: what one more system costs, and where.

Costs of one more system are those of `MANY` systems less those of a third of them, divided by the difference, so that
what starts once does not count. Everything is scored, with all measures, on two worker processes, and written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa

import swsdask as sws
from swsdask.archive.reference import build_reference
from swsdask.archive.store import open_archive
from swsdask.execution.executor import SerialExecutor, Unseen
from swsdask.execution.open import open_executor
from swsdask.measures import MEASURES, system_notes
from swsdask.measures.measure import Scored
from swsdask.model.results import Note
from swsdask.model.settings import EngineSettings
from swsdask.scoring.result_tables import CountedRun, result_tables
from swsdask.scoring.rounds import SystemResults
from swsdask.scoring.score import count_archive
from tests.bench.cost import cost, cpu_seconds, own_seconds
from tests.bench.data import Data, Shape
from tests.bench.scoring import settings
from tests.bench.table import Row

MANY = 120
ROWS = 100_000
COMPUTED = 12
GIB = 2**30


class Parts(NamedTuple):
    """CPU seconds of the client, and of it and its workers."""

    client: float
    every: float


def rows(data: Data) -> Iterator[Row]:
    """The client's share, its memory, CPU time of the numbers of a system, and that of counting it."""
    archive = data.written("many", Shape(data.rows(ROWS)), MANY)
    found = {n: cost(_scored, archive.url, n, repeats=1) for n in (MANY // 3, MANY)}
    few, many = (each.result for each in found.values())
    client, every = (1000 * (large - small) / (MANY - MANY // 3) for small, large in zip(few, many, strict=True))
    what = f"one more system of {data.rows(ROWS):,} detections, all measures, written: client"
    peak = found[MANY].peak
    yield Row(what, client, "client and workers", every, client / every, unit="ms", most=0.2, peak=peak)
    yield Row(f"{MANY} systems, peak memory of the client", peak / GIB, "1 GiB", 1.0, peak / GIB, unit="GiB", most=1.0)
    numbers, encoding, counting = cost(_computed, archive.url, repeats=1).result
    what = "numbers of one system of 500 queries, all measures"
    yield Row(what, 1000 * numbers, "counting it", 1000 * counting, numbers / counting, unit="ms")
    yield Row(what, 1000 * numbers, "15 ms", 15.0, numbers / 0.015, unit="ms", most=1.0)
    what = "rows of one system of 500 queries encoded for files"
    yield Row(what, 1000 * encoding, "its numbers", 1000 * numbers, encoding / numbers, unit="ms")
    archive.remove()


def _scored(url: str, n_systems: int) -> Callable[[], Parts]:
    evaluation = sws.open(url)
    systems = list(evaluation.systems)[:n_systems]

    def step() -> Parts:
        own, every = own_seconds(), cpu_seconds()
        with (
            tempfile.TemporaryDirectory(prefix="swsdask-bench-") as folder,
            open_executor(EngineSettings(executor="processes", workers=2)) as executor,
        ):
            sws.write(sws.score(evaluation, runs=systems, executor=executor, cache=False), folder)
        return Parts(own_seconds() - own, cpu_seconds() - every)

    return step


def _computed(url: str) -> Callable[[], tuple[float, float, float]]:
    """CPU seconds per system of its numbers, of encoding them, and of counting it, without what the first one costs."""
    chosen, archive = settings({}), open_archive(url)
    systems = [run.system for run in archive.runs][: COMPUTED + 1]
    reference = build_reference(archive, chosen.evaluation)

    def counted(names: list[str]) -> list[CountedRun]:
        found = count_archive(archive, names, reference, MEASURES, SerialExecutor(), chosen.engine, Unseen())
        return [CountedRun(name, 0, each, MEASURES, chosen.evaluation, None) for name, each in found]

    def tables(counted: CountedRun) -> tuple[pa.Table, pa.Table, list[Note]]:
        scored = Scored(counted.statistics, reference, chosen.evaluation)
        notes = [*system_notes(scored)]
        return *result_tables(counted.system, scored, MEASURES, None), notes

    def step() -> tuple[float, float, float]:
        for each in counted(systems[:1]):
            each.results((reference,))
        times = [cpu_seconds()]
        waiting = counted(systems[1:])
        times.append(cpu_seconds())
        made = [tables(each) for each in waiting]
        times.append(cpu_seconds())
        for each in made:
            SystemResults.of(*each).encoded()
        times.append(cpu_seconds())
        counting, numbers, encoding = ((after - before) / COMPUTED for before, after in pairwise(times))
        return numbers, encoding, counting

    return step
