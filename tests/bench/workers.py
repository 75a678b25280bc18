"""Two worker processes over one, by the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from swsdask.archive.reference import build_reference
from swsdask.archive.store import open_archive
from swsdask.engine.open import open_executor
from swsdask.engine.score import score_archive
from swsdask.measures import select
from swsdask.model.settings import EngineSettings
from tests.bench.cost import cost, peak_memory
from tests.bench.data import Data
from tests.bench.scoring import FEW, settings
from tests.bench.table import Row


def rows(data: Data) -> Iterator[Row]:
    """Wall-clock seconds of one worker over those of two: the shortest of several turns, for others use the machine."""
    archive = data.ten_systems
    turns = [[cost(on_processes, archive.url, workers, 5, repeats=1).result for workers in (1, 2)] for _ in range(2)]
    one, two = (min(found) for found in zip(*turns, strict=True))
    yield Row(
        f"2 workers, {archive.rows:,} detections, wall-clock time",
        two.wall,
        "1 worker",
        one.wall,
        one.wall / two.wall,
        least=1.7,
        peak=two.peak,
        peak_of_theirs=one.peak,
    )


class OnProcesses(NamedTuple):
    """The shortest wall-clock seconds, and the highest resident memory of a worker in bytes."""

    wall: float
    peak: int


def on_processes(url: str, workers: int, repeats: int) -> Callable[[], OnProcesses]:
    """Scores an archive on worker processes that have started and have scored it once before."""
    chosen = settings({})
    archive = open_archive(url)
    systems = [run.system for run in archive.runs]

    def step() -> OnProcesses:
        with open_executor(EngineSettings(executor="processes", workers=workers)) as executor:
            walls = []
            for _ in range(1 + repeats):
                began = time.perf_counter()
                reference = build_reference(archive, chosen.evaluation)
                score_archive(archive, systems, reference, select(FEW), chosen, executor, measures=FEW)
                walls.append(time.perf_counter() - began)
            peak = executor.map_reduce(_peak, range(16 * workers), max) or 0
        return OnProcesses(min(walls[1:]), peak)

    return step


def _peak(_number: int, _shared: None) -> int:
    return peak_memory()
