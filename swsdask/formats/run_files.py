"""Where runs are: files, folders, globs and URLs become a list of files."""

from __future__ import annotations

from collections.abc import Iterable

from swsdask.errors import Problems
from swsdask.formats.find_files import find_files
from swsdask.formats.noting import noted
from swsdask.formats.reference import files_in
from swsdask.formats.run_resources import stray_resources
from swsdask.formats.sniff import RUNS, Format, sniff


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
