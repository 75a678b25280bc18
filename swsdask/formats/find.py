"""Find the files of an evaluation that paths, folders, globs and URLs name, and recognise their formats.

A format is recognised by content, and by name only if the content is ambiguous. A folder of Parquet files that is one
table (`formats.runs.parquet`) counts as a file.

A reference is a folder with one ECF, one RTTM and one query list (MediaEval's layout), or with tables. The resources of
a run `folder/NAME.kwslist.xml` are in `folder/NAME.resources.toml`, or in `folder/resources.toml` if that is the only
run in the folder; chained URLs (with `::`) have none.
"""

from __future__ import annotations

import codecs
import glob
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial

from swsdask.formats.files import COMPRESSED_NAME, noted, open_bytes
from swsdask.formats.runs.lines import BLANKS, CTM, LINE_FORMATS, TREC, LineFormat, values_of
from swsdask.formats.runs.parquet import ENDING as PARQUET_ENDING
from swsdask.formats.runs.parquet import folder_entries, is_one_table, parts_of
from swsdask.formats.runs.resources import read_resources
from swsdask.formats.runs.table import names_columns
from swsdask.formats.runs.xml import DIALECTS
from swsdask.formats.values import is_number, shown, system_of_file
from swsdask.formats.xml_stream import read_elements
from swsdask.model.errors import (
    FEW,
    InputError,
    Problem,
    Problems,
    counted,
    is_text,
    listed,
    one_line,
    visible,
    without_secrets,
)
from swsdask.model.resources import Resources
from swsdask.places.reading import (
    ARCHIVED,
    all_matching,
    before_query,
    file_system,
    is_file,
    is_folder,
    is_local,
    join_path,
    storage_fault,
)
from swsdask.places.writing import MANIFEST

LOG = logging.getLogger("swsdask")


class Format(Enum):
    """The formats that swsdask reads; the value is the name in messages."""

    ECF = "an ECF"
    RTTM = "an RTTM reference"
    QUERIES = "a query list"
    RUN_XML = "a system's list of detections"
    TABLE = "a table of detections"
    JSON_LINES = "a table in JSON lines"
    PARQUET = "a Parquet file"
    PARQUET_FOLDER = "a folder of Parquet files"
    QRELS = "TREC judgments"
    RESOURCES = "a description of resources"
    ALIGNMENT = "an alignment of phones or words"
    CLASSES = "a class file"
    STRETCHES = "stretches of speech"
    FOLDS = "folds"
    SPEAKERS = "a speaker map"
    DOCUMENTS = "a table of documents"
    OCCURRENCES = "a table of occurrences"
    QUERY_TABLE = "a table of queries"


AnyFormat = Format | LineFormat

TYPED = (Format.PARQUET, Format.PARQUET_FOLDER)
"""The formats of tables with typed columns."""

TABLES = (Format.TABLE, Format.JSON_LINES, *TYPED)
"""The formats of tables with named columns."""

RUNS: tuple[AnyFormat, ...] = (Format.RUN_XML, *TABLES, *LINE_FORMATS)
"""The formats of runs."""

RTTM_TYPE = re.compile(
    "SEGMENT|NOSCORE|NO_RT_METADATA|LEXEME|NON-?LEX|NON-?SPEECH|FILLER|EDIT|SU|IP|CB|A/P|SPEAKER|SPKR-INFO",
    re.IGNORECASE,
)
"""The types of RTTM records (RT-09 evaluation plan, appendix A; NONLEX and NONSPEECH are STD06's)."""

ROOTS = {
    "ecf": Format.ECF,
    "kwlist": Format.QUERIES,
    "termlist": Format.QUERIES,
    **dict.fromkeys(DIALECTS, Format.RUN_XML),
}
"""Formats in XML, by the name of their root element."""

