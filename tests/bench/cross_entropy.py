"""C_nxe and C_nxe_min of an archive, over reading its columns and over scikit-learn's logistic regression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from swsdask.archive.protocols import Run
from swsdask.archive.reference import build_reference
from swsdask.archive.store import StoredArchive, open_archive
from swsdask.measures.calibration import affine
from swsdask.measures.measure import Scored
from swsdask.model.trials import Reference, Trials
from swsdask.scoring.detections import ROWS_PER_CELL
from swsdask.statistics.alignment import make_trials, trial_columns
from swsdask.statistics.counts import Counts
from swsdask.statistics.entropy import Entropy
from swsdask.statistics.ladder import Hits
from swsdask.statistics.moments import Moments, Overlap, ZoomedMoments
from swsdask.statistics.statistic import Statistic
from tests.bench import in_sklearn
from tests.bench.cost import cost, in_turn
from tests.bench.data import Archived, Data
from tests.bench.floor import read_columns
from tests.bench.scoring import MANY, score, settings
from tests.bench.table import Row

CROSS_ENTROPY = ("cnxe", "cnxe_min")


def rows(data: Data) -> Iterator[Row]:
    """CPU seconds: ours over reading what scores and outcomes are made of, and the fit of scikit-learn over ours."""
    archive = data.ten_systems
    files = [file for found in archive.files.values() for file in found]
    columns = trial_columns(build_reference(open_archive(archive.url), settings({}).evaluation).rule, 1, True)
    for what, measures, most in (
        ("C_nxe, C_nxe_min", CROSS_ENTROPY, 3.0),
        ("ATWV, MTWV, OTWV, STWV, DET, C_nxe, C_nxe_min", (*MANY, *CROSS_ENTROPY), None),
    ):
        floor, ours = in_turn((read_columns, files, columns), (score, archive.url, measures, {}))
        yield Row(
            f"{what} of {archive.rows:,} detections",
            ours.cpu,
            f"pyarrow, {len(columns)} columns",
            floor.cpu,
            ours.cpu / floor.cpu,
            most=most,
            peak=ours.peak,
            peak_of_theirs=floor.peak,
        )
    scores, outcomes = _trials(archive, data.folder)
    theirs = cost(in_sklearn.fit, scores, outcomes, repeats=1)
    for what, ours, least in (
        ("C_nxe_min: the fit to {:,} trials in memory", cost(fit, archive.url), 10.0),
        ("C_nxe_min of {:,} detections, read and aligned", cost(score, archive.url, CROSS_ENTROPY, {}), None),
    ):
        yield Row(
            what.format(archive.rows),
            ours.cpu,
            "scikit-learn, the fit to trials in memory",
            theirs.cpu,
            theirs.cpu / ours.cpu,
            least=least,
            peak=ours.peak,
            peak_of_theirs=theirs.peak,
        )


def fit(url: str) -> Callable[[], list[float]]:
    """Fits one system after the other, whose trials are in memory; the slopes."""
    archive, chosen = open_archive(url), settings({}).evaluation
    reference = build_reference(archive, chosen)
    systems = [list(_aligned(archive, reference, run)) for run in archive.runs]

    def step() -> list[float]:
        slopes = []
        for cells in systems:
            found: dict[type[Statistic], Any] = {}
            for statistic in (Counts, Hits, Entropy, Moments, ZoomedMoments, Overlap):
                prepared = statistic.prepare(found, reference)
                if prepared is not None:
                    parts = (statistic.from_trials(trials, reference, prepared) for trials in cells)
                    found[statistic] = reduce(lambda one, other: one.merge(other), parts)
            scored = Scored(found, reference, chosen)
            slopes.append(affine(scored, scored.populations[0]).best.gamma)
        return slopes

    return step


def _trials(archive: Archived, folder: Path) -> tuple[list[str], list[str]]:
    """The score and the outcome of every trial, a file of each for every system."""
    opened = open_archive(archive.url)
    reference = build_reference(opened, settings({}).evaluation)
    scores, outcomes = [], []
    for run in opened.runs:
        score, hit = [], []
        for trials in _aligned(opened, reference, run):
            is_hit = np.zeros(len(trials), np.bool_)
            is_hit[trials.hit] = True
            score.append(trials.score)
            hit.append(is_hit)
        for made, parts, kind in ((scores, score, "scores"), (outcomes, hit, "outcomes")):
            made.append(str(folder / f"{run.system}-{kind}.npy"))
            np.save(made[-1], np.concatenate(parts))
    return scores, outcomes


def _aligned(archive: StoredArchive, reference: Reference, run: Run) -> Iterator[Trials]:
    columns = trial_columns(reference.rule, reference.n_groups, True)
    for cell in archive.cells(run.system, ROWS_PER_CELL):
        yield make_trials(cell.read(columns), reference, run.scores, aligned=True, source=cell.source)
