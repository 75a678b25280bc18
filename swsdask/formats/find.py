"""Files, folders, globs and URLs as lists of files: of runs, of classes, or of any kind."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable

from swsdask.formats.files import is_local, noted, storage_fault
from swsdask.formats.reference.files import files_in, is_folder
from swsdask.formats.runs.resources import stray_resources
from swsdask.formats.sniff import RUNS, Format, sniff
from swsdask.model.errors import Problems


def find_files(patterns: Iterable[str], things: str, in_folder: Callable[[str, Problems], list[str]]) -> list[str]:
    """The files that some paths, folders, globs or fsspec URLs name, each once, sorted within a pattern.

    Of a folder, those that `in_folder` takes from it: `things`, as messages call them. A file that is named by itself
    or by a glob is taken as it is, even if its name looks like a glob. Raises `InputError` for a pattern that names
    nothing, and for what `in_folder` notes.
    """
    problems = Problems()
    found: dict[str, None] = {}
    for pattern in patterns:
        with noted(problems):
            if is_folder(pattern):
                files, expected = in_folder(pattern, problems), f"a folder that holds {things}"
            elif is_glob(pattern):
                files, expected = matching(pattern), "a glob that some files match"
            else:
                files, expected = [pattern], ""
            if not files:
                problems.add(pattern, None, expected, "none", "Check the path.")
            found.update(dict.fromkeys(files))
    problems.raise_if_any()
    return list(found)


def is_glob(pattern: str) -> bool:
    """Whether it is a glob and not a file whose name looks like one."""
    return glob.has_magic(pattern) and not os.path.exists(pattern)


def matching(pattern: str) -> list[str]:
    """What a glob matches, sorted. Raises `InputError` if the storage cannot be asked."""
    try:
        if is_local(pattern):
            return sorted(glob.glob(pattern, recursive=True))
        from fsspec.core import url_to_fs

        filesystem, path = url_to_fs(pattern)
        return sorted(filesystem.unstrip_protocol(file) for file in filesystem.glob(path))
    except Exception as error:
        raise storage_fault(pattern, error) from None


def find_runs(patterns: Iterable[str]) -> list[str]:
    """The files that some paths, folders, globs or fsspec URLs name, as `find_files` does.

    A folder gives the runs in it, recognised by content; a reference, a README or the runs' resources that lie there
    too are passed over. Raises `InputError` for a folder's file that is neither run nor reference, or tells the
    resources of a run that is not there.
    """
    return find_files(patterns, "runs", runs_in)


def runs_in(folder: str, problems: Problems) -> list[str]:
    """The runs in a folder, sorted by format; what `find_runs` raises of its files is added to `problems`."""
    found: dict[Format, list[str]] = {}
    for file in files_in(folder):
        with noted(problems):
            found.setdefault(sniff(file), []).append(file)
    runs = sorted(file for kind in RUNS for file in found.get(kind, ()))
    for file in stray_resources(found.get(Format.RESOURCES, ()), runs):
        expected, remedy = "a run in the folder that it tells of", "Name it after its run: NAME.resources.toml."
        problems.add(file, None, expected, "none", remedy)
    return runs


def find_classes(patterns: Iterable[str]) -> list[str]:
    """The files that some paths, folders, globs or fsspec URLs name, as `find_files` does.

    A folder gives the class files in it, recognised by content; the files of a corpus or a README that lie there too
    are passed over. Raises `InputError` for a folder's file that cannot be recognised.
    """
    return find_files(patterns, "class files", _classes_in)


def _classes_in(folder: str, problems: Problems) -> list[str]:
    found = []
    for file in files_in(folder):
        with noted(problems):
            if sniff(file) is Format.CLASSES:
                found.append(file)
    return found
