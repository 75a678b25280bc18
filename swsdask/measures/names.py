"""Measures at points: `twv@0.5` is TWV at the threshold 0.5, `p_miss@0.001` P_miss at the false-alarm rate 0.001.

Which points are measured is a setting. A name that has its point adds it there; `twv@` alone requests all of them.
Names of trec_eval and ir_measures are read too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from swsdask.model.errors import SettingsError
from swsdask.model.measures import names_in
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
_RANKS = Points("average_precision.ranks", "10", least=1, whole=True)

POINTS = {
    "twv@": _THRESHOLDS,
    "precision@": _THRESHOLDS,
    "recall@": _THRESHOLDS,
    "f1@": _THRESHOLDS,
    "p_miss@": Points("p_fa_points", "0.001"),
    "precision_at_rank@": _RANKS,
    "recall_at_rank@": _RANKS,
    "success_at_rank@": _RANKS,
    "ap_at_rank@": _RANKS,
    "rbp@": Points("average_precision.persistences", "0.8", least=1e-9, most=1 - 1e-9),
    "precision_at_recall@": Points("average_precision.recalls", "0.5", 0, 1),
}
"""By family."""

_ELSEWHERE = {**names_in("trec_eval"), **names_in("ir_measures"), "RBP": "rbp@0.8"}
"""Our measures by the names of trec_eval and ir_measures, up to where a point follows."""

_GRADED = re.compile(r"(nDCG|ndcg|ERR|Bpref|bpref|infAP|Judged|Compat|alpha_nDCG)\b.*|ndcg_.*|.*\(rel=(?!1\)).*")
"""Measures that need more of a judgment than whether it is relevant."""

_POINT = re.compile(r"(?<=[@_=])([0-9.]+)\)?$")


def from_elsewhere(name: str) -> str:
    """Our name of a measure that is written as ir_measures writes it, `P@5`, or trec_eval, `P_5`; others as they are.

    Raises `SettingsError` for measures of graded judgments.

    Examples
    --------
    >>> [from_elsewhere(name) for name in ("AP", "AP@10", "P(rel=1)@5", "map_cut_100", "RBP(p=0.5)", "atwv", "twv@0.5")]
    ['map', 'ap_at_rank@10', 'precision_at_rank@5', 'ap_at_rank@100', 'rbp@0.5', 'atwv', 'twv@0.5']
    """
    if _GRADED.fullmatch(name):
        raise SettingsError(f"measure {name!r}: a judgment is relevant or not here, its grade is not kept.")
    if name in _ELSEWHERE:
        return _ELSEWHERE[name]
    plain = name.replace("(rel=1)", "")
    point = _POINT.search(plain)
    family = _ELSEWHERE.get(plain[: point.start()] if point else plain)
    return name if family is None else f"{family}{point[1] if point else ''}"


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
    for name in map(from_elsewhere, names):
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
