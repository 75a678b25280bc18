"""Where class files are: files, folders, globs and URLs become a list of files."""

from __future__ import annotations

from collections.abc import Iterable

from swsdask.errors import Problems
from swsdask.formats.find_files import find_files
from swsdask.formats.noting import noted
from swsdask.formats.reference import files_in
from swsdask.formats.sniff import Format, sniff


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
