"""The protocols of statistics and measures of term discovery: one merges, the other is arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Protocol, Self

from swsdask.model.corpus import Corpus, Discovered
from swsdask.model.trials import F64


class Statistic(Protocol):
    """A mergeable count over one system's fragments. `merge` is associative, commutative and exact (law 1)."""

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[object]:
        """Parts of the work, at least one, small and picklable, of about `work` elementary steps each.

        Their merged statistics are the statistic of the whole, for any partition.
        """
        ...

    @classmethod
    def from_cell(cls, cell: object, corpus: Corpus, discovered: Discovered) -> Self:
        """The statistic of one part."""
        ...

    def merge(self, other: Self) -> Self:
        """The statistic of both parts together; neither is changed."""
        ...


class Measure(Protocol):
    """A family of numbers. `names` are those that it computes per fold, in order.

    A precision and a recall are named "x_precision" and "x_recall"; "x_f_score" is derived per fold
    (`discovery.folds`). A number that is not defined in a fold is NaN.
    """

    names: ClassVar[tuple[str, ...]]
    statistic: ClassVar[type[Statistic]]

    def values(self, statistic: object, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """The numbers of the folds of one set by name, float64 [n_folds]."""
        ...
