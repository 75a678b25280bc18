"""The protocol of statistics: mergeable summaries of the trials of a system."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from swsdask.model.trials import I64, Reference, Trials


class Statistic(Protocol):
    """A mergeable summary of trials of one system. `merge` is associative, commutative and exact (law 1).

    `after` names the statistics whose merged values it needs: it is computed one round later than they are. `aligned`
    is whether it needs outcomes; where no statistic of a round does, cells are read without alignment, and only the
    columns that scores need. `follows`, where a statistic has it, names the rules of the reference
    (`model.trials.RULES`) that `from_trials` looks at: others do not change it.
    """

    after: ClassVar[tuple[type[Statistic], ...]]
    aligned: ClassVar[bool]

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> Any:
        """Once per system, before its round: what `from_trials` needs of earlier rounds, picklable and small.

        None says that what was found makes this statistic needless for the system: it is not computed.
        """
        ...

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: Any) -> Self:
        """The statistic of one cell."""
        ...

    def merge(self, other: Self) -> Self:
        """The statistic of both parts together."""
        ...


@runtime_checkable
class Drawable(Protocol):
    """A statistic with parts by group of documents, so that documents can be drawn again (`measures.resampling`)."""

    def drawn(self, times: I64) -> Self:
        """The statistic with each group of documents so many times, int64 [n_groups]; all in one group."""
        ...


class OfDetections:
    """A statistic that derives from this looks at `columns` of the detections that trials came from as well.

    They are read in its round, aligned or not; `Trials.detections` has them.
    """

    columns: ClassVar[tuple[str, ...]]

    @classmethod
    def columns_for(cls, reference: Reference) -> tuple[str, ...]:
        """The columns that are read for an evaluation."""
        return cls.columns
