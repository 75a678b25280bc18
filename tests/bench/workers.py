"""Two workers over one, by the clock: threads, and processes of dask.distributed; and one process over none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import swsdask as sws
from swsdask.archive.reference import build_reference
from swsdask.archive.store import open_archive
from swsdask.execution.open import open_executor
from swsdask.measures import select
from swsdask.model.settings import EngineSettings
from swsdask.scoring.score import score_archive
from tests.bench.cost import cost, peak_memory
from tests.bench.data import Archived, Data
from tests.bench.scoring import FEW, settings
from tests.bench.table import Row

Kind = Literal["serial", "threads", "processes"]


def rows(data: Data) -> Iterator[Row]:
    """Wall-clock seconds of one worker over those of two: the shortest of several turns, for others use the machine.

    One process over none is what Dask costs. Worker processes share the cores with Dask's scheduler and client, whose
    work does not grow with the rows: see `scale` for a large archive.
    """
    yield _over_one("threads", data.ten_systems, 5, least=1.7)
    yield _over_one("processes", data.ten_systems, 5, least=1.8)
    yield _over_none(data.ten_systems, 5)


def two_processes(archive: Archived) -> Row:
    """Two worker processes over one, for an archive that takes long."""
    return _over_one("processes", archive, 1, least=1.7)


class Worked(NamedTuple):
    """The shortest wall-clock seconds, and the highest resident memory of a worker in bytes."""

    wall: float
    peak: int


def peak_of_workers(executor: sws.Executor, workers: int) -> int:
    """The highest resident memory of a worker so far, in bytes: of enough tasks that each of them has some."""
    return executor.map_reduce(_peak, range(16 * workers), max) or 0


def worked(url: str, kind: Kind, workers: int, repeats: int) -> Callable[[], Worked]:
    """Scores an archive on workers that have started and have scored it once before."""
    chosen = settings({})
    archive = open_archive(url)
    systems = [run.system for run in archive.runs]

    def step() -> Worked:
        with open_executor(EngineSettings(executor=kind, workers=workers)) as executor:
            walls = []
            for _ in range(1 + repeats):
                began = time.perf_counter()
                reference = build_reference(archive, chosen.evaluation)
                score_archive(archive, systems, reference, select(FEW), chosen, executor, names=FEW)
                walls.append(time.perf_counter() - began)
            peak = peak_of_workers(executor, workers)
        return Worked(min(walls[1:]), peak)

    return step


def _over_one(kind: Kind, archive: Archived, repeats: int, least: float | None = None) -> Row:
    one, two = _in_turn(archive, (kind, 1), (kind, 2), repeats)
    return Row(
        f"2 {kind}, {archive.rows:,} detections, wall-clock time",
        two.wall,
        "1",
        one.wall,
        one.wall / two.wall,
        least=least,
        peak=two.peak,
        peak_of_theirs=one.peak,
    )


def _over_none(archive: Archived, repeats: int) -> Row:
    serial, one = _in_turn(archive, ("serial", 1), ("processes", 1), repeats)
    return Row(
        f"1 process of Dask, {archive.rows:,} detections, wall-clock time",
        one.wall,
        "serial",
        serial.wall,
        one.wall / serial.wall,
        most=1.05,
        peak=one.peak,
        peak_of_theirs=serial.peak,
    )


def _in_turn(archive: Archived, one: tuple[Kind, int], other: tuple[Kind, int], repeats: int) -> Iterator[Worked]:
    """The best of two turns of each."""
    turns = [[cost(worked, archive.url, *way, repeats, repeats=1).result for way in (one, other)] for _ in range(2)]
    return (min(found) for found in zip(*turns, strict=True))


def _peak(_number: int, _shared: None) -> int:
    return peak_memory()
