"""The conventions of ranked retrieval: `[evaluation.average_precision]`, and what rankings need to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

Order = Literal["document-descending", "document-ascending", "input"]
"""Rules for trials of equal score that look at the trial, not at its outcome."""


@dataclass(frozen=True)
class RankRule:
    """What the statistics of rankings need of the settings.

    `order` says what comes first of equal scores, None where only outcomes or nothing does; `single` that scores are
    rounded to single precision before they are compared.
    """

    order: Order | None = None
    single: bool = False


DEFAULT_RANKING = RankRule()


class AveragePrecisionSettings(BaseModel):
    """See `measures.average_precision`. `ranks` and `recalls` are those at which precision is asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)

    ties: Literal["group", "best", "worst", "expected"] | Order = "group"
    interpolation: Literal["max", "none"] = "max"
    integration: Literal["step", "trapezoid"] = "step"
    no_relevant: Literal["exclude", "zero", "nan"] = "exclude"
    missing: Literal["zero", "skip"] = "zero"
    score_dtype: Literal["float64", "float32"] = "float64"
    ranks: tuple[Annotated[int, Field(ge=1, le=10**9)], ...] = (5, 10)
    recalls: tuple[Annotated[float, Field(ge=0, le=1)], ...] = tuple(tenths / 10 for tenths in range(11))

    def rule(self) -> RankRule:
        """What statistics need."""
        order: Order | None = self.ties if self.ties in get_args(Order) else None  # type: ignore[assignment]
        return RankRule(order, self.score_dtype == "float32")
