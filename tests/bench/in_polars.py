"""MTWV in Polars: lazily, on its streaming engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

os.environ["POLARS_MAX_THREADS"] = "1"

import polars as pl

Systems = Mapping[str, Sequence[str]]


def plain(systems: Systems, targets: str, weights: str) -> Callable[[], dict[str, float]]:
    """MTWV by system, from a cumulative sum over all detections."""

    def step() -> dict[str, float]:
        return {system: _plain(pl.scan_parquet(files), targets, weights) for system, files in systems.items()}

    return step


def at_hits(systems: Systems, targets: str, weights: str) -> Callable[[], dict[str, float]]:
    """MTWV by system, from the false alarms between the scores of hits."""

    def step() -> dict[str, float]:
        return {system: _at_hits(pl.scan_parquet(files), targets, weights) for system, files in systems.items()}

    return step


def _plain(detections: pl.LazyFrame, targets: str, weights: str) -> float:
    weight = pl.scan_parquet(weights)
    hits = _hits(detections, targets, weight).select("score", step="gain")
    alarms = detections.join(weight, on="query").select("score", step=-pl.col("alarm"))
    total = (
        pl.concat([alarms, hits])
        .sort("score", descending=True)
        .with_columns(total=pl.col("step").cum_sum(), last=pl.col("score") != pl.col("score").shift(-1))
        .filter(pl.col("last").fill_null(True))
        .select(pl.col("total").max())
    )
    return max(0.0, total.collect(engine="streaming").item())


def _at_hits(detections: pl.LazyFrame, targets: str, weights: str) -> float:
    weight = pl.scan_parquet(weights)
    hits = _hits(detections, targets, weight).collect(engine="streaming").sort("score")
    rungs = hits["score"]

    def slot(score: pl.Series) -> pl.Series:
        return rungs.search_sorted(score, side="right")

    alarms = detections.join(weight, on="query").select(
        pl.col("score").map_batches(slot, return_dtype=pl.UInt32).alias("slot"), step=-pl.col("alarm")
    )
    steps = pl.concat([alarms, hits.lazy().select(slot=pl.lit(slot(rungs)), step="gain")])
    total = steps.group_by("slot").agg(pl.col("step").sum()).sort("slot", descending=True)
    return max(
        0.0, total.filter(pl.col("slot") > 0).select(pl.col("step").cum_sum().max()).collect(engine="streaming").item()
    )


def _hits(detections: pl.LazyFrame, targets: str, weight: pl.LazyFrame) -> pl.LazyFrame:
    """Score and gain of the detections that are mapped; a hit gives back the alarm that it is counted as, too."""
    return (
        detections.with_row_index("row")
        .join(pl.scan_parquet(targets), on=["query", "document", "channel"])
        .filter((2 * pl.col("start") + pl.col("duration")).is_between("opens", "closes"))
        .filter(pl.col("score").rank("ordinal", descending=True).over("occurrence") == 1)
        .filter(pl.col("score").rank("ordinal", descending=True).over("row") == 1)
        .join(weight, on="query")
        .select("score", gain=pl.col("gain") + pl.col("alarm"))
    )
