"""The conventions of ranked retrieval: `[evaluation.average_precision]`, and what rankings need to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Order = Literal["document-descending", "document-ascending", "input"]
"""Rules for trials of equal score that look at the trial, not at its outcome."""

Duplicates = Literal["ignore", "false-positive", "first"]
"""Rules for several detections of one event."""

_OF_TRIALS: dict[str, Duplicates] = {"virtual": "false-positive", "segment": "ignore", "document": "ignore"}
"""The rule by which trials of a kind are made."""


@dataclass(frozen=True)
class RankRule:
    """What the statistics of rankings need of the settings.

    `order` says what comes first of equal scores, None where only outcomes or nothing does. Before scores are compared
    those below `floor` are raised to it, and if `single` they are rounded to single precision. `duplicates` says what
    several detections of one event are, None where that is what the evaluation's trials make of them.
    """

    order: Order | None = None
    single: bool = False
    duplicates: Duplicates | None = None
    floor: float = -inf


DEFAULT_RANKING = RankRule()


class AveragePrecisionSettings(BaseModel):
    """See `measures.average_precision`. `ranks` and `recalls` are those at which precision is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)

    ties: Literal["group", "best", "worst", "expected", "document-descending", "document-ascending", "input"] = "group"
    interpolation: Literal["max", "none"] = "max"
    integration: Literal["step", "trapezoid"] = "step"
    no_relevant: Literal["exclude", "zero", "zero-if-retrieved", "nan"] = "exclude"
    missing: Literal["zero", "skip"] = "zero"
    score_dtype: Literal["float64", "float32"] = "float64"
    score_floor: float | None = None
    duplicates: Literal["as-trials", "ignore", "false-positive", "first"] = "as-trials"
    ranks: tuple[Annotated[int, Field(ge=1, le=10**9)], ...] = (5, 10)
    recall_rounding: Literal["exact", "trec_eval"] = "exact"
    recalls: tuple[Annotated[float, Field(ge=0, le=1)], ...] = tuple(tenths / 10 for tenths in range(11))

    def rule(self, trials: str) -> RankRule:
        """What statistics need, for a kind of trials."""
        order: Order | None = self.ties if self.ties in get_args(Order) else None  # type: ignore[assignment]
        own = self.duplicates if self.duplicates != "as-trials" else None
        floor = -inf if self.score_floor is None else self.score_floor
        return RankRule(order, self.score_dtype == "float32", own if own != _OF_TRIALS[trials] else None, floor)
