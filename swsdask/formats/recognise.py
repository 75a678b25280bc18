"""Recognise the format of a file: by content, and by name only if the content is ambiguous.

A folder of Parquet files that is one table (`formats.runs.parquet`) counts as a file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from enum import Enum

from swsdask.formats.files import COMPRESSED_NAME, open_bytes
from swsdask.formats.runs.lines import BLANKS, LINE_FORMATS, TREC, LineFormat, values_of
from swsdask.formats.runs.parquet import parts_of
from swsdask.formats.runs.table import names_columns
from swsdask.formats.runs.xml import DIALECTS
from swsdask.formats.text import marked_encoding
from swsdask.formats.values import FormatError, is_number, shown
from swsdask.formats.xml_stream import read_elements
from swsdask.model.errors import InputError, Problem


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
    try:
        text = head.decode(marked_encoding(head), "backslashreplace").removeprefix("\ufeff")
    except FormatError as error:
        raise InputError(Problem(url, 1, error.expected, error.found, error.remedy)) from None
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
    """Return the problem of a file of a format that is known, but not read."""
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
    """Return the format that a file's name indicates, if any.

    A mark such as `.ecf.xml` may be the whole name: `ecf.xml`.
    """
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
    """Return the first of several formats that at least half of the lines fit; the others may have faults."""
    some = (kind for kind in formats[:-1] if 2 * sum(map(kind.recognises, lines)) >= len(lines))
    return next(some, formats[-1])


def _is_judgment(line: str) -> bool:
    fields = values_of(line)
    return len(fields) == 4 and _RELEVANCE.fullmatch(fields[3]) is not None


def _timed_format(fields: list[str], text: str) -> Format | None:
    """Return the format of a file whose first line has a name, two numbers and perhaps a label.

    If the label is a number, the file may have judgments, unless the first number has a fraction.
    """
    if len(fields) == 4:
        return Format.ALIGNMENT if "." in fields[1] or not is_number(fields[3]) else None
    return Format.FOLDS if _PARTED.search(text) else Format.STRETCHES


REFERENCE_TABLES = {
    "documents": Format.DOCUMENTS,
    "occurrences": Format.OCCURRENCES,
    "queries": Format.QUERY_TABLE,
}
_TABLE = re.compile(r"(documents|occurrences|queries)\.(?:csv|tsv|jsonl|parquet)", re.IGNORECASE)


def reference_table_format(file: str) -> Format | None:
    """Return the kind of reference table that the name of a file indicates, if any."""
    named = _TABLE.fullmatch(COMPRESSED_NAME.sub("", file.rsplit("/", 1)[-1]))
    return REFERENCE_TABLES[named[1].lower()] if named else None


def format_by_content(file: str) -> AnyFormat | None:
    """Return the kind of a file, None if it is unknown."""
    try:
        return sniff(file)
    except InputError:
        return None
