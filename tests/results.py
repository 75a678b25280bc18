"""Made-up results whose numbers fit together, for tests of what people read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from swsdask.model.results import CURVES, SCORES, Result

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
