"""Where runs are: files, folders, globs and URLs become a list of files."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from swsdask.errors import Problems
from swsdask.formats.noting import noted
from swsdask.formats.opening import is_local, storage_fault
from swsdask.formats.reference import files_in, is_folder
from swsdask.formats.run_resources import stray_resources
from swsdask.formats.sniff import RUNS, Format, sniff


def find_runs(patterns: Iterable[str]) -> list[str]:
    """The files that some paths, folders, globs or fsspec URLs name, each once, sorted within a pattern.

    A folder gives the runs in it, recognised by content; a reference, a README or the runs' resources that lie there
    too are passed over. A file that is named by itself or by a glob is taken as it is, even if its name looks like a
    glob. Raises `InputError` for a pattern that names nothing, and for a folder's file that is neither run nor
    reference, or tells the resources of a run that is not there.
    """
    problems = Problems()
    found: dict[str, None] = {}
    for pattern in patterns:
        with noted(problems):
            if is_folder(pattern):
                files, expected = _runs_in(pattern, problems), "a folder that holds runs"
            elif glob.has_magic(pattern) and not os.path.exists(pattern):
                files, expected = _matching(pattern), "a glob that some files match"
            else:
                files, expected = [pattern], ""
            if not files:
                problems.add(pattern, None, expected, "none", "Check the path.")
            found.update(dict.fromkeys(files))
    problems.raise_if_any()
    return list(found)


def _runs_in(folder: str, problems: Problems) -> list[str]:
    found: dict[Format, list[str]] = {}
    for file in files_in(folder):
        with noted(problems):
            found.setdefault(sniff(file), []).append(file)
    runs = sorted(file for kind in RUNS for file in found.get(kind, ()))
    for file in stray_resources(found.get(Format.RESOURCES, ()), runs):
        expected, remedy = "a run in the folder that it tells of", "Name it after its run: NAME.resources.toml."
        problems.add(file, None, expected, "none", remedy)
    return runs


def _matching(pattern: str) -> list[str]:
    try:
        if is_local(pattern):
            return sorted(glob.glob(pattern, recursive=True))
        from fsspec.core import url_to_fs

        filesystem, path = url_to_fs(pattern)
        return sorted(filesystem.unstrip_protocol(file) for file in filesystem.glob(path))
    except Exception as error:
        raise storage_fault(pattern, error) from None
