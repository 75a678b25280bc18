"""MAP of an archive."""

from __future__ import annotations

from collections.abc import Callable

from swsdask.archive.reference import build_reference
from swsdask.archive.store import open_archive
from swsdask.execution.executor import SerialExecutor
from swsdask.measures import select
from swsdask.model.layers import build_settings
from swsdask.scoring.score import score_archive


def mean_average_precision(url: str) -> Callable[[], dict[str, float]]:
    """Scores all systems of an archive, from the opened archive to the tables; MAP by system."""
    chosen = build_settings(
        explicit={"evaluation": {"trials": "document", "average_precision": {"interpolation": "none"}}}
    )
    archive = open_archive(url)
    systems = [run.system for run in archive.runs]

    def step() -> dict[str, float]:
        reference = build_reference(archive, chosen.evaluation)
        tables = score_archive(archive, systems, reference, select(["map"]), chosen, SerialExecutor(), names=["map"])
        return {row["system"]: row["value"] for row in tables.overall.to_pylist()}

    return step
