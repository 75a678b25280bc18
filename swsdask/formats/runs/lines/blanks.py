"""Results in lines whose values blanks separate: Kaldi's, CTMs, and TREC's runs.

Kaldi's form: query, document, start, end and score. A CTM: document, channel (a number, or A and B), start, duration,
query and score.

TREC's runs: lines `query Q0 document rank score tag`, separated by blanks.

A run's name is its tag; rank and `Q0` say nothing, but a rank must be a whole number or `-`. No pair of query and
document may be there twice. A document's id is all of its name: it keeps directories and endings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.formats.files import read_lines
from swsdask.formats.runs.arrow import Batch, Gathering
from swsdask.formats.runs.encoding import PLAIN, Encoding
from swsdask.formats.runs.lines import LineFormat, with_even_blanks
from swsdask.formats.runs.table import Separated, with_times
from swsdask.formats.values import FormatError, is_number, read_header, shown
from swsdask.model.errors import Problems
from swsdask.model.schemas import WITHOUT_TIMES, RunPiece

_CTM = re.compile(r"\S+\s+(?:[0-9]+|[AB])\s+[0-9]*\.?[0-9]+\s+[0-9]*\.?[0-9]+\s+\S+(?:\s+\S+){0,3}\s*$")


def _is_kaldis(line: str) -> bool:
    fields = line.split()
    return len(fields) == len(KALDI.columns) and all(map(is_number, fields[2:]))


def _is_ctm(line: str) -> bool:
    """Types and speakers may follow, where it is a reference."""
    return _CTM.match(line) is not None


KALDI = LineFormat("results in Kaldi's form", _is_kaldis, ("query", "document", "start", "end", "score"))
CTM = LineFormat(
    "words with times (a CTM)",
    _is_ctm,
    ("document", "channel", "start", "duration", "query", "score"),
    endings=(".ctm",),
    given="with --rttm, or as a run",
)


_LINE = re.compile(r"\S+\s+Q0\s+\S+\s+(?:[+-]?[0-9]+|-)\s+\S+\s+\S+\s*", re.IGNORECASE)
_COLUMNS = ("query", "Q0", "document", "rank", "score", "system")
_RANK = "^([+-]?[0-9]{1,18}|-)$"


def _is_trec(line: str) -> bool:
    return _LINE.fullmatch(line) is not None and is_number(line.split()[4])


class _TrecRun(LineFormat):
    """Runs of judged documents."""

    def read(
        self, file: str, problems: Problems, rows_per_piece: int, system: str | None, encoding: Encoding = PLAIN
    ) -> Iterator[RunPiece]:
        """The pieces of a run; a detection of a document starts at 0 and has no duration."""
        try:
            header = read_header({WITHOUT_TIMES: "true", **encoding.attributes}, file, system)
        except FormatError as fault:
            problems.add(file, None, fault.expected, fault.found, fault.remedy)
            return
        gathering = Gathering(header, system is not None, file, problems, rows_per_piece, judged=True)
        once = Once("a document once for a query")
        yield from gathering.pieces(_run_batches(file, problems, once, named=system is not None))
        once.note(file, problems)


TREC = _TrecRun("a TREC run", _is_trec, _COLUMNS, encoded=False)
FORMATS = (KALDI, CTM, TREC)


def _run_batches(file: str, problems: Problems, once: Once, *, named: bool) -> Iterator[Batch]:
    columns = {name: at for at, name in enumerate(_COLUMNS) if name != "Q0" and not (named and name == "system")}
    lines = Separated(problems, " ", 6, columns)
    for batch in lines.batches(with_even_blanks(read_lines(file))):
        good = good_rows(batch, "rank", _RANK, "a whole number or - as rank")
        once.take(good)
        yield with_times(good._replace(columns={name: c for name, c in good.columns.items() if name != "rank"}))


def good_rows(batch: Batch, name: str, pattern: str, expected: str) -> Batch:
    """The rows whose column `name` has the form of `pattern`; the others are unread."""
    column = batch.columns[name].cast(pa.string())
    fine = pc.match_substring_regex(column, pattern).to_numpy(zero_copy_only=False)
    if fine.all() or batch.lines is None:
        return batch
    faults = [
        (int(batch.lines[row]), FormatError(expected, shown(column[row].as_py()), "Correct the line."))
        for row in np.flatnonzero(~fine).tolist()
    ]
    columns = {name: column.filter(pa.array(fine)) for name, column in batch.columns.items()}
    return Batch(columns, batch.lines[fine], unread=(*batch.unread, *faults))


class Once:
    """Pairs of query and document, and which of them come again."""

    def __init__(self, expected: str) -> None:
        self._expected = expected
        self._codes: tuple[dict[str, int], dict[str, int], dict[str, int]] = ({}, {}, {})
        self._keys: list[np.ndarray] = []
        self._lines: list[np.ndarray] = []

    def take(self, batch: Batch) -> None:
        """Take in the rows of a batch."""
        system, query, document = (
            self._coded(batch.columns, name, codes)
            for name, codes in zip(("system", "query", "document"), self._codes, strict=True)
        )
        self._keys.append(np.stack([system << 32 | query, document]))
        self._lines.append(np.zeros(len(query), np.int64) if batch.lines is None else batch.lines)

    def _coded(self, columns: Mapping[str, pa.Array], name: str, codes: dict[str, int]) -> np.ndarray:
        if name not in columns:
            return np.zeros(len(columns["query"]), np.int64)
        encoded = columns[name]
        if not pa.types.is_dictionary(encoded.type):
            encoded = pc.dictionary_encode(encoded)
        own = [codes.setdefault(each, len(codes)) for each in encoded.dictionary.to_pylist()]
        return np.array(own, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)] if own else np.zeros(0, np.int64)

    def note(self, file: str, problems: Problems) -> None:
        """Add a problem for each pair that comes again, at its line."""
        if not self._keys:
            return
        keys, lines = np.concatenate(self._keys, axis=1), np.concatenate(self._lines)
        order = np.lexsort((lines, keys[1], keys[0]))
        again = order[1:][(keys[:, order[1:]] == keys[:, order[:-1]]).all(axis=0)]
        queries, documents = list(self._codes[1]), list(self._codes[2])
        for row in again[np.argsort(lines[again])].tolist():
            query, document = queries[int(keys[0, row]) & 0xFFFFFFFF], documents[int(keys[1, row])]
            found = f"query {shown(query)} and document {shown(document)} again"
            problems.add(file, int(lines[row]), self._expected, found, "Keep one of them.")
