"""Find the files of an evaluation that paths, folders, globs and URLs name.

`formats.recognise` recognises their formats. A folder of Parquet files that is one table counts as a file.

A reference is a folder with one ECF, one RTTM and one query list (MediaEval's layout), or with tables. The resources of
a run `folder/NAME.kwslist.xml` are in `folder/NAME.resources.toml`, or in `folder/resources.toml` if that is the only
run in the folder; chained URLs (with `::`) have none.
"""

from __future__ import annotations

import glob
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from swsdask.formats.files import noted
from swsdask.formats.recognise import (
    REFERENCE_TABLES,
    RUNS,
    AnyFormat,
    Format,
    format_by_content,
    format_of_name,
    reference_table_format,
    sniff,
)
from swsdask.formats.runs.lines import CTM, TREC
from swsdask.formats.runs.parquet import ENDING as PARQUET_ENDING
from swsdask.formats.runs.parquet import folder_entries, is_one_table
from swsdask.formats.runs.resources import read_resources
from swsdask.formats.values import system_of_file
from swsdask.model.errors import InputError, Problem, Problems
from swsdask.model.resources import Resources
from swsdask.model.safe_text import is_text, one_line, visible, without_secrets
from swsdask.model.wording import FEW, counted, listed
from swsdask.places.reading import (
    ARCHIVED,
    all_matching,
    before_query,
    file_system,
    is_file,
    is_folder,
    is_local,
    join_path,
    no_folder,
    storage_fault,
)
from swsdask.places.writing import MANIFEST

LOG = logging.getLogger("swsdask")

ENDING = "resources.toml"
_APART = re.compile(r"\.|readme\b|.*\.md$", re.IGNORECASE)
_KINDS = (Format.ECF, Format.RTTM, Format.QUERIES)
_OPTIONS = "or name the three files with --ecf, --rttm and --queries"


