"""What a measure is: arithmetic over merged statistics. No I/O, no loops over rows, no Dask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from swsdask.statistics.base import Statistic


@dataclass(frozen=True)
class Value:
    """One number: of a condition, of one query or (None) over all of them. NaN where it is not defined."""

    condition: str
    query: str | None
    measure: str
    value: float


@dataclass(frozen=True)
class Point:
    """One point of a curve, long form; `threshold` is the smallest accepted score at it (inf: reject all)."""

    condition: str
    curve: str
    threshold: float
    x: float
    y: float


class Measure(Protocol):
    """A family of numbers that share their statistics. `names` are the measure names it yields, in order."""

    names: ClassVar[tuple[str, ...]]
    needs: ClassVar[tuple[type[Statistic], ...]]

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """The numbers of one system, in canonical order."""
        ...
