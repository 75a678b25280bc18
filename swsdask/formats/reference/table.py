"""A reference in tables, in files or in memory: documents, occurrences of queries, and queries; and judgments.

- documents: `document`, `duration` or `end`, and optionally `channel` (absent: 1), `start` (absent: 0), `source_type`,
  `language`. A row is an evaluated excerpt, as in an ECF.
- occurrences: `query`, `document`, `start`, `duration` or `end`, and optionally `channel`, `speaker`, `grade`. A row
  is an occurrence of a query and is used as given: no words are searched. Equal rows count once, with a note. Grades
  are whole numbers. A row of grade 0 or below is no occurrence; if trials are documents, the highest grade of a query
  in a document is its judgment.
- queries: `query`, and optionally attributes in further columns, for use in conditions (a column `text` has the texts
  of the queries); or ids alone. Absent: the queries of the occurrences, sorted.

Names of columns are read in lower case. Times are in seconds. A file is tab or comma separated text, JSON lines or
Parquet. The problems of a row name its line; in Parquet and in memory, they name the number of the row, from 1.

Judgments of documents, TREC's qrels: lines `query iteration document relevance`, separated by blanks.

The iteration is ignored. Relevance is a whole number, the grade: above 0 is relevant, 0 is not relevant, below 0 was
selected for judging but not judged. Unjudged documents are not relevant. No pair of query and document may occur twice.
A document's id is its whole name, with directories and endings. A line that begins with `#` is a comment, as in
trec_eval 10.

Judgments can also be the rows of a table with the columns `query`, `document` and `relevance`; other columns are
ignored. A table that also has `score` is a run as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdask.formats.files import noted, open_once
from swsdask.formats.in_memory import Table, as_arrow, is_table
from swsdask.formats.recognise import TABLES, TYPED, AnyFormat, Format, expect
from swsdask.formats.reference.nist_xml import MOST_TOKENS, token
from swsdask.formats.reference.rttm import count_repeated
from swsdask.formats.runs.arrow import RowFaults, TableRows, read_rows
from swsdask.formats.runs.gathering import Batch
from swsdask.formats.runs.lines import Once, good_rows, read_qrels_lines
from swsdask.formats.runs.parquet import check_type, column_names, whole_table
from swsdask.formats.runs.table import Separated, first_line, json_batches, json_names
from swsdask.formats.text import read_lines
from swsdask.formats.values import FormatError, check_columns, joined_names, shown
from swsdask.model.errors import InputError, Problem, Problems
from swsdask.model.schemas import DOCUMENTS, JUDGMENTS, QUERIES, WORDS
from swsdask.model.trials import Bool
from swsdask.model.units import document_fault, document_id, id_fault, name_fault

_QRELS = {"query": 0, "document": 2, "relevance": 3}
GRADE = "^[+-]?[0-9]{1,18}$"
"""A whole number that int64 holds."""


class Qrels(NamedTuple):
    """Judged pairs as `model.schemas.JUDGMENTS`, and their queries and documents, sorted by id."""

    queries: tuple[str, ...]
    documents: tuple[str, ...]
    pairs: pa.Table

    @property
    def relevant(self) -> list[tuple[str, str]]:
        """The relevant pairs (query, document), sorted."""
        found = self.pairs.filter(pc.greater(self.pairs["grade"], 0))
        return list(zip(found["query"].to_pylist(), found["document"].to_pylist(), strict=True))


def read_judgments(judged: str | pa.Table, problems: Problems) -> Qrels:
    """Return the judgments in qrels, or in a table in a file or in memory. Problems are added to `problems`."""
    file = judged if isinstance(judged, str) else "qrels"
    once = Once("a judgment once")
    queries: dict[str, None] = {}
    documents: dict[str, None] = {}
    grades: dict[tuple[str, str], int] = {}
    before = problems.total
    with noted(problems):
        for batch in _judgments_in(judged, problems):
            good = good_rows(batch, "relevance", GRADE, "a whole number as relevance")
            for line, fault in good.unread:
                problems.add(file, line, fault.expected, fault.found, fault.remedy)
            once.take(good)
            names = [good.columns[name].cast(pa.string()).to_pylist() for name in ("query", "document")]
            relevance = _whole(good.columns["relevance"]).to_pylist()
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
    return Qrels(tuple(sorted(queries)), tuple(sorted(documents)), judgments_table(grades))


def judgments_table(grades: Mapping[tuple[str, str], int]) -> pa.Table:
    """Return the table `model.schemas.JUDGMENTS` of the grades of pairs (query, document)."""
    rows = [(*pair, grades[pair]) for pair in sorted(grades)]
    columns = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table([pa.array(column, each.type) for column, each in zip(columns, JUDGMENTS, strict=True)], JUDGMENTS)


def _judgments_in(judged: str | pa.Table, problems: Problems) -> Iterator[Batch]:
    """Yield the rows of judgments, as text. In a typed table, the line of a row is its number, from 1."""
    if not isinstance(judged, str):
        yield from _typed_judgments(judged, "qrels", problems)
        return
    kind = expect(judged, Format.QRELS, *TABLES, otherwise=Format.QRELS)
    if kind is Format.QRELS:
        lines = Separated(problems, " ", 4, _QRELS, form="query iteration document relevance")
        yield from lines.batches(read_qrels_lines(judged))
    elif kind in TYPED:
        yield from _typed_judgments(whole_table(judged), judged, problems)
    else:
        yield from _written_judgments(judged, kind, problems)


def holds_judgments_alone(file: str, kind: AnyFormat) -> bool:
    """Return whether a table (one of `TABLES`) has the columns of judgments but no scores, and so is no run."""
    if kind in TYPED:
        names = column_names(file)
    else:
        head = next(read_lines(file))
        names = json_names(head, file) if kind is Format.JSON_LINES else first_line(head)[1]
    plain = {name.strip().lower() for name in names}
    return _QRELS.keys() <= plain and "score" not in plain


def _typed_judgments(table: pa.Table, name: str, problems: Problems) -> Iterator[Batch]:
    columns = _judged_columns(table.column_names, name, None, problems)
    if columns:
        lines = np.arange(1, table.num_rows + 1)
        given = _Given(name, {column: table.column(at).combine_chunks() for column, at in columns.items()}, lines)
        yield Batch({column: given.texts(column) for column in columns}, lines)


def _written_judgments(file: str, kind: AnyFormat, problems: Problems) -> Iterator[Batch]:
    """Yield the judgments of a table in text or in JSON lines."""
    blocks = read_lines(file)
    head = next(blocks)
    if kind is Format.JSON_LINES:
        names = json_names(head, file)
        keys = {column: names[at] for column, at in _judged_columns(names, file, 1, problems).items()}
        if keys:
            yield from json_batches(chain((head,), blocks), frozenset(names), keys, problems)
        return
    delimiter, names, rest = first_line(head)
    columns = _judged_columns(names, file, 1, problems)
    if columns:
        yield from Separated(problems, delimiter, len(names), columns).batches(chain((rest,), blocks))


def _judged_columns(names: Sequence[str], file: str, line: int | None, problems: Problems) -> dict[str, int]:
    """Return the indices of the columns of judgments; none if one is missing, which is added to `problems`."""
    plain = [name.strip().lower() for name in names]
    missing = [name for name in _QRELS if plain.count(name) != 1]
    if missing:
        found = f"{shown(', '.join(names))}, no {' or '.join(missing)}"
        remedy = "The first line names the columns." if line else "Rename the columns."
        problems.add(file, line, f"the columns {', '.join(_QRELS)}", found, remedy)
        return {}
    return {name: plain.index(name) for name in _QRELS}


class _Given(NamedTuple):
    """A table: its name in messages, its columns by lower-case name, and the line of each row."""

    name: str
    columns: dict[str, pa.Array]
    lines: NDArray[np.int64]

    def note(self, row: int, fault: FormatError, problems: Problems) -> None:
        """Add a fault of a row to `problems`."""
        problems.add(self.name, int(self.lines[row]), fault.expected, fault.found, fault.remedy)

    def texts(self, name: str, missing: str | None = "") -> pa.Array:
        """Return a column as text, with `missing` for absent values.

        Raises `InputError` for a type that cannot be text.
        """
        if name not in self.columns:
            return pa.repeat(missing, len(self.lines))
        column = self.columns[name]
        if not pa.types.is_nested(column.type):
            with suppress(pa.ArrowException):
                text = column.cast(pa.string())
                return text if missing is None else pc.fill_null(text, missing)
        expected, found = f"text or numbers in column {shown(name)}", f"the type {shown(str(column.type))}"
        raise InputError(Problem(self.name, None, expected, found, "Leave it out, or write it as text."))


def read_documents(table: Table | str, problems: Problems) -> pa.Table:
    """Return the excerpts of a table of documents, as `model.schemas.DOCUMENTS`. Problems are added to `problems`."""
    given = _open_given(table, "documents", ("document",), problems)
    columns = given.columns
    if not len(given.lines):
        problems.add(given.name, None, "at least one document", "none", "List what was evaluated.")
    columns.setdefault("start", pa.array(np.zeros(len(columns["document"]))))
    rows, good = _stretches(given._replace(columns={**columns, "query": columns["document"]}), problems)
    empty = good & (rows.duration == 0)
    for row in np.flatnonzero(empty).tolist():
        fault = FormatError("a duration of more than 0 seconds", "0", "Correct or remove the row.")
        given.note(row, fault, problems)
    document = _documents(rows.document.ids, rows.document.codes, given.name, problems)
    text = (given.texts(name) for name in ("source_type", "language"))
    times = (pa.array(column) for column in (rows.channel, rows.start, rows.start + rows.duration))
    metadata = {"rounded": str(int(rows.rounded.sum())), **joined_names(rows.document.ids)}
    return pa.Table.from_arrays([document, *times, *text], schema=DOCUMENTS.with_metadata(metadata))


def read_occurrences(
    table: Table | str, queries: Table | Iterable[str] | str | None, problems: Problems
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Return the tables QUERIES, WORDS and JUDGMENTS of occurrences. Problems are added to `problems`.

    Every occurrence is one word, and the text of its query is that word.
    """
    given = _open_given(table, "occurrences", ("query", "document", "start"), problems)
    columns = given.columns
    rows, good = _stretches(given, problems)
    names = rows.query.ids
    faulty = {name: wrong for name in names if (wrong := id_fault(name))} if queries is None else {}
    listed = read_query_table([name for name in names if name not in faulty] if queries is None else queries, problems)
    tokens = list(map(token, range(listed.num_rows)))
    text = dict(zip(listed["query"].to_pylist(), tokens, strict=True))
    codes, firsts = np.unique(rows.query.codes, return_index=True)
    first = dict(zip(codes.tolist(), firsts.tolist(), strict=True))
    for code, name in enumerate(names):
        if name not in text:
            fault = FormatError("a query of the list", shown(name), "Add it to queries.")
            if name in faulty:
                fault = FormatError("a query", faulty[name], "Correct the id.")
            given.note(first[code], fault, problems)
    document = _documents(rows.document.ids, rows.document.codes, given.name, problems)
    word = _take_texts([text.get(name, "") for name in names], rows.query.codes)
    words = pa.Table.from_arrays(
        [
            document,
            pa.array(rows.channel),
            given.texts("speaker"),
            pa.array(rows.start),
            pa.array(rows.start + rows.duration),
            word,
            pa.array(["lex"] * len(good), pa.string()),
        ],
        schema=WORDS,
    )
    judgments = JUDGMENTS.empty_table()
    if "grade" in columns:
        grade = _grades(given, problems)
        query = _take_texts(rows.query.ids, rows.query.codes)
        judgments = _judgments(query, document, grade)
        words = words.filter(pa.array(grade > 0))
    said = {"rounded": str(int(rows.rounded.sum())), "repeated": str(count_repeated(words) or "")}
    words = words.replace_schema_metadata({name: value for name, value in said.items() if value})
    return listed.set_column(1, QUERIES.field("text"), pa.array(tokens, pa.string())), words, judgments


