"""Measures at points: `twv@0.5` is TWV at the threshold 0.5, `p_miss@0.001` P_miss at the false-alarm rate 0.001.

Which points are measured is a setting. A name that has its point adds it there; `twv@` alone asks for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from swsdask.errors import SettingsError
from swsdask.model.settings import EvaluationSettings

POINTS = {"twv@": ("thresholds", "0.5"), "p_miss@": ("p_fa_points", "0.001")}
"""By family: the setting that holds its points, and an example of one."""


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
    written, points = [], {setting: dict.fromkeys(getattr(settings, setting)) for setting, _ in POINTS.values()}
    for name in names:
        family = family_name(name)
        point = name.removeprefix(family)
        if family in POINTS and point:
            setting, example = POINTS[family]
            number = _number(name, point, family + example)
            points[setting][number] = None
            written.append(f"{family}{number!r}")
        else:
            written.append(name)
    for family, (setting, example) in POINTS.items():
        if family in written and not points[setting]:
            raise SettingsError(
                f"measure {family!r}: no point is set. Ask for {family}{example}, or set {setting}=[{example}]."
            )
    return written, settings.model_copy(update={setting: tuple(found) for setting, found in points.items()})


def _number(name: str, point: str, example: str) -> float:
    try:
        number = float(point)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SettingsError(f"measure {name!r}: expected a number after the @; found {point!r}. Write {example}.")
    return number
