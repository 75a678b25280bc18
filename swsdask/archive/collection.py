"""What a collection holds to search in, before any system: the counts of the thesis's table 5.5.

An event is a (query, document): each may be relevant, if the document holds an evaluated occurrence of the query, or
not. Queries out of vocabulary are those with an attribute `oov` (in small or capital letters) that is yes, true or 1;
where no query has the attribute, nothing is said of them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from swsdask.model.trials import Bool, Reference

_YES = {"1", "yes", "true", "oov"}


def collection_statistics(queries: pa.Table, reference: Reference) -> dict[str, int]:
    """Documents, queries, events, relevant events and occurrences, and of these what is out of vocabulary."""
    evaluated = reference.n_documents - reference.n_without_excerpts
    inside = reference.document < evaluated
    pairs = np.unique(reference.query[inside].astype(np.int64) << 32 | reference.document[inside])
    counts = {
        "documents": evaluated,
        "queries": reference.n_queries,
        "events": evaluated * reference.n_queries,
        "relevant_events": len(pairs),
        "occurrences": len(reference.query),
    }
    oov = _out_of_vocabulary(queries)
    if oov is not None:
        counts |= {
            "oov_queries": int(oov.sum()),
            "oov_events": evaluated * int(oov.sum()),
            "relevant_oov_events": int(oov[pairs >> 32].sum()),
            "oov_occurrences": int(oov[reference.query].sum()),
        }
    return counts


def _out_of_vocabulary(queries: pa.Table) -> Bool | None:
    said = [
        {name.lower(): value.strip().lower() for name, value in attributes}.get("oov")
        for attributes in queries["attributes"].to_pylist()
    ]
    if all(value is None for value in said):
        return None
    return np.array([value in _YES for value in said], np.bool_)
