"""From merged statistics to the long-form tables of `model.results`, in canonical order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from swsdask.engine.rounds import Found
from swsdask.measures import curves
from swsdask.measures.base import Measure
from swsdask.measures.points import family_name
from swsdask.model.results import CURVES, SCORES
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference


def score_table(
    system: str,
    found: Found,
    measures: Sequence[Measure],
    names: Sequence[str] | None,
    reference: Reference,
    settings: EvaluationSettings,
) -> pa.Table:
    """The numbers of one system as rows of `SCORES`; of `names` only, None: all that the measures yield.

    The name `twv@` stands for `twv@0.5` and all others. Ordered by condition, then the numbers over all queries before
    those of each query in the order of the list, then by measure in the order of `measures`.
    """
    condition_rank = {condition.name: rank for rank, condition in enumerate(reference.conditions)}
    query_rank: dict[str | None, int] = {query: rank for rank, query in enumerate(reference.query_ids)}
    query_rank[None] = -1
    asked = None if names is None else {*names}
    values = [
        value
        for measure in measures
        for value in measure.values(found, reference, settings)
        if asked is None or value.measure in asked or family_name(value.measure) in asked
    ]
    values.sort(key=lambda value: (condition_rank[value.condition], query_rank[value.query]))
    condition, query, measure, number = zip(*values, strict=True) if values else ((), (), (), ())
    return pa.table([[system] * len(values), condition, query, measure, number], schema=SCORES)


def curve_table(system: str, found: Found, reference: Reference, settings: EvaluationSettings) -> pa.Table:
    """The curves of one system as rows of `CURVES`: of each kind by condition, those whose statistics were found."""
    drawn = list(curves(found, reference, settings))
    points = [len(curve.threshold) for curve in drawn]
    return pa.table(
        [
            _repeated([system] * len(drawn), points),
            _repeated([curve.condition for curve in drawn], points),
            _repeated([curve.curve for curve in drawn], points),
            *(
                np.concatenate([getattr(curve, axis) for curve in drawn] or [np.empty(0)])
                for axis in ("threshold", "x", "y")
            ),
        ],
        schema=CURVES,
    )


def _repeated(texts: Sequence[str], times: Sequence[int]) -> pa.Array:
    return pa.array(texts, pa.string()).take(pa.array(np.repeat(np.arange(len(texts)), times)))
