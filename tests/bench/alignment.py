"""Alignment in memory: of detections in the archive's order, and in any order within each query."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from swsdask.archive.reference import build_reference
from swsdask.archive.store import open_archive
from swsdask.statistics.alignment import make_trials, trial_columns
from tests.bench.cost import Cost, cost
from tests.bench.data import Archived, Data
from tests.bench.floor import read_columns
from tests.bench.scoring import settings
from tests.bench.table import Row


def rows(data: Data) -> Iterator[Row]:
    """Seconds per pass over one system, over reading its columns; rows per second in the first column."""
    archive = data.ten_systems
    system, files = next(iter(archive.files.items()))
    n = archive.rows // len(archive.files)
    reading = cost(read_columns, files, aligned_columns(archive), repeats=5)
    in_order = cost(align, archive.url, system, False, repeats=5)
    shuffled = cost(align, archive.url, system, True, repeats=5)
    yield _row("alignment, sorted", in_order, n, "pyarrow, 7 columns", reading)
    yield _row("alignment, any order within a query", shuffled, n, "pyarrow, 7 columns", reading)
    yield _row("alignment, any order within a query", shuffled, n, "sorted", in_order)


def aligned_columns(archive: Archived) -> tuple[str, ...]:
    """The columns that alignment reads."""
    return trial_columns(build_reference(open_archive(archive.url), settings({}).evaluation).rule, 1, True)


def align(url: str, system: str, shuffled: bool) -> Callable[[], int]:
    """Aligns the cells of a system, which are in memory; how many hits there are."""
    archive = open_archive(url)
    reference = build_reference(archive, settings({}).evaluation)
    run = next(run for run in archive.runs if run.system == system)
    columns = trial_columns(reference.rule, reference.n_groups, True)
    cells = [cell.read(columns) for cell in archive.cells(system, 1_000_000)]
    if shuffled:
        chance = np.random.default_rng(1)
        cells = [cell.take(np.lexsort((chance.random(len(cell)), cell.query))) for cell in cells]

    def step() -> int:
        made = (make_trials(cell, reference, run.scores, aligned=True) for cell in cells)
        return sum(0 if trials.hit is None else len(trials.hit) for trials in made)

    return step


def _row(what: str, ours: Cost, n: int, over: str, theirs: Cost) -> Row:
    what = f"{what}: {n / ours.cpu / 1e6:,.0f} M rows/s"
    return Row(what, ours.cpu, over, theirs.cpu, ours.cpu / theirs.cpu, peak=ours.peak, peak_of_theirs=theirs.peak)
