"""MAP in pytrec_eval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytrec_eval

Systems = Mapping[str, Sequence[str]]


def with_dictionaries(systems: Systems, judgments: str) -> Callable[[], dict[str, float]]:
    """MAP by system, from dictionaries of strings, which is all that it takes."""
    pa.set_cpu_count(1)

    def step() -> dict[str, float]:
        judged: dict[str, dict[str, int]] = {}
        table = pq.read_table(judgments)
        names = [table[name].cast(pa.string()).to_pylist() for name in ("query", "document")]
        for query, document in zip(*names, strict=True):
            judged.setdefault(query, {})[document] = 1
        evaluator = pytrec_eval.RelevanceEvaluator(judged, {"map"})
        return {system: _mean(files, evaluator) for system, files in systems.items()}

    return step


def _mean(files: Sequence[str], evaluator: pytrec_eval.RelevanceEvaluator) -> float:
    table = pa.concat_tables(pq.read_table(file, columns=["query", "document", "score"]) for file in files)
    query = table["query"].to_numpy()
    document = table["document"].cast(pa.string()).to_pylist()
    score = table["score"].to_pylist()
    bounds = [0, *(np.flatnonzero(np.diff(query)) + 1).tolist(), len(query)]
    run = {
        str(query[begin]): dict(zip(document[begin:end], score[begin:end], strict=True))
        for begin, end in pairwise(bounds)
    }
    areas = [values["map"] for values in evaluator.evaluate(run).values()]
    return sum(areas) / len(areas)
