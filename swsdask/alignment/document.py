"""Document trials: a trial is a (query, document), as in MediaEval's SWS 2011 and QUESST 2014 and 2015."""

from __future__ import annotations

import numpy as np

from swsdask.model.trials import I32


def document_targets(query: I32, document: I32) -> tuple[I32, I32]:
    """The target trials: (query, document), each pair once, sorted: a target document holds an occurrence of the query.

    `query` and `document` are columns of the evaluated occurrences, in any order.
    """
    pairs = np.unique(np.column_stack((query, document)), axis=0)
    return pairs[:, 0].copy(), pairs[:, 1].copy()
