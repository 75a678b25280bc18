"""Results as files, as the report page and as an official tool would print them; and their manifest.

The manifest says what the numbers mean: the signature, and what was dropped or rounded.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from swsdask import __version__
from swsdask.api.arguments import Location
from swsdask.archive.protocols import Archive, Run
from swsdask.model.errors import SettingsError
from swsdask.model.results import Result
from swsdask.model.settings import Settings

if TYPE_CHECKING:
    from swsdask.api.opening import Evaluation


def report(result: Result, path: Location) -> None:
    """Write one self-contained HTML page: leaderboard, DET curves, the numbers of every query.

    Parameters
    ----------
    result : Result
        What `score` or `discover` returns.
    path : path
        The local file to write.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.report(sws.score("demo/archive", ["atwv", "mtwv"]), "report.html")
    """
    from swsdask.compare.rank_correlation import rank_correlations
    from swsdask.render.html import write_report

    write_report(result, Path(path), rank_correlations(result))


def write(result: Result, directory: Location, *, mediaeval: Evaluation | None = None, tde: bool = False) -> list[str]:
    """Write scores.parquet, scores.json, curves.parquet, manifest.json and report.html into a local directory.

    The files replace those of an earlier result together: a process that is killed leaves the old files, the new ones,
    or files without a manifest, which are no result.

    Parameters
    ----------
    result
        The result.
    directory
        The directory, made if it does not exist.
    mediaeval
        The evaluation that was scored, if the lines of MediaEval's tool are to be written too: `score.out`, or one
        SYSTEM.score.out each. They are the tool's under `compat = "mediaeval"`.
    tde
        Whether to write the files of the Zero Resource challenge's official tools too.

    Returns
    -------
    list of str
        What was written.

    Raises
    ------
    SettingsError
        If the result has not what an official tool's files need.
    OSError
        If the directory cannot be written.
    """
    from swsdask.compare.rank_correlation import rank_correlations
    from swsdask.render.outputs import Official, write_outputs

    official: Official | None = None
    if mediaeval is not None:
        official = _mediaeval(result, mediaeval)
    elif tde:
        official = _tde(result)
    return write_outputs(result, Path(directory), rank_correlations(result), official)


def _mediaeval(result: Result, evaluation: Evaluation) -> Callable[[Path], list[Path]]:
    """The writer of the lines of MediaEval's tool, for document trials and a result with the numbers that it prints."""
    from swsdask.formats.reference.files import ReferenceFiles
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
    return lambda folder: write_mediaeval_output(result, loaded, folder)


def _tde(result: Result) -> Callable[[Path], list[Path]]:
    """The writer of the challenge's files, for a result of `discover` with all measures of its definition."""
    from swsdask.render.tde_output import write_tde_output

    if result.manifest.get("kind") != "discovery":
        raise SettingsError("The official files of term discovery are of a result of term discovery.")
    if result.asked is not None:
        raise SettingsError("The official files have all measures: ask for all.")
    return lambda folder: write_tde_output(result, folder)


def renew_report(directory: Location) -> None:
    """Write report.html of the result in a directory anew, for example after an upgrade.

    Raises
    ------
    InputError
        If the directory does not hold a result that `write` wrote.
    """
    from swsdask.compare.rank_correlation import rank_correlations
    from swsdask.render import outputs

    result = outputs.read_outputs(Path(directory))
    outputs.renew_report(Path(directory), result, rank_correlations(result))


PER_QUERY = ("search_time.", "oov_count.")
"""Attributes of a run that are about one query."""


def manifest_of(
    archive: Archive, systems: Sequence[str], settings: Settings, measures: Sequence[str] | None, by: Sequence[str]
) -> dict[str, Any]:
    """What the numbers mean, and what was dropped or rounded on the way to them."""
    runs = {run.system: run for run in archive.runs if run.system in set(systems)}
    meaning = {
        "swsdask": __version__,
        "measures": list(measures) if measures else "all",
        "by": list(by),
        "settings": settings.evaluation.model_dump(mode="json"),
        "inputs": {**archive.inputs, "runs": {system: runs[system].content for system in systems}},
    }
    digest = xxhash.xxh3_64_hexdigest(json.dumps(meaning, sort_keys=True, allow_nan=False).encode())
    return {
        "signature": f"swsdask {__version__} {differences(settings)} {digest}",
        **meaning,
        "runs": {system: _provenance(runs[system]) for system in systems},
    }


def _provenance(run: Run) -> dict[str, Any]:
    """What a run is and what was counted of it, without what its file says of each query."""
    said = {name: text for name, text in run.attributes.items() if not name.startswith(PER_QUERY)}
    told = None if run.resources is None else run.resources.model_dump(mode="json", exclude_defaults=True)
    return {**asdict(replace(run, attributes=said, resources=None)), "resources": told}


def differences(settings: Settings) -> str:
    """The settings that are not the defaults, in one line."""
    chosen = settings.evaluation.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    point = chosen.pop("operating_point", {})
    pairs = [pair for key, value in chosen.items() for pair in _flat(key, value)] + list(point.items())
    return " ".join(f"{key}={value}" for key, value in pairs) or "defaults"


def _flat(key: str, value: Any) -> list[tuple[str, Any]]:
    """A setting, or those of a table of settings, named as `--set` takes them."""
    return [(f"{key}.{name}", each) for name, each in value.items()] if isinstance(value, dict) else [(key, value)]
