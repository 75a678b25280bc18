"""Ranked measures: the settings `[evaluation.average_precision]` and `[evaluation.gap]`, and penalty functions of GAP.

A penalty function gives the reward of a replay point by its signed distance (point - onset) from an onset: negative if
replay starts early. All are 0 beyond their ends. The name is that of the source (Liu and Oard, One-Sided Measures,
SIGIR 2006), although the value is a reward.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from swsdask.model.errors import SettingsError
from swsdask.model.settings_table import SettingsTable
from swsdask.model.units import TICKS_PER_SECOND, ticks

F64 = NDArray[np.float64]


class Penalty(NamedTuple):
    """A function of the signed distance, in any one unit, with values in [0, 1]; 0 outside `at`[0] .. `at`[-1].

    Inside: if `sigma` is 0, straight lines between the points (`at`, `value`), float64, at least two, `at` ascending
    and distinct; else exp(-d^2 / 2 sigma^2), and `value` is ignored.
    """

    at: F64
    value: F64
    sigma: float


def table(points: Sequence[tuple[float, float]]) -> Penalty:
    """Straight lines between (distance, value): at least two, by ascending distance."""
    columns = np.array(points, np.float64).T
    return Penalty(columns[0].copy(), columns[1].copy(), 0.0)


def triangular(early: float, late: float) -> Penalty:
    """1 at the onset, falling to 0 at `early` before and `late` after it; symmetric: 1 - |d| / width."""
    return table([(-early, 0.0), (0.0, 1.0), (late, 0.0)])


def rectangular(width: float) -> Penalty:
    """1 where |d| <= width."""
    return table([(-width, 1.0), (width, 1.0)])


def gaussian(sigma: float, cut: float) -> Penalty:
    """exp(-d^2 / 2 sigma^2) where |d| <= cut."""
    return Penalty(np.array([-cut, cut]), np.ones(2), sigma)


class ReplayRule(NamedTuple):
    """The time axis of GAP, in ticks: times are rounded down to multiples of `step`, distances judged by `penalty`."""

    step: int
    penalty: Penalty


DEFAULT_WIDTH_S = 105.0
"""Seven steps of 15 s: the triangle that the source considers the best overall choice."""

DEFAULT_REPLAY = ReplayRule(1, triangular(DEFAULT_WIDTH_S * TICKS_PER_SECOND, DEFAULT_WIDTH_S * TICKS_PER_SECOND))


Order = Literal["document-descending", "document-ascending", "input"]
"""Rules for trials of equal score that depend on the trial, not on its outcome."""

Addition = Literal["exact", "running"]
"""The ways to add terms: exactly and rounded once, or one after the other in double precision."""

Duplicates = Literal["ignore", "false-positive", "first"]
"""Rules for several detections of one event."""

_OF_TRIALS: dict[str, Duplicates] = {"virtual": "false-positive", "segment": "ignore", "document": "ignore"}
"""The rule by which trials of a kind are made."""


@dataclass(frozen=True)
class RankRule:
    """The settings that statistics of rankings need.

    `order` is the order of trials with equal scores, None if only outcomes or nothing order them. Before scores are
    compared, those below `floor` are raised to it, and if `single` they are rounded to single precision; if `text` they
    are compared as texts. `duplicates` says how several detections of one event are treated, None if the kind of trials
    decides it.
    """

    order: Order | None = None
    single: bool = False
    duplicates: Duplicates | None = None
    floor: float = -inf
    text: bool = False

    @property
    def as_given(self) -> bool:
        """Whether scores are compared as they are."""
        return not self.single and not self.text and self.floor == -inf


DEFAULT_RANKING = RankRule()


RELEVANT = 1
"""The grade from which a judged document is relevant, unless a measure says otherwise."""

WITHOUT_ORDER = ("group", "expected")
"""The rules that give equal scores no order."""


class AveragePrecisionSettings(SettingsTable):
    """The rules of rankings; `measures.average_precision` defines each.

    Attributes
    ----------
    ties : {"group", "best", "worst", "expected", "document-descending", "document-ascending", "input"}
        The order of trials with equal scores: one group, targets first or last, the expectation over all orders, by
        document id, or the order in the run's files.
    interpolation : {"max", "none"}
        Whether a precision is replaced by the highest one at a later rank.
    integration : {"step", "trapezoid"}
        Whether a step of recall weights the precision at its end or the mean of both ends.
    no_relevant : {"exclude", "zero", "zero-if-retrieved", "nan"}
        How MAP counts queries without targets.
    missing : {"zero", "skip"}
        Whether queries without trials count as AP = 0, or are left out and have no numbers.
    score_dtype : {"float64", "float32"}
        The precision to which scores are rounded before they are compared.
    score_floor : float, optional
        Scores below it count as equal to it.
    score_order : {"number", "text"}
        Whether scores are compared as numbers, or as the characters of their shortest decimal form.
    duplicates : {"as-trials", "ignore", "false-positive", "first"}
        How several detections of one event are treated.
    ranks : tuple of int
        The ranks K of precision_at_rank@K, recall_at_rank@K, success_at_rank@K and ap_at_rank@K.
    recall_rounding : {"exact", "trec_eval", "nearest"}
        How the number of hits needed for a recall is rounded.
    addition : {"exact", "running"}
        Whether terms, and numbers of queries, are added exactly, or one after the other in double precision.
    recalls : tuple of float
        The recalls R of precision_at_recall@R.
    persistences : tuple of float
        The persistences p of rbp@p.
    levels : tuple of int
        Grades L for which measures are computed again with only judgments of L and above as relevant: ``map(rel=2)``.
    multiples : tuple of float
        The multiples M of the number of relevant documents, of precision_at_relevant@M.
    highest_grade : int
        The maximum grade G of err_at_rank@K: a document of grade g satisfies a reader with probability (2^g - 1) / 2^G;
        higher grades count as G.
    """

    ties: Literal["group", "best", "worst", "expected", "document-descending", "document-ascending", "input"] = "group"
    interpolation: Literal["max", "none"] = "max"
    integration: Literal["step", "trapezoid"] = "step"
    no_relevant: Literal["exclude", "zero", "zero-if-retrieved", "nan"] = "exclude"
    missing: Literal["zero", "skip"] = "zero"
    score_dtype: Literal["float64", "float32"] = "float64"
    score_floor: float | None = None
    score_order: Literal["number", "text"] = "number"
    duplicates: Literal["as-trials", "ignore", "false-positive", "first"] = "as-trials"
    ranks: tuple[Annotated[int, Field(ge=1, le=10**9)], ...] = (5, 10)
    recall_rounding: Literal["exact", "trec_eval", "nearest"] = "exact"
    addition: Addition = "exact"
    recalls: tuple[Annotated[float, Field(ge=0, le=1)], ...] = tuple(tenths / 10 for tenths in range(11))
    persistences: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = (0.8,)
    levels: tuple[Annotated[int, Field(ge=2, le=10**9)], ...] = ()
    multiples: tuple[Annotated[float, Field(gt=0, le=10**6)], ...] = ()
    highest_grade: Annotated[int, Field(ge=1, le=50)] = 4

    @property
    def all_levels(self) -> tuple[int, ...]:
        """The grades from which documents are relevant, the usual one first."""
        return tuple(dict.fromkeys((RELEVANT, *self.levels)))

    @property
    def ordered_ties(self) -> str:
        """The rule `ties`, or "worst" in place of a rule that gives equal scores no order."""
        return "worst" if self.ties in WITHOUT_ORDER else self.ties

    def rule(self, trials: str) -> RankRule:
        """Return the settings that statistics need for a kind of trials."""
        order: Order | None = self.ties if self.ties in get_args(Order) else None  # type: ignore[assignment]
        own = self.duplicates if self.duplicates != "as-trials" else None
        floor = -inf if self.score_floor is None else self.score_floor
        own = own if own != _OF_TRIALS[trials] else None
        return RankRule(order, self.score_dtype == "float32", own, floor, self.score_order == "text")


_SHAPED_BY = {
    "triangular": {"width_s"},
    "rectangular": {"width_s"},
    "asymmetric": {"early_s", "late_s"},
    "gaussian": {"sigma_s", "cut_s"},
    "table": {"table"},
}
"""The keys that shape each penalty function."""

_LONGEST_S = 100_000


class GapSettings(SettingsTable):
    """The penalty function of GAP; this module defines each. Times are in seconds.

    Attributes
    ----------
    penalty : {"triangular", "rectangular", "asymmetric", "gaussian", "table"}
        The reward of a replay point by its distance from an onset.
    width_s : float
        The distance at which a triangular or rectangular function ends.
    early_s : float
        How far before an onset replay may start, for the asymmetric triangle.
    late_s : float
        How far after an onset replay may start, for the asymmetric triangle.
    sigma_s : float
        The standard deviation of the Gaussian.
    cut_s : float
        The distance at which the Gaussian is cut off.
    table : tuple of (float, float)
        Distances in seconds, negative before the onset, and values in [0, 1], with straight lines between them.
    granularity_s : float, optional
        All times are first rounded down to whole steps of this, so that a width of 7 steps of 15 is 105.
    """

    penalty: Literal["triangular", "rectangular", "asymmetric", "gaussian", "table"] = "triangular"
    width_s: float = Field(default=DEFAULT_WIDTH_S, gt=0, le=_LONGEST_S)
    early_s: float = Field(default=DEFAULT_WIDTH_S, gt=0, le=_LONGEST_S)
    late_s: float = Field(default=30.0, gt=0, le=_LONGEST_S)
    sigma_s: float = Field(default=45.0, gt=0, le=_LONGEST_S)
    cut_s: float = Field(default=150.0, gt=0, le=_LONGEST_S)
    table: tuple[tuple[float, float], ...] = ()
    granularity_s: float | None = Field(default=None, gt=0, le=_LONGEST_S)

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        shapes = set().union(*_SHAPED_BY.values())
        for name in sorted(shapes - _SHAPED_BY[self.penalty]):
            if getattr(self, name) != type(self).model_fields[name].default:
                owners = " or ".join(penalty for penalty, keys in _SHAPED_BY.items() if name in keys)
                raise ValueError(f"{name} goes with penalty = {owners}")
        if self.penalty == "table":
            distances = [distance for distance, _ in self.table]
            if len(distances) < 2 or distances != sorted(set(distances)):
                raise ValueError("table needs two or more [distance, value], by ascending distance")
            if not all(0 <= value <= 1 for _, value in self.table) or max(map(abs, distances)) > _LONGEST_S:
                raise ValueError(f"table needs values from 0 to 1, at most {_LONGEST_S} seconds away")
        return self

    def rule(self) -> ReplayRule:
        """Return GAP's settings in ticks. Raises `SettingsError` for a granularity that is no whole number of ticks."""
        step, rounded = (1, False) if self.granularity_s is None else ticks(self.granularity_s)
        if rounded:
            raise SettingsError(
                f"setting evaluation.gap.granularity_s: expected a multiple of 0.0001 s; found {self.granularity_s!r}."
            )
        return ReplayRule(step, self._penalty())

    def _penalty(self) -> Penalty:
        unit = TICKS_PER_SECOND
        match self.penalty:
            case "triangular":
                return triangular(self.width_s * unit, self.width_s * unit)
            case "rectangular":
                return rectangular(self.width_s * unit)
            case "asymmetric":
                return triangular(self.early_s * unit, self.late_s * unit)
            case "gaussian":
                return gaussian(self.sigma_s * unit, self.cut_s * unit)
            case "table":
                return table([(distance * unit, value) for distance, value in self.table])
