"""MAP in ranx, which is given arrays: faster than any of its readers, which go through dictionaries of strings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numba import set_num_threads
from numba.typed import List
from ranx import evaluate

Systems = Mapping[str, Sequence[str]]


def with_arrays(systems: Systems, judgments: str) -> Callable[[], dict[str, float]]:
    """MAP by system, in one thread, its kernels compiled before."""
    pa.set_cpu_count(1)
    set_num_threads(1)

    def step() -> dict[str, float]:
        judged = pq.read_table(judgments)
        relevant = _split(judged["query"].to_numpy(), judged["document"].to_numpy(), np.ones(len(judged)))
        return {system: _mean(files, relevant) for system, files in systems.items()}

    pair = List([np.array([[1.0, 1.0]])])
    evaluate(pair, pair, "map")
    return step


def _mean(files: Sequence[str], relevant: List) -> float:
    table = pa.concat_tables(pq.read_table(file, columns=["query", "document", "score"]) for file in files)
    query, document, score = (table[name].to_numpy() for name in table.column_names)
    order = np.lexsort((-score, query))
    return float(evaluate(relevant, _split(query[order], document[order], score[order]), "map"))


def _split(query: np.ndarray, document: np.ndarray, value: np.ndarray) -> List:
    """Rows (document, value) of each query, queries ascending; `query` ascends."""
    rows = np.column_stack((document, value))
    return List(np.split(rows, np.flatnonzero(np.diff(query)) + 1))
