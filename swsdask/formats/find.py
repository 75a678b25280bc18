"""Lists of the files that paths, folders, globs and URLs name: runs, class files, or files of any kind."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from swsdask.formats.files import noted
from swsdask.formats.reference.files import files_in, tables_in
from swsdask.formats.runs.resources import resource_places, stray_resources
from swsdask.formats.sniff import RUNS, AnyFormat, Format, sniff
from swsdask.model.errors import Problems
from swsdask.places.reading import file_system, is_folder, is_local, storage_fault


def find_files(patterns: Iterable[str], things: str, in_folder: Callable[[str, Problems], list[str]]) -> list[str]:
    """The files that paths, folders, globs or fsspec URLs name, without repeats, sorted within a pattern.

    `in_folder` selects the files of a folder; `things` is their name in messages. Files that are named directly or
    matched by a glob are not checked; an existing file may have a name that looks like a glob. Raises `InputError` for
    a pattern without files, and with the problems of `in_folder`.
    """
    problems = Problems()
    found: dict[str, None] = {}
    for pattern in patterns:
        with noted(problems):
            if is_folder(pattern):
                files, expected = in_folder(pattern, problems), f"a folder that holds {things}"
            elif is_glob(pattern):
                files, expected = matching(pattern), "a glob that matches some files"
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
    """The files that a glob matches, sorted. Raises `InputError` if the storage cannot be listed."""
    try:
        if is_local(pattern):
            return sorted(glob.glob(pattern, recursive=True))
        filesystem, path = file_system(pattern)
        _, chain, outer = pattern.partition("::")
        return sorted(filesystem.unstrip_protocol(file) + chain + outer for file in filesystem.glob(path))
    except Exception as error:
        raise storage_fault(pattern, error) from None


Known = Callable[[Sequence[str]], Collection[str]]
"""Which of some files are runs that are known by their names and stamps, so that they need not be opened."""


def find_runs(patterns: Iterable[str], known: Known | None = None) -> list[str]:
    """The files of runs that paths, folders, globs or fsspec URLs name, see `find_files`.

    The runs in a folder are recognised by content, unless they are `known`; a reference, a README and the resources of
    runs are skipped. Raises `InputError` for a file in a folder that is neither run nor reference, and for resources
    without their run.
    """
    return find_files(patterns, "runs", partial(runs_in, known=known))


def runs_in(folder: str, problems: Problems, known: Known | None = None) -> list[str]:
    """The runs in a folder, sorted; what `find_runs` raises of its files is added to `problems`."""
    files = files_in(folder)
    of_reference = {file for candidates in tables_in(files).values() for file in candidates}
    files = [file for file in files if file not in of_reference]
    recognised = set(known(files)) if known else set()
    resources = {place for run in recognised for place in resource_places(run)}
    found: dict[AnyFormat, list[str]] = {}
    for file in files:
        if file not in recognised | resources:
            with noted(problems):
                found.setdefault(sniff(file), []).append(file)
    runs = sorted([*recognised, *(file for kind in RUNS for file in found.get(kind, ()))])
    for file in stray_resources(found.get(Format.RESOURCES, ()), runs):
        expected, remedy = "its run in the same folder", "Name it after its run: NAME.resources.toml."
        problems.add(file, None, expected, "none", remedy)
    return runs


def find_classes(patterns: Iterable[str]) -> list[str]:
    """The class files that paths, folders, globs or fsspec URLs name, see `find_files`.

    The class files in a folder are recognised by content; the files of a corpus and a README are skipped. Raises
    `InputError` for a file in a folder that cannot be recognised.
    """
    return find_files(patterns, "class files", _classes_in)


def _classes_in(folder: str, problems: Problems) -> list[str]:
    found = []
    for file in files_in(folder):
        with noted(problems):
            if sniff(file) is Format.CLASSES:
                found.append(file)
    return found
