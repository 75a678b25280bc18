"""Arguments of the public functions, normalised: names, locations and runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from glob import glob

from swsdask.archive.memory import RunFile
from swsdask.formats.files import file_size, is_local
from swsdask.formats.find import find_runs
from swsdask.formats.runs.encoding import Encoding
from swsdask.model.errors import SettingsError

Location = str | os.PathLike[str]
"""A path or an fsspec URL."""


def as_names(given: str | Iterable[str] | None) -> list[str] | None:
    """One name or several as a list; None as it is."""
    return [given] if isinstance(given, str) else None if given is None else list(given)


def locations(given: Location | Iterable[Location]) -> list[str]:
    """One place or several as strings."""
    return [os.fspath(given)] if isinstance(given, str | os.PathLike) else [os.fspath(place) for place in given]


Runs = Location | Iterable[Location] | Mapping[str, Location] | None
"""Files, directories, globs or URLs; or file by system; or names of an archive's systems."""

GivenRuns = list[str] | dict[str, str] | None
"""The same, in one form."""

BYTES_PER_DETECTION = 90
"""About what a detection takes in an official file: for a guess at how much there is to do before anything is read."""


def named_runs(runs: Runs, held: Sequence[str] = ()) -> GivenRuns:
    """Runs as strings. Of an archive, each must be one of the systems `held`, or each something to read."""
    if runs is None:
        return None
    if isinstance(runs, Mapping):
        return {system: os.fspath(url) for system, url in runs.items()}
    given = locations(runs)
    others = [name for name in given if name not in held]
    missing = [name for name in others if held and is_local(name) and not glob(name) and not os.path.exists(name)]
    if missing:
        raise SettingsError(f"{missing[0]} is neither a file nor a system of the archive: {', '.join(held)}.")
    if others and len(others) < len(given):
        both = f"{next(name for name in given if name in held)} is a system of the archive, {others[0]} a file"
        raise SettingsError(f"{both}: score them one after the other, or ingest the file.")
    return given


def run_files(runs: GivenRuns, encoding: Encoding | None = None) -> list[RunFile]:
    """The files that runs are in. Raises `InputError` for what names none."""
    if runs is None:
        return []
    if isinstance(runs, dict):
        return [RunFile(url, system, encoding) for system, url in runs.items()]
    return [RunFile(url, encoding=encoding) for url in find_runs(runs)]


def rows_about(files: Sequence[RunFile]) -> int:
    """About how many detections some files hold, by their size."""
    return sum(file_size(file.url) for file in files) // BYTES_PER_DETECTION