*_FIRST, _LAST = (kind.value for kind in LINE_FORMATS)
_ANY_RUN = f"a run (a list of detections, a table, JSON lines, Parquet, {', '.join(_FIRST)} or {_LAST})"
_PLACES = {
    Format.ECF: "with --ecf",
    Format.RTTM: "with --rttm",
    Format.QUERIES: "with --queries",
    Format.QRELS: "with --qrels",
    Format.RESOURCES: "beside its run and not by name",
    Format.ALIGNMENT: "to `swsdask discover`, with --phones or --words",
    Format.CLASSES: "to `swsdask discover`",
    Format.STRETCHES: "to `swsdask discover`, with --split",
    Format.FOLDS: "to `swsdask discover`, with --folds or --within",
    Format.SPEAKERS: "to `swsdask discover`, with --speakers",
}
_NAMES: dict[str, AnyFormat] = {
    ".rttm": Format.RTTM,
    ".tsv": Format.TABLE,
    ".csv": Format.TABLE,
    ".ecf.xml": Format.ECF,
    ".kwlist.xml": Format.QUERIES,
    ".tlist.xml": Format.QUERIES,
    ".termlist.xml": Format.QUERIES,
    **{f".{root}.xml": Format.RUN_XML for root in DIALECTS},
    ".resources.toml": Format.RESOURCES,
    ".phn": Format.ALIGNMENT,
    ".wrd": Format.ALIGNMENT,
    ".classes": Format.CLASSES,
    ".class": Format.CLASSES,
    ".disc": Format.CLASSES,
    ".split": Format.STRETCHES,
    ".vad": Format.STRETCHES,
    ".cross": Format.FOLDS,
    ".within": Format.FOLDS,
    ".speakers": Format.SPEAKERS,
    **{ending: kind for kind in LINE_FORMATS for ending in kind.endings},
}
_HEAD = 1 << 16
_RESOURCES = re.compile(
    r"(?:[ \t\r]*(?:#.*)?\n)*[ \t]*"
    r"(?:\[(?:indexing|searching)\]|\[\[hardware\]\]|(?:audio|query)_(?:hours|seconds)[ \t]*=)"
)
"""The first line of a description of resources that is neither blank nor a comment."""
_FOREIGN = {
    "an Arrow file": rb"ARROW1|\xff{4}",
    "an Avro file": rb"Obj\x01",
    "an HDF5 file": rb"\x89HDF\r\n",
    "an array of numpy": rb"\x93NUMPY",
    "an Excel workbook": rb"\xd0\xcf\x11\xe0",
    "an ORC file": rb"ORC[^ -~]",
    "a pickle": rb"\x80[\x02-\x09]",
    "an SQLite database": rb"SQLite format 3\0",
    "a JSON array": rb"\s*\[\s*[\[{]",
}
"""Unsupported tables, and their first bytes."""
_TAR_MARK_AT = 257
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PARTED = re.compile(r"\S[ \t\r]*\n[ \t\r]*\n\s*\S")
_RELEVANCE = re.compile(r"[+-]?[0-9]*\.?[0-9]+")


def sniff(url: str, otherwise: AnyFormat | None = None, expected: Collection[AnyFormat] = ()) -> AnyFormat:
    """Return the format of a file, or `otherwise` if it is text that is not recognised.

    If lines fit several formats, it is the one that the name indicates, or one that is `expected`.

    Raises `InputError` if it is not recognised and `otherwise` is None, and as `open_bytes` does.
    """
    try:
        with open_bytes(url) as source:
            head = source.read(_HEAD)
    except InputError:
        if parts_of(url):
            return Format.PARQUET_FOLDER
        raise
    if head.startswith(b"PAR1"):
        return Format.PARQUET
    text = head.decode("utf-16" if head.startswith(_UTF_16_MARKS) else "utf-8-sig", "backslashreplace")
    if text.lstrip().startswith("<"):
        return _xml_format(url)
    if len(head) == _HEAD:
        text = text.rpartition("\n")[0] or text  # the last line is cut
    by_name = format_of_name(url)
    found = _text_format(text, by_name, expected) or by_name
    if found is not None:
        return found
    fault = _foreign(url, head)
    if fault or otherwise is None:
        raise InputError(fault or _unrecognised(url, text))
    return otherwise


_EXPECTED = "an ECF, an RTTM, a query list, a run or a file of term discovery"


def _foreign(url: str, head: bytes) -> Problem | None:
    """The problem of a file of a format that is known, but not read."""
    for foreign, begin in _FOREIGN.items():
        if re.match(begin, head):
            return Problem(url, None, _EXPECTED, foreign, "Write the table as Parquet, CSV or JSON lines.")
    if head[_TAR_MARK_AT:].startswith(b"ustar"):
        remedy = "Unpack it, or name a member of a .tar or .tar.gz: tar://MEMBER::FILE."
        return Problem(url, None, _EXPECTED, "a tar archive", remedy)
    return None


def _unrecognised(url: str, text: str) -> Problem:
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), 1)]
    number, first = next(((n, line) for n, line in lines if line and not line.startswith(("#", ";;"))), lines[0])
    header = "A table needs a header line with the names of its columns, separated by commas or tabs"
    return Problem(url, number, _EXPECTED, shown(first), f"{header}; a speaker map goes with --speakers.")