def find_files(patterns: Iterable[str], things: str, in_folder: Callable[[str, Problems], list[str]]) -> list[str]:
    """Return the files that paths, folders, globs or fsspec URLs name, without repeats, sorted within a pattern.

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
                problems.add(pattern, None, expected, f"none{no_folder(pattern)}", "Check the path.")
            found.update(dict.fromkeys(files))
    problems.raise_if_any()
    return list(found)


def is_glob(pattern: str) -> bool:
    """Return whether a pattern is a glob, not a file whose name looks like one."""
    return glob.has_magic(pattern) and not os.path.exists(pattern)


def matching(pattern: str) -> list[str]:
    """Return the files that a glob matches, sorted. Raises `InputError` if the storage cannot be listed."""
    try:
        if is_local(pattern):
            return sorted(glob.glob(pattern, recursive=True))
        filesystem, path = file_system(pattern)
        _, chain, outer = pattern.partition("::")
        return sorted(filesystem.unstrip_protocol(file) + chain + outer for file in all_matching(filesystem, path))
    except Exception as error:
        raise storage_fault(pattern, error) from None


Known = Callable[[Sequence[str]], Collection[str]]
"""A function that selects the files that are known runs, by names and stamps: they need not be opened."""


def find_runs(patterns: Iterable[str], known: Known | None = None, *, judged: bool = False) -> list[str]:
    """Return the files of runs that paths, folders, globs or fsspec URLs name, see `find_files`.

    The runs in a folder are recognised by content, unless they are `known`; a reference, a README and the resources of
    runs are skipped. Where documents are `judged`, text of no known format is a TREC run. Raises `InputError` for a
    file in a folder that is neither a run nor of a reference, and for resources without their run.
    """
    return find_files(patterns, "runs", partial(runs_in, known=known, judged=judged))


def runs_in(folder: str, problems: Problems, known: Known | None = None, *, judged: bool = False) -> list[str]:
    """Return the sorted runs in a folder, or the folder if it is one table.

    Problems (see `find_runs`) go to `problems`.
    """
    files = _list_unarchived(folder)
    if is_one_table(folder):
        return [folder]
    tables, others = _folders_in(folder)
    files += tables
    of_reference = {file for candidates in tables_in(files).values() for file in candidates}
    files = [file for file in files if file not in of_reference]
    recognised = set(known(files)) if known else set()
    resources = {place for run in recognised for place in resource_places(run)}
    found: dict[AnyFormat, list[str]] = {}
    for file in files:
        if not is_text(file):
            problems.add(visible(file), None, "a name in UTF-8", "bytes of another encoding", "Rename the file.")
        elif file not in recognised | resources:
            with noted(problems):
                found.setdefault(sniff(file, TREC if judged else None), []).append(file)
    runs = sorted([*recognised, *(file for kind in RUNS for file in found.get(kind, ()))])
    for file in stray_resources(found.get(Format.RESOURCES, ()), runs):
        expected, remedy = "its run in the same folder", "Name it after its run: NAME.resources.toml."
        problems.add(file, None, expected, "none", remedy)
    if runs and others:
        said = f"{without_secrets(folder)}: not searched for runs: {listed(others, FEW)}; name them too, or use a glob"
        LOG.warning("%s", one_line(said))
    return runs


def _folders_in(folder: str) -> tuple[list[str], list[str]]:
    """The folders in a folder that are named *.parquet and are one table each, and the names of others, but hidden."""
    names = [name[:-1] for name in folder_entries(folder) if name.endswith("/") and not name.startswith((".", "_"))]
    tables = {name for name in names if name.endswith(PARQUET_ENDING) and is_one_table(join_path(folder, name))}
    return [join_path(folder, name) for name in names if name in tables], sorted({*names} - tables)


def find_classes(patterns: Iterable[str]) -> list[str]:
    """Return the class files that paths, folders, globs or fsspec URLs name, see `find_files`.

    The class files in a folder are recognised by content; the files of a corpus and a README are skipped. Raises
    `InputError` for a file in a folder that cannot be recognised.
    """
    return find_files(patterns, "class files", _classes_in)


def _classes_in(folder: str, problems: Problems) -> list[str]:
    found = []
    for file in _list_unarchived(folder):
        with noted(problems):
            if sniff(file) is Format.CLASSES:
                found.append(file)
    return found


@dataclass(frozen=True)
class ReferenceFiles:
    """The files of a reference: what was evaluated, spoken and searched, as paths or URLs.

    They are NIST's files, or `tables` of documents, of occurrences and optionally of queries
    (`formats.reference.table`). A `lexicon` and a `vocabulary` add attributes to the queries
    (`formats.reference.nist_xml`).
    """

    ecf: str
    rttm: str
    queries: str | None
    lexicon: str | None = None
    vocabulary: str | None = None
    tables: bool = False


def find_reference(url: str) -> ReferenceFiles:
    """Return the three files of a reference in a folder at a path or fsspec URL.

    Files are recognised by name (`*.ecf.xml`, `*.rttm` or else `*.ctm`, `*.kwlist.xml`, `*.tlist.xml`; plain, .gz or
    .zst; also `ecf.xml`, `kwlist.xml`). If a kind is missing, files with other names are recognised by content. A
    folder without any of them may have tables, `documents.csv`, `occurrences.csv` and optionally `queries.csv` (or
    .tsv, .jsonl, .parquet). Raises `InputError` if there is no such folder, or not exactly one of each; the error names
    the candidates.
    """
    found = reference_candidates(url)
    files = [] if any(found.values()) else files_in(url)
    tables = tables_in(files)
    if not tables and any(file.rsplit("/", 1)[-1] == MANIFEST for file in files):
        remedy = "Name the reference or the archive that was scored."
        raise InputError(Problem(url, None, "a reference or an archive", "results of swsdask", remedy))
    faults = [
        _twice(url, f"a table of {kind}", candidates) for kind, candidates in tables.items() if len(candidates) > 1
    ]
    if tables and not faults:
        named = {kind: candidates[0] for kind, candidates in tables.items()}
        return ReferenceFiles(named["documents"], named["occurrences"], named.get("queries"), tables=True)
    faults = faults or [_fault(url, kind, candidates) for kind, candidates in found.items() if len(candidates) != 1]
    if faults:
        raise InputError(*faults)
    ecf, rttm, queries = (candidates[0] for candidates in found.values())
    return ReferenceFiles(ecf, rttm, queries)


def tables_in(files: Iterable[str]) -> dict[str, list[str]]:
    """Return the tables of documents, occurrences and optionally queries among some files, recognised by name."""
    kinds = {file: reference_table_format(file) for file in files}
    found = {name: [file for file in kinds if kinds[file] is kind] for name, kind in REFERENCE_TABLES.items()}
    tables = {name: candidates for name, candidates in found.items() if candidates}
    return tables if {"documents", "occurrences"} <= tables.keys() else {}


def reference_candidates(url: str) -> dict[Format, list[str]]:
    """Return the ECFs, RTTMs and query lists in a folder, recognised as `find_reference` does.

    Raises `InputError` if there is no such folder.
    """
    files = files_in(url)
    promised = {file: format_of_name(file) for file in files}
    found = {kind: [file for file in files if promised[file] is kind] for kind in _KINDS}
    found[Format.RTTM] = found[Format.RTTM] or [file for file in files if promised[file] is CTM]
    missing = {kind for kind, candidates in found.items() if not candidates}
    for file in files if missing else ():
        kind = format_by_content(file) if promised[file] is None else None
        if kind in missing:
            found[kind].append(file)
    return found


def _fault(url: str, kind: Format, candidates: list[str]) -> Problem:
    if not candidates:
        return Problem(url, None, f"{kind.value} in the folder", "none", f"Put it there, {_OPTIONS}.")
    return _twice(url, kind.value, candidates, f", {_OPTIONS}")


def _twice(url: str, kind: str, candidates: list[str], otherwise: str = "") -> Problem:
    expected = f"one file in the folder that is {kind}"
    return Problem(url, None, expected, ", ".join(candidates), f"Leave one of them{otherwise}.")


def _list_unarchived(folder: str) -> list[str]:
    """Return the files of a folder, as `files_in`. Raises `InputError` if it is an archive."""
    files = files_in(folder)
    manifest = next((name for file in files if ARCHIVED.fullmatch(name := file.rsplit("/", 1)[-1])), None)
    if manifest is not None:
        remedy = "Name the files that were ingested, or the archive where a reference is expected."
        raise InputError(Problem(folder, None, "a folder of files", f"an archive ({manifest})", remedy))
    return files


def files_in(url: str) -> list[str]:
    """Return the files of a folder, sorted; hidden ones, README and *.md are left out.

    Raises `InputError` if it is not a folder or cannot be listed, and for a link without target, a pipe or a device.
    """
    try:
        files = _local_files(url) if is_local(url) else _remote_files(url)
    except NotADirectoryError:
        if url.startswith(("http://", "https://")):
            folder = without_secrets(before_query(url)[0].rstrip("/"))
            remedy = f"Name the files themselves, or a glob: {folder}/*."
            raise InputError(Problem(url, None, "a folder", "a web address, which has no folders", remedy)) from None
        expected = "a folder with an ECF, an RTTM and a query list"
        raise InputError(Problem(url, None, expected, "a file", f"Name its folder, {_OPTIONS}.")) from None
    except Exception as error:
        raise storage_fault(url, error) from None
    return sorted(files)


def _is_apart(path: str) -> bool:
    return _APART.match(path.rsplit("/", 1)[-1]) is not None


def _local_files(path: str) -> list[str]:
    with os.scandir(path) as entries:
        files = [entry for entry in entries if not entry.is_dir() and not _is_apart(entry.name)]
    for entry in files:
        if not entry.is_file():
            found = "a pipe, a socket or a device" if os.path.exists(entry) else "a link whose target is missing"
            remedy = "Remove it from the folder, or name the files instead of the folder."
            raise InputError(Problem(entry.path, None, "a file", found, remedy))
    return [entry.path for entry in files]


def _remote_files(url: str) -> list[str]:
    filesystem, path = file_system(url)
    if filesystem.isfile(path):
        raise NotADirectoryError(url)
    _, chain, outer = url.partition("::")
    entries = filesystem.ls(path, detail=True)
    files = (entry["name"] for entry in entries if entry["type"] == "file" and not _is_apart(entry["name"]))
    return [filesystem.unstrip_protocol(file) + chain + outer for file in files]


def resource_places(run: str) -> list[str]:
    """Return the possible places of a run's resources: the file that is named after it, and that of its folder."""
    if "::" in run:
        return []
    path, query = before_query(run)
    folder = path[: path.rfind("/") + 1]
    return [f"{folder}{system_of_file(run)}.{ENDING}{query}", f"{folder}{ENDING}"]


