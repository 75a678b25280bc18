"""Made-up results whose numbers fit together, for tests of what people read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from swsdask.calibration.maps import FittedOn
from swsdask.model.results import CURVES, SCORES, Result
from swsdask.render.sections import COLUMNS

N_TRIALS, BETA = 10_000, 66.0

MANIFEST: dict[str, Any] = {
    "signature": "swsdask 0.2.0 outside=drop 0123456789abcdef",
    "swsdask": "0.2.0",
    "measures": "all",
    "settings": {"trials": "virtual", "outside": "drop", "operating_point": {"p_target": 0.00015, "c_miss": 100.0}},
    "inputs": {"ecf": "aa11", "rttm": "bb22"},
    "run": {"executor": "Serial", "workers": 1},
}


@dataclass(frozen=True)
class MadeUp:
    """One system: the scores of its hits and false alarms by query, and the threshold of its decisions."""

    name: str
    hits: Sequence[Sequence[float]]
    false_alarms: Sequence[Sequence[float]]
    threshold: float = 0.0


def made_up(name: str, quality: float, targets: Sequence[int], seed: int, n_false_alarms: int = 20) -> MadeUp:
    rng = np.random.default_rng(seed)
    hits = [rng.normal(quality, 1.0, rng.binomial(n, 0.8)).round(3).tolist() for n in targets]
    return MadeUp(name, hits, [rng.normal(-1.0, 1.0, n_false_alarms).round(3).tolist() for _ in targets])


def numbers(system: MadeUp, targets: Sequence[int], queries: Iterable[int]) -> tuple[dict[str, float], list[Any]]:
    """The numbers of a system over some queries by their definitions, and its DET curve: threshold, P_fa, P_miss."""
    counted = [q for q in queries if targets[q]]

    def rates(threshold: float) -> tuple[float, float]:
        miss = [1 - sum(s >= threshold for s in system.hits[q]) / targets[q] for q in counted]
        fa = [sum(s >= threshold for s in system.false_alarms[q]) / (N_TRIALS - targets[q]) for q in counted]
        return (sum(fa) / len(fa), sum(miss) / len(miss)) if counted else (math.nan, math.nan)

    def value(threshold: float) -> float:
        fa, miss = rates(threshold)
        return 1 - miss - BETA * fa

    thresholds = [math.inf, *sorted({s for q in counted for s in system.hits[q]}, reverse=True)]
    best = max(thresholds, key=value)
    p_fa, p_miss = rates(system.threshold)
    n_hit = sum(s >= system.threshold for q in counted for s in system.hits[q])
    return {
        "n_queries": len(counted),
        "n_target": sum(targets[q] for q in counted),
        "n_hit": n_hit,
        "n_miss": sum(targets[q] for q in counted) - n_hit,
        "n_false_alarm": sum(s >= system.threshold for q in counted for s in system.false_alarms[q]),
        "p_miss": p_miss,
        "p_fa": p_fa,
        "atwv": value(system.threshold),
        "actual_threshold": system.threshold,
        "mtwv": value(best),
        "mtwv_threshold": best,
        "mtwv_p_miss": rates(best)[1],
        "mtwv_p_fa": rates(best)[0],
        "stwv": 1 - rates(-math.inf)[1] if counted else math.nan,
    }, [(threshold, *rates(threshold)) for threshold in thresholds]


def made_up_result(
    systems: Sequence[MadeUp],
    targets: Sequence[int],
    conditions: Mapping[str, Sequence[int]] | None = None,
    query_ids: Sequence[str] | None = None,
    **result: Any,
) -> Result:
    """The result of scoring `systems`; `targets` are N_act by query, `conditions` the queries of each."""
    ids = query_ids or [f"q{number}" for number in range(len(targets))]
    parts = {"all": range(len(targets)), **(conditions or {})}
    scores: list[tuple[Any, ...]] = []
    points: list[tuple[Any, ...]] = []
    for system in systems:
        for condition, queries in parts.items():
            overall, curve = numbers(system, targets, queries)
            scores += [(system.name, condition, None, measure, value) for measure, value in overall.items()]
            points += [(system.name, condition, "det", *point) for point in curve]
        for query, name in enumerate(ids):
            alone, _ = numbers(system, targets, [query])
            wanted = ("n_target", "n_hit", "n_false_alarm", "p_miss", "p_fa", "atwv")
            scores += [(system.name, "all", name, measure, alone[measure]) for measure in wanted]
    return Result.of(
        table(scores, SCORES),
        table(points, CURVES),
        result.pop("manifest", MANIFEST),
        result.pop("notes", ("One query has no targets.",)),
        **result,
    )


def table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    return pa.table(
        {field.name: pa.array(list(column), field.type) for field, column in zip(schema, columns, strict=True)},
        schema=schema,
    )


def three_systems(names: Sequence[str] = ("good", "middling", "weak")) -> Result:
    """Three systems of falling quality, six queries of which one has no targets, two conditions."""
    targets = [5, 3, 0, 8, 2, 4]
    systems = [made_up(name, 3.0 - 1.2 * k, targets, seed=k) for k, name in enumerate(names)]
    return made_up_result(systems, targets, {"oov=true": [0, 1], "oov=false": [2, 3, 4, 5]})


FOLDS = (0.2, 0.4)


def rows_of_folds(system: str, condition: str, measure: str, folds: tuple[float, ...]) -> list[Any]:
    known = [value for value in folds if not math.isnan(value)] or [math.nan]
    mean, std = float(np.mean(known)), float(np.std(known))
    ends = {"": mean, "_std": std, "_min": min(known), "_max": max(known)}
    overall = [(system, condition, None, measure + end, value) for end, value in ends.items()]
    return overall + [(system, f"{condition}/{n}", None, measure, value) for n, value in enumerate(folds, 1)]


def discovery_result(systems: tuple[str, ...] = ("alpha", "beta"), definition: str = "document") -> Result:
    rows = []
    for system in systems:
        rows += [(system, "all", None, "n_classes", 1234.0), (system, "all/1", None, "n_classes", 1000.0)]
        rows += rows_of_folds(system, "all", "ned", FOLDS)
        for end in ("precision", "recall", "f_score"):
            rows += rows_of_folds(
                system, "all", f"token_{end}", (math.nan, math.nan) if end == "recall" else (0.5, 0.7)
            )
    table = pa.table([pa.array(c, f.type) for c, f in zip(zip(*rows, strict=True), SCORES, strict=True)], schema=SCORES)
    curves = [
        (system, "all", curve, math.nan, x, y)
        for system in systems
        for curve, points in (("class_size", ((1, 5), (2, 3), (70, 1))), ("fragment_length", ((0, 1), (3, 9), (40, 2))))
        for x, y in points
    ]
    classes = {
        "class": "17 <b>",
        "members": 12,
        "distance": 0.25,
        "transcriptions": 10,
        "common": [{"phones": "a b <i>", "members": 3}, {"phones": "", "members": 1}],
    }
    run = {"classes": 2, "rows": 9, "members": 8, "fragments": 7, "dropped": {"outside speech": 1}, "clipped": 2}
    manifest = {
        "signature": f"swsdask discover definition={definition} 0123",
        "kind": "discovery",
        "swsdask": "0",
        "definition": definition,
        "measures": "all",
        "inputs": {"phones": "aa"},
        "corpus": {"name": "c", "files": 3, "phones": 1000, "words": 400},
        "folds": {"all": {"names": ["1", "2"], "stretches": 2}},
        "runs": {system: {**run, "files": ["x.classes"]} for system in systems},
        "classes": {system: {"best": [classes], "worst": [classes]} for system in systems},
    }
    points = [pa.array(c, f.type) for c, f in zip(zip(*curves, strict=True), CURVES, strict=True)]
    return Result.of(table, pa.table(points, schema=CURVES), manifest, ("a note with <script>",))


GRID = np.linspace(-10.0, 10.0, 81).tolist()
THRESHOLD = 4.2


def entropy(log_odds: float) -> float:
    p = 1 / (1 + math.exp(-log_odds))
    return -(p * math.log2(p) + (1 - p) * math.log2(1 - p))


def error_rate(log_odds: float) -> float:
    return 1 / (1 + math.exp(abs(log_odds)))


NO_SCORES = {"ece": entropy, "ape": error_rate}


def calibrated_systems(names: tuple[str, ...] = ("good", "middling", "weak")) -> Result:
    """Three systems with made-up cross entropies: `share` of that of no scores after the best map, more as given."""
    result = three_systems(names)
    scores, points = [], []
    for condition in ("all", "oov=true", "oov=false"):
        for k, name in enumerate(names):
            share = 0.2 + 0.25 * k
            curves = {"default": lambda x: 1.0, "pav": lambda x, s=share: s - 0.05, "affine": lambda x, s=share: s}
            curves["actual"] = lambda x, s=share, k=k: s + 0.04 * k * abs(x)
            for cost, no_scores in NO_SCORES.items():
                points += [
                    (name, condition, f"{cost}_{kind}", -x, x, of(x) * no_scores(x))
                    for kind, of in curves.items()
                    for x in GRID
                ]
            values = [curves["actual"](-THRESHOLD), share, 0.04 * k * THRESHOLD, share - 0.05, 0.05, 0.9, -0.3, 0.31]
            numbers = dict(zip([c for c in COLUMNS if c not in ("mtwv", "impute_score")], values, strict=False))
            numbers |= {"n_given_target": 18, "n_imputed_target": 4, "n_given_nontarget": 120}
            numbers |= {"n_imputed_nontarget": 59_858, "impute_score": -3.5, "bayes_threshold": THRESHOLD}
            scores += [(name, condition, None, measure, float(value)) for measure, value in numbers.items()]
    return Result.of(
        pa.concat_tables([result.table.cast(SCORES), table(scores, SCORES)]),
        pa.concat_tables([result.curve_table.cast(CURVES), table(points, CURVES)]),
        result.manifest,
        result.notes,
    )


def fitted_on(**changed: Any) -> FittedOn:
    said = {
        "system": 'sys "a" \\ \x7f é',
        "run": "ab12",
        "evaluation": {"ecf": "1", "rttm": "2", "queries": "3"},
        "signature": "swsdask 0.2.0 defaults 0123",
        "prior_log_odds": -4.2,
        "impute": "min",
        "impute_score": 0.1,
        "n_given_target": 1,
        "n_imputed_target": 2,
        "n_given_nontarget": 3,
        "n_imputed_nontarget": 4,
        "cnxe": 0.5,
        "cnxe_calibrated": 0.25,
    }
    return FittedOn.model_validate(said | changed)
