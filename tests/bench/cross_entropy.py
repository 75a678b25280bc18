"""C_nxe and C_nxe_min of an archive, over reading its columns and over scikit-learn's logistic regression."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from swsdask.alignment.trials import make_trials, trial_columns
from swsdask.archive.reference import build_reference
from swsdask.archive.store import open_archive
from swsdask.engine.plan import ROWS_PER_CELL
from tests.bench import in_sklearn
from tests.bench.cost import cost
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
    floor = cost(read_columns, files, columns)
    for what, measures, most in (
        ("C_nxe, C_nxe_min", CROSS_ENTROPY, 3.0),
        ("ATWV, MTWV, OTWV, STWV, DET, C_nxe, C_nxe_min", (*MANY, *CROSS_ENTROPY), None),
    ):
        ours = cost(score, archive.url, measures, {})
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
    ours = cost(score, archive.url, CROSS_ENTROPY, {})
    theirs = cost(in_sklearn.fit, scores, outcomes, repeats=1)
    yield Row(
        f"C_nxe_min of {archive.rows:,} detections, alignment included",
        ours.cpu,
        "scikit-learn, the fit alone",
        theirs.cpu,
        theirs.cpu / ours.cpu,
        least=10.0,
        peak=ours.peak,
        peak_of_theirs=theirs.peak,
    )


def _trials(archive: Archived, folder: Path) -> tuple[list[str], list[str]]:
    """The score and the outcome of every trial, a file of each for every system."""
    opened = open_archive(archive.url)
    reference = build_reference(opened, settings({}).evaluation)
    columns = trial_columns(reference.rule, reference.n_groups, True)
    scores, outcomes = [], []
    for run in opened.runs:
        score, hit = [], []
        for cell in opened.cells(run.system, ROWS_PER_CELL):
            trials = make_trials(cell.read(columns), reference, run.scores, aligned=True, source=cell.source)
            is_hit = np.zeros(len(trials), np.bool_)
            is_hit[trials.hit] = True
            score.append(trials.score)
            hit.append(is_hit)
        for made, parts, kind in ((scores, score, "scores"), (outcomes, hit, "outcomes")):
            made.append(str(folder / f"{run.system}-{kind}.npy"))
            np.save(made[-1], np.concatenate(parts))
    return scores, outcomes
