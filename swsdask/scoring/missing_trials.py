"""The check for missing trials.

Under `impute = "error"` a run must give every trial (query, document) of the evaluation, as MediaEval's tool requires
by default; trials of queries without targets count only if averages count these queries.
"""

from __future__ import annotations

import numpy as np

from swsdask.archive.protocols import Run
from swsdask.model.errors import InputError, Problem
from swsdask.model.trials import I64, Reference
from swsdask.model.wording import counted
from swsdask.scoring.detections import ROWS_PER_CELL, Cells
from swsdask.statistics.alignment import make_trials, trial_columns
from swsdask.statistics.counts import Counts


def check_complete(cells: Cells, run: Run, counts: Counts, reference: Reference) -> None:
    """Raises `InputError` if a run leaves out trials (query, document): names the first, and says how many."""
    whole = reference.conditions[0]
    given = (counts.mapped + counts.unmapped).sum(axis=(1, 2))
    missing: I64 = np.where(whole.queries, whole.n_trials - given, 0)
    if not missing.any():
        return
    query = int(np.flatnonzero(missing)[0])
    document = reference.document_ids[_first_missing(cells, run, query, reference)]
    trials = int(whole.queries.sum()) * whole.n_trials
    raise InputError(
        Problem(
            file=run.where,
            line=None,
            expected="a score for every query and document",
            found=f"none for query {reference.query_ids[query]} in document {document}, the first of "
            f"{counted(int(missing.sum()), 'missing trials')}, of {trials:,}",
            remedy="Give the others too, or set the score that they have: --set impute=min, or a number.",
        )
    )


def _first_missing(cells: Cells, run: Run, query: int, reference: Reference) -> int:
    """Return the first document without a trial of a query."""
    found = np.zeros(reference.n_documents, np.bool_)
    columns = [*trial_columns(reference.rule, reference.n_groups, False)]
    for cell in cells(run.system, ROWS_PER_CELL):
        detections = cell.read(columns)
        trials = make_trials(detections, reference, run.scores, aligned=False, source=cell.source)
        if detections.document is not None:
            document = detections.document if trials.row is None else detections.document[trials.row]
            found[document[trials.query == query]] = True
    return int(np.argmin(found))
