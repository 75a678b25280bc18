"""Which file tells the resources of a run: it lies beside the run, and its name says whose it is.

For `folder/NAME.kwslist.xml` it is `folder/NAME.resources.toml`, or `folder/resources.toml` if that is the only run in
the folder. Chained URLs (with `::`) have none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from swsdask.errors import InputError, Problem, Problems
from swsdask.formats.noting import noted
from swsdask.formats.opening import is_local, storage_fault
from swsdask.formats.reference import files_in
from swsdask.formats.resources import read_resources
from swsdask.formats.run_header import system_of_file
from swsdask.formats.sniff import RUNS, sniff
from swsdask.model.resources import Resources
from swsdask.model.runs import RunPiece
from swsdask.model.wording import counted

ENDING = "resources.toml"


def find_resources(runs: Iterable[str], problems: Problems) -> dict[str, str]:
    """The files that tell the resources of some runs (paths or fsspec URLs), by run; runs without one are left out.

    A `resources.toml` in a folder with several runs, or beside another file for the same run, is added to `problems`.
    """
    folders: dict[str, list[str]] = {}
    for run in runs:
        if "::" not in run:
            folders.setdefault(run[: run.rfind("/") + 1], []).append(run)
    found: dict[str, str] = {}
    for folder, inside in folders.items():
        with noted(problems):
            own = {run: f"{folder}{system_of_file(run)}.{ENDING}" for run in inside}
            found.update((run, file) for run, file in own.items() if _is_file(file))
            common = f"{folder}{ENDING}"
            if _is_file(common):
                _check_common(common, folder, [file for file in own.values() if file in found.values()])
                found[inside[0]] = common
    return found


def resources_of_runs(runs: Iterable[str]) -> dict[str, Resources]:
    """What is told of some runs, by their path or URL; runs without such a file are left out.

    Raises `InputError` with everything that is wrong with the files.
    """
    problems = Problems()
    files = find_resources(runs, problems)
    told = {file: read_resources(file, problems) for file in dict.fromkeys(files.values())}
    problems.raise_if_any()
    return {run: resources for run, file in files.items() if (resources := told[file]) is not None}


def with_resources(pieces: Iterable[RunPiece], resources: Resources, problems: Problems) -> Iterator[RunPiece]:
    """The pieces of a file, with what its system took. Several systems in one file are added to `problems`."""
    first: str | None = None
    for piece in pieces:
        header = piece.header
        first = header.system if first is None else first
        if header.system != first:
            found = f"{header.system!r} beside {first!r}"
            remedy = "Give each system a file of its own, or take its resources away."
            problems.add(piece.file, None, "one system in a run whose resources are told", found, remedy)
            return
        yield replace(piece, header=replace(header, resources=resources))


def stray_resources(files: Iterable[str], runs: Iterable[str]) -> list[str]:
    """Those of a folder's `files` of resources that no run in the folder could own, by their names."""
    known = {ENDING, *(f"{system_of_file(run)}.{ENDING}" for run in runs)}
    return [file for file in files if file.rsplit("/", 1)[-1] not in known]


def _check_common(common: str, folder: str, own: Sequence[str]) -> None:
    runs = sum(_is_run(file) for file in files_in(folder or "."))
    if own or runs > 1:
        found = own[0] if own else counted(runs, "runs")
        remedy = f"Name it after its run: NAME.{ENDING}."
        raise InputError(Problem(common, None, "one run in the folder, and one file for it", found, remedy))


def _is_run(file: str) -> bool:
    try:
        return sniff(file) in RUNS
    except InputError:
        return False


def _is_file(url: str) -> bool:
    try:
        if is_local(url):
            return os.path.isfile(url)
        from fsspec.core import url_to_fs

        filesystem, path = url_to_fs(url)
        return bool(filesystem.isfile(path))
    except Exception as error:
        raise storage_fault(url, error) from None
