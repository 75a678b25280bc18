"""Measures at points: `twv@0.5` is TWV at the threshold 0.5, `p_miss@0.001` P_miss at the false-alarm rate 0.001.

Which points are measured is a setting. A name that has its point adds it there; `twv@` alone requests all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from swsdask.model.errors import SettingsError
from swsdask.model.settings import EvaluationSettings


class Points(NamedTuple):
    """The setting that holds the points of a family, an example of one, and what they may be."""

    setting: str
    example: str
    least: float = -math.inf
    most: float = math.inf
    whole: bool = False

    def of(self, settings: EvaluationSettings) -> tuple[float, ...]:
        """The points that are set."""
        points: tuple[float, ...] = attrgetter(self.setting)(settings)
        return points


_THRESHOLDS = Points("thresholds", "0.5")

POINTS = {
    "twv@": _THRESHOLDS,
    "precision@": _THRESHOLDS,
    "recall@": _THRESHOLDS,
    "f1@": _THRESHOLDS,
    "p_miss@": Points("p_fa_points", "0.001"),
    "precision_at_rank@": Points("average_precision.ranks", "10", least=1, whole=True),
    "precision_at_recall@": Points("average_precision.recalls", "0.5", 0, 1),
}
"""By family."""


def family_name(measure: str) -> str:
    """`twv@` of `twv@0.5`; a name without a point is itself."""
    family, at, _ = measure.partition("@")
    return family + at


def with_points(
    names: Sequence[str] | None, settings: EvaluationSettings
) -> tuple[list[str] | None, EvaluationSettings]:
    """The names of measures as they are written beside their numbers, and the settings with the points of the names.

    Raises `SettingsError` for a point that is no finite number, and for a family without points.
    """
    if names is None:
        return None, settings
    written: list[str] = []
    points = {family.setting: dict.fromkeys(family.of(settings)) for family in POINTS.values()}
    for name in names:
        family = family_name(name)
        point = name.removeprefix(family)
        if family in POINTS and point:
            number = _number(name, point, family, POINTS[family])
            points[POINTS[family].setting][number] = None
            written.append(f"{family}{number!r}")
        else:
            written.append(name)
    for family, (setting, example, *_) in POINTS.items():
        if family in written and not points[setting]:
            raise SettingsError(
                f"measure {family!r}: no point is set. Request {family}{example}, or set {setting}=[{example}]."
            )
    return written, _with(settings, {setting: tuple(found) for setting, found in points.items()})


def _with(settings: EvaluationSettings, values: Mapping[str, Any]) -> EvaluationSettings:
    """The same settings but for some, named by their path."""
    tables: dict[str, dict[str, Any]] = {}
    for path, value in values.items():
        table, _, key = path.rpartition(".")
        tables.setdefault(table, {})[key] = value
    own = tables.pop("", {})
    inner = {name: getattr(settings, name).model_copy(update=update) for name, update in tables.items()}
    return settings.model_copy(update={**own, **inner})


def _number(name: str, point: str, family: str, points: Points) -> float:
    expected = "a whole number from 1" if points.whole else "a number"
    if points.most < math.inf:
        expected += f" from {points.least} to {points.most}"
    try:
        number = int(point) if points.whole else float(point)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and points.least <= number <= points.most):
        raise SettingsError(
            f"measure {name!r}: expected {expected} after the @; found {point!r}. Write {family}{points.example}."
        )
    return number
