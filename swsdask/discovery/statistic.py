"""What statistics and measures of discovery are: as for detections, one merges and the other is arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol, Self

from swsdask.model.corpus import Corpus, Discovered
from swsdask.model.trials import F64


class Statistic(Protocol):
    """A mergeable count over one system's fragments. `merge` is associative, commutative and exact (law 1)."""

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[Any]:
        """Parts of the work, small and picklable, of about `work` elementary steps each (rows, pairs of types ...).

        Their statistics merged are the statistic of the whole, however it is cut. At least one.
        """
        ...

    @classmethod
    def from_cell(cls, cell: Any, corpus: Corpus, discovered: Discovered) -> Self:
        """The statistic of one part."""
        ...

    def merge(self, other: Self) -> Self:
        """The statistic of both parts together; neither is changed."""
        ...


class Measure(Protocol):
    """A family of numbers. `names` are those it gives per fold, in order.

    A measure that is a precision and a recall names them "x_precision" and "x_recall"; "x_f_score" is derived per fold
    (`discovery.folds`). NaN where a number is not defined in a fold.
    """

    names: ClassVar[tuple[str, ...]]
    statistic: ClassVar[type[Statistic]]

    def values(self, statistic: Any, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """For each name the numbers of the folds of one set, float64 [n_folds]."""
        ...
