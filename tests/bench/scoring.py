"""Scoring an archive, in one thread, over reading its detection columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from swsdask.archive import cells
from swsdask.archive.reference import build_reference
from swsdask.archive.store import open_archive
from swsdask.execution.executor import SerialExecutor
from swsdask.measures import select
from swsdask.model.layers import build_settings, load_preset
from swsdask.model.settings import Settings
from swsdask.scoring.score import score_archive
from swsdask.statistics.alignment import trial_columns
from tests.bench.cost import in_turn, side_by_side
from tests.bench.data import Archived, Data
from tests.bench.floor import read_columns
from tests.bench.table import Row

FEW = ("atwv", "mtwv")
MANY = (*FEW, "otwv", "stwv", "eer")
"""The curves come with them."""

INSIDE = {"outside": "drop"}
"""Under it the column `inside` is read too."""


def rows(data: Data) -> Iterator[Row]:
    """ATWV and MTWV; then OTWV, STWV and the DET curve; without the detections outside the excerpts; all measures.

    And what it costs to verify all that is read, and to check the rows.
    """
    archive = data.ten_systems
    files = [file for found in archive.files.values() for file in found]
    for what, measures, evaluation, most in (
        ("ATWV, MTWV", FEW, {}, 1.6),
        ("ATWV, MTWV, OTWV, STWV, DET", MANY, {}, 3.0),
        ("ATWV, MTWV, detections outside dropped", FEW, INSIDE, None),
        ("all measures that score prints by default", None, {}, 3.0),
    ):
        columns = trial_columns(
            build_reference(open_archive(archive.url), settings(evaluation).evaluation).rule, 1, True
        )
        theirs, ours = in_turn((read_columns, files, columns), (score, archive.url, measures, evaluation))
        yield Row(
            f"{what} of {archive.rows:,} detections",
            ours.cpu,
            f"pyarrow, {len(columns)} columns",
            theirs.cpu,
            ours.cpu / theirs.cpu,
            most=most,
            peak=ours.peak,
            peak_of_theirs=theirs.peak,
        )
    yield from safety(archive)


def safety(archive: Archived) -> Iterator[Row]:
    """What it costs to verify all that is read, and to check the rows, when nothing is remembered from before."""
    url, rows = archive.url, archive.rows
    for what, most, without, over in (
        ("verified", 1.03, (_anew, url, False), "--no-verify"),
        ("rows checked", 1.01, (_anew, url, True, False), "not checked"),
    ):
        theirs, ours = side_by_side(without, (_anew, url))
        yield Row(
            f"ATWV, MTWV of {rows:,} detections, {what}",
            ours.cpu,
            over,
            theirs.cpu,
            ours.cpu / theirs.cpu,
            most=most,
            peak=ours.peak,
            peak_of_theirs=theirs.peak,
        )


def _anew(url: str, verify: bool = True, check: bool = True) -> Callable[[], dict[str, float]]:
    """Scores as a first command does, with or without a look at the order and range of what was read.

    What alignment and counting refuse by themselves, with a comparison per row, is on both sides.
    """
    step = score(url, FEW, {}, verify=verify)
    look = cells._Reader._check if check else lambda *_: None

    def first() -> dict[str, float]:
        cells._Reader._check = look  # type: ignore[method-assign]
        cells._checked.clear()
        cells._footers.clear()
        return step()

    return first


def score(
    url: str,
    measures: Sequence[str] | None,
    evaluation: Mapping[str, Any],
    systems: Sequence[str] | None = None,
    verify: bool = True,
) -> Callable[[], dict[str, float]]:
    """Scores systems of an archive (None: all) by measures (None: all), from the archive to the tables; their MTWV."""
    chosen = settings(evaluation)
    archive = open_archive(url, verify=verify)
    wanted = [run.system for run in archive.runs] if systems is None else list(systems)

    def step() -> dict[str, float]:
        reference = build_reference(archive, chosen.evaluation)
        families = select(measures)
        tables = score_archive(archive, wanted, reference, families, chosen, SerialExecutor(), names=measures)
        return {row["system"]: row["value"] for row in tables.overall.to_pylist() if row["measure"] == "mtwv"}

    return step


def settings(evaluation: Mapping[str, Any]) -> Settings:
    """The preset sws2013, and `evaluation` beside it."""
    return build_settings(load_preset("sws2013"), None, {"evaluation": evaluation})
