"""`statistics.ranks` of the events of rankings (`alignment.events`), where these are not the evaluation's own trials.

Elsewhere none of this is needed, and nothing is paid for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from swsdask.alignment.events import ranked_events
from swsdask.model.trials import Reference, Trials
from swsdask.statistics.base import OfDetections, Statistic
from swsdask.statistics.hits import Hits
from swsdask.statistics.ranks import PooledRanks, QueryRanks, RankRungs, pooled_rungs, query_rungs


class OfEvents(OfDetections):
    """A statistic of events: it needs outcomes, and the order in the run's files where that makes events."""

    aligned: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def columns_for(cls, reference: Reference) -> tuple[str, ...]:
        """With the order in the run's files where it counts."""
        return (*cls.columns, "position") if reference.ranking.duplicates == "first" else cls.columns


@dataclass(frozen=True, eq=False)
class EventHits(OfEvents):
    """The hits among one system's events; `further` counts the detections beside one of their event."""

    after: ClassVar[tuple[type[Statistic], ...]] = ()

    hits: Hits
    further: int

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> tuple[()] | None:
        """None where events are the evaluation's own trials."""
        return None if reference.ranking.duplicates is None else ()

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """The events of one aligned cell."""
        events, further = ranked_events(trials, reference)
        return cls(Hits.from_trials(events, reference, ()), further)

    def merge(self, other: Self) -> Self:
        """The events of both parts together."""
        return type(self)(self.hits.merge(other.hits), self.further + other.further)


class EventQueryRanks(OfEvents, QueryRanks):
    """The ranking of every query's events."""

    after: ClassVar[tuple[type[Statistic], ...]] = (EventHits,)

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> RankRungs | None:
        """The rungs of every query of a system; None where events are the evaluation's own trials."""
        return query_rungs(found[EventHits].hits, reference) if EventHits in found else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: RankRungs) -> Self:
        """The events of one aligned cell between the rungs of their queries."""
        return super().from_trials(ranked_events(trials, reference)[0], reference, prepared)


class EventPooledRanks(OfEvents, PooledRanks):
    """One ranking of the events of all queries."""

    after: ClassVar[tuple[type[Statistic], ...]] = (EventHits,)

    @classmethod
    def prepare(cls, found: Mapping[type[Statistic], Any], reference: Reference) -> RankRungs | None:
        """The rungs of a system; None where events are the evaluation's own trials."""
        return pooled_rungs(found[EventHits].hits, reference) if EventHits in found else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: RankRungs) -> Self:
        """The events of one aligned cell between the rungs."""
        return super().from_trials(ranked_events(trials, reference)[0], reference, prepared)