def find_resources(runs: Iterable[str], problems: Problems) -> dict[str, str]:
    """Return the files with the resources of runs (paths or fsspec URLs), by run; runs without one are left out.

    A `resources.toml` in a folder with several runs, or beside another file for the same run, is added to `problems`.
    """
    folders: dict[str, dict[str, str]] = {}
    for run in runs:
        for own, common in filter(None, [resource_places(run)]):
            folders.setdefault(common, {})[run] = own
    found: dict[str, str] = {}
    for common, inside in folders.items():
        with noted(problems):
            found.update((run, file) for run, file in inside.items() if is_file(file))
            if is_file(common):
                folder = common.removesuffix(ENDING)
                _check_common(common, folder, [file for file in inside.values() if file in found.values()])
                found[next(iter(inside))] = common
    return found


def resources_of_runs(runs: Iterable[str]) -> dict[str, Resources]:
    """Return the resources of runs, by path or URL; runs without such a file are left out.

    Raises `InputError` with every problem of the files.
    """
    problems = Problems()
    files = find_resources(runs, problems)
    reported = {file: read_resources(file, problems) for file in dict.fromkeys(files.values())}
    problems.raise_if_any()
    return {run: resources for run, file in files.items() if (resources := reported[file]) is not None}


def stray_resources(files: Iterable[str], runs: Iterable[str]) -> list[str]:
    """Return the `files` of resources in a folder that belong to no run in it, by their names."""
    known = {ENDING, *(f"{system_of_file(run)}.{ENDING}" for run in runs)}
    return [file for file in files if file.rsplit("/", 1)[-1] not in known]


def _check_common(common: str, folder: str, own: Sequence[str]) -> None:
    runs = sum(format_by_content(file) in RUNS for file in files_in(folder or "."))
    if own or runs > 1:
        found = own[0] if own else counted(runs, "runs")
        remedy = f"Name it after its run: NAME.{ENDING}."
        raise InputError(Problem(common, None, "one run in the folder, and one file for it", found, remedy))
