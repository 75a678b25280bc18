"""Which way merit lies: of each measure, whether more is better or less, and by which measure systems are ranked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

_MORE = frozenset(
    {
        "n_hit",
        "atwv",
        "mtwv",
        "otwv",
        "twv_query_offset",
        "mediaeval_atwv",
        "mediaeval_mtwv",
        "mediaeval_offset_atwv",
        "mediaeval_offset_mtwv",
        "stwv",
        "twv_bayes",
        "twv",
        "occurrence_weighted_value",
        "ap",
        "map",
        "r_precision",
        "precision_at_rank",
        "precision_at_recall",
        "precision",
        "recall",
        "f1",
        "best_f1",
        "gap",
        "mgap",
    }
)

_LESS = frozenset(
    {
        "n_miss",
        "n_false_alarm",
        "p_miss",
        "p_fa",
        "p_miss_pooled",
        "p_fa_pooled",
        "mtwv_p_miss",
        "mtwv_p_fa",
        "otwv_p_miss",
        "otwv_p_fa",
        "stwv_p_miss",
        "c_det",
        "c_norm",
        "eer",
        "cxe",
        "cnxe",
        "cnxe_min",
        "cnxe_min_pav",
        "cnxe_query_pav",
        "calibration_loss",
        "calibration_loss_pav",
        "mediaeval_cnxe",
        "mediaeval_cnxe_min",
        "mediaeval_pav_cnxe",
        "mediaeval_pav_cnxe_min",
        "isf",
        "ssf",
        "pmu_index",
        "pmu_search",
        "pl",
    }
)

BALANCED = (
    "atwv",
    "mtwv",
    "otwv",
    "twv_query_offset",
    "twv_bayes",
    "twv@",
    "c_norm",
    "eer",
    "p_miss@",
    "occurrence_weighted_value",
    "cnxe",
    "cnxe_min",
    "cnxe_min_pav",
    "cnxe_query_pav",
    "ap",
    "map",
    "r_precision",
    "f1",
    "best_f1",
    "gap",
    "mgap",
)
"""Measures under which misses and false alarms weigh against each other, so that nobody wins by detecting everything or
nothing; one of those that always rank alike (C_Norm for C_Det). A name with @ stands for all points."""

_STAND_IN = {"atwv": "mtwv"}
"""By measure, what takes its place for a system that has none: runs without decisions have no ATWV."""


def merit(measure: str) -> int:
    """1 where more of a measure is better, -1 where less is, 0 where neither; `twv@0.5` is as `twv`."""
    name = measure.partition("@")[0]
    return (name in _MORE) - (name in _LESS)


def named(names: Sequence[str], measures: Sequence[str]) -> Iterator[str]:
    """Those of `measures` that `names` name, in the order of the names; `twv@` names `twv@0.5` and all other points."""
    for name in names:
        yield from (each for each in measures if each == name or (name.endswith("@") and each.startswith(name)))


def ranking_measures(measures: Sequence[str], asked: Sequence[str] | None) -> tuple[str, ...]:
    """By what systems are ranked: the first measure asked for that has an order of merit, then its stand-in.

    `measures` are those that have numbers. Where all were asked for (None), systems are ranked by ATWV. Empty where
    none has an order of merit.
    """
    first = next((name for name in named(asked or BALANCED, measures) if merit(name)), None)
    if first is None:
        return ()
    stand_in = _STAND_IN.get(first)
    return (first,) if stand_in is None or stand_in not in measures else (first, stand_in)