def expect(url: str, *formats: AnyFormat, otherwise: AnyFormat | None = None) -> AnyFormat:
    """Return the format of a file if it is one of `formats`. Raises `InputError` if not, and as `sniff` does."""
    found = sniff(url, otherwise, formats)
    if found in formats:
        return found
    expected = _ANY_RUN if formats == RUNS else " or ".join(wanted.value for wanted in formats)
    given = found.given if isinstance(found, LineFormat) else _PLACES.get(found, "as a run")
    remedy = f"Give {found.value} {given}."
    raise InputError(Problem(url, 1, expected, found.value, remedy))


def format_of_name(url: str) -> AnyFormat | None:
    """The format that a file's name indicates, if any. A mark such as `.ecf.xml` may be the whole name: `ecf.xml`."""
    name = "." + COMPRESSED_NAME.sub("", url.rsplit("/", 1)[-1]).lower()
    return next((promised for ending, promised in _NAMES.items() if name.endswith(ending)), None)


def _xml_format(url: str) -> Format:
    root = next(read_elements(url))
    if root.path[0] not in ROOTS:
        expected = f"the root element {', '.join(ROOTS)}"
        raise InputError(Problem(url, root.line, expected, shown(root.path[0]), "Check that it is the right file."))
    return ROOTS[root.path[0]]


def _text_format(text: str, by_name: AnyFormat | None, expected: Collection[AnyFormat]) -> AnyFormat | None:
    """The format by the first line that is neither blank nor a comment; folds also by the empty line between them."""
    if _RESOURCES.match(text):
        return Format.RESOURCES
    text = text if "\n" in text else text.replace("\r", "\n")
    lines = [line for line in (line.strip(BLANKS) for line in text.split("\n")) if line]
    first = next((line for line in lines if not line.startswith(";;")), None)
    if first is None:
        return Format.RTTM if text.lstrip().startswith(";;") else None
    if first.startswith("#") and not names_columns(first):
        first = next((line for line in lines if not line.startswith("#")), "")
        return TREC if TREC.recognises(first) else Format.QRELS if _is_judgment(first) else None
    fields = values_of(first)
    if first.startswith("{"):
        return Format.JSON_LINES
    if RTTM_TYPE.fullmatch(fields[0]):
        return Format.RTTM
    if names_columns(first):
        return Format.TABLE
    fitting = [kind for kind in LINE_FORMATS if kind.recognises(first)]
    if fitting:
        rows = [line for line in lines if not line.startswith((";;", "#"))]
        return by_name if by_name in fitting else _most_fitting([k for k in fitting if k in expected] or fitting, rows)
    if fields[0] == "Class":
        return Format.CLASSES
    if len(fields) in (3, 4) and is_number(fields[1]) and is_number(fields[2]):
        timed = _timed_format(fields, text)
        if timed is not None:
            return timed
    return Format.QRELS if _is_judgment(first) else None


def _most_fitting(formats: Sequence[LineFormat], lines: Sequence[str]) -> LineFormat:
    """The first of several formats that at least half of the lines fit; the others may have faults."""
    some = (kind for kind in formats[:-1] if 2 * sum(map(kind.recognises, lines)) >= len(lines))
    return next(some, formats[-1])


def _is_judgment(line: str) -> bool:
    fields = values_of(line)
    return len(fields) == 4 and _RELEVANCE.fullmatch(fields[3]) is not None


def _timed_format(fields: list[str], text: str) -> Format | None:
    """The format of a file whose first line has a name, two numbers and perhaps a label.

    If the label is a number, the file may have judgments, unless the first number has a fraction.
    """
    if len(fields) == 4:
        return Format.ALIGNMENT if "." in fields[1] or not is_number(fields[3]) else None
    return Format.FOLDS if _PARTED.search(text) else Format.STRETCHES


ENDING = "resources.toml"
_APART = re.compile(r"\.|readme\b|.*\.md$", re.IGNORECASE)
_KINDS = (Format.ECF, Format.RTTM, Format.QUERIES)
_OPTIONS = "or name the three files with --ecf, --rttm and --queries"
_TABLE_KINDS = {
    "documents": Format.DOCUMENTS,
    "occurrences": Format.OCCURRENCES,
    "queries": Format.QUERY_TABLE,
}
_TABLE = re.compile(r"(documents|occurrences|queries)\.(?:csv|tsv|jsonl|parquet)", re.IGNORECASE)


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
    """Whether a pattern is a glob, not a file whose name looks like one."""
    return glob.has_magic(pattern) and not os.path.exists(pattern)


