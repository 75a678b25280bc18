"""Small evaluations for tests of statistics and measures: references and trials made directly, and split into cells."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from swsdask.measures.measure import Measure, Scored
from swsdask.model.layers import build_settings
from swsdask.model.settings import EvaluationSettings, requested_thresholds, weights
from swsdask.model.trials import AlignmentRule, Condition, Detections, Reference, Trials
from swsdask.statistics.counts import Counts
from swsdask.statistics.entropy import Entropy
from swsdask.statistics.ladder import AllScores, AtBayes, Hits, Ladder, QueryLadder
from swsdask.statistics.moments import Moments, Overlap, ZoomedMoments
from swsdask.statistics.onsets import Onsets, PointsBefore
from swsdask.statistics.ranks import HitPlaces, PooledRanks, QueryRanks, TiedRanks
from swsdask.statistics.resampling import NontargetEnds, StratumLadder, StratumMoments, StratumRanks, StratumTies


class Number(NamedTuple):
    """A number of a system; of `query`, or None over all of them."""

    condition: str
    query: str | None
    measure: str
    value: float


def numbers(families: Iterable[Measure], scored: Scored) -> Iterator[Number]:
    """The numbers that measures yield, one by one."""
    for family in families:
        for condition, queries, columns in family.values(scored):
            listed = [None] if queries is None else [scored.reference.query_ids[query] for query in queries.tolist()]
            for measure, column in columns.items():
                for query, value in zip(listed, column.tolist(), strict=True):
                    yield Number(condition, query, measure, value)


Row = tuple[int, int, float, int, bool]
"""A trial: query, group of documents, score, decision, whether it is mapped to a target."""


def settings(**evaluation: Any) -> EvaluationSettings:
    return build_settings(explicit={"evaluation": evaluation}).evaluation


def make_reference(
    targets: Sequence[Sequence[int]],
    conditions: Mapping[str, tuple[Sequence[bool], Sequence[bool], int]],
    thresholds: Sequence[float] = (),
) -> Reference:
    """`targets` by query and group; conditions by name: (queries that count, groups, n_trials).

    The first condition has the queries without targets as well.
    """
    n_act = np.array(targets, np.int64)
    nowhere = n_act.sum(axis=1) == 0
    made = tuple(
        Condition(name, np.array(q, bool) | (nowhere & (number == 0)), np.array(q, bool), np.array(g, bool), n)
        for number, (name, (q, g, n)) in enumerate(conditions.items())
    )
    classes: dict[tuple[int, ...], int] = {}
    class_of = np.full(n_act.shape, -1, np.int32)
    for query, group in np.ndindex(*n_act.shape):
        key = tuple(int(n_act[query, c.groups].sum()) if c.queries[query] and c.groups[group] else -1 for c in made)
        if any(n >= 0 for n in key):
            class_of[query, group] = classes.setdefault(key, len(classes))
    empty = np.empty(0, np.int32)
    return Reference(
        rule=AlignmentRule("virtual", 5000, "nist", "group", "drop"),
        query_ids=tuple(f"q{number}" for number in range(len(n_act))),
        document_ids=("d",),
        query=empty,
        document=empty,
        channel=np.empty(0, np.int8),
        start=empty,
        end=empty,
        first_word_end=empty,
        last_word_start=empty,
        segments=None,
        group_of_document=np.zeros(2, np.int16),
        targets=n_act,
        class_of=class_of,
        n_classes=len(classes),
        conditions=made,
        thresholds=tuple(thresholds),
        prior_log_odds=-2.5,
    )


def place(row: Row) -> int:
    """When a trial starts, in its document: one of a few times, so that some are equal."""
    _, group, _, decision, _ = row
    return 2 * group + decision + 1


def make_trials(rows: Sequence[Row], dropped: Mapping[str, int] | None = None) -> Trials:
    hit = np.flatnonzero([row[4] for row in rows])
    return Trials(
        query=np.array([row[0] for row in rows], np.int32),
        score=np.array([row[2] for row in rows], np.float64),
        decision=np.array([row[3] for row in rows], np.int8),
        group=np.array([row[1] for row in rows], np.int16),
        row=None,
        hit=hit,
        occurrence=np.zeros(len(hit), np.int32),
        dropped=dict(dropped or {}),
        detections=Detections(
            query=np.array([row[0] for row in rows], np.int32),
            score=np.array([row[2] for row in rows], np.float64),
            document=np.zeros(len(rows), np.int32),
            start=np.array([place(row) for row in rows], np.int32),
        ),
    )


def unaligned(trials: Trials) -> Trials:
    return Trials(trials.query, trials.score, None, trials.group, None, None, None, {}, detections=trials.detections)


def statistics(cells: Iterable[Sequence[Row]], reference: Reference, tree: int | None = None) -> dict[type, Any]:
    """Every statistic that a system needs, by cells that are merged in order, or by a random tree."""
    made = [make_trials(rows) for rows in cells]
    found: dict[type, Any] = {}
    kinds: tuple[Any, ...] = (
        Counts,
        Hits,
        AllScores,
        Entropy,
        AtBayes,
        Moments,
        Overlap,
        Ladder,
        QueryLadder,
        StratumLadder,
        StratumRanks,
        StratumMoments,
        NontargetEnds,
        ZoomedMoments,
        Onsets,
        PointsBefore,
        QueryRanks,
        PooledRanks,
        HitPlaces,
        TiedRanks,
        StratumTies,
    )
    for kind in kinds:
        prepared = kind.prepare(found, reference)
        if prepared is None:
            continue
        parts = [
            kind.from_trials(trials if kind.aligned else unaligned(trials), reference, prepared) for trials in made
        ]
        found[kind] = reduce(lambda a, b: a.merge(b), parts) if tree is None else _merged(parts, random.Random(tree))
    return found


def _merged(parts: list[Any], chance: random.Random) -> Any:
    while len(parts) > 1:
        chance.shuffle(parts)
        parts.append(parts.pop().merge(parts.pop()))
    return parts[0]


def with_thresholds(reference: Reference, asked: EvaluationSettings) -> Reference:
    columns = {name: getattr(reference, name) for name in reference.__dataclass_fields__}
    return Reference(
        **{
            **columns,
            "thresholds": requested_thresholds(asked),
            "prior_log_odds": weights(reference, asked).prior_log_odds,
            "ranking": asked.average_precision.rule(asked.trials),
            "every_score": asked.compat in ("kwseval", "stdeval"),
        }
    )
