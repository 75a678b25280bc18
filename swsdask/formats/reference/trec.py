"""TREC's runs (`query Q0 document rank score tag`) and judgments, the qrels (`query iteration document relevance`).

Blanks separate. A run's name is its tag; rank, `Q0` and iteration say nothing, but a rank must be a whole number or
`-`. Relevance is a whole number, the grade: above 0 is relevant, 0 is not, below 0 was to be judged and was not. What
is not judged is not relevant. No pair of query and document may be there twice. A document's id is all of its name: it
keeps directories and endings.

A judgment can also be a row of a table with the columns `query`, `document` and `relevance`, others passed over: a
table that has `score` too is a run as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.formats.files import Lines, noted, read_lines
from swsdask.formats.runs.arrow import Batch, Gathering
from swsdask.formats.runs.table import Separated, first_line, with_even_blanks, with_times
from swsdask.formats.sniff import Format, expect
from swsdask.formats.values import FormatError, read_header, shown
from swsdask.model.errors import Problems
from swsdask.model.schemas import JUDGMENTS, WITHOUT_TIMES, RunPiece
from swsdask.model.units import id_fault, name_fault

_RUN = {"query": 0, "document": 2, "rank": 3, "score": 4, "system": 5}
_QRELS = {"query": 0, "document": 2, "relevance": 3}
_RANK = "^([+-]?[0-9]{1,18}|-)$"
GRADE = "^[+-]?[0-9]{1,18}$"
"""A whole number that int64 holds."""


class Judgments(NamedTuple):
    """What was judged: queries and documents in the order of their ids, and the pairs as `model.schemas.JUDGMENTS`."""

    queries: tuple[str, ...]
    documents: tuple[str, ...]
    pairs: pa.Table

    @property
    def relevant(self) -> list[tuple[str, str]]:
        """The relevant pairs (query, document), sorted."""
        found = self.pairs.filter(pc.greater(self.pairs["grade"], 0))
        return list(zip(found["query"].to_pylist(), found["document"].to_pylist(), strict=True))


def read_trec_run(file: str, problems: Problems, rows_per_piece: int, system: str | None) -> Iterator[RunPiece]:
    """The pieces of a run; a detection of a document starts at 0 and has no duration."""
    try:
        header = read_header({WITHOUT_TIMES: "true"}, file, system)
    except FormatError as fault:
        problems.add(file, None, fault.expected, fault.found, fault.remedy)
        return
    gathering = Gathering(header, system is not None, file, problems, rows_per_piece, judged=True)
    once = _Once("a document once for a query")
    yield from gathering.pieces(_run_batches(file, problems, once, named=system is not None))
    once.note(file, problems)


def read_judgments(judged: str | pa.Table, problems: Problems) -> Judgments:
    """The judgments of qrels, of a table in a file or in memory; whatever is wrong is added to `problems`."""
    file = judged if isinstance(judged, str) else "qrels"
    once = _Once("a judgment once")
    queries: dict[str, None] = {}
    documents: dict[str, None] = {}
    grades: dict[tuple[str, str], int] = {}
    before = problems.total
    with noted(problems):
        for batch in _file_batches(judged, problems) if isinstance(judged, str) else _table_batches(judged, problems):
            good = _good(batch, "relevance", GRADE, "a whole number as relevance")
            for line, fault in good.unread:
                problems.add(file, line, fault.expected, fault.found, fault.remedy)
            once.take(good)
            names = [good.columns[name].cast(pa.string()).to_pylist() for name in ("query", "document")]
            relevance = good.columns["relevance"].cast(pa.int64()).to_pylist()
            lines = [] if good.lines is None else good.lines.tolist()
            for query, document, grade, line in zip(*names, relevance, lines, strict=True):
                wrong = id_fault(query) or name_fault(document)
                if wrong:
                    problems.add(file, line, "a query and a document", wrong, "Use plain ids.")
                    continue
                queries[query] = documents[document] = None
                grades[query, document] = grade
        if not queries and problems.total == before:
            problems.add(file, 1, "at least one judgment", "none", "Give QUERY ITERATION DOCUMENT RELEVANCE.")
    once.note(file, problems)
    return Judgments(tuple(sorted(queries)), tuple(sorted(documents)), judgments_table(grades))


def judgments_table(grades: Mapping[tuple[str, str], int]) -> pa.Table:
    """The table `model.schemas.JUDGMENTS` of the grades of pairs (query, document)."""
    rows = [(*pair, grades[pair]) for pair in sorted(grades)]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table([pa.array(column, each.type) for column, each in zip(columns, JUDGMENTS, strict=True)], JUDGMENTS)


def _run_batches(file: str, problems: Problems, once: _Once, *, named: bool) -> Iterator[Batch]:
    lines = Separated(problems, " ", 6, {name: at for name, at in _RUN.items() if not (named and name == "system")})
    for batch in lines.batches(_even(file)):
        good = _good(batch, "rank", _RANK, "a whole number or - as rank")
        once.take(good)
        yield with_times(good._replace(columns={name: c for name, c in good.columns.items() if name != "rank"}))


def _file_batches(file: str, problems: Problems) -> Iterator[Batch]:
    if expect(file, Format.QRELS, Format.TABLE, otherwise=Format.QRELS) is Format.QRELS:
        yield from Separated(problems, " ", 4, _QRELS).batches(_even(file))
        return
    blocks = read_lines(file)
    delimiter, names, rest = first_line(next(blocks))
    columns = _judged_columns(names, file, 1, problems)
    if columns:
        yield from Separated(problems, delimiter, len(names), columns).batches(chain((rest,), blocks))


def _table_batches(table: pa.Table, problems: Problems) -> Iterator[Batch]:
    """The rows of a table in memory, their numbers from 1 as lines."""
    columns = _judged_columns(table.column_names, "qrels", None, problems)
    if columns:
        texts = {name: pc.fill_null(table.column(at).cast(pa.string()), "") for name, at in columns.items()}
        yield Batch({name: column.combine_chunks() for name, column in texts.items()}, np.arange(1, table.num_rows + 1))


def _judged_columns(names: Sequence[str], file: str, line: int | None, problems: Problems) -> dict[str, int]:
    """Find the columns of judgments among those named; return none where one is missing, which becomes a problem."""
    plain = [name.strip().lower() for name in names]
    missing = [name for name in _QRELS if plain.count(name) != 1]
    if missing:
        found = f"{shown(', '.join(names))}, not one {missing[0]}"
        remedy = "The first line names the columns." if line else "Rename the columns."
        problems.add(file, line, f"the columns {', '.join(_QRELS)}", found, remedy)
        return {}
    return {name: plain.index(name) for name in _QRELS}


def _even(file: str) -> Iterator[Lines]:
    return (Lines(block.first, with_even_blanks(block.data)) for block in read_lines(file))


def _good(batch: Batch, name: str, pattern: str, expected: str) -> Batch:
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


class _Once:
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
