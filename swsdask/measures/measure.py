"""What a measure is: arithmetic over merged statistics. No I/O, no loops over rows, no Dask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import F64, Reference
from swsdask.statistics.statistic import Statistic


class Value(NamedTuple):
    """One number of a system.

    Attributes
    ----------
    condition : str
        The name of the condition.
    query : str or None
        The query; None for a number over all queries.
    measure : str
        The name of the measure.
    value : float
        The number; NaN where it is not defined.

    Examples
    --------
    >>> import swsdask as sws
    >>> sws.Value("all", None, "mtwv", 0.5)
    Value(condition='all', query=None, measure='mtwv', value=0.5)
    """

    condition: str
    query: str | None
    measure: str
    value: float


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
    ...     def values(self, statistics, reference, settings):
    ...         for condition in reference.conditions:
    ...             targets = reference.condition_targets(condition).sum()
    ...             yield sws.Value(condition.name, None, "targets_per_query", targets / condition.queries.sum())
    >>> result = sws.score("demo/archive", TargetsPerQuery(), runs="weak")
    >>> print(result.scores["value"].iloc[0].round(4))
    4.8421
    """

    names: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[type[Statistic], ...]]

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """The numbers of one system, in canonical order: by condition, then over all queries, then query by query."""
        ...
