"""Document trials: a trial is a (query, document), as in MediaEval's SWS 2011 and QUESST 2014 and 2015.

A document is a target of a query iff it holds an evaluated occurrence of it, on any channel; where a detection lies in
the document does not matter. The best detection over all channels speaks for the trial. What lies in documents that the
ECF does not have is no trial.

QUIRK, under `compat = "mediaeval"`: its tool never looks at times and channels, so that no detection and no occurrence
lies outside the excerpts; how it finds occurrences: `archive.occurrences`.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from swsdask.alignment.places import Places, best_trials, distinct_pairs, evaluated_rows, groups_of, hits
from swsdask.kernels.trials import pairs_ascend
from swsdask.model.trials import I32, I64, Detections, Reference, Trials


def document_targets(query: I32, document: I32) -> tuple[I32, I64]:
    """The target trials: (query, document), each pair once, sorted: the document holds an occurrence of the query.

    `query` and `document` are columns of the evaluated occurrences, in any order.
    """
    return distinct_pairs(query, document)


def document_trials(detections: Detections, reference: Reference, *, aligned: bool, source: str) -> Trials:
    """Make one trial per (query, document) that has a detection, by query as the rows have it, then by document."""
    evaluated = evaluated_rows(detections, reference, source)
    if evaluated is None and pairs_ascend(detections.query, _document(detections), _n_evaluated(reference)):
        return _every_row(detections, reference, aligned=aligned)
    return best_trials(detections, reference, document_places(detections, reference, aligned=aligned), evaluated)


def _every_row(detections: Detections, reference: Reference, *, aligned: bool) -> Trials:
    """The trials where every row is one, and the rows are in order."""
    query, document = detections.query, _document(detections)
    n_evaluated, n_queries = _n_evaluated(reference), reference.n_queries
    hit, occurrence = hits(query, document, _targets(reference), n_queries, n_evaluated) if aligned else (None, None)
    return Trials(
        query=query,
        score=detections.score,
        decision=detections.decision if aligned else None,
        group=groups_of(document, slice(None), reference),
        row=None,
        hit=hit,
        occurrence=occurrence,
        dropped={},
        detections=detections,
    )


def document_places(detections: Detections, reference: Reference, *, aligned: bool) -> Places:
    """The documents as places of trials."""
    n_evaluated, document = _n_evaluated(reference), _document(detections)
    return Places(
        of_detection=np.where(document < n_evaluated, document.astype(np.int64), -1),
        number=n_evaluated,
        targets=_targets(reference) if aligned else None,
        otherwise="unknown_document",
    )


def _document(detections: Detections) -> I32:
    if detections.document is None:
        raise ValueError("the column `document` was not read")
    return detections.document


def _n_evaluated(reference: Reference) -> int:
    return reference.n_documents - reference.n_without_excerpts


@lru_cache(maxsize=2)
def _targets(reference: Reference) -> tuple[I32, I64]:
    return document_targets(reference.query, reference.document)
