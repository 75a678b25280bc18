"""The data between alignment, statistics and measures: numpy columns, nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from swsdask.model.ranked_measures import DEFAULT_RANKING, DEFAULT_REPLAY, RankRule, ReplayRule
from swsdask.model.units import INFINITE

I8 = NDArray[np.int8]
I16 = NDArray[np.int16]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]
Bool = NDArray[np.bool_]

Derived = TypeVar("Derived")
Scalar = TypeVar("Scalar", bound=np.generic)

UNKNOWN_DOCUMENT = -1


@dataclass(frozen=True, eq=False)
class Detections:
    """Detections of one system in one cell: equally long columns, rows grouped by query, in any order within a query.

    Codes are those of the archive's tables, times are ticks. A column that was not read is None. `decision` is 1 YES, 0
    NO, -1 not given; `inside` is 0 where the detection does not lie entirely inside an excerpt
    (`model.schemas.INSIDE`); `position` ascends in the order of the rows in the run's files; `unknown_document` is the
    hash of the id of a document whose code is -1.
    """

    query: I32
    score: F64
    document: I32 | None = None
    channel: I8 | None = None
    start: I32 | None = None
    duration: I32 | None = None
    decision: I8 | None = None
    inside: I8 | None = None
    position: I64 | None = None
    unknown_document: I64 | None = None

    def __len__(self) -> int:
        return len(self.query)

    def take(self, rows: Bool | I64 | slice) -> Detections:
        """Return the given rows of every column that was read."""
        others = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("query", "score")}
        kept: dict[str, Any] = {name: None if column is None else column[rows] for name, column in others.items()}
        return Detections(query=self.query[rows], score=self.score[rows], **kept)


@dataclass(frozen=True, eq=False)
class Trials:
    """The trials of one system in one cell.

    `query`, `score`, `decision`, `group` (of documents) and `row` (of the `Detections` they came from; None: the same
    row) are equally long. `hit` holds the ascending numbers of the trials that are targets, `occurrence` the number of
    the reference occurrence (virtual trials) or of the target (segment and document trials) that each is mapped to. An
    unaligned `Trials`, made where outcomes are not needed, has None for `hit` and `occurrence`.
    `dropped` counts the detections that are no trials, by reason. The trials were made from all `detections`.
    """

    query: I32
    score: F64
    decision: I8 | None
    group: I16 | None
    row: I64 | None
    hit: I64 | None
    occurrence: I32 | None
    dropped: dict[str, int]
    detections: Detections | None = None
    _derived: dict[Callable[[Trials], object], object] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.query)

    def derive(self, function: Callable[[Trials], Derived]) -> Derived:
        """Return the result of a function of these trials; the function is called once."""
        if function not in self._derived:
            self._derived[function] = function(self)
        return cast(Derived, self._derived[function])


@dataclass(frozen=True, eq=False)
class Condition:
    """A part of the evaluation that is averaged on its own: some queries, some groups of trials, its own N.

    `all_queries` is bool [n_queries], all queries of the part; `queries` are those that averages count: queries without
    targets in `groups` only if `no_targets` says so. `groups` is bool [n_groups]; `n_trials` is the number of trials
    of one query (Eq. 2's N). `by_query_pattern`: a pattern alone selects the queries; `of_occurrences`: its targets
    depend on more than their document. The first condition of an evaluation is "all".
    """

    name: str
    all_queries: Bool
    queries: Bool
    groups: Bool
    n_trials: int
    by_query_pattern: bool = False
    of_occurrences: bool = False

    def has(self, query: I32 | I64, group: I16 | I64) -> Bool:
        """Return whether averages count each of some strata, given their queries and groups."""
        return self.queries[query] & self.groups[group]

    def select(self, strata: NDArray[Scalar]) -> NDArray[Scalar]:
        """Return the entries of the strata that averages count, from those of all: [n_queries, n_groups, ...]."""
        # A mask of all strata would take time in proportion to their number, in each of as many conditions.
        return strata[np.ix_(self.queries, self.groups)]


@dataclass(frozen=True, eq=False)
class AlignmentRule:
    """The settings that alignment needs, times in ticks.

    `arithmetic` decides whether a detection is inside an excerpt (`statistics.place_trials`).
    """

    trials: Literal["virtual", "segment", "document"]
    tolerance: int
    objective: Literal["nist", "score"]
    score_scale: Literal["group", "run"]
    outside: Literal["drop", "false_alarm", "error"]
    arithmetic: Literal["exact", "kwseval", "stdeval"] = "exact"


@dataclass(frozen=True, eq=False)
class Segments:
    """Segment trials' segments, sorted by (document, channel, start): they tile every excerpt.

    If several segments contain a time, it belongs to the first of them in `order`, int64; None: to the latest.
    """

    document: I32
    channel: I8
    start: I32
    end: I32
    order: I64 | None = None


@dataclass(frozen=True, eq=False)
class Judgments:
    """Judged trials: distinct pairs (query, document), sorted, and the `grade` of each (`model.schemas.JUDGMENTS`)."""

    query: I32
    document: I64
    grade: I64


@dataclass(frozen=True, eq=False)
class Reference:
    """The reference: evaluated occurrences, trials and conditions; the same for all systems, broadcast once per worker.

    Occurrences are the evaluated ones, sorted by (query, document, channel, start, end). `group_of_document` is
    int16 [n_documents + 1], its last entry for unknown documents. `group_of_occurrence`, if conditions divide
    occurrences, is the group of the trial mapped to each occurrence. `targets` is int64 [n_queries, n_groups]:
    target trials. `class_of` is int32 [n_queries, n_groups]: strata that the same conditions count, each with the
    same N_nt, share a class; -1 if no condition counts the stratum. `thresholds` are scores at which error rates
    are requested, beside the scores of hits. `prior_log_odds` is logit(P_tar) of the evaluation's operating point,
    one for all conditions. `replay` is the time axis of GAP. The last `n_without_excerpts` of the documents are not
    in the ECF. `n_unevaluated` occurrences were found but do not count. `segment` is the number of each
    occurrence's segment, None if mid-points decide it. `ranking` is how rankings treat equal scores. `file_order`
    is whether the order in the files of a run counts, `every_score` whether scores are looked up in the list of all
    (`statistics.ladder.AllScores`). `impute` is the score of trials that a run leaves out, None: its lowest.
    `judgments` are those of document trials, if there are any.
    """

    rule: AlignmentRule
    query_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    query: I32
    document: I32
    channel: I8
    start: I32
    end: I32
    first_word_end: I32
    last_word_start: I32
    segments: Segments | None
    group_of_document: I16
    targets: I64
    class_of: I32
    n_classes: int
    conditions: tuple[Condition, ...]
    thresholds: tuple[float, ...] = ()
    prior_log_odds: float = 0.0
    replay: ReplayRule = DEFAULT_REPLAY
    ranking: RankRule = DEFAULT_RANKING
    n_without_excerpts: int = 0
    n_unevaluated: int = 0
    file_order: bool = False
    every_score: bool = False
    segment: I64 | None = None
    impute: float | None = None
    judgments: Judgments | None = None
    group_of_occurrence: I16 | None = None

    @property
    def n_queries(self) -> int:
        """The number of queries in the list."""
        return len(self.query_ids)

    @property
    def n_documents(self) -> int:
        """The number of documents, including those without excerpts."""
        return len(self.document_ids)

    @property
    def n_groups(self) -> int:
        """The number of groups of trials that conditions distinguish."""
        return int(self.targets.shape[1])

    @property
    def groups_by_alignment(self) -> bool:
        """Whether the group of a trial depends on its occurrence, so that all trials must be aligned."""
        return self.group_of_occurrence is not None

    def condition_targets(self, condition: Condition) -> I64:
        """N_act of every query in a condition, int64 [n_queries]; 0 for queries outside it."""
        counts: I64 = self.targets[:, condition.groups].sum(axis=1)
        return np.where(condition.queries, counts, 0)


RULES = ("thresholds", "prior_log_odds", "replay", "ranking", "file_order", "every_score", "impute")
"""The fields of a reference that affect only some statistics, those given here; each other field affects all."""


def finite_scores(score: F64) -> F64:
    """Scores with `INFINITE` in place of infinities."""
    return np.clip(score, -INFINITE, INFINITE)


def given_scores(score: F64) -> F64:
    """Scores as they were given, with infinities in place of `INFINITE`."""
    return np.where(np.abs(score) == INFINITE, np.copysign(np.inf, score), score)


def given_score(score: float) -> float:
    """Return a score as it was given."""
    return math.copysign(math.inf, score) if abs(score) == INFINITE else score


@dataclass(frozen=True)
class ScoreRange:
    """Score ranges of a run, for `score_scale`: the declared minimum and maximum score, or None, and the run's own."""

    declared: tuple[float, float] | None
    run: tuple[float, float]
