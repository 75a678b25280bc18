"""RTTM: what was spoken, word by word (NIST's rich transcription time marks; RT-09 evaluation plan, appendix A).

A record has nine fields, or ten in the newer form, with blanks between them:

    type file channel start duration word subtype speaker confidence [lookahead]

`LEXEME` records are words, `SPEAKER` records are segments, in upper or lower case; the other types score nothing: they
are counted and passed over, also those that RTTM does not have. `;;` begins a comment line. Words may have no duration.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdask.errors import Problems
from swsdask.formats.lines import read_lines
from swsdask.formats.noting import noted
from swsdask.formats.rttm_records import COLUMNS, SEGMENT, WORD, read_records
from swsdask.formats.sniff import RTTM_TYPE, Format, expect
from swsdask.model.schemas import SEGMENTS, WORDS

_NOT_COMPARED = ("line", "rounded")


def read_rttm(url: str, problems: Problems, encoding: str = "utf-8") -> tuple[pa.Table, pa.Table]:
    """The words and the segments (`model.schemas.WORDS`, `SEGMENTS`), in file order; faults are added to `problems`.

    Times in ticks; start and end are each rounded once, half to even. In the metadata, `rounded` counts those that
    were, and (of the words) `skipped` and `skipped_types` the records of other types. Where there are any,
    `unknown_types` are those that RTTM does not have, and `repeated` the records that repeat another's document,
    channel, time, word, subtype and speaker: whether these count depends on the finder (`archive.occurrences`).
    """
    parts = {kind: [COLUMNS.empty_table()] for kind in (WORD, SEGMENT)}
    skipped: Counter[str] = Counter()
    before = len(problems)
    with noted(problems):
        expect(url, Format.RTTM)
        for lines in read_lines(url, encoding):
            records = read_records(lines, url, problems)
            skipped += records.skipped
            for kind, tables in parts.items():
                tables.append(records.table.filter(pc.equal(records.table["type"], kind)))
    words, segments = (pa.concat_tables(tables) for tables in parts.values())
    if not (words or segments or skipped) and len(problems) == before:
        problems.add(url, 1, "at least one record", "none", "List what was spoken.")
    unknown = Counter({name: count for name, count in skipped.items() if not RTTM_TYPE.fullmatch(name)})
    counted = {"skipped": str(skipped.total()), "skipped_types": _listed(skipped)}
    rare = {"unknown_types": _listed(unknown), "repeated": str(_repeated(words) or "")}
    return (
        _as(WORDS, words, counted | {name: value for name, value in rare.items() if value}),
        _as(SEGMENTS, segments, {}),
    )


def _listed(types: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(types.items()))


def _as(schema: pa.Schema, records: pa.Table, metadata: dict[str, str]) -> pa.Table:
    rounded = str(pc.sum(records["rounded"]).as_py() or 0)
    return records.select(schema.names).cast(schema.with_metadata({"rounded": rounded, **metadata}))


def _repeated(records: pa.Table) -> int:
    """How many records were there before."""
    candidates = records.take(pa.array(_starting_together(records))).drop_columns(list(_NOT_COMPARED))
    return len(candidates) - len(candidates.group_by(candidates.column_names).aggregate([]))


def _starting_together(records: pa.Table) -> NDArray[np.int64]:
    """The rows that share document, channel and start with another."""
    chunks = records["document"].dictionary_encode().chunks
    document = np.concatenate([np.zeros(0, np.int64), *(chunk.indices.to_numpy() for chunk in chunks)])
    key = (document << 38) | (records["channel"].to_numpy().astype(np.int64) << 31) | records["start"].to_numpy()
    ordered = np.sort(key)
    return np.flatnonzero(np.isin(key, ordered[1:][ordered[1:] == ordered[:-1]]))
