"""MAP in Polars, lazily, on its streaming engine: equal scores at once, no interpolation."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

os.environ["POLARS_MAX_THREADS"] = "1"

import polars as pl

Systems = Mapping[str, Sequence[str]]


def plain(systems: Systems, judgments: str) -> Callable[[], dict[str, float]]:
    """MAP by system, from the rank of every document."""

    def step() -> dict[str, float]:
        relevant = pl.scan_parquet(judgments)
        return {system: _plain(_scores(files), relevant) for system, files in systems.items()}

    return step


def at_hits(systems: Systems, judgments: str) -> Callable[[], dict[str, float]]:
    """MAP by system, from the documents between the scores of hits."""

    def step() -> dict[str, float]:
        relevant = pl.scan_parquet(judgments)
        return {system: _at_hits(_scores(files), relevant) for system, files in systems.items()}

    return step


def _scores(files: Sequence[str]) -> pl.LazyFrame:
    return pl.scan_parquet(files).select("query", "document", "score")


def _plain(scores: pl.LazyFrame, relevant: pl.LazyFrame) -> float:
    hits = (
        scores.with_columns(retrieved=pl.col("score").rank("max", descending=True).over("query"))
        .join(relevant, on=["query", "document"], how="semi")
        .with_columns(hits=pl.col("score").rank("max", descending=True).over("query"))
        .select("query", area=pl.col("hits") / pl.col("retrieved"))
    )
    return _mean(hits, relevant)


def _at_hits(scores: pl.LazyFrame, relevant: pl.LazyFrame) -> float:
    hits = scores.join(relevant, on=["query", "document"], how="semi").select("query", "score")
    rungs = hits.group_by("query", "score").len("new").sort("score")
    between = (
        scores.select("query", "score")
        .sort("score")
        .join_asof(rungs.select("query", "score", rung="score"), on="score", by="query", check_sortedness=False)
        .group_by("query", "rung")
        .len("between")
    )
    ranked = (
        rungs.join(between, left_on=["query", "score"], right_on=["query", "rung"])
        .sort("query", "score", descending=[False, True])
        .with_columns(hits=pl.col("new").cum_sum().over("query"), retrieved=pl.col("between").cum_sum().over("query"))
    )
    return _mean(ranked.select("query", area=pl.col("new") * pl.col("hits") / pl.col("retrieved")), relevant)


def _mean(areas: pl.LazyFrame, relevant: pl.LazyFrame) -> float:
    mean: float = (
        relevant.group_by("query")
        .len("targets")
        .join(areas.group_by("query").agg(pl.col("area").sum()), on="query", how="left")
        .select((pl.col("area").fill_null(0.0) / pl.col("targets")).mean())
        .collect(engine="streaming")
        .item()
    )
    return mean
