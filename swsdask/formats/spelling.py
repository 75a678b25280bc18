"""Numbers as the input files spell them: 10.00 and 10 are one time, and tools that copy a text print what was written.

The texts are looked up in the files of the runs, where these are NIST's XML, and of the reference, where it is an RTTM,
and become columns of an alignment beside its numbers. Where two rows are equal but for the spelling, the first counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.formats.files import read_lines
from swsdask.formats.runs.arrow import RowFaults, read_rows
from swsdask.formats.runs.xml import DIALECTS, ROW_NAMES
from swsdask.formats.sniff import Format, sniff
from swsdask.formats.xml_stream import Start, read_elements
from swsdask.model.errors import InputError
from swsdask.model.units import TICKS_PER_SECOND, document_id, ticks

TEXTS = ("start_text", "end_text", "score_text", "reference_start_text")
"""The columns that are added to an alignment; null where no file has the number."""

Units = Callable[[str], Sequence[str]]
"""What a tool takes a word of the reference apart into."""

_ROWS_AT_ONCE = 65_536
_OF_TARGETS = ["document", "channel", "reference_start", "word"]
_OF_DETECTIONS = ["system", "query", "document", "channel", "start", "end", "score"]


def with_texts(
    alignment: pa.Table,
    runs: Mapping[str, Iterable[str]],
    rttm: str | None,
    encoding: str,
    words: Mapping[str, str] | None,
    units: Units,
) -> pa.Table:
    """The alignment with the columns `TEXTS`.

    `runs` has the files of each system, the RTTM is in `encoding`. Targets begin with the first of the `words` of each
    query; None: with the records of speakers, which segments are made of. Of a word that is taken apart into several
    `units`, each has its share of the time, in thousandths of a second.
    """
    detections = [part for system, files in runs.items() for part in _detections(system, files)]
    targets: list[pa.Table] = []
    if rttm is not None and _is(rttm, Format.RTTM):
        targets = list(_starts(rttm, encoding, None if words is None else units))
    queries = alignment["query"].unique()
    first = pa.array([(words or {}).get(query, "").casefold() for query in queries.to_pylist()], pa.string())
    sought = alignment.append_column("word", first.take(pc.index_in(alignment["query"], queries)))
    alignment = _joined(alignment, sought, detections, _OF_DETECTIONS, TEXTS[:3])
    return _joined(alignment, sought, targets, _OF_TARGETS, TEXTS[3:])


def _joined(
    alignment: pa.Table, sought: pa.Table, parts: list[pa.Table], keys: list[str], texts: tuple[str, ...]
) -> pa.Table:
    """The alignment with the texts of the parts' rows that have the keys `sought`; times are compared as ticks."""
    if not parts:
        nulls = pa.nulls(len(alignment), pa.string())
        for name in texts:
            alignment = alignment.append_column(name, nulls)
        return alignment
    given = pa.concat_tables(parts).group_by(keys, use_threads=False).aggregate([(name, "first") for name in texts])
    columns = {name: sought[name] for name in keys}
    for name in keys:
        if name.endswith(("start", "end")):
            columns[name] = pc.round(pc.multiply(sought[name], TICKS_PER_SECOND)).cast(pa.int32())
    columns["row"] = pa.array(np.arange(len(alignment)))
    found = pa.table(columns).join(given, keys, join_type="left outer").sort_by("row")
    for name in texts:
        alignment = alignment.append_column(name, found[f"{name}_first"])
    return alignment


def _detections(system: str, files: Iterable[str]) -> Iterator[pa.Table]:
    """Keys and texts of the detections of a run."""
    for file in files:
        if _is(file, Format.RUN_XML):
            rows: list[tuple[str, ...]] = []
            for row in _rows(file):
                rows.append(row)
                if len(rows) == _ROWS_AT_ONCE:
                    yield _spelled(system, rows)
                    rows = []
            if rows:
                yield _spelled(system, rows)


def _is(file: str, form: Format) -> bool:
    """Whether a file is there and of a format: a URL may have been noted without the secrets that open it."""
    try:
        return sniff(file) == form
    except (InputError, OSError):
        return False


def _rows(file: str) -> Iterator[tuple[str, ...]]:
    """The query of each detection, its document, channel, start, duration and score."""
    query = ""
    names = [ROW_NAMES[name] for name in ("document", "channel", "start", "duration", "score")]
    for element in read_elements(file):
        if isinstance(element, Start):
            dialect, name = DIALECTS[element.path[0]], element.path[-1]
            if name == dialect.list:
                query = element.attributes[dialect.query]
            elif name == dialect.row:
                yield (query, *(element.attributes[each] for each in names))


def _spelled(system: str, texts: list[tuple[str, ...]]) -> pa.Table:
    query, document, channel, start, duration, score = map(pa.array, zip(*texts, strict=True))
    columns = {"query": query, "document": document, "channel": channel}
    rows = read_rows({**columns, "start": start, "duration": duration, "score": score}, RowFaults(len(texts)))
    ends = [f"{float(text[3]) + float(text[4]):.15g}" for text in texts]
    names = ([document_id(name) for name in rows.document.ids], rows.query.ids)
    documents, queries = (
        pa.array(ids, pa.string()).take(pa.array(codes))
        for ids, codes in zip(names, (rows.document.codes, rows.query.codes), strict=True)
    )
    numbers = (rows.channel, rows.start, rows.start + rows.duration, rows.score)
    values = [pa.repeat(system, len(texts)), queries, documents, *map(pa.array, numbers), start, pa.array(ends), score]
    return pa.Table.from_arrays(values, names=[*_OF_DETECTIONS, *TEXTS[:3]])


def _starts(rttm: str, encoding: str, units: Units | None) -> Iterator[pa.Table]:
    """Keys and texts of the starts of an RTTM's words; without `units`, of its speakers."""
    kind = "SPEAKER" if units is None else "LEXEME"
    for block in read_lines(rttm, encoding):
        rows = []
        for line in block.data.decode().split("\n"):
            if line[: len(kind)].upper() == kind:
                _, document, channel, start, duration, word, *_ = line.split()
                spoken = [""] if units is None else [unit.casefold() for unit in units(word)]
                for unit, text in zip(spoken, _shared(start, duration, len(spoken)), strict=True):
                    rows.append((document_id(document), int(channel), ticks(text)[0], unit, text))
        if rows:
            kinds = (pa.string(), pa.int8(), pa.int32(), pa.string(), pa.string())
            columns = [pa.array(column, each) for column, each in zip(zip(*rows, strict=True), kinds, strict=True)]
            yield pa.Table.from_arrays(columns, names=[*_OF_TARGETS, *TEXTS[3:]])


def _shared(start: str, duration: str, units: int) -> list[str]:
    """The starts of the units of a word."""
    share = round(float(duration) / max(units, 1), 3)
    return [start] if units == 1 else [f"{float(start) + share * number:.3f}" for number in range(units)]
