"""Writing a result: files, the report, what an official tool would print."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from swsdask.api.given import Location
from swsdask.errors import SettingsError
from swsdask.model.results import Result

if TYPE_CHECKING:
    from swsdask.api.opening import Evaluation


def report(result: Result, path: Location) -> None:
    """Write one self-contained HTML page: leaderboard, DET curves, the numbers of every query."""
    from swsdask.compare.rank_correlation import rank_correlations
    from swsdask.render.html import write_report

    write_report(result, Path(path), rank_correlations(result))


def write(result: Result, directory: Location) -> None:
    """Write scores.parquet, scores.json, curves.parquet, manifest.json and report.html into a local directory."""
    from swsdask.compare.rank_correlation import rank_correlations
    from swsdask.render.outputs import write_outputs

    write_outputs(result, Path(directory), rank_correlations(result))


def write_mediaeval(result: Result, evaluation: Evaluation, directory: Location) -> list[Path]:
    """Write what MediaEval's tool would print into a local directory: score.out, or SYSTEM.score.out each; the paths.

    For document trials only, and a result with the numbers that are printed (`render.mediaeval_output`); they are the
    tool's under `compat = "mediaeval"`.
    """
    from swsdask.formats.reference import ReferenceFiles
    from swsdask.model.finding import FindRule
    from swsdask.render.mediaeval_output import MEASURES, TOOL_MEASURES, Loaded, write_mediaeval_output

    settings, archive = evaluation.settings.evaluation, evaluation.archive
    if settings.trials != "document":
        raise SettingsError("MediaEval's output is of document trials: set trials=document.")
    needed = TOOL_MEASURES if settings.compat == "mediaeval" else MEASURES
    missing = set(needed) - set(result.table["measure"].unique().to_pylist())
    if missing:
        raise SettingsError(f"MediaEval's output needs measures that were not asked for: {', '.join(sorted(missing))}.")
    names = evaluation.files or ReferenceFiles("(archive)", "(archive)", "(archive)")
    occurrences = archive.occurrences(FindRule.of(settings))
    documents = set(archive.documents["document"].to_pylist())
    loaded = Loaded(
        queries=os.path.basename(names.queries),
        n_queries=archive.queries.num_rows,
        ecf=os.path.basename(names.ecf),
        n_excerpts=archive.documents.num_rows,
        rttm=os.path.basename(names.rttm),
        n_occurrences=sum(document in documents for document in occurrences["document"].to_pylist()),
    )
    return write_mediaeval_output(result, loaded, Path(directory))


def write_tde(result: Result, directory: Location) -> list[Path]:
    """Write the files of the Zero Resource challenge's official tools into a local directory; the folders they are in.

    For results of `discover` with all measures of their definition (`render.tde_output`).
    """
    from swsdask.render.tde_output import write_tde_output

    if result.manifest.get("kind") != "discovery":
        raise SettingsError("The official files of term discovery are of a result of term discovery.")
    if result.asked is not None:
        raise SettingsError("The official files have all measures: ask for all.")
    return write_tde_output(result, Path(directory))
