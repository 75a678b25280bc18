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
from swsdask.model.measures import at_level, names_in, parted
from swsdask.model.retrieval import RELEVANT
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
    "reciprocal_rank_at_rank@": _RANKS,
    "relative_precision_at_rank@": _RANKS,
    "ndcg_at_rank@": _RANKS,
    "exponential_ndcg_at_rank@": _RANKS,
    "err_at_rank@": _RANKS,
    "judged_at_rank@": _RANKS,
    "rbp@": Points("average_precision.persistences", "0.8", least=1e-9, most=1 - 1e-9),
    "precision_at_recall@": Points("average_precision.recalls", "0.5", 0, 1),
    "precision_at_relevant@": Points("average_precision.multiples", "2.0", least=1e-9, most=1e6),
}
"""By family."""

_TREC_EVAL = names_in("trec_eval")
_IR_MEASURES = {
    **names_in("ir_measures"),
    "RBP": "rbp@0.8",
    "SetF(beta=1.0)": "set_f1",
    "nDCG(dcg='log2')": "ndcg",
    "nDCG(dcg='log2')@": "ndcg_at_rank@",
}

_WITH_LEVEL = re.compile(r"(?P<open>[A-Za-z]+\((?:[^)]*, *)?)rel=(?P<level>[0-9]+)(?:, *)?(?P<close>[^)]*\)(?:@.*)?)")
_LEVELLED = {
    "map",
    "map_n_averaged",
    "map_n_no_relevant",
    "map_n_missing",
    "ap",
    "r_precision",
    "precision_at_rank@",
    "precision_at_recall@",
    "recall_at_rank@",
    "success_at_rank@",
    "ap_at_rank@",
    "reciprocal_rank",
    "rbp@",
    "eleven_point_precision",
    "set_precision",
    "set_recall",
    "set_f1",
    "set_map",
    "gm_map",
    "n_retrieved",
    "n_relevant",
    "n_relevant_retrieved",
    "bpref",
    "gm_bpref",
    "inferred_ap",
    "binary_gain",
    "precision_at_relevant@",
    "relative_precision_at_rank@",
    "set_relative_precision",
    "reciprocal_rank_at_rank@",
    "utility",
    "n_nonrelevant_judged",
}
"""The families that take documents as relevant or not, from grade 1 on or from another."""

_NOT_COMPUTED = re.compile(
    r"(Accuracy|BPM|Compat|INS[TQ]|SDCG|NERR[0-9]+|(alpha_n?D?CG|n?ERR_IA|n?NRBP|(AP|P)_IA|StRecall)|"
    r"(n?DCG|AP|P|R|RR|Rprec|RBP|Set[PRF]|SetAP|IPrec|Success|Bpref|infAP|ERR|Judged)\(.*\))(\(.*\))?(@.*)?"
)
"""What ir_measures writes that is none of our measures: of intents and user models, with other gains, or with documents
that are judged only."""

_POINT = re.compile(r"(?<=[@_=])([0-9.]+)\)?$")


def from_elsewhere(name: str) -> str:
    """Our name of a measure that is written as ir_measures writes it, `P@5`, or trec_eval, `P_5`; others as they are.

    Raises `SettingsError` for measures of ir_measures that are not computed here.

    Examples
    --------
    >>> [from_elsewhere(name) for name in ("AP", "P(rel=2)@5", "ndcg_cut_100", "RBP(p=0.5)", "atwv", "twv@0.5")]
    ['map', 'precision_at_rank(rel=2)@5', 'ndcg_at_rank@100', 'rbp@0.5', 'atwv', 'twv@0.5']
    """
    plain, level = name.replace('"', "'"), RELEVANT
    counted = _WITH_LEVEL.fullmatch(plain)
    if counted is not None:
        plain = re.sub(r", *(?=\))", "", f"{counted['open']}{counted['close']}").replace("()", "")
        level = int(counted["level"])
        plain = "NumRet(rel=1)" if plain == "NumRet" else plain
    found = _named(plain)
    if found is not None:
        return at_level(found, level)
    if _NOT_COMPUTED.fullmatch(name):
        raise SettingsError(
            f"measure {name!r} of ir_measures is not computed here. See `swsdask measures` for those that are."
        )
    return name


def _named(name: str) -> str | None:
    """Our name of a measure without a level, None if no other tool calls one so."""
    whole = _IR_MEASURES.get(name) or _TREC_EVAL.get(name)
    if whole is not None and not whole.endswith("@"):
        return whole
    point = _POINT.search(name)
    if point is None:
        return None
    family = name[: point.start()]
    ours = _IR_MEASURES.get(family) or _TREC_EVAL.get(family)
    return None if ours is None or not ours.endswith("@") else f"{ours}{point[1]}"


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
    levels = dict.fromkeys(settings.average_precision.levels)
    for name in map(from_elsewhere, names):
        family, level, point = parted(name)
        if level != RELEVANT:
            if family not in _LEVELLED or level < RELEVANT:
                raise SettingsError(f"measure {name!r}: {family} does not depend on the grade that is relevant.")
            levels[level] = None
        if family in POINTS and point:
            number = _number(name, point, family, POINTS[family])
            points[POINTS[family].setting][number] = None
            written.append(at_level(f"{family}{number!r}", level))
        else:
            written.append(name)
    for family, (setting, example, *_) in POINTS.items():
        if family in written and not points[setting]:
            raise SettingsError(
                f"measure {family!r}: no point is set. Request {family}{example}, or set {setting}=[{example}]."
            )
    chosen = {setting: tuple(found) for setting, found in points.items()}
    return written, _with(settings, {**chosen, "average_precision.levels": tuple(levels)})


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
