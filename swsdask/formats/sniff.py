"""Recognition of formats: by content, and by name only if the content is ambiguous."""

from __future__ import annotations

import codecs
import re
from enum import Enum

from swsdask.formats.files import COMPRESSED_NAME, open_bytes
from swsdask.formats.runs.lines import LINE_FORMATS, LineFormat
from swsdask.formats.runs.table import names_columns
from swsdask.formats.runs.xml import DIALECTS
from swsdask.formats.values import is_number, shown
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

RUNS: tuple[AnyFormat, ...] = (Format.RUN_XML, Format.TABLE, Format.JSON_LINES, Format.PARQUET, *LINE_FORMATS)
"""The formats of runs."""

TABLES = (Format.TABLE, Format.JSON_LINES, Format.PARQUET)
"""The formats of tables with named columns."""

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
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PARTED = re.compile(r"\S[ \t\r]*\n[ \t\r]*\n\s*\S")
_QRELS = re.compile(r"\S+\s+\S+\s+\S+\s+[+-]?[0-9]*\.?[0-9]+\s*")


def sniff(url: str, otherwise: Format | None = None) -> AnyFormat:
    """Return the format of a file, `otherwise` where it is not recognised.

    Raises `InputError` if it is not recognised and there is no other, and what `open_bytes` raises.
    """
    with open_bytes(url) as source:
        head = source.read(_HEAD)
    if head.startswith(b"PAR1"):
        return Format.PARQUET
    text = head.decode("utf-16" if head.startswith(_UTF_16_MARKS) else "utf-8-sig", "backslashreplace")
    if text.lstrip().startswith("<"):
        return _xml_format(url)
    found = _text_format(text) or format_of_name(url) or otherwise
    if found is None:
        first = text.partition("\n")[0].strip()
        remedy = "A table needs a header line with the names of its columns, a speaker map goes with --speakers."
        raise InputError(
            Problem(url, 1, "an ECF, an RTTM, a query list, a run or a file of term discovery", shown(first), remedy)
        )
    return found


def expect(url: str, *formats: AnyFormat, otherwise: Format | None = None) -> AnyFormat:
    """Return the format of a file if it is one of `formats`. Raises `InputError` if not, and as `sniff` does."""
    found = sniff(url, otherwise)
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


def _text_format(text: str) -> AnyFormat | None:
    """The format by the first line that is neither blank nor a comment; folds also by the empty line between them."""
    if _RESOURCES.match(text):
        return Format.RESOURCES
    text = text if "\n" in text else text.replace("\r", "\n")
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if line and not line.startswith(";;")), None)
    if first is None:
        return Format.RTTM if text.lstrip().startswith(";;") else None
    fields = first.split()
    if first.startswith("{"):
        return Format.JSON_LINES
    if RTTM_TYPE.fullmatch(fields[0]):
        return Format.RTTM
    if names_columns(first):
        return Format.TABLE
    run = next((kind for kind in LINE_FORMATS if kind.recognises(first)), None)
    if run is not None:
        return run
    if fields[0] == "Class":
        return Format.CLASSES
    if len(fields) in (3, 4) and is_number(fields[1]) and is_number(fields[2]):
        timed = _timed_format(fields, text)
        if timed is not None:
            return timed
    return Format.QRELS if _QRELS.fullmatch(first) else None


def _timed_format(fields: list[str], text: str) -> Format | None:
    """The format of a file whose first line has a name, two numbers and perhaps a label.

    If the label is a number it may be judgments too, unless the first number has a fraction.
    """
    if len(fields) == 4:
        return Format.ALIGNMENT if "." in fields[1] or not is_number(fields[3]) else None
    return Format.FOLDS if _PARTED.search(text) else Format.STRETCHES
