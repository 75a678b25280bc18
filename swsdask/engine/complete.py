"""`impute = "error"`: a run must give every trial of the evaluation, as MediaEval's tool wants it by default.

A trial is a (query, document); those of queries without targets count only where averages count them.
"""

from __future__ import annotations

import numpy as np

from swsdask.alignment.trials import make_trials, trial_columns
from swsdask.archive.base import Archive, Run
from swsdask.errors import InputError, Problem
from swsdask.model.trials import I64, Reference
from swsdask.model.wording import counted
from swsdask.statistics.counts import Counts

_ROWS_AT_ONCE = 500_000


def check_complete(archive: Archive, run: Run, counts: Counts, reference: Reference) -> None:
    """Raises `InputError` naming the first trial (query, document) that a run leaves out, and how many there are."""
    whole = reference.conditions[0]
    given = (counts.mapped + counts.unmapped).sum(axis=(1, 2))
    missing: I64 = np.where(whole.queries, whole.n_trials - given, 0)
    if not missing.any():
        return
    query = int(np.flatnonzero(missing)[0])
    document = reference.document_ids[_first_missing(archive, run, query, reference)]
    trials = int(whole.queries.sum()) * whole.n_trials
    raise InputError(
        Problem(
            file=", ".join(run.files) or run.system,
            line=None,
            expected="a score for every query and document",
            found=f"none for query {reference.query_ids[query]} in document {document}, the first of "
            f"{counted(int(missing.sum()), 'missing trials')}, of {trials:,}",
            remedy="Give the others too, or tell the score they have: --set impute=min, or a number.",
        )
    )


def _first_missing(archive: Archive, run: Run, query: int, reference: Reference) -> int:
    """The first document without a trial of a query that lacks some."""
    found = np.zeros(reference.n_documents, np.bool_)
    columns = [*trial_columns(reference.rule, reference.n_groups, False)]
    for cell in archive.cells(run.system, _ROWS_AT_ONCE):
        detections = cell.read(columns)
        trials = make_trials(detections, reference, run.scores, aligned=False, source=cell.source)
        if detections.document is not None:
            document = detections.document if trials.row is None else detections.document[trials.row]
            found[document[trials.query == query]] = True
    return int(np.argmin(found))
