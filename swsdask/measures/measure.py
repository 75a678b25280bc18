"""The protocol of measures, which are arithmetic over the merged statistics of one system; and averages over queries.

A measure does no I/O, has no loop over detections, and knows nothing of Dask.

The queries that are averaged in a condition, and the averages: Eq. 1-5 of the 2013 measures document.

P_miss(q) = N_miss(q) / N_act(q), P_fa(q) = N_fa(q) / N_nt(q), N_nt(q) = N - N_act(q) (Eq. 1-3); P_miss and P_fa are
their averages over the queries of the condition (Eq. 4-5). A query without target trials has no P_miss and one without
non-target trials (N_act >= N) no P_fa: it is left out of that average, whose |Q| is one less. An average over no query
is not defined (NaN).

QUIRK, under `compat = "kwseval"` with `no_targets = "false_alarms_only"` (KWSEval -inc): a query without targets in a
condition counts there only if the system detects it there, or if no document contains it and the system detects it
nowhere. So |Q| of a condition of some documents may differ from system to system. Queries of the latter kind count in
every condition that patterns of query ids define (-T), whether they match or not.

Counts are added by N_act before they are divided, in order of N_act, so that equal counts give equal bits wherever
they come from, and rejecting everything gives P_miss = 1 exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, update_wrapper
from typing import NamedTuple, Protocol, TypeVar, TypeVarTuple, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from swsdask.model.settings import EvaluationSettings, Weights, weights
from swsdask.model.trials import F64, I64, Bool, Condition, Reference
from swsdask.statistics.counts import Counts
from swsdask.statistics.statistic import Found, Statistic


class Values(NamedTuple):
    """Numbers of one condition, over all queries or per query. NaN where a number is not defined.

    `Population.overall` and `Population.by_query` make them.

    Attributes
    ----------
    condition : str
        The name of the condition.
    queries : array of int64, or None
        The numbers of the queries, ascending; None where `columns` are over all queries.
    columns : mapping of str to array of float64
        The numbers by measure: one for each of `queries`, or a single one over all queries.

    Examples
    --------
    >>> import numpy as np
    >>> import swsdask as sws
    >>> sws.Values("all", None, {"mtwv": np.array([0.5])}).columns["mtwv"]
    array([0.5])
    """

    condition: str
    queries: I64 | None
    columns: Mapping[str, F64]


@dataclass(frozen=True, eq=False)
class Population:
    """The queries of a condition. `targets` and `nontargets`, int64 [n_queries], are N_act and N_nt.

    `absent`, bool [n_queries], are queries of the condition that do not count for this system, `added` others that do
    (the QUIRK above).
    """

    number: int
    condition: Condition
    targets: I64
    absent: Bool | None = None
    added: Bool | None = None

    @property
    def all_queries(self) -> Bool:
        """All queries of the condition: bool [n_queries]."""
        return self._there(self.condition.all_queries)

    @property
    def queries(self) -> Bool:
        """The queries that averages count: bool [n_queries]."""
        return self._there(self.condition.queries)

    def _there(self, queries: Bool) -> Bool:
        there = queries if self.absent is None else queries & ~self.absent
        return there if self.added is None else there | self.added

    def of_present(self, here: Bool, anywhere: Bool) -> Population:
        """Leave out absent queries, given those that are present in the condition and those present in any document."""
        added = ~anywhere if self.condition.by_query_pattern else None
        return replace(self, absent=anywhere & ~here, added=added)

    @cached_property
    def nontargets(self) -> I64:
        """N_nt; zero or negative if a query has no non-target trials."""
        return self.condition.n_trials - self.targets

    @cached_property
    def levels(self) -> list[int]:
        """The distinct N_act of the queries, ascending."""
        return [int(level) for level in np.unique(self.targets[self.queries])]

    @cached_property
    def level_targets(self) -> list[int]:
        """For each of `levels`, the sum of N_act over the queries of the level."""
        return [level * int((self.queries & (self.targets == level)).sum()) for level in self.levels]

    @cached_property
    def n_queries(self) -> int:
        """The number of queries."""
        return int(self.queries.sum())

    @cached_property
    def n_target(self) -> int:
        """N_true: target trials of all queries."""
        return int(self.targets[self.queries].sum())

    @cached_property
    def with_targets(self) -> Bool:
        """The queries that P_miss is averaged over: bool [n_queries]."""
        return self.queries & (self.targets > 0)

    @cached_property
    def n_with_targets(self) -> int:
        """The number of queries that P_miss is averaged over."""
        return int(self.with_targets.sum())

    @cached_property
    def n_with_nontargets(self) -> int:
        """The number of queries that P_fa is averaged over."""
        return int((self.queries & (self.nontargets > 0)).sum())

    def total(self, counts: I64) -> int:
        """Return the sum of counts per query, int64 [n_queries], over the queries that averages count."""
        return int(counts[self.queries].sum())

    def rates_of(self, misses: I64, false_alarms: I64) -> tuple[float, float]:
        """Return P_miss and P_fa averaged, from counts per query, int64 [n_queries]."""
        p_miss = p_fa = 0.0
        for level, missed, alarms in zip(
            self.levels, self._by_level(misses), self._by_level(false_alarms), strict=True
        ):
            if level > 0:
                p_miss += missed / level
            if level < self.condition.n_trials:
                p_fa += alarms / (self.condition.n_trials - level)
        return p_miss / (self.n_with_targets or np.nan), p_fa / (self.n_with_nontargets or np.nan)

    def overall(self, numbers: Mapping[str, float]) -> Values:
        """Return numbers over all queries, by measure."""
        return Values(self.condition.name, None, {name: np.array([value], float) for name, value in numbers.items()})

    def by_query(self, columns: Mapping[str, NDArray[np.generic]]) -> Values:
        """Return numbers of every query, by measure, from columns [n_queries]."""
        listed = self._listed
        numbers = {name: column[listed].astype(np.float64) for name, column in columns.items()}
        return Values(self.condition.name, listed, numbers)

    @cached_property
    def _listed(self) -> I64:
        return np.flatnonzero(self.queries)

    @cached_property
    def _level_of_listed(self) -> I64:
        return np.searchsorted(self.levels, self.targets[self.queries])

    def _by_level(self, counts: I64) -> list[int]:
        """Return the sum of counts per query over the queries of each level."""
        sums = np.zeros(len(self.levels), np.int64)
        np.add.at(sums, self._level_of_listed, counts[self._listed])
        return [int(each) for each in sums]


@lru_cache(maxsize=2)
def populations(reference: Reference) -> tuple[Population, ...]:
    """Return the queries of every condition, in order."""
    return tuple(
        Population(number, condition, reference.condition_targets(condition))
        for number, condition in enumerate(reference.conditions)
    )


def counts_present_only(settings: EvaluationSettings) -> bool:
    """Return whether averages leave out the queries that a system does not detect in a condition (the QUIRK above)."""
    return settings.compat == "kwseval" and settings.no_targets == "false_alarms_only"


def populations_present(reference: Reference, counts: Counts) -> tuple[Population, ...]:
    """Return the queries of every condition without those that are absent there, from the counts of one system."""
    there = present(reference, counts)
    anywhere = np.logical_or.reduce(there, axis=1) | ~reference.conditions[0].all_queries
    return tuple(
        population.of_present(np.logical_or.reduce(there[:, population.condition.groups], axis=1), anywhere)
        for population in populations(reference)
    )


def present(reference: Reference, counts: Counts) -> Bool:
    """Return the strata that have targets or trials: bool [n_queries, n_groups]."""
    there: Bool = (reference.targets > 0) | ((counts.mapped + counts.unmapped).sum(axis=2) > 0)
    return there


Kind = TypeVar("Kind", bound=Statistic)
Arguments = TypeVarTuple("Arguments")
Derived = TypeVar("Derived")


class Scored:
    """One system as input of measures: its merged statistics, the reference and the settings.

    ``scored[Counts]`` is the system's `Counts`; ``Counts in scored`` is whether it has them. Values that
    several measures derive from statistics (sweeps, rankings, fits) are computed once and cached here: see `cached`.

    Parameters
    ----------
    statistics : mapping of type to Statistic
        The merged statistics of the system, by their type.
    reference : Reference
        The evaluated occurrences, the numbers of trials and the conditions.
    settings : EvaluationSettings
        The settings of the evaluation.

    Attributes
    ----------
    populations : tuple of Population
        The queries of every condition, with their averages.
    whole : Population
        The first of them: the queries of the whole evaluation.
    weights : Weights
        The operating point.

    Examples
    --------
    A measure reads a statistic that it `needs`, here the counts of hits and false alarms:

    >>> from swsdask.statistics.counts import Counts
    >>> def dropped(scored):
    ...     return sum(scored[Counts].dropped.values())
    """

    def __init__(self, statistics: Found, reference: Reference, settings: EvaluationSettings) -> None:
        self.reference = reference
        self.settings = settings
        self._statistics = statistics
        self._derived: dict[Hashable, object] = {}
        self._of_whole: dict[Hashable, object] = {}

    def __getitem__(self, kind: type[Kind]) -> Kind:
        return self._statistics[kind]

    def __contains__(self, kind: type[Statistic]) -> bool:
        return kind in self._statistics

    def get(self, kind: type[Kind]) -> Kind | None:
        """Return a statistic of the system, or None."""
        return self._statistics.get(kind)

    def has(self, kinds: Iterable[type[Statistic]]) -> bool:
        """Return whether the system has all of these statistics."""
        return all(kind in self._statistics for kind in kinds)

    @property
    def statistics(self) -> Found:
        """All statistics, by their type."""
        return self._statistics

    @cached_property
    def populations(self) -> tuple[Population, ...]:
        """The queries of every condition."""
        if counts_present_only(self.settings) and Counts in self:
            return populations_present(self.reference, self[Counts])
        return populations(self.reference)

    @cached_property
    def whole(self) -> Population:
        """The queries of the whole evaluation."""
        return self.populations[0]

    def parts(self, most: int) -> Iterator[Scored]:
        """Yield the same system with at most `most` conditions at a time.

        Derived values are cached for these only, and for the whole evaluation.
        """
        if len(self.populations) <= most:
            yield self
            return
        for begin in range(0, len(self.populations), most):
            part = Scored(self._statistics, self.reference, self.settings)
            part.whole, part.populations = self.whole, self.populations[begin : begin + most]
            part._of_whole = self._of_whole
            yield part

    @cached_property
    def weights(self) -> Weights:
        """The operating point."""
        return weights(self.reference, self.settings)


def cached(function: Callable[[Scored, *Arguments], Derived]) -> Callable[[Scored, *Arguments], Derived]:
    """Decorate a function of a `Scored` whose results are cached in it: it is called once for the same arguments.

    The other arguments are hashable and positional.
    """

    def caching(scored: Scored, *arguments: *Arguments) -> Derived:
        key = (function, *arguments)
        derived = scored._of_whole if arguments in ((), (scored.whole,)) else scored._derived
        if key not in derived:
            derived[key] = function(scored, *arguments)
        return cast(Derived, derived[key])

    update_wrapper(caching, function)
    return caching


@dataclass(frozen=True, eq=False)
class Curve:
    """The points of a curve, equally long columns; `threshold` is the smallest accepted score (inf: reject all)."""

    condition: str
    curve: str
    threshold: F64
    x: F64
    y: F64


@runtime_checkable
class Measure(Protocol):
    """The protocol of a measure: a family of numbers that share their statistics.

    Attributes
    ----------
    names : tuple of str
        The names of the numbers, in the order in which `values` yields them. A name that ends in "@" means one number
        for each point in the settings, such as ``twv@0.5``.
    needs : tuple of type
        The statistics that `values` reads. They are counted once for all measures.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> class TargetsPerQuery:
    ...     names = ("targets_per_query",)
    ...     needs = ()
    ...
    ...     def values(self, scored):
    ...         for population in scored.populations:
    ...             yield population.overall({"targets_per_query": population.n_target / population.n_queries})
    >>> result = sws.score("demo/archive", TargetsPerQuery(), runs="weak")
    >>> print(result.scores["value"].iloc[0].round(4))
    4.8421
    """

    @property
    def names(self) -> Sequence[str]:
        """The names of its numbers."""
        ...

    @property
    def needs(self) -> Sequence[type[Statistic]]:
        """The statistics that it reads."""
        ...

    def values(self, scored: Scored) -> Iterator[Values]:
        """Compute the numbers of one system, condition by condition.

        Parameters
        ----------
        scored : Scored
            The system, with the statistics in `needs`.

        Yields
        ------
        Values
            Numbers over all queries (`Population.overall`) or query by query (`Population.by_query`).
        """
        ...
