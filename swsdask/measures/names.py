"""Measures at points: `twv@0.5` is TWV at the threshold 0.5, `p_miss@0.001` P_miss at the false-alarm rate 0.001.

The points are a setting. A name with a point adds it to the setting; `twv@` alone requests all points of the setting.
Names of trec_eval and ir_measures are accepted too.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, Self

from swsdask.measures.average_precision import AveragePrecision, MeanAveragePrecision, RankedPrecision
from swsdask.measures.retrieval import JudgedRetrieval, RankedRetrieval
from swsdask.model.errors import SettingsError
from swsdask.model.measures import TABLE, Points, at_level, names_in, parse_name
from swsdask.model.ranked_measures import RELEVANT
from swsdask.model.settings import EvaluationSettings
from swsdask.model.wording import nearest

POINTS = {row.name: row.points for row in TABLE if row.points is not None}
"""The points of each family that has points."""

_TREC_EVAL = names_in("trec_eval")
_IR_MEASURES = names_in("ir_measures")

_BINARY = (AveragePrecision, MeanAveragePrecision, RankedPrecision, RankedRetrieval, JudgedRetrieval)
_LEVELLED = {name for family in _BINARY for name in family.names}
"""The measures with binary relevance, which can begin at another grade than 1."""

_DEFAULTS: Mapping[str, Mapping[str, object]] = {
    **{name: {} for name in ("Bpref", "ERR", "Judged", "NumQ", "NumRel", "NumRet", "RBP", "SetR", "infAP")},
    **{name: {"judged_only": False} for name in ("AP", "IPrec", "P", "R", "RR", "Rprec", "SetAP", "Success")},
    "SetF": {"beta": 1.0, "judged_only": False},
    "SetP": {"relative": False, "judged_only": False},
    "nDCG": {"dcg": "log2", "judged_only": False},
}
"""The measures of ir_measures that are computed here in some form, with the defaults of their parameters. The grade
`rel` is a level here."""

_IMPLIED: Mapping[str, Mapping[str, object]] = {"RBP": {"p": 0.8}}
_ALIASES: Mapping[str, tuple[str, Mapping[str, object]]] = {
    "BPref": ("Bpref", {}),
    "MAP": ("AP", {}),
    "MRR": ("RR", {}),
    "NDCG": ("nDCG", {}),
    "NumRelRet": ("NumRet", {"rel": RELEVANT}),
    "Precision": ("P", {}),
    "RPrec": ("Rprec", {}),
    "Recall": ("R", {}),
    "SetRelP": ("SetP", {"relative": True}),
}
_NOT_COMPUTED = re.compile(
    "Accuracy|BPM|Compat|INS[TQ]|SDCG|NERR(8|9|10|11)|(alpha|\u03b1)_n?DCG|n?ERR_IA|n?NRBP|(AP|MAP|P)_IA|StRecall"
)
"""The measures of ir_measures for intents and user models, which are not computed here."""

_REQUESTED = re.compile(r"(?<=^P)\.(?=\d)|(?<=[a-z])\.(?=\d)")
"""The dot in a request of trec_eval, `-m ndcg_cut.10`; beside the number trec_eval prints `_`."""

_POINT = re.compile(r"(?<=[@_=])([0-9.]+)\)?$")


class _Written(NamedTuple):
    """A measure in the form of ir_measures, a Python expression: `P(rel=2)@5`."""

    name: str
    parameters: Mapping[str, object]
    point: str

    @classmethod
    def of(cls, text: str) -> Self | None:
        """Return the parts of a text in that form; None for others."""
        try:
            node: ast.expr = ast.parse(text, mode="eval").body
            point, given = "", list[ast.keyword]()
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                point = repr(ast.literal_eval(node.right))
                node = node.left
            if isinstance(node, ast.Call) and not node.args:
                given = node.keywords
                node = node.func
            parameters = {str(each.arg): ast.literal_eval(each.value) for each in given}
        except (SyntaxError, ValueError):
            return None
        return cls(node.id, parameters, point) if isinstance(node, ast.Name) else None

    def __str__(self) -> str:
        listed = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return self.name + (f"({listed})" if listed else "") + (f"@{self.point}" if self.point else "")


def from_elsewhere(name: str) -> str:
    """Our name of a measure that is given in the form of ir_measures, `P@5`, or trec_eval, `P_5`; others unchanged.

    Raises `SettingsError` for measures of ir_measures that are not computed here, with the nearest that is.

    Examples
    --------
    >>> [from_elsewhere(name) for name in ("AP", "P(rel=2)@5", "ndcg_cut.100", "RBP(p=0.5)", "atwv", "twv@0.5")]
    ['map', 'precision_at_rank(rel=2)@5', 'ndcg_at_rank@100', 'rbp@0.5', 'atwv', 'twv@0.5']
    """
    written = _Written.of(name)
    if written is None or not (written.name in {*_DEFAULTS, *_ALIASES} or _NOT_COMPUTED.fullmatch(written.name)):
        return _named(_REQUESTED.sub("_", name), _TREC_EVAL) or name
    found = _of_ir_measures(written)
    if found is not None:
        return found
    if name in _ALIASES:  # Precision and Recall: only at a rank do these names mean those of ir_measures
        return name
    known = [each.replace("@", f"@{written.point or 10}") for each in _IR_MEASURES if not each.endswith("=")]
    family, _ = _ALIASES.get(written.name, (written.name, {}))
    own = [each for each in known if each.partition("@")[0] == family]
    near = nearest(str(written._replace(parameters={})), own or known)
    raise SettingsError(f"measure {name!r} of ir_measures is not computed here. Nearest: {near}.")


def _of_ir_measures(written: _Written) -> str | None:
    """Our name of a measure, None if it is not computed here."""
    name, implied = _ALIASES.get(written.name, (written.name, {}))
    given = {**_IMPLIED.get(name, {}), **implied, **written.parameters}
    level = given.get("rel", RELEVANT)
    left_out = {**_DEFAULTS.get(name, {}), "rel": level}
    if name == "NumRet":  # with a grade it counts retrieved relevant documents
        left_out.pop("rel")
        given |= {"rel": RELEVANT} if "rel" in given else {}
    written_out = {key: value for key, value in given.items() if key not in left_out or left_out[key] != value}
    found = _named(str(_Written(name, written_out, written.point)), _IR_MEASURES)
    return at_level(found, level) if found is not None and isinstance(level, int) else None


def _named(name: str, theirs: Mapping[str, str]) -> str | None:
    """Our name of a measure without a level, by the names of a tool; None if the tool has no such name."""
    whole = theirs.get(name)
    if whole is not None and not whole.endswith("@"):
        return whole
    point = _POINT.search(name)
    if point is None:
        return None
    ours = theirs.get(name[: point.start()])
    return None if ours is None or not ours.endswith("@") else f"{ours}{point[1]}"


def as_names(given: str | Iterable[str] | None) -> list[str] | None:
    """Return one name or several as a list; None unchanged. Raises `SettingsError` for a name that is not a string."""
    if given is None:
        return None
    names = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    for name in names:
        if not isinstance(name, str):
            raise SettingsError(f"expected names; found {name!r}.")
    return names


def requested_names(measures: str | Iterable[str] | None) -> list[str] | None:
    """Return the names of requested measures as a list; None for all. Raises `SettingsError` if the list is empty."""
    names = as_names(measures)
    check_some(names)
    return names


def check_some(measures: Sequence[object] | None) -> None:
    """Raise `SettingsError` for an empty list of measures."""
    if measures is not None and not measures:
        raise SettingsError("No measure is named. Name some, or leave measures out for all.")


def family_name(measure: str) -> str:
    """`twv@` of `twv@0.5`; a name without a point is itself."""
    family, at, _ = measure.partition("@")
    return family + at


def written_name(name: str) -> str:
    """Return the name of a measure in results; a family such as `twv@` stays.

    Examples
    --------
    >>> [written_name(name) for name in ("AP", "P@10", "twv@1", "atwv", "twv@")]
    ['map', 'precision_at_rank@10', 'twv@1.0', 'atwv', 'twv@']
    """
    ours = from_elsewhere(name)
    family, level, point = parse_name(ours)
    if family not in POINTS or not point:
        return ours
    return at_level(f"{family}{_number(ours, point, family, POINTS[family])!r}", level)


def measure_name(given: str) -> str:
    """Return the canonical name of a measure: names of other tools as they are, such as P@5; our names in any case."""
    name = from_elsewhere(given)
    return name.lower() if name == given else name


def name_in_gate(name: str) -> str:
    """The name beside its numbers of a measure in a gate, where our names may have capitals: `atwv` of `ATWV`."""
    return written_name(measure_name(name))


def with_points(
    names: Sequence[str] | None, settings: EvaluationSettings
) -> tuple[list[str] | None, EvaluationSettings]:
    """Return the names of measures in results, and the settings with the points of the names.

    Raises `SettingsError` for a point that is not a finite number, and for a family without points.
    """
    if names is None:
        return None, settings
    written: list[str] = []
    points = {family.setting: dict.fromkeys(attrgetter(family.setting)(settings)) for family in POINTS.values()}
    levels = dict.fromkeys(settings.average_precision.levels)
    for name in map(from_elsewhere, names):
        family, level, point = parse_name(name)
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


def _with(settings: EvaluationSettings, values: Mapping[str, object]) -> EvaluationSettings:
    """Return the settings with some of them replaced, each named by its path."""
    tables: dict[str, dict[str, object]] = {}
    for path, value in values.items():
        table, _, key = path.rpartition(".")
        tables.setdefault(table, {})[key] = value
    own = tables.pop("", {})
    inner = {name: getattr(settings, name).model_copy(update=update) for name, update in tables.items()}
    return settings.model_copy(update={**own, **inner})


def _number(name: str, point: str, family: str, points: Points) -> float:
    expected = "a whole number" if points.whole else "a number"
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
