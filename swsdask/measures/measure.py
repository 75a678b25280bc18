"""What a measure is: arithmetic over merged statistics. No I/O, no loops over rows, no Dask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import F64, Reference
from swsdask.statistics.statistic import Statistic


class Value(NamedTuple):
    """One number: of a condition, of one query or (None) over all of them. NaN where it is not defined."""

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
    """A family of numbers that share their statistics. `names` are the measure names it yields, in order.

    A name that ends in "@" stands for one number at each point that the settings ask for, such as `twv@0.5`.
    """

    names: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[type[Statistic], ...]]

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """The numbers of one system, in canonical order: by condition, then over all queries, then query by query."""
        ...
