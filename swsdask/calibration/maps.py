"""Maps from scores to log-likelihood ratios, in the natural logarithm. Both rise: they never change which is larger."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from swsdask.model.trials import F64


class Checked(BaseModel):
    """What a calibration file holds: unknown keys, NaN and infinities are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class AffineMap(Checked):
    """llr = gamma score + delta (2013 measures document, Eq. 44), with gamma > 0."""

    method: Literal["affine"] = "affine"
    gamma: float = Field(gt=0)
    delta: float

    def __call__(self, scores: F64) -> F64:
        """The log-likelihood ratios of scores. Infinite where a float cannot hold them."""
        with np.errstate(over="ignore"):
            return self.gamma * scores + self.delta

    def __str__(self) -> str:
        return f"affine, gamma {self.gamma:.6g}, delta {self.delta:.6g}"


class StepMap(Checked):
    """Pooled isotonic regression: `llr[k]` for the scores >= `begins[k - 1]` and < `begins[k]`.

    `begins` rise, and `llr`, one more, never fall. Scores beyond those that the map was fitted on go with the first or
    the last step.
    """

    method: Literal["pav"] = "pav"
    begins: tuple[float, ...]
    llr: tuple[float, ...]

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if len(self.llr) != len(self.begins) + 1:
            raise ValueError(f"llr must have one more number than begins: {len(self.llr)}, {len(self.begins)}")
        if not _rise(self.begins) or not _never_fall(self.llr):
            raise ValueError("begins must rise, and llr never fall")
        return self

    def __call__(self, scores: F64) -> F64:
        """The log-likelihood ratios of scores."""
        steps = np.searchsorted(np.array(self.begins, np.float64), scores, "right")
        return np.array(self.llr, np.float64)[steps]

    def __str__(self) -> str:
        return f"pav, {len(self.llr)} steps from {self.llr[0]:.6g} to {self.llr[-1]:.6g}"


ScoreMap = Annotated[AffineMap | StepMap, Field(discriminator="method")]


def _rise(values: Sequence[float]) -> bool:
    return all(before < after for before, after in pairwise(values))


def _never_fall(values: Sequence[float]) -> bool:
    return all(before <= after for before, after in pairwise(values))