def matching(pattern: str) -> list[str]:
    """The files that a glob matches, sorted. Raises `InputError` if the storage cannot be listed."""
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
    """The files of runs that paths, folders, globs or fsspec URLs name, see `find_files`.

    The runs in a folder are recognised by content, unless they are `known`; a reference, a README and the resources of
    runs are skipped. Where documents are `judged`, text of no known format is a TREC run. Raises `InputError` for a
    file in a folder that is neither a run nor of a reference, and for resources without their run.
    """
    return find_files(patterns, "runs", partial(runs_in, known=known, judged=judged))


def runs_in(folder: str, problems: Problems, known: Known | None = None, *, judged: bool = False) -> list[str]:
    """The sorted runs in a folder, or the folder if it is one table. Problems (see `find_runs`) go to `problems`."""
    files = _unarchived(folder)
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
    """The class files that paths, folders, globs or fsspec URLs name, see `find_files`.

    The class files in a folder are recognised by content; the files of a corpus and a README are skipped. Raises
    `InputError` for a file in a folder that cannot be recognised.
    """
    return find_files(patterns, "class files", _classes_in)


def _classes_in(folder: str, problems: Problems) -> list[str]:
    found = []
    for file in _unarchived(folder):
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
    """The three files of a reference in a folder at a path or fsspec URL.

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


def table_kind(file: str) -> Format | None:
    """The kind of reference table that the name of a file indicates, if any."""
    named = _TABLE.fullmatch(COMPRESSED_NAME.sub("", file.rsplit("/", 1)[-1]))
    return _TABLE_KINDS[named[1].lower()] if named else None


def tables_in(files: Iterable[str]) -> dict[str, list[str]]:
    """The tables of documents, occurrences and optionally queries among some files, recognised by name."""
    kinds = {file: table_kind(file) for file in files}
    found = {name: [file for file in kinds if kinds[file] is kind] for name, kind in _TABLE_KINDS.items()}
    tables = {name: candidates for name, candidates in found.items() if candidates}
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


def _unarchived(folder: str) -> list[str]:
    """The files of a folder, as `files_in`. Raises `InputError` if it is an archive."""
    files = files_in(folder)
    manifest = next((name for file in files if ARCHIVED.fullmatch(name := file.rsplit("/", 1)[-1])), None)
    if manifest is not None:
        remedy = "Name the files that were ingested, or the archive where a reference is expected."
        raise InputError(Problem(folder, None, "a folder of files", f"an archive ({manifest})", remedy))
    return files


def files_in(url: str) -> list[str]:
    """The files of a folder, sorted; hidden ones, README and *.md are left out."""
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
    return sorted(file for file in files if not _APART.match(file.rsplit("/", 1)[-1]))


def _local_files(path: str) -> list[str]:
    with os.scandir(path) as entries:
        return [entry.path for entry in entries if entry.is_file()]


def _remote_files(url: str) -> list[str]:
    filesystem, path = file_system(url)
    if filesystem.isfile(path):
        raise NotADirectoryError(url)
    _, chain, outer = url.partition("::")
    files = (entry["name"] for entry in filesystem.ls(path, detail=True) if entry["type"] == "file")
    return [filesystem.unstrip_protocol(file) + chain + outer for file in files]


def resource_places(run: str) -> list[str]:
    """Return the possible places of a run's resources: the file that is named after it, and that of its folder."""
    if "::" in run:
        return []
    path, query = before_query(run)
    folder = path[: path.rfind("/") + 1]
    return [f"{folder}{system_of_file(run)}.{ENDING}{query}", f"{folder}{ENDING}"]


def find_resources(runs: Iterable[str], problems: Problems) -> dict[str, str]:
    """The files with the resources of runs (paths or fsspec URLs), by run; runs without one are left out.

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
    """The resources of runs, by path or URL; runs without such a file are left out.

    Raises `InputError` with every problem of the files.
    """
    problems = Problems()
    files = find_resources(runs, problems)
    reported = {file: read_resources(file, problems) for file in dict.fromkeys(files.values())}
    problems.raise_if_any()
    return {run: resources for run, file in files.items() if (resources := reported[file]) is not None}


def stray_resources(files: Iterable[str], runs: Iterable[str]) -> list[str]:
    """The `files` of resources in a folder that belong to no run in it, by their names."""
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
