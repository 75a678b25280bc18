"""The results of one run, computed from its statistics: numbers and curves as tables, and notes.

In these tables names are coded, so that they travel in a third of the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from swsdask.measures import curves, system_notes
from swsdask.measures.measure import Measure, Scored
from swsdask.measures.names import family_name
from swsdask.model.results import CURVES, SCORES
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import F64, I64, Reference
from swsdask.scoring.rounds import Found, SystemResults


@dataclass(frozen=True, eq=False)
class CountedRun:
    """A run with its merged statistics, the measures to compute, and the names of the requested ones (None: all)."""

    system: str
    rows: int
    statistics: Found
    measures: Sequence[Measure]
    settings: EvaluationSettings
    names: Sequence[str] | None

    def __str__(self) -> str:
        return f"system {self.system}"

    def results(self, shared: tuple[Reference]) -> SystemResults:
        """Compute its results; `shared` is the reference."""
        scored = Scored(self.statistics, shared[0], self.settings)
        return SystemResults(
            scores=score_table(self.system, scored, self.measures, self.names),
            curves=curve_table(self.system, scored),
            notes=system_notes(scored),
        )


def score_table(system: str, scored: Scored, measures: Sequence[Measure], names: Sequence[str] | None) -> pa.Table:
    """The numbers of one system as coded rows of `SCORES`; of `names` only, None: all that the measures yield.

    The name `twv@` means `twv@0.5` and all others. Ordered by condition, then the numbers over all queries before
    those of each query in the order of the list, then by measure in the order of `measures`.
    """
    conditions = [condition.name for condition in scored.reference.conditions]
    requested = None if names is None else {*names}
    columns: list[tuple[str, int, I64, F64]] = [
        (name, conditions.index(values.condition), _OVERALL if values.queries is None else values.queries, column)
        for measure in measures
        for values in measure.values(scored)
        for name, column in values.columns.items()
        if requested is None or name in requested or family_name(name) in requested
    ]
    lengths = [len(column) for *_, column in columns]
    condition = np.repeat(np.array([at for _, at, _, _ in columns], np.int64), lengths)
    query = np.concatenate([_OVERALL[:0], *(queries for _, _, queries, _ in columns)])
    order = np.argsort(condition * (len(scored.reference.query_ids) + 1) + query, kind="stable")
    return pa.table(
        [
            named([system], np.zeros(len(order), np.int64)),
            named(conditions, condition[order]),
            named(scored.reference.query_ids, query[order]),
            named([name for name, *_ in columns], np.repeat(np.arange(len(columns)), lengths)[order]),
            np.concatenate([np.empty(0), *(column for *_, column in columns)])[order],
        ],
        names=SCORES.names,
    )


_OVERALL = np.array([-1])
"""In place of the numbers of queries where a number is over all of them."""


def curve_table(system: str, scored: Scored) -> pa.Table:
    """The curves of one system as coded rows of `CURVES`: of each kind by condition, those whose statistics it has."""
    drawn = list(curves(scored))
    number = np.repeat(np.arange(len(drawn)), [len(curve.threshold) for curve in drawn])
    return pa.table(
        [
            named([system], np.zeros(len(number), np.int64)),
            named([curve.condition for curve in drawn], number),
            named([curve.curve for curve in drawn], number),
            *(
                np.concatenate([getattr(curve, axis) for curve in drawn] or [np.empty(0)])
                for axis in ("threshold", "x", "y")
            ),
        ],
        names=CURVES.names,
    )


def named(names: Sequence[str], code: I64) -> pa.Array:
    """A column of names from their codes, negative where there is no name: as `model.tables.coded` makes one."""
    first = np.full(len(names) + 1, len(code))
    first[code[::-1]] = np.arange(len(code))[::-1]
    first = first[:-1]
    used = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(code))]
    place = np.full(len(names) + 1, -1, np.int32)
    place[used] = np.arange(len(used))
    missing = code < 0
    column = pa.array(place[code], mask=missing if missing.any() else None)
    return pa.DictionaryArray.from_arrays(column, pa.array([names[each] for each in used.tolist()], pa.string()))
