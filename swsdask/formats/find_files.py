"""Where files are: paths, folders, globs and URLs become a list of files."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable

from swsdask.errors import Problems
from swsdask.formats.noting import noted
from swsdask.formats.opening import is_local, storage_fault
from swsdask.formats.reference import is_folder


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
