"""Arguments of the public functions, normalised: names, locations and runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from glob import glob
from typing import Any, TypeGuard, cast

from swsdask.archive.memory import RunFile
from swsdask.formats.files import file_size
from swsdask.formats.find import Known, find_runs
from swsdask.formats.in_memory import Judged, Table, TableRun, by_pair, is_table
from swsdask.formats.pipes import readable
from swsdask.formats.runs.encoding import Encoding
from swsdask.model.errors import SettingsError
from swsdask.places.reading import is_local

Location = str | os.PathLike[str]
"""A path or an fsspec URL."""


def as_names(given: str | Iterable[str] | None) -> list[str] | None:
    """Return one name or several as a list; None unchanged."""
    return [given] if isinstance(given, str) else None if given is None else list(given)


def locations(given: Location | Iterable[Location]) -> list[str]:
    """Return one place or several as strings; read pipes."""
    return [readable(given)] if isinstance(given, str | os.PathLike) else [readable(place) for place in given]


Runs = Location | Table | Iterable[Location | Table] | Mapping[str, Location | Judged] | None
"""Files, directories, globs, URLs or tables in memory; by system one of these, or scores by query and document; or
such scores of one system; or names of an archive's systems."""

GivenRuns = list[str | TableRun] | dict[str, str | TableRun] | None
"""The same, in one form."""

BYTES_PER_DETECTION = 90
"""About what a detection takes in an official file: for a guess at how much there is to do before anything is read."""


def named_runs(runs: Runs | GivenRuns, held: Sequence[str] = (), *, judged: bool = False) -> GivenRuns:
    """Runs in one form. Of an archive, each must be one of the systems `held`, or each something to read.

    Tables in memory hold `judged` documents where the evaluation does.
    """
    if runs is None:
        return None
    if is_table(runs):
        return [_run(runs, "run", None, judged)]
    if isinstance(runs, Mapping):
        if _are_scores(runs):
            return [_run(runs, "run", None, judged)]
        return {system: _run(place, f"run {system}", system, judged) for system, place in runs.items()}
    several = isinstance(runs, Iterable) and not isinstance(runs, str | os.PathLike)
    places: list[Any] = list(cast(Iterable[Any], runs)) if several else [cast(Any, runs)]
    if is_table(places):
        return [_run(places, "run", None, judged)]
    given = [_run(place, f"run {number}", None, judged) for number, place in enumerate(places, 1)]
    others = [run for run in given if run not in held]
    files = [run for run in others if isinstance(run, str) and is_local(run)]
    missing = [name for name in files if held and not glob(name) and not os.path.exists(name)]
    if missing:
        raise SettingsError(f"{missing[0]} is neither a file nor a system of the archive: {', '.join(held)}.")
    if others and len(others) < len(given):
        other = "a table" if isinstance(others[0], TableRun) else f"{others[0]} a file"
        both = f"{next(run for run in given if run in held)} is a system of the archive, {other}"
        raise SettingsError(f"{both}: score them one after the other, or ingest the file.")
    return given


def _are_scores(runs: Mapping[str, Any]) -> TypeGuard[Mapping[str, Mapping[str, Any]]]:
    """Whether the values are scores by document, not runs."""
    if not all(isinstance(scores, Mapping) and not is_table(scores) for scores in runs.values()):
        return False
    found = [score for scores in runs.values() for score in scores.values()]
    return bool(found) and not any(isinstance(score, Mapping) for score in found)


def _run(run: Location | Judged | TableRun, name: str, system: str | None, judged: bool) -> str | TableRun:
    if isinstance(run, TableRun):  # named before
        return run
    if isinstance(run, str | os.PathLike):
        return readable(run)
    return TableRun(name, by_pair(run, name, "score"), system, judged=judged)


def run_files(
    runs: GivenRuns, encoding: Encoding | None = None, known: Known | None = None
) -> list[RunFile | TableRun]:
    """The files and tables that runs are in. Raises `InputError` for what names none.

    Files in folders that are `known` are not opened.
    """
    named = runs if isinstance(runs, dict) else {}
    sources: list[RunFile | TableRun] = [
        replace(run, encoding=encoding) if isinstance(run, TableRun) else RunFile(run, system, encoding)
        for system, run in named.items()
    ]
    given = runs if isinstance(runs, list) else []
    sources += [replace(run, encoding=encoding) for run in given if isinstance(run, TableRun)]
    files = [run for run in given if isinstance(run, str)]
    return sources + [RunFile(url, encoding=encoding) for url in (find_runs(files, known) if files else [])]


def rows_about(runs: Iterable[RunFile | TableRun]) -> int:
    """About how many detections some runs hold, those in files by their size."""
    return sum(
        run.table.num_rows if isinstance(run, TableRun) else file_size(run.url) // BYTES_PER_DETECTION for run in runs
    )
