"""The errors of systems: the queries that cost a system most, with their highest false alarms and missed targets.

The cost of a query is P_miss + beta P_fa of that query alone (Eq. 1, 3 and 6 of the 2013 measures document), at the
system's decisions; a trial without a decision is accepted. A rate without trials costs nothing. Queries of equal cost
are in the order of their ids. Two queries are confused if a false alarm of one overlaps an occurrence of the other in
time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdask.archive.conditions import ALL
from swsdask.measures.measure import Population, Scored
from swsdask.model.columns import ratio
from swsdask.model.results import Note, note_lines
from swsdask.model.trials import I64, Bool, Reference, given_scores
from swsdask.model.units import TICKS_PER_SECOND
from swsdask.model.worst_queries import EVENTS, WORST_QUERIES, Errors
from swsdask.scoring.alignment_table import ABSENT, Targets, targets_of
from swsdask.statistics.counts import NO, Counts
from swsdask.statistics.worst_queries import FoundTargets, HighestFalseAlarms

Event = tuple[str, str, str, int | None, float | None, float | None, float | None, list[str]]
"""A row of `model.worst_queries.EVENTS`, without the system and the condition."""


@dataclass(frozen=True, eq=False)
class _Occurrences:
    """The occurrences of each query by document, to find those that overlap a time interval."""

    reference: Reference
    order: I64
    document: I64

    @classmethod
    def of(cls, reference: Reference) -> _Occurrences:
        order = np.argsort(reference.document, kind="stable")
        return cls(reference, order, reference.document[order].astype(np.int64))

    def under(self, query: int, document: int, channel: int, start: int, end: int) -> list[str]:
        """Return the other queries that occur in an interval, by id."""
        begin, stop = np.searchsorted(self.document, [document, document + 1])
        there, known = self.order[begin:stop], self.reference
        overlaps = (known.start[there] < end) & (known.end[there] > start) & (known.channel[there] == channel)
        others = np.unique(known.query[there[overlaps]])
        return sorted(known.query_ids[other] for other in others.tolist() if other != query)


class _OfSystem(NamedTuple):
    """The rows of one system in both tables, notes, and the beta of its costs."""

    system: str
    queries: list[tuple[object, ...]]
    events: list[tuple[object, ...]]
    notes: list[Note]
    beta: float


class WorstQueries:
    """Collects the errors of every system (a `scoring.result_tables.Observer`).

    `queries` is the number of queries listed per system, `false_alarms` the number of false alarms listed per query.
    """

    needs = (Counts, HighestFalseAlarms, FoundTargets)
    apart = False

    def __init__(self, queries: int, false_alarms: int) -> None:
        self._n_queries, self._n_false_alarms = queries, false_alarms

    def observe(self, system: str, scored: Scored) -> _OfSystem:
        """Collect the errors of a system, in every condition."""
        found = _OfSystem(system, [], [], [], scored.weights.beta)
        if not scored[Counts].has_decisions:
            text = "trials without a decision count as accepted."
            found.notes.append(Note(text, text))
        missed = np.ones(len(targets_of(scored.reference).query), np.bool_)
        missed[scored[FoundTargets].target] = False
        for population in scored.populations:
            self._observe(system, scored, population, missed, found)
        return found

    def _observe(self, system: str, scored: Scored, population: Population, missed: Bool, found: _OfSystem) -> None:
        reference, counts, condition = scored.reference, scored[Counts], population.condition
        mapped, unmapped = counts.mapped[:, condition.groups], counts.unmapped[:, condition.groups]
        misses = population.targets - (mapped.sum(axis=(1, 2)) - mapped[..., NO].sum(axis=1))
        false_alarms = unmapped.sum(axis=(1, 2)) - unmapped[..., NO].sum(axis=1)
        rates = ratio(misses, population.targets), ratio(false_alarms, population.nontargets)
        cost = np.nan_to_num(rates[0]) + scored.weights.beta * np.nan_to_num(rates[1])
        listed = sorted(np.flatnonzero(population.queries).tolist(), key=lambda q: (-cost[q], reference.query_ids[q]))
        targets, occurrences = targets_of(reference), _Occurrences.of(reference)
        group = reference.group_of_occurrence
        missed = missed & condition.groups[reference.group_of_document[targets.document] if group is None else group]
        where = "" if condition.name == ALL else f"{condition.name}: "
        if len(listed) > self._n_queries:
            found.notes.append(Note.of_count(where, len(listed) - self._n_queries, "further queries", " not listed."))
        for rank, query in enumerate(listed[: self._n_queries], 1):
            wrong = list(self._false_alarms(query, scored, condition.groups, occurrences))
            confused = Counter(name for row in wrong for name in row[-1])
            names = sorted(confused, key=lambda name: (-confused[name], name))
            numbers = (float(cost[query]), *(int(each[query]) for each in (population.targets, misses, false_alarms)))
            found.queries.append((system, condition.name, rank, reference.query_ids[query], *numbers, names))
            events = (*wrong, *_misses(query, reference, targets, missed))
            found.events.extend((system, condition.name, *event) for event in events)

    def _false_alarms(self, query: int, scored: Scored, groups: Bool, occurrences: _Occurrences) -> Iterator[Event]:
        highest, reference = scored[HighestFalseAlarms], scored.reference
        begin, end = np.searchsorted(highest.query, [query, query + 1])
        score = given_scores(highest.score)
        columns = (highest.document, highest.channel, highest.start, highest.end, score)
        own = begin + np.flatnonzero(groups[highest.group[begin:end]])
        order = np.lexsort([column[own] for column in (*columns[3::-1], -score)])
        rows = own[order[: self._n_false_alarms]]
        for document, channel, start, stop, score in zip(*(column[rows].tolist() for column in columns), strict=True):
            known = document >= 0
            yield (
                reference.query_ids[query],
                "false_alarm",
                reference.document_ids[document] if known else "",
                channel,
                start / TICKS_PER_SECOND,
                stop / TICKS_PER_SECOND,
                score,
                occurrences.under(query, document, channel, start, stop) if known else [],
            )

    @staticmethod
    def errors(found: Sequence[_OfSystem], signature: str) -> Errors:
        """Join the errors of several systems, in their order."""
        tables = [
            pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
            for rows, schema in (
                ([row for each in found for row in each.queries], WORST_QUERIES),
                ([row for each in found for row in each.events], EVENTS),
            )
        ]
        beta = found[-1].beta if found else math.nan
        notes = note_lines({each.system: each.notes for each in found})
        return Errors(tables[0], tables[1], tuple(notes), signature, beta)


def _misses(query: int, reference: Reference, targets: Targets, missed: np.ndarray) -> Iterator[Event]:
    own = np.flatnonzero(missed & (targets.query == query))
    own = own[np.lexsort([getattr(targets, name)[own] for name in ("end", "start", "channel", "document")])]
    for target in own.tolist():
        channel, start, end = (int(getattr(targets, name)[target]) for name in ("channel", "start", "end"))
        timed = start != ABSENT
        yield (
            reference.query_ids[query],
            "miss",
            reference.document_ids[targets.document[target]],
            channel if timed else None,
            start / TICKS_PER_SECOND if timed else None,
            end / TICKS_PER_SECOND if timed else None,
            None,
            [],
        )