def _grades(given: _Given, problems: Problems) -> NDArray[np.int64]:
    """Return the grades of occurrences; 0 for a grade that cannot be read."""
    text = given.texts("grade")
    fine = pc.match_substring_regex(text, GRADE).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(~fine).tolist():
        fault = FormatError("a whole number as grade", shown(text[row].as_py()), "Correct the row.")
        given.note(row, fault, problems)
    grades: NDArray[np.int64] = _whole(pc.if_else(pa.array(fine), text, "0")).to_numpy()
    return grades


def _whole(texts: pa.Array) -> pa.Array:
    """Return the numbers of texts of the form `GRADE`."""
    return pc.utf8_ltrim(texts.cast(pa.string()), "+").cast(pa.int64())  # pyarrow reads no plus


def _judgments(query: pa.Array, document: pa.Array, grade: NDArray[np.int64]) -> pa.Table:
    """Return the highest grade of each query in each document."""
    given = pa.table({"query": query, "document": document, "grade": grade})
    highest = given.group_by(["query", "document"]).aggregate([("grade", "max")])
    columns = [highest[name] for name in ("query", "document", "grade_max")]
    found = pa.Table.from_arrays(columns, names=JUDGMENTS.names)
    return found.sort_by([("query", "ascending"), ("document", "ascending")]).cast(JUDGMENTS)


