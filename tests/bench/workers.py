"""Two workers over one, by the clock: threads, and processes of dask.distributed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

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

Kind = Literal["threads", "processes"]


def rows(data: Data) -> Iterator[Row]:
    """Wall-clock seconds of one worker over those of two: the shortest of several turns, for others use the machine.

    Worker processes share the cores with Dask's scheduler and client, whose work does not grow with the rows: see
    `scale` for a large archive.
    """
    yield _over_one("threads", data.ten_systems, 5, least=1.7)
    yield _over_one("processes", data.ten_systems, 5, least=1.8)


def two_processes(archive: Archived) -> Row:
    """Two worker processes over one, for an archive that takes long."""
    return _over_one("processes", archive, 1, least=1.7)


class Worked(NamedTuple):
    """The shortest wall-clock seconds, and the highest resident memory of a worker in bytes."""

    wall: float
    peak: int


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
                score_archive(archive, systems, reference, select(FEW), chosen, executor, measures=FEW)
                walls.append(time.perf_counter() - began)
            peak = executor.map_reduce(_peak, range(16 * workers), max) or 0
        return Worked(min(walls[1:]), peak)

    return step


def _over_one(kind: Kind, archive: Archived, repeats: int, least: float | None = None) -> Row:
    turns = [
        [cost(worked, archive.url, kind, workers, repeats, repeats=1).result for workers in (1, 2)] for _ in range(2)
    ]
    one, two = (min(found) for found in zip(*turns, strict=True))
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


def _peak(_number: int, _shared: None) -> int:
    return peak_memory()
