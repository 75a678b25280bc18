"""A reference in tables in memory: documents, occurrences of queries, and the queries.

- documents: `document`, `duration` or `end`, and optionally `channel` (absent: 1), `start` (absent: 0), `source_type`,
  `language`. A row is an evaluated excerpt, as in an ECF.
- occurrences: `query`, `document`, `start`, `duration` or `end`, and optionally `channel`, `speaker`, `grade`. A row
  is a place where a query was spoken, as it is: no words are searched. Rows that are equal count once, with a note.
  With grades, whole numbers, a row of grade 0 or below is no occurrence, and where trials are documents, the highest
  grade of a query in a document is its judgment.
- queries: `query`, and optionally attributes in further columns, which conditions can be made of (a column `text` has
  the texts of the queries); or ids alone. Absent: the queries of the occurrences, sorted.

Times are in seconds. What is wrong with a row is reported with its number, from 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdask.formats.in_memory import Table, as_arrow, is_table
from swsdask.formats.reference.queries import FIRST_TOKEN
from swsdask.formats.reference.rttm import repeated
from swsdask.formats.reference.trec import GRADE
from swsdask.formats.runs.arrow import RowFaults, Rows, read_rows
from swsdask.formats.runs.table import check_type
from swsdask.formats.values import FormatError, check_columns, shown
from swsdask.model.errors import InputError, Problem, Problems
from swsdask.model.schemas import DOCUMENTS, JUDGMENTS, QUERIES, WORDS
from swsdask.model.trials import Bool
from swsdask.model.units import document_fault, document_id, id_fault

_MOST_QUERIES = 0xFFFE


def read_documents(table: Table, problems: Problems) -> pa.Table:
    """The excerpts of a table of documents, as `model.schemas.DOCUMENTS`; what is wrong is added to `problems`."""
    columns = _columns(table, "documents", ("document",))
    columns.setdefault("start", pa.array(np.zeros(len(columns["document"]))))
    rows, good = _stretches({**columns, "query": columns["document"]}, "documents", problems)
    empty = good & (rows.duration == 0)
    for row in np.flatnonzero(empty).tolist():
        problems.add("documents", row + 1, "a duration of more than 0 seconds", "0", "Correct or remove the row.")
    document = _documents(rows.document.ids, rows.document.codes, "documents", problems)
    text = (_texts(columns, name, len(good)) for name in ("source_type", "language"))
    times = (pa.array(column) for column in (rows.channel, rows.start, rows.start + rows.duration))
    metadata = {"rounded": str(int(rows.rounded.sum()))}
    return pa.Table.from_arrays([document, *times, *text], schema=DOCUMENTS.with_metadata(metadata))


def read_occurrences(
    table: Table, queries: Table | Iterable[str] | None, problems: Problems
) -> tuple[pa.Table, pa.Table, pa.Table]:
    """The tables QUERIES, WORDS and JUDGMENTS of occurrences; what is wrong is added to `problems`.

    Every occurrence is one word, and the text of its query is that word.
    """
    columns = _columns(table, "occurrences", ("query", "document", "start"))
    rows, good = _stretches(columns, "occurrences", problems)
    listed = _queries(rows.query.ids if queries is None else queries, problems)
    tokens = [chr(FIRST_TOKEN + number) for number in range(listed.num_rows)]
    token = dict(zip(listed["query"].to_pylist(), tokens, strict=True))
    unknown = [name for name in rows.query.ids if name not in token]
    for name in unknown:
        row = int(np.flatnonzero(rows.query.codes == rows.query.ids.index(name))[0])
        problems.add("occurrences", row + 1, "a query of the list", shown(name), "Add it to queries.")
    document = _documents(rows.document.ids, rows.document.codes, "occurrences", problems)
    word = pa.array([token.get(name, "") for name in rows.query.ids], pa.string()).take(pa.array(rows.query.codes))
    words = pa.Table.from_arrays(
        [
            document,
            pa.array(rows.channel),
            _texts(columns, "speaker", len(good)),
            pa.array(rows.start),
            pa.array(rows.start + rows.duration),
            word,
            pa.array(["lex"] * len(good), pa.string()),
        ],
        schema=WORDS,
    )
    judgments = JUDGMENTS.empty_table()
    if "grade" in columns:
        grade = _grades(columns["grade"], problems)
        query = pa.array(rows.query.ids, pa.string()).take(pa.array(rows.query.codes))
        judgments = _judgments(query, document, grade)
        words = words.filter(pa.array(grade > 0))
    said = {"rounded": str(int(rows.rounded.sum())), "repeated": str(repeated(words) or "")}
    words = words.replace_schema_metadata({name: value for name, value in said.items() if value})
    return listed.set_column(1, QUERIES.field("text"), pa.array(tokens, pa.string())), words, judgments


def _grades(column: pa.Array, problems: Problems) -> NDArray[np.int64]:
    """The grades of occurrences; 0 for one that cannot be read."""
    text = pc.fill_null(column.cast(pa.string()), "")
    fine = pc.match_substring_regex(text, GRADE).to_numpy(zero_copy_only=False)
    for row in np.flatnonzero(~fine).tolist():
        problems.add("occurrences", row + 1, "a whole number as grade", shown(text[row].as_py()), "Correct the row.")
    grades: NDArray[np.int64] = pc.if_else(pa.array(fine), text, "0").cast(pa.int64()).to_numpy()
    return grades


def _judgments(query: pa.Array, document: pa.Array, grade: NDArray[np.int64]) -> pa.Table:
    """The highest grade of each query in each document."""
    given = pa.table({"query": query, "document": document, "grade": grade})
    highest = given.group_by(["query", "document"]).aggregate([("grade", "max")])
    columns = [highest[name] for name in ("query", "document", "grade_max")]
    found = pa.Table.from_arrays(columns, names=JUDGMENTS.names)
    return found.sort_by([("query", "ascending"), ("document", "ascending")]).cast(JUDGMENTS)


def _columns(table: Table, name: str, needed: Sequence[str]) -> dict[str, pa.Array]:
    """The columns of a table by their names in small letters. Raises `InputError` where one is missing or no column."""
    arrow = as_arrow(table, name)
    plain = [column.strip().lower() for column in arrow.column_names]
    try:
        check_columns(arrow.column_names, needed, plain)
    except FormatError as fault:
        raise InputError(Problem(name, None, fault.expected, fault.found, fault.remedy)) from None
    return {column: values.combine_chunks() for column, values in zip(plain, arrow.columns, strict=True)}


def _stretches(columns: Mapping[str, pa.Array], name: str, problems: Problems) -> tuple[Rows, Bool]:
    """The stretches of time that the rows of a table are, and which rows have no fault."""
    if "duration" not in columns and "end" not in columns:
        raise InputError(Problem(name, None, "a column duration or end", "neither", "Give one of them, in seconds."))
    size = len(columns["document"])
    faults = RowFaults(size)
    known = ("query", "document", "channel", "start", *(["duration"] if "duration" in columns else ["end"]))
    used = {column: columns[column] for column in known if column in columns}
    try:
        for column, values in used.items():
            check_type(column, values.type)
    except FormatError as error:
        raise InputError(Problem(name, None, error.expected, error.found, error.remedy)) from None
    rows = read_rows({**used, "score": pa.array(np.zeros(size))}, faults)
    for row, fault in faults:
        problems.add(name, row + 1, fault.expected, fault.found, fault.remedy)
    return rows, faults.good


def _documents(ids: Sequence[str], codes: NDArray[np.int32], name: str, problems: Problems) -> pa.Array:
    """The documents that the audio files of a column are."""
    for each in ids:
        wrong = document_fault(each)
        if wrong:
            problems.add(name, None, "a document", wrong, "Give it a plain name.")
    return pa.array([document_id(each) for each in ids], pa.string()).take(pa.array(codes))


def _texts(columns: Mapping[str, pa.Array], name: str, size: int) -> pa.Array:
    """A column of text, "" where there is none."""
    if name not in columns:
        return pa.array([""] * size, pa.string())
    return pc.fill_null(columns[name].cast(pa.string()), "")


def _queries(queries: Table | Iterable[str], problems: Problems) -> pa.Table:
    """The query list, without texts."""
    if is_table(queries):
        columns = _columns(queries, "queries", ("query",))
        ids = columns.pop("query").cast(pa.string()).to_pylist()
        attributes = [
            [(name, value) for name, value in zip(columns, values, strict=True) if value]
            for values in zip(*(_texts(columns, name, len(ids)).to_pylist() for name in columns), strict=True)
        ] or [[] for _ in ids]
    else:
        ids = sorted(map(str, cast("Iterable[object]", queries)))
        attributes = [[] for _ in ids]
    seen: set[str] = set()
    for row, name in enumerate(ids, 1):
        wrong = "no id" if name is None else id_fault(name)
        if wrong or name in seen:
            problems.add("queries", row, "a query once", wrong or f"{shown(name)} again", "Give every query its id.")
        seen.add(name)
    if len(ids) > _MOST_QUERIES:
        expected = f"at most {_MOST_QUERIES} queries with a table of occurrences"
        raise InputError(Problem("queries", None, expected, str(len(ids)), "Write the reference as NIST's files."))
    columns_of = [pa.array(ids, pa.string()), pa.array([""] * len(ids), pa.string())]
    return pa.Table.from_arrays([*columns_of, pa.array(attributes, QUERIES.field("attributes").type)], schema=QUERIES)
