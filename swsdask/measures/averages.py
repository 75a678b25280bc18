"""Who is averaged in a condition, and the averages: Eq. 1-5 of the 2013 measures document.

P_miss(q) = N_miss(q) / N_act(q), P_fa(q) = N_fa(q) / N_nt(q), N_nt(q) = N - N_act(q) (Eq. 1-3); P_miss and P_fa are
their averages over the queries of the condition (Eq. 4-5). A query without target trials has no P_miss and one without
non-target trials (N_act >= N) no P_fa: it is left out of the average that it has no part in, whose |Q| is one less. An
average over no query is not defined (NaN).

QUIRK, under `compat = "kwseval"` with `no_targets = "false_alarms_only"` (KWSEval -inc): a query without targets in a
condition counts there only if the system detects it there, or nowhere at all and no document has it. So |Q| of a
condition of some documents may differ from system to system.

Counts are added up by N_act before they are divided, in order of N_act, so that equal counts give equal bits wherever
they come from, and rejecting everything gives P_miss = 1 exactly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from swsdask.measures.measure import Value
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import F64, I64, Bool, Condition, Reference
from swsdask.statistics.counts import Counts


@dataclass(frozen=True, eq=False)
class Population:
    """The queries of a condition. `targets` and `nontargets`, int64 [n_queries], are N_act and N_nt."""

    number: int
    condition: Condition
    targets: I64

    @property
    def asked(self) -> Bool:
        """All queries of the condition: bool [n_queries]."""
        return self._there(self.condition.asked)

    @property
    def queries(self) -> Bool:
        """The queries that averages count: bool [n_queries]."""
        return self._there(self.condition.queries)

    def _there(self, queries: Bool) -> Bool:
        absent = self.condition.absent
        return queries if absent is None else queries & ~absent

    @property
    def nontargets(self) -> I64:
        """N_nt, 0 or less where a query has none."""
        return self.condition.n_trials - self.targets

    @cached_property
    def levels(self) -> list[int]:
        """The distinct N_act of the queries, ascending."""
        return [int(level) for level in np.unique(self.targets[self.queries])]

    @cached_property
    def level_targets(self) -> list[int]:
        """For each of `levels`, N_act of all queries that have so many."""
        return [level * int((self.queries & (self.targets == level)).sum()) for level in self.levels]

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return int(self.queries.sum())

    @property
    def n_target(self) -> int:
        """N_true: target trials of all queries."""
        return int(self.targets[self.queries].sum())

    @property
    def with_targets(self) -> Bool:
        """The queries that P_miss is averaged over: bool [n_queries]."""
        return self.queries & (self.targets > 0)

    @property
    def n_with_targets(self) -> int:
        """Over how many queries P_miss is averaged."""
        return int(self.with_targets.sum())

    @property
    def n_with_nontargets(self) -> int:
        """Over how many queries P_fa is averaged."""
        return int((self.queries & (self.nontargets > 0)).sum())

    def rates_of(self, misses: I64, false_alarms: I64) -> tuple[float, float]:
        """P_miss and P_fa averaged, from counts per query, int64 [n_queries]."""
        p_miss = p_fa = 0.0
        for level in self.levels:
            chosen = self.queries & (self.targets == level)
            if level > 0:
                p_miss += int(misses[chosen].sum()) / level
            if level < self.condition.n_trials:
                p_fa += int(false_alarms[chosen].sum()) / (self.condition.n_trials - level)
        return p_miss / (self.n_with_targets or np.nan), p_fa / (self.n_with_nontargets or np.nan)

    def overall(self, numbers: Mapping[str, float]) -> Iterator[Value]:
        """The numbers over all queries."""
        for name, value in numbers.items():
            yield Value(self.condition.name, None, name, float(value))

    def by_query(self, reference: Reference, columns: Mapping[str, NDArray[Any]]) -> Iterator[Value]:
        """The numbers of every query, from columns [n_queries]."""
        listed = {name: column.tolist() for name, column in columns.items()}
        for query in np.flatnonzero(self.queries).tolist():
            for name, column in listed.items():
                yield Value(self.condition.name, reference.query_ids[query], name, float(column[query]))


def populations(reference: Reference) -> list[Population]:
    """One for every condition."""
    return [
        Population(number, condition, reference.condition_targets(condition))
        for number, condition in enumerate(reference.conditions)
    ]


def knows_absent(settings: EvaluationSettings) -> bool:
    """Whether averages leave out the queries that a system does not detect in a condition (the QUIRK above)."""
    return settings.compat == "kwseval" and settings.no_targets == "false_alarms_only"


def without_absent(reference: Reference, counts: Counts) -> Reference:
    """The reference for one system, from its counts: conditions name the queries that are absent there."""
    trials = (counts.mapped + counts.unmapped).sum(axis=2)
    present = (reference.targets > 0) | (trials > 0)
    anywhere = present.any(axis=1)
    conditions = (
        replace(condition, absent=anywhere & ~present[:, condition.groups].any(axis=1))
        for condition in reference.conditions
    )
    return replace(reference, conditions=tuple(conditions))


def ratio(counts: I64 | F64, totals: I64) -> F64:
    """Columns of counts / totals, NaN where the total is 0 or less."""
    quotients = np.full(len(totals), np.nan)
    np.divide(counts, totals, out=quotients, where=totals > 0)
    return quotients
