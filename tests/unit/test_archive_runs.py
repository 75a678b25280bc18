"""Runs become rows of an archive: codes, what is inside, what is unknown; in memory and what is said of them."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from swsdask.archive.memory import MemoryArchive, read_into_memory
from swsdask.archive.protocols import check_runs
from swsdask.archive.storage import Storage
from swsdask.archive.stored_tables import (
    RUNS,
    Fragment,
    StoredFile,
    StoredRun,
    read_runs_table,
    read_table,
    write_runs_table,
    write_table,
)
from swsdask.model.errors import ArchiveError, InputError
from swsdask.model.hashes import hash_tables
from swsdask.model.results import note_lines
from swsdask.model.schemas import RunHeader
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import ScoreRange
from tests.archives import Pieces, Row, as_rows, excerpt, piece, queries, source, tables, words

TABLES = tables(
    [excerpt("d2", 0, 1000), excerpt("d1", 100, 200), excerpt("d1", 150, 400), excerpt("d1", 0, 50, channel=2)],
    queries({"q2": "b", "q1": "a"}),
    words([("a", 100, 110, "lex")], document="d1"),
)
ROWS: list[Row] = [
    ("q1", "d1", 1, 100, 100, 0.5, 1),
    ("q1", "d1", 1, 140, 100, 0.25, 0),
    ("q1", "d1", 2, 10, 20, 0.75, 1),
    ("q2", "d2", 1, 0, 1000, -1.5, 0),
    ("q2", "d2", 1, 0, 1001, 2.5, 1),
]
UNKNOWN: list[Row] = [
    ("q1", "x", 1, 0, 1, 9.0, 1),
    ("zz", "d1", 1, 0, 1, 8.0, 1),
    ("q2", "x", 1, 0, 1, 7.0, 1),
    ("zz", "y", 1, 0, 1, 6.0, 1),
]
TOLERANT = {"unknown_documents": "outside", "unknown_queries": "drop"}


def memory(*sources: Pieces, **settings: Any) -> MemoryArchive:
    return read_into_memory(TABLES, sources, EvaluationSettings(**settings))


def test_rows_get_codes_inside_and_canonical_order() -> None:
    archive = memory(source(ROWS))
    assert [row[:6] + row[7:] for row in plain(archive)] == [
        (0, 0, 1, 0, 1000, -1.5, 1),
        (0, 0, 1, 0, 1001, 2.5, 0),
        (1, 1, 1, 100, 100, 0.5, 1),
        (1, 1, 1, 140, 100, 0.25, 0),
        (1, 1, 2, 10, 20, 0.75, 1),
    ]
    (run,) = archive.runs
    assert (run.system, run.rows, run.outside, run.has_decisions, run.scores.run) == ("a", 5, 2, True, (-1.5, 2.5))
    assert (run.files, run.unknown_documents, run.unknown_queries) == (("a.tsv",), {}, {})


def plain(archive: MemoryArchive, system: str = "a") -> list[tuple[Any, ...]]:
    names = ("query", "document", "channel", "start", "duration", "score", "decision", "inside")
    return [
        row
        for cell in archive.cells(system, 2)
        for row in zip(*(getattr(cell.read(names), n).tolist() for n in names), strict=True)
    ]


def test_unknown_ids_are_kept_dropped_and_counted() -> None:
    archive = memory(source(ROWS + UNKNOWN), **TOLERANT)
    (run,) = archive.runs
    assert (run.unknown_documents, run.unknown_queries) == ({"x": 2}, {"zz": 2})
    assert (run.rows, run.outside, run.scores.run) == (7, 4, (-1.5, 9.0))
    assert [row[:2] for row in plain(archive) if row[1] == -1] == [(0, -1), (1, -1)]
    assert run.content != memory(source(ROWS)).runs[0].content


def test_unknown_ids_are_errors_with_their_first_lines() -> None:
    with pytest.raises(InputError) as caught:
        memory(source(ROWS + UNKNOWN))
    assert [(p.file, p.line, p.found) for p in caught.value.problems] == [
        ("a.tsv", 8, "'zz' in 2 rows"),
        ("a.tsv", 7, "'x' in 2 rows"),
    ]


def test_the_message_lists_ten_ids_and_counts_the_rest() -> None:
    rows: list[Row] = [("q1", f"x{i:02}", 1, 0, 1, 0.5, 1) for i in range(14)]
    with pytest.raises(InputError) as caught:
        memory(source(rows))
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(
        "a.tsv:2: expected a document of the reference; found 'x00' in 1 row. Correct the id, or set "
    )
    assert len(lines) == 11
    assert "and 4 more" in lines[10]


def test_a_listed_query_without_rows_must_be_known_too() -> None:
    listing = Pieces((piece(ROWS, listed=["q1", "nowhere"]),))
    with pytest.raises(InputError, match="found 'nowhere', listed without detections"):
        memory(listing)
    assert memory(listing, unknown_queries="drop").runs[0].unknown_queries == {"nowhere": 0}


def test_problems_of_reading_and_of_ids_come_together() -> None:
    with pytest.raises(InputError) as caught:
        memory(Pieces((piece(UNKNOWN[:1]),), wrong=(5, 6)))
    assert [problem.line for problem in caught.value.problems] == [5, 6, 2]


def test_pieces_of_one_run_add_up() -> None:
    first = piece(ROWS[:2] + UNKNOWN[:1], header=RunHeader("a", (0.0, 1.0), {"language": "x"}), rounded=2)
    second = piece(
        UNKNOWN + ROWS[2:], first_line=50, header=RunHeader("a", (-2.0, 0.5), {"language": "y", "z": "1"}), rounded=1
    )
    (run,) = memory(Pieces((first, second)), **TOLERANT).runs
    assert (run.rows, run.rounded, run.unknown_documents) == (8, 3, {"x": 3})
    assert run.scores.declared == (-2.0, 1.0)
    assert run.attributes == {"language": "x", "z": "1"}
    with pytest.raises(InputError) as caught:
        memory(Pieces((first, second)))
    assert [(p.line, p.found) for p in caught.value.problems] == [(51, "'zz' in 2 rows"), (4, "'x' in 3 rows")]


def test_a_run_without_rows_is_a_run() -> None:
    archive = memory(source([], "empty"))
    assert list(archive.cells("empty", 10)) == []
    assert (archive.runs[0].rows, archive.runs[0].scores.run, archive.runs[0].has_decisions) == (0, (0.0, 0.0), True)


def test_decisions_must_be_there_for_all_rows_or_none() -> None:
    undecided: list[Row] = [(*row[:6], -1) for row in ROWS]
    assert not memory(source(undecided)).runs[0].has_decisions
    decided, without = piece(ROWS, first_line=3), piece(undecided, first_line=80)
    pieces = [Pieces((decided, decided, without)), Pieces((without, decided))]
    for run, where, expected, found in (
        (pieces[0], 80, "a decision, as in a.tsv:3", "a row without one"),
        (pieces[1], 3, "no decision, as in a.tsv:80", "a row with a decision"),
    ):
        with pytest.raises(InputError) as caught:
            memory(run)
        (problem,) = caught.value.problems
        assert (problem.line, problem.expected, problem.found) == (where, expected, found)
    with pytest.raises(InputError, match=r"a decision, as in a\.tsv:2; found a row without one"):
        memory(source([*ROWS, *undecided]))


def test_two_files_of_one_name_are_refused_unless_the_user_named_them() -> None:
    one, other = Pieces((piece(ROWS[:2]),), "one.tsv"), Pieces((piece(ROWS[2:]),), "other.tsv")
    with pytest.raises(
        InputError, match=r"other.tsv: expected a run of another system; found a run of 'a', as in one.tsv"
    ):
        memory(one, other)
    with pytest.raises(InputError, match="a run of another system"):
        memory(one, Pieces(other.pieces, other.file, "a"))
    named = [Pieces(each.pieces, each.file, "a") for each in (one, other)]
    assert memory(*named).runs[0].content == memory(source(ROWS)).runs[0].content
    parts_of_one_file = [one, Pieces((piece(ROWS[2:]),), "one.tsv")]
    assert as_cells(memory(*parts_of_one_file)) == as_cells(memory(source(ROWS)))


def as_cells(archive: MemoryArchive) -> list[tuple[Any, ...]]:
    return as_rows(archive.detections.values())


def test_cells_are_cut_between_pairs_picklable_and_read_what_is_asked() -> None:
    archive = memory(source(ROWS), source(ROWS[:1], "b"))
    cells = list(archive.cells("a", 1))
    assert [cell.rows for cell in cells] == [2, 3]
    assert (cells[0].system, cells[0].source) == ("a", "a.tsv")
    read = pickle.loads(pickle.dumps(cells[1])).read(["start", "decision"])
    assert read.start.tolist() == [100, 140, 10]
    assert read.query.tolist() == [1, 1, 1]
    assert read.duration is None
    assert read.inside is None
    assert [run.system for run in archive.runs] == ["a", "b"]
    with pytest.raises(ArchiveError, match="there are: a, b"):
        list(archive.cells("c", 1))


def test_negative_zero_scores_are_zero() -> None:
    archive = memory(source([("q1", "d1", 1, 0, 1, -0.0, 1)]))
    (cell,) = archive.cells("a", 10)
    assert not np.signbit(cell.read([]).score).any()


def test_inputs_are_of_what_the_tables_say() -> None:
    whole = words([("a", 0, 10, "lex"), ("bc", 10, 20, "lex")])
    chunked = whole.slice(1)
    assert hash_tables(whole) == hash_tables(type(whole).from_batches(whole.to_batches(max_chunksize=1)))
    assert hash_tables(chunked) == hash_tables(words([("bc", 10, 20, "lex")]))
    different = [
        whole,
        chunked,
        words([("ab", 0, 10, "lex"), ("c", 10, 20, "lex")]),
        words([("a", 0, 10, "lex"), ("bc", 10, 21, "lex")]),
        whole.replace_schema_metadata({"x": "y"}),
        queries({"a": "b"}),
        queries({"a": "b"}, {"a": {"x": "y"}}),
        queries({"a": "b"}, language="x"),
    ]
    assert len({hash_tables(each) for each in different}) == len(different)
    assert set(TABLES.inputs) == {"ecf", "rttm", "queries"}


class TestPolicy:
    def check(self, rows: list[Row], **settings: Any) -> tuple[str, ...]:
        archive = memory(source(rows), **TOLERANT)
        return tuple(note_lines(check_runs(archive, archive.runs, EvaluationSettings(**settings))))

    def test_nothing_to_say(self) -> None:
        assert self.check(ROWS[:1]) == ()

    def test_what_ingest_tolerated_is_judged_again(self) -> None:
        with pytest.raises(InputError) as caught:
            self.check(ROWS + UNKNOWN)
        assert [problem.found for problem in caught.value.problems] == [
            "2 rows of unknown queries: zz (2)",
            "2 rows in unknown documents: x (2)",
        ]

    def test_outside_can_be_an_error(self) -> None:
        with pytest.raises(InputError, match="4 outside"):
            self.check(ROWS + UNKNOWN[:1] + UNKNOWN[2:3], outside="error", **TOLERANT)

    def test_what_is_dropped_is_reported(self) -> None:
        assert self.check(ROWS + UNKNOWN, **TOLERANT) == (
            "a: dropped: 2 detections of unknown queries: zz (2).",
            "a: dropped: 2 detections in documents that the evaluation does not know: x (2).",
            "a: dropped: 2 detections outside the evaluated excerpts.",
        )
        (note,) = self.check(ROWS[2:], outside="false_alarm")
        assert (
            note
            == "a: counted as false alarms unless they match an occurrence: 1 detection outside the evaluated excerpts."
        )

    def test_ten_ids_are_listed_and_the_rest_counted(self) -> None:
        rows: list[Row] = [("q1", f"x{i:02}", 1, 0, 1, 0.5, 1) for i in range(13)]
        (note,) = self.check(rows, **TOLERANT)
        assert "x09 (1) and 3 more ids." in note

    def test_rounding_is_reported(self) -> None:
        archive = memory(source([("q1", "d1", 1, 100, 1, 0.5, 1)], rounded=3))
        assert [*note_lines(check_runs(archive, archive.runs, EvaluationSettings()))] == [
            "a: rounded: 3 times finer than 0.1 ms."
        ]


def test_every_pyarrow_reads_the_table_of_runs() -> None:
    """Below 26 pyarrow does not read a null in a column of lists of fixed size."""
    assert not any(pa.types.is_fixed_size_list(field.type) for field in RUNS)


@pytest.mark.parametrize("declared", [None, (-2.0, 3.0)])
def test_ranges_of_scores_in_lists_of_fixed_size_are_read(tmp_path: Path, declared: tuple[float, float] | None) -> None:
    """As 0.1.0 first wrote them, beside a system whose name is the key that is put out of use."""
    (run,) = memory(source(ROWS)).runs
    scores = ScoreRange(declared, run.scores.run)
    runs = [
        StoredRun(replace(run, system=name, scores=scores), (Fragment(StoredFile("rows.parquet"), (5,)),))
        for name in ("ARROW:schema", "b")
    ]
    storage = Storage(str(tmp_path))
    rows = read_table(storage, write_runs_table(storage, "now.parquet", runs), RUNS).to_pylist()
    pair = pa.list_(pa.float64(), 2)
    then = pa.schema([field.with_type(pair) if "scores" in field.name else field for field in RUNS])
    written = write_table(storage, "then.parquet", pa.Table.from_pylist(rows, then))
    assert list(read_runs_table(storage, written).values()) == runs
