"""Hundreds of systems, each with 100 thousand detections: what one more system costs, and where.

Costs of one more system are those of `MANY` systems less those of a third of them, divided by the difference, so that
what starts once does not count. Everything is scored, with all measures, on two worker processes, and written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import NamedTuple

import swsdask as sws
from swsdask.archive.reference import build_reference
from swsdask.archive.store import open_archive
from swsdask.execution.executor import SerialExecutor, Unseen
from swsdask.execution.open import open_executor
from swsdask.measures import MEASURES
from swsdask.model.settings import EngineSettings
from swsdask.scoring.result_tables import CountedRun
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
    numbers, counting = cost(_computed, archive.url, repeats=1).result
    what = "numbers of one system of 500 queries, all measures"
    yield Row(what, 1000 * numbers, "counting it", 1000 * counting, numbers / counting, unit="ms")
    yield Row(what, 1000 * numbers, "15 ms", 15.0, numbers / 0.015, unit="ms", most=1.0)
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


def _computed(url: str) -> Callable[[], tuple[float, float]]:
    """CPU seconds per system of its numbers and of counting it, without what the first one costs."""
    chosen, archive = settings({}), open_archive(url)
    systems = [run.system for run in archive.runs][: COMPUTED + 1]
    reference = build_reference(archive, chosen.evaluation)

    def counted(names: list[str]) -> list[CountedRun]:
        found = count_archive(archive, names, reference, MEASURES, SerialExecutor(), chosen.engine, Unseen())
        return [CountedRun(name, 0, each, MEASURES, chosen.evaluation, None) for name, each in found]

    def step() -> tuple[float, float]:
        for each in counted(systems[:1]):
            each.results((reference,))
        began = cpu_seconds()
        waiting = counted(systems[1:])
        between = cpu_seconds()
        for each in waiting:
            each.results((reference,))
        return (cpu_seconds() - between) / COMPUTED, (between - began) / COMPUTED

    return step