def _open_given(table: Table | str, name: str, needed: Sequence[str], problems: Problems) -> _Given:
    """Return a table in memory (`name` in messages) or in a file. Raises `InputError` if a column is missing."""
    if isinstance(table, str):
        with open_once(table) as file:
            kind = expect(file, *TABLES, otherwise=Format.TABLE)
            if kind not in TYPED:
                return _from_text(file, kind, needed, problems)
            arrow, name = whole_table(file), table
    else:
        arrow = as_arrow(table, name)
    columns = dict(zip(_plain(arrow.column_names, needed, name), arrow.columns, strict=True))
    lines = np.arange(arrow.num_rows, dtype=np.int64) + 1
    return _Given(name, {column: values.combine_chunks() for column, values in columns.items()}, lines)


def _from_text(file: str, kind: AnyFormat, needed: Sequence[str], problems: Problems) -> _Given:
    """Return a table in text or in JSON lines, every value as text. Lines that are no rows are added to `problems`."""
    blocks = read_lines(file)
    head = next(blocks)
    batches: Iterator[Batch]
    if kind is Format.JSON_LINES:
        names = json_names(head, file)
        plain = _plain(names, needed, file)
        keys = dict(zip(plain, names, strict=True))
        batches = json_batches(chain((head,), blocks), frozenset(names), keys, problems)
    else:
        delimiter, names, rest = first_line(head)
        plain = _plain(names, needed, file)
        places = {column: place for place, column in enumerate(plain)}
        batches = Separated(problems, delimiter, len(names), places).batches(chain((rest,), blocks))
    read = list(batches)
    for batch in read:
        for line, fault in batch.unread:
            problems.add(file, line, fault.expected, fault.found, fault.remedy)
    columns = {column: [batch.columns[column].cast(pa.string()) for batch in read] for column in plain}
    lines = [np.zeros(0, np.int64), *(batch.lines for batch in read if batch.lines is not None)]
    texts = {column: pa.chunked_array(parts, pa.string()).combine_chunks() for column, parts in columns.items()}
    return _Given(file, texts, np.concatenate(lines))


