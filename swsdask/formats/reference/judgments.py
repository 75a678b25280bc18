"""Judgments of documents, TREC's qrels: lines `query iteration document relevance`, separated by blanks.

The iteration says nothing. Relevance is a whole number, the grade: above 0 is relevant, 0 is not, below 0 was to be
judged and was not. What is not judged is not relevant. No pair of query and document may be there twice. A document's
id is all of its name: it keeps directories and endings.

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

from swsdask.formats.files import noted, read_lines
from swsdask.formats.runs.arrow import Batch
from swsdask.formats.runs.lines import with_even_blanks
from swsdask.formats.runs.lines.trec import Once, good_rows
from swsdask.formats.runs.table import Separated, first_line
from swsdask.formats.sniff import Format, expect
from swsdask.formats.values import shown
from swsdask.model.errors import Problems
from swsdask.model.schemas import JUDGMENTS
from swsdask.model.units import id_fault, name_fault

_QRELS = {"query": 0, "document": 2, "relevance": 3}
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


def read_judgments(judged: str | pa.Table, problems: Problems) -> Judgments:
    """The judgments of qrels, of a table in a file or in memory; whatever is wrong is added to `problems`."""
    file = judged if isinstance(judged, str) else "qrels"
    once = Once("a judgment once")
    queries: dict[str, None] = {}
    documents: dict[str, None] = {}
    grades: dict[tuple[str, str], int] = {}
    before = problems.total
    with noted(problems):
        for batch in _file_batches(judged, problems) if isinstance(judged, str) else _table_batches(judged, problems):
            good = good_rows(batch, "relevance", GRADE, "a whole number as relevance")
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


def _file_batches(file: str, problems: Problems) -> Iterator[Batch]:
    if expect(file, Format.QRELS, Format.TABLE, otherwise=Format.QRELS) is Format.QRELS:
        yield from Separated(problems, " ", 4, _QRELS).batches(with_even_blanks(read_lines(file)))
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
