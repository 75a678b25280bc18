"""The settings of GAP: `[evaluation.gap]`."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from swsdask.errors import SettingsError
from swsdask.model.penalty import DEFAULT_WIDTH_S, Penalty, ReplayRule, gaussian, rectangular, table, triangular
from swsdask.model.ticks import TICKS_PER_SECOND, ticks

_SHAPED_BY = {
    "triangular": {"width_s"},
    "rectangular": {"width_s"},
    "asymmetric": {"early_s", "late_s"},
    "gaussian": {"sigma_s", "cut_s"},
    "table": {"table"},
}
"""The keys that shape each penalty function."""

_LONGEST_S = 100_000


class GapSettings(BaseModel):
    """Which penalty function, in seconds; see `model.penalty`.

    `early_s` and `late_s` are the two sides of the asymmetric triangle: how far before and after an onset replay may
    start. `table` holds [signed distance, value], values in [0, 1], with straight lines between. With `granularity_s`
    all times are first rounded down to whole steps of that, so that a width of 7 steps of 15 is 105.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)

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
        for name in sorted((self.model_fields_set & shapes) - _SHAPED_BY[self.penalty]):
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
        """What GAP needs, in ticks. Raises `SettingsError` for a granularity that is no whole number of ticks."""
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