def _plain(names: Sequence[str], needed: Sequence[str], file: str) -> list[str]:
    """Return the names of columns in lower case. Raises `InputError` if one is missing or occurs twice."""
    plain = [column.strip().lower() for column in names]
    try:
        check_columns(names, needed, plain)
    except FormatError as fault:
        raise InputError(Problem(file, None, fault.expected, fault.found, fault.remedy)) from None
    return plain


def _stretches(given: _Given, problems: Problems) -> tuple[TableRows, Bool]:
    """Return the rows of a table as stretches of time, and which rows have no fault."""
    columns = given.columns
    if "duration" not in columns and "end" not in columns:
        raise InputError(Problem(given.name, None, "a column duration or end", "neither", "Give one, in seconds."))
    size = len(columns["document"])
    faults = RowFaults(size)
    known = ("query", "document", "channel", "start", *(["duration"] if "duration" in columns else ["end"]))
    used = {column: columns[column] for column in known if column in columns}
    try:
        for column, values in used.items():
            check_type(column, values.type)
    except FormatError as error:
        raise InputError(Problem(given.name, None, error.expected, error.found, error.remedy)) from None
    rows = read_rows({**used, "score": pa.array(np.zeros(size))}, faults)
    for row, fault in faults:
        given.note(row, fault, problems)
    return rows, faults.good


