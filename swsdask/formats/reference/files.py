"""A reference as a folder: one ECF, one RTTM and one query list (MediaEval's layout), or tables."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from swsdask.formats.files import COMPRESSED_NAME
from swsdask.formats.runs.lines.blanks import CTM
from swsdask.formats.sniff import AnyFormat, Format, format_of_name, sniff
from swsdask.model.errors import InputError, Problem
from swsdask.places.reading import file_system, is_local, storage_fault

_APART = re.compile(r"\.|readme\b|.*\.md$", re.IGNORECASE)
_KINDS = (Format.ECF, Format.RTTM, Format.QUERIES)
_OPTIONS = "or name the three files with --ecf, --rttm and --queries"
_TABLE = re.compile(r"(documents|occurrences|queries)\.(?:csv|tsv|jsonl|parquet)", re.IGNORECASE)


@dataclass(frozen=True)
class ReferenceFiles:
    """What was evaluated, what was spoken and what was searched: paths or URLs.

    They are NIST's files, or `tables` of documents, of occurrences and, if need be, of queries
    (`formats.reference.tables`). A `lexicon` and a `vocabulary` say more of the queries
    (`formats.reference.nist_xml`).
    """

    ecf: str
    rttm: str
    queries: str | None
    lexicon: str | None = None
    vocabulary: str | None = None
    tables: bool = False


def find_reference(url: str) -> ReferenceFiles:
    """The three files of a reference in a folder at a path or fsspec URL.

    Names say what is what (`*.ecf.xml`, `*.rttm` or else `*.ctm`, `*.kwlist.xml`, `*.tlist.xml`; plain, .gz or .zst;
    also `ecf.xml`, `kwlist.xml`). Where they leave a kind missing, the content of the files whose names say nothing
    does. A folder without any of them may have tables, `documents.csv`, `occurrences.csv` and perhaps `queries.csv`
    (or .tsv, .jsonl, .parquet). Raises `InputError` if there is no such folder, or not exactly one of each; it names
    the candidates.
    """
    found = reference_candidates(url)
    tables = {} if any(found.values()) else tables_in(files_in(url))
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
    """The tables of documents, occurrences and perhaps queries among some files, by their names; else nothing."""
    found: dict[str, list[str]] = {"documents": [], "occurrences": [], "queries": []}
    for file in files:
        named = _TABLE.fullmatch(COMPRESSED_NAME.sub("", file.rsplit("/", 1)[-1]))
        if named:
            found[named[1].lower()].append(file)
    tables = {kind: candidates for kind, candidates in found.items() if candidates}
    return tables if {"documents", "occurrences"} <= tables.keys() else {}


def reference_candidates(url: str) -> dict[Format, list[str]]:
    """The ECFs, RTTMs and query lists in a folder, recognised as `find_reference` does.

    Raises `InputError` if there is no such folder.
    """
    files = files_in(url)
    promised = {file: format_of_name(file) for file in files}
    found = {kind: [file for file in files if promised[file] is kind] for kind in _KINDS}
    found[Format.RTTM] = found[Format.RTTM] or [file for file in files if promised[file] is CTM]
    missing = {kind for kind, candidates in found.items() if not candidates}
    for file in files if missing else ():
        kind = kind_by_content(file) if promised[file] is None else None
        if kind in missing:
            found[kind].append(file)
    return found


def kind_by_content(file: str) -> AnyFormat | None:
    """Return the kind of a file, None if it is unknown."""
    try:
        return sniff(file)
    except InputError:
        return None


def _fault(url: str, kind: Format, candidates: list[str]) -> Problem:
    if not candidates:
        return Problem(url, None, f"{kind.value} in the folder", "none", f"Put it there, {_OPTIONS}.")
    return _twice(url, kind.value, candidates, f", {_OPTIONS}")


def _twice(url: str, kind: str, candidates: list[str], otherwise: str = "") -> Problem:
    expected = f"one file in the folder that is {kind}"
    return Problem(url, None, expected, ", ".join(candidates), f"Leave one of them{otherwise}.")


def files_in(url: str) -> list[str]:
    """The files of a folder, sorted; hidden ones, README and *.md are left out."""
    try:
        files = _local_files(url) if is_local(url) else _remote_files(url)
    except NotADirectoryError:
        expected = "a folder with an ECF, an RTTM and a query list"
        raise InputError(Problem(url, None, expected, "a file", f"Name its folder, {_OPTIONS}.")) from None
    except Exception as error:
        raise storage_fault(url, error) from None
    return sorted(file for file in files if not _APART.match(file.rsplit("/", 1)[-1]))


def _local_files(path: str) -> list[str]:
    with os.scandir(path) as entries:
        return [entry.path for entry in entries if entry.is_file()]


def _remote_files(url: str) -> list[str]:
    filesystem, path = file_system(url)
    if filesystem.isfile(path):
        raise NotADirectoryError(url)
    entries = filesystem.ls(path, detail=True)
    return [filesystem.unstrip_protocol(entry["name"]) for entry in entries if entry["type"] == "file"]
