"""RTTM: what was spoken, word by word (NIST's rich transcription time marks; RT-09 evaluation plan, appendix A).

A record has nine fields, or ten in the newer form, with blanks between them:

    type file channel start duration word subtype speaker confidence [lookahead]

`LEXEME` records are words and `SPEAKER` records are segments, in upper or lower case. Other types, including unknown
ones, are counted and ignored. Words may have no duration. From `SPKR-INFO` records, the gender of the talker, their
subtype, is kept for conditions. `;;` begins a comment, at the start of a line or after a blank.

A CTM is read as an RTTM of words: its lines have the fields of one word (NIST's sclite),

    file channel start duration word [confidence [type [speaker]]]

where channels are numbers, or A and B. Without a type a word is `lex`. Alternatives (`<ALT_BEGIN>`, `<ALT>`,
`<ALT_END>`) are an error: which of them was spoken is not known.

Regular records are read into columns all at once, others one by one. Both ways give the same columns for the same
lines; only the second reports problems.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv

from swsdask.formats.files import noted, noted_at, open_once
from swsdask.formats.recognise import RTTM_TYPE, Format, expect
from swsdask.formats.runs.lines import CTM
from swsdask.formats.text import Lines, lines_with_text, read_lines, tidy
from swsdask.formats.values import (
    CHANNELS,
    SECONDS,
    FormatError,
    exact_ticks,
    read_channel,
    read_document,
    read_interval,
    shown,
)
from swsdask.model.errors import Problems
from swsdask.model.schemas import SEGMENTS, WORDS
from swsdask.model.units import MAX_TICKS

WORD = "LEXEME"
SEGMENT = "SPEAKER"
TALKER = "SPKR-INFO"

GENDERS = "genders"
"""In the metadata of the segments: a JSON list of [document, talker, gender], sorted, where any is known."""

_UNKNOWN_GENDERS = ("", "<NA>", "unknown")

COLUMNS = pa.schema(
    [
        ("type", pa.string()),
        ("document", pa.string()),
        ("channel", pa.int8()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("word", pa.string()),
        ("subtype", pa.string()),
        ("speaker", pa.string()),
        ("line", pa.int64()),
        ("rounded", pa.int8()),
    ]
)
"""The columns of `Records.table`. `rounded` is the number of times (start, end) that were finer than a tick."""

_FEW = pa.dictionary(pa.int32(), pa.string())
_FIELDS = {
    "type": pa.string(),
    "document": _FEW,
    "channel": _FEW,
    "start": SECONDS,
    "duration": SECONDS,
    "word": pa.string(),
    "subtype": pa.string(),
    "speaker": pa.string(),
    "confidence": pa.string(),
    "lookahead": pa.string(),
}
"""The fields of a record in order; the newer form has the last one too."""

_CTM_FIELDS = 5, 8
_NOT_GIVEN = (b"<NA>", b"lex", b"<NA>")

_TYPE = re.compile(r"[A-Z][A-Z0-9_/-]*")
_ALTERNATIVE = re.compile(rb"<ALT(_BEGIN|_END)?>", re.IGNORECASE)
_COMMENT = re.compile(rb"(?:^|(?<=[ \t\r\f\v]));;.*$", re.MULTILINE)


class Records(NamedTuple):
    """The words and segments of some lines, in order, the numbers of records of other types, and genders of talkers.

    `genders` are by document and talker.
    """

    table: pa.Table
    skipped: Counter[str]
    genders: dict[tuple[str, str], str]


def read_records(lines: Lines, file: str, problems: Problems) -> Records:
    """Return the records of some lines. Records with problems are left out, and the problems added to `problems`."""
    try:
        return _read_together(lines)
    except (ValueError, FormatError):
        return _read_singly(lines, file, problems)


def _read_together(lines: Lines) -> Records:
    """Read all lines at once. Raises `ValueError` or `FormatError` if a record is wrong or irregular."""
    text = tidy(_COMMENT.sub(b"", lines.data) if b";;" in lines.data else lines.data)
    names = list(_FIELDS)
    if text.lstrip(b"\n").partition(b"\n")[0].count(b" ") < len(names) - 1:
        names.pop()
    table = csv.read_csv(
        pa.BufferReader(text),
        csv.ReadOptions(column_names=names, use_threads=False, block_size=len(text) + 1),
        csv.ParseOptions(delimiter=" ", quote_char=False),
        csv.ConvertOptions(column_types=_FIELDS, null_values=["<NA>"]),
    )
    table = table.set_column(0, "type", pc.utf8_upper(table["type"]))
    types = Counter({count["values"]: count["counts"] for count in pc.value_counts(table["type"]).to_pylist()})
    for name in types:
        _check_type(name)
    genders = _genders(table.filter(pc.equal(table["type"], TALKER)).select(["document", "speaker", "subtype"]))
    table = table.append_column("line", pa.array(lines.first + lines_with_text(text)))
    table = table.filter(pc.is_in(table["type"], pa.array([WORD, SEGMENT]))).combine_chunks()
    if pc.any(pc.less(table["duration"], Decimal(0))).as_py():
        raise ValueError("a negative duration")
    start, start_rounded = exact_ticks(table["start"])
    end, end_rounded = exact_ticks(pc.add(table["start"], table["duration"]))
    if np.any(start < 0) or np.any(end > MAX_TICKS):
        raise ValueError("a time out of range")
    made = {
        "document": _each(table["document"], read_document, pa.string()),
        "channel": _each(table["channel"], read_channel, pa.int8()),
        "start": pa.array(start, pa.int32()),
        "end": pa.array(end, pa.int32()),
        "rounded": pa.array(start_rounded.astype(np.int8) + end_rounded),
    }
    columns = [made[name] if name in made else table[name] for name in COLUMNS.names]
    return Records(pa.Table.from_arrays(columns, schema=COLUMNS), _others(types), genders)


def _genders(records: pa.Table) -> dict[tuple[str, str], str]:
    found: dict[tuple[str, str], str] = {}
    for file, talker, gender in zip(*(column.to_pylist() for column in records.columns), strict=True):
        if (gender or "") not in _UNKNOWN_GENDERS:
            found.setdefault((read_document(file), talker), gender)
    return found


def _each(texts: pa.ChunkedArray, reader: Callable[[str], object], kind: pa.DataType) -> pa.Array:
    """Apply `reader` to each of few distinct texts."""
    column = texts.combine_chunks()
    used, codes = np.unique(column.indices.to_numpy(), return_inverse=True)
    values = [reader(text) for text in column.dictionary.take(pa.array(used)).to_pylist()]
    return pa.array(values, kind).take(pa.array(codes))


def _read_singly(lines: Lines, file: str, problems: Problems) -> Records:
    rows: list[tuple[object, ...]] = []
    types: Counter[str] = Counter()
    genders: dict[tuple[str, str], str] = {}
    for number, line in enumerate(_COMMENT.sub(b"", lines.data).split(b"\n"), lines.first):
        fields = [field.decode() for field in line.split()]
        if not fields:
            continue
        fields[0] = fields[0].upper()
        with noted_at(problems, file, number):
            _check_fields(fields)
            types[fields[0]] += 1
            if fields[0] in (WORD, SEGMENT):
                rows.extend(_rows(fields, number, file, problems))
            elif fields[0] == TALKER and fields[6] not in _UNKNOWN_GENDERS:
                genders.setdefault((read_document(fields[1]), fields[7]), fields[6])
    columns = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, COLUMNS, strict=True)]
    return Records(pa.Table.from_arrays(arrays, schema=COLUMNS), _others(types), genders)


def _rows(fields: list[str], number: int, file: str, problems: Problems) -> Iterator[tuple[object, ...]]:
    """Yield the row of `COLUMNS` of a record, if it has no problems."""
    kind, filename, channel_text, start, duration, word, subtype, speaker = fields[:8]
    before = len(problems)
    with noted_at(problems, file, number):
        document = read_document(filename)
    with noted_at(problems, file, number):
        channel = read_channel(channel_text)
    with noted_at(problems, file, number):
        span = read_interval(start, duration)
    if len(problems) == before:
        yield kind, document, channel, span.start, span.end, word, subtype, speaker, number, span.rounded


def _check_fields(fields: list[str]) -> None:
    if len(fields) not in (len(_FIELDS) - 1, len(_FIELDS)):
        expected = f"{len(_FIELDS) - 1} or {len(_FIELDS)} fields with blanks between them"
        raise FormatError(expected, f"{len(fields)}", "Write <NA> for a field without value.")
    _check_type(fields[0])


def _check_type(name: str) -> None:
    if not _TYPE.fullmatch(name):
        raise FormatError(
            f"a type of RTTM records, such as {WORD}", shown(name), "Correct the type or remove the line."
        )


def _others(types: Counter[str]) -> Counter[str]:
    """Return the records of ignored types."""
    return Counter({name: count for name, count in types.items() if name not in (WORD, SEGMENT)})


_NOT_COMPARED = ("line", "rounded")


def read_rttm(url: str, problems: Problems, encoding: str = "utf-8") -> tuple[pa.Table, pa.Table]:
    """The words and the segments (`model.schemas.WORDS`, `SEGMENTS`), in file order; faults are added to `problems`.

    Times in ticks; start and end are each rounded once, half to even. In the metadata, `rounded` counts those that
    were. If there are any, `repeated` counts the records that repeat another's document, channel, time, word,
    subtype and speaker: whether they count depends on the finder (`archive.occurrences`). The metadata of the words
    also have `skipped` and `skipped_types`, the records of other types; `unknown_types`, those that RTTM does not have;
    and `encoding`, if the text was not read as UTF-8. Those of the segments have `GENDERS`.
    """
    parts = {kind: [COLUMNS.empty_table()] for kind in (WORD, SEGMENT)}
    skipped: Counter[str] = Counter()
    genders: dict[tuple[str, str], str] = {}
    before = len(problems)
    with noted(problems), open_once(url) as url:
        found = expect(url, Format.RTTM, CTM)
        for lines in read_lines(url, encoding):
            if found is CTM:
                lines = _records_of_ctm(lines, url, problems)
            records = read_records(lines, url, problems)
            skipped += records.skipped
            genders = records.genders | genders
            for kind, tables in parts.items():
                tables.append(records.table.filter(pc.equal(records.table["type"], kind)))
    words, segments = (pa.concat_tables(tables) for tables in parts.values())
    if not (words or segments or skipped) and len(problems) == before:
        problems.add(url, 1, "at least one record", "none", "List what was spoken.")
    unknown = Counter({name: count for name, count in skipped.items() if not RTTM_TYPE.fullmatch(name)})
    counted = {"skipped": str(skipped.total()), "skipped_types": _listed(skipped)}
    rare = {"unknown_types": _listed(unknown), "encoding": "" if encoding == "utf-8" else encoding}
    said = {GENDERS: json.dumps([[*pair, gender] for pair, gender in sorted(genders.items())]) if genders else ""}
    return _as(WORDS, words, counted, rare), _as(SEGMENTS, segments, {}, said)


def _records_of_ctm(lines: Lines, file: str, problems: Problems) -> Lines:
    """Lines of a CTM as records of words. Other lines are left out, and added to `problems`."""
    records = []
    for number, line in enumerate(_COMMENT.sub(b"", lines.data).split(b"\n"), lines.first):
        fields = line.split()
        if fields and not _CTM_FIELDS[0] <= len(fields) <= _CTM_FIELDS[1]:
            expected = "a word: file, channel, start, duration, word, perhaps confidence, type and speaker"
            problems.add(file, number, expected, shown(line.decode()), "Correct or remove the line.")
            fields = []
        elif fields and _ALTERNATIVE.fullmatch(fields[4]):
            expected, found = "the words that were spoken", f"alternatives, {shown(fields[4].decode())}"
            problems.add(file, number, expected, found, "Keep one of them, without the lines around it.")
            fields = []
        records.append(_record_of_word(*fields) if fields else b"")
    return Lines(lines.first, b"\n".join(records))


def _record_of_word(file: bytes, channel: bytes, start: bytes, duration: bytes, word: bytes, *more: bytes) -> bytes:
    confidence, kind, speaker = (*more, *_NOT_GIVEN[len(more) :])
    number = CHANNELS.get(channel.decode(), channel.decode()).encode()
    return b" ".join((WORD.encode(), file, number, start, duration, word, kind, speaker, confidence))


def _listed(types: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(types.items()))


def _as(schema: pa.Schema, records: pa.Table, counted: dict[str, str], rare: dict[str, str]) -> pa.Table:
    """Records as a table with metadata: all of `counted`, and those of `rare` that are not empty."""
    rounded = str(pc.sum(records["rounded"]).as_py() or 0)
    rare = {"repeated": str(count_repeated(records.drop_columns(list(_NOT_COMPARED))) or ""), **rare}
    said = {"rounded": rounded, **counted, **{name: value for name, value in rare.items() if value}}
    return records.select(schema.names).cast(schema.with_metadata(said))


def count_repeated(records: pa.Table) -> int:
    """Return the number of records that equal an earlier one in every column."""
    candidates = records.take(pa.array(_starting_together(records)))
    if not len(candidates):
        return 0  # the usual case; grouping loads another library
    return len(candidates) - len(candidates.group_by(candidates.column_names).aggregate([]))


def _starting_together(records: pa.Table) -> NDArray[np.int64]:
    """Return the rows that share document, channel and start with another."""
    chunks = records["document"].dictionary_encode().chunks
    document = np.concatenate([np.zeros(0, np.int64), *(chunk.indices.to_numpy() for chunk in chunks)])
    key = (document << 38) | (records["channel"].to_numpy().astype(np.int64) << 31) | records["start"].to_numpy()
    ordered = np.sort(key)
    return np.flatnonzero(np.isin(key, ordered[1:][ordered[1:] == ordered[:-1]]))