def _documents(ids: Sequence[str], codes: NDArray[np.int32], name: str, problems: Problems) -> pa.Array:
    """Return the documents of a column of audio file names."""
    for each in ids:
        wrong = document_fault(each)
        if wrong:
            problems.add(name, None, "a document", wrong, "Give it a plain name.")
    return _take_texts([document_id(each) for each in ids], codes)


def _take_texts(texts: Sequence[str], codes: NDArray[np.int32]) -> pa.Array:
    """Return the text of each code; "" for the code -1 of a row without text."""
    return pc.fill_null(pa.array(texts, pa.string()).take(pa.array(codes, mask=codes < 0)), "")


def read_query_table(queries: Table | Iterable[str] | str, problems: Problems) -> pa.Table:
    """Return the query list from a table or from ids, without texts. Problems are added to `problems`."""
    listed: Any = (
        queries if isinstance(queries, str | Mapping) or is_table(queries) else list(cast("Iterable[object]", queries))
    )
    if isinstance(listed, str | Mapping) or is_table(listed):
        given = _open_given(listed, "queries", ("query",), problems)
        ids = given.texts("query", None).to_pylist()
        others = [name for name in given.columns if name != "query"]
        columns = [given.texts(name).to_pylist() for name in others]
        attributes = [
            [(name, value) for name, value in zip(others, values, strict=True) if value]
            for values in zip(*columns, strict=True)
        ] or [[] for _ in ids]
    else:
        ids = sorted(map(str, listed))
        attributes = [[] for _ in ids]
        given = _Given("queries", {}, np.arange(len(ids), dtype=np.int64) + 1)
    seen: set[str] = set()
    for row, name in enumerate(ids):
        wrong = "no id" if name is None else id_fault(name)
        if wrong or name in seen:
            found = wrong or f"{shown(name)} again"
            given.note(row, FormatError("a query once", found, "Give every query its id."), problems)
        seen.add(name)
    if len(ids) > MOST_TOKENS:
        expected = f"at most {MOST_TOKENS:,} queries with a table of occurrences"
        raise InputError(Problem(given.name, None, expected, f"{len(ids):,}", "Write the reference as NIST's files."))
    columns_of = [pa.array(ids, pa.string()), pa.array([""] * len(ids), pa.string())]
    return pa.Table.from_arrays([*columns_of, pa.array(attributes, QUERIES.field("attributes").type)], schema=QUERIES)
