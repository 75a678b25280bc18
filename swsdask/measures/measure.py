"""What a measure is: arithmetic over the merged statistics of one system. No I/O, no loops over rows, no Dask."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, update_wrapper
from typing import Any, ClassVar, Protocol, TypeVar, TypeVarTuple, cast, runtime_checkable

from swsdask.measures.averages import Population, Values, counts_present_only, populations, populations_present
from swsdask.model.settings import EvaluationSettings, Weights, weights
from swsdask.model.trials import F64, Reference
from swsdask.statistics.counts import Counts
from swsdask.statistics.statistic import Statistic

Kind = TypeVar("Kind", bound=Statistic)
Arguments = TypeVarTuple("Arguments")
Derived = TypeVar("Derived")


class Scored:
    """One system as measures see it: its merged statistics, the reference and the settings.

    ``scored[Counts]`` is the system's `Counts`; ``Counts in scored`` is whether it has them. What several measures
    derive from statistics (sweeps, rankings, fits) is computed once and kept here: see `kept`.

    Parameters
    ----------
    statistics : mapping of type to Statistic
        The merged statistics of the system, by their type.
    reference : Reference
        What was spoken and what a trial is.
    settings : EvaluationSettings
        The settings of the evaluation.

    Attributes
    ----------
    populations : tuple of Population
        The queries of every condition, with their averages.
    weights : Weights
        The operating point.

    Examples
    --------
    A measure reads a statistic that it `needs`, here the counts of hits and false alarms:

    >>> from swsdask.statistics.counts import Counts
    >>> def dropped(scored):
    ...     return sum(scored[Counts].dropped.values())
    """

    def __init__(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> None:
        self.reference = reference
        self.settings = settings
        self._statistics = statistics
        self._derived: dict[Hashable, Any] = {}

    def __getitem__(self, kind: type[Kind]) -> Kind:
        return cast(Kind, self._statistics[kind])

    def __contains__(self, kind: type[Statistic]) -> bool:
        return kind in self._statistics

    def get(self, kind: type[Kind]) -> Kind | None:
        """A statistic of the system, or None."""
        return cast(Kind, self._statistics[kind]) if kind in self._statistics else None

    def has(self, kinds: Iterable[type[Statistic]]) -> bool:
        """Whether the system has all of these statistics."""
        return all(kind in self._statistics for kind in kinds)

    @property
    def statistics(self) -> Mapping[type[Statistic], Any]:
        """All statistics, by their type."""
        return self._statistics

    @cached_property
    def populations(self) -> tuple[Population, ...]:
        """The queries of every condition."""
        if counts_present_only(self.settings) and Counts in self:
            return populations_present(self.reference, self[Counts])
        return populations(self.reference)

    @cached_property
    def weights(self) -> Weights:
        """The operating point."""
        return weights(self.reference, self.settings)


def kept(function: Callable[[Scored, *Arguments], Derived]) -> Callable[[Scored, *Arguments], Derived]:
    """Decorate a function of a `Scored` whose results are kept in it: it is called once for the same arguments.

    The other arguments are hashable and positional.
    """

    def keeping(scored: Scored, *arguments: *Arguments) -> Derived:
        key = (function, *arguments)
        if key not in scored._derived:
            scored._derived[key] = function(scored, *arguments)
        return cast(Derived, scored._derived[key])

    update_wrapper(keeping, function)
    return keeping


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
        The names of the numbers, in the order in which `values` yields them. A name that ends in "@" is that of one
        number for each point in the settings, such as ``twv@0.5``.
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

    names: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[type[Statistic], ...]]

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
