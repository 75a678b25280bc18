from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from swsdask.execution.executor import SerialExecutor, Unseen
from swsdask.model import parquet_files
from swsdask.model.errors import ExecutionError
from swsdask.model.results import ALIGNMENT
from swsdask.model.system_rows import Spill, SystemRows
from swsdask.model.trials import Reference, Segments
from swsdask.model.units import id_hash
from swsdask.scoring import alignment_table
from swsdask.scoring.alignment_table import align_systems
from tests import engines

S = 10_000
OCCURRENCES = [
    (0, 0, 1, 10 * S, 11 * S),
    (0, 0, 1, 20 * S, 21 * S),
    (0, 1, 2, 5 * S, 6 * S),
    (1, 0, 1, 10 * S, 11 * S),
]
ROWS = [
    (0, 0, 1, 10 * S, S // 2, 0.9, 1, 1),
    (0, 0, 1, 20 * S, S, 0.4, 0, 1),
    (0, 0, 1, 50 * S, S, 0.8, 1, 1),
    (0, 1, 1, 5 * S, S, 0.2, 0, 1),
    (1, -1, 1, 0, S, 0.7, 1, 0),
]


def aligned(evaluated: Reference, rows: Any = ROWS, **systems: Any) -> list[dict[str, Any]]:
    return table(engines.archive_of({"s": rows, **systems}), evaluated).to_pylist()


def rows_of(archive: Any, evaluated: Reference) -> SystemRows:
    engine = engines.settings().engine
    held = align_systems(archive, archive.runs, evaluated, SerialExecutor(), engine, Unseen(), Spill())
    return SystemRows(ALIGNMENT, {run.system: held[run.system] for run in archive.runs})


def table(archive: Any, evaluated: Reference) -> pa.Table:
    return rows_of(archive, evaluated).table.cast(ALIGNMENT).combine_chunks()


def test_every_outcome_of_virtual_trials() -> None:
    evaluated = engines.evaluation(OCCURRENCES, [0, 0, 0], n_queries=2, tolerance=S // 2, outside="false_alarm")
    found = [tuple(row.values()) for row in aligned(evaluated)]
    assert found == [
        ("s", "q0", "d0", 1, 10.0, 11.0, 10.0, 10.5, 0.9, "YES", "hit"),
        ("s", "q0", "d0", 1, 20.0, 21.0, 20.0, 21.0, 0.4, "NO", "miss"),
        ("s", "q0", "d0", 1, None, None, 50.0, 51.0, 0.8, "YES", "false_alarm"),
        ("s", "q0", "d1", 1, None, None, 5.0, 6.0, 0.2, "NO", "correct_nondetection"),
        ("s", "q0", "d1", 2, 5.0, 6.0, None, None, None, None, "miss"),
        ("s", "q1", "", 1, None, None, 0.0, 1.0, 0.7, "YES", "false_alarm"),
        ("s", "q1", "d0", 1, 10.0, 11.0, None, None, None, None, "miss"),
    ]


def test_documents_that_the_evaluation_does_not_know_are_named() -> None:
    evaluated = engines.evaluation(OCCURRENCES, [0, 0, 0], n_queries=2, tolerance=S // 2, outside="false_alarm")
    ids = {"zz": 1, "aa": 2, "spoken": 1}
    rows = [(1, -1, 1, start, S, 0.5, 1, 0) for start in (0, 1, 2, 3)] + ROWS[:1]
    held = replace(
        engines.detections(rows),
        unknown_document=np.array([*map(id_hash, ("zz", "aa", "aa", "not counted")), 0]),
    )
    run = replace(engines.run_of("s", rows), unknown_documents=ids)
    archive = engines.CellArchive((run,), {"s": [engines.MemoryCell("s", "s", held)]})
    named = [(row["document"], row["start"]) for row in table(archive, evaluated).to_pylist() if row["query"] == "q1"]
    assert named == [("", 0.0003), ("aa", 0.0001), ("aa", 0.0002), ("zz", 0.0), ("d0", None)]


def test_what_is_dropped_is_no_trial() -> None:
    evaluated = engines.evaluation(OCCURRENCES, [0, 0, 0], n_queries=2, tolerance=S // 2)
    assert [row["outcome"] for row in aligned(evaluated)].count("false_alarm") == 1


def test_document_trials_have_no_times_of_the_reference() -> None:
    evaluated = engines.evaluation(OCCURRENCES, [0, 0, 0], n_queries=2, trials="document")
    found = [tuple(row.values()) for row in aligned(evaluated)]
    assert found == [
        ("s", "q0", "d0", 1, None, None, 10.0, 10.5, 0.9, "YES", "hit"),
        ("s", "q0", "d1", 1, None, None, 5.0, 6.0, 0.2, "NO", "miss"),
        ("s", "q1", "d0", None, None, None, None, None, None, None, "miss"),
    ]


def test_segment_trials_have_the_times_of_the_segment() -> None:
    starts = np.array([0, 15 * S, 0], np.int32)
    segments = Segments(np.array([0, 0, 1], np.int32), np.array([1, 1, 2], np.int8), starts, starts + np.int32(15 * S))
    evaluated = engines.evaluation(OCCURRENCES, [0, 0, 0], n_queries=2, trials="segment", segments=segments)
    found = [tuple(row.values()) for row in aligned(evaluated)]
    assert found == [
        ("s", "q0", "d0", 1, 0.0, 15.0, 10.0, 10.5, 0.9, "YES", "hit"),
        ("s", "q0", "d0", 1, 15.0, 30.0, 20.0, 21.0, 0.4, "NO", "miss"),
        ("s", "q0", "d1", 2, 0.0, 15.0, None, None, None, None, "miss"),
        ("s", "q1", "d0", 1, 0.0, 15.0, None, None, None, None, "miss"),
    ]


def test_without_decisions_mapped_trials_are_hits_and_the_others_false_alarms() -> None:
    evaluated = engines.evaluation(OCCURRENCES, [0, 0, 0], n_queries=2, tolerance=S // 2)
    rows = [(*row[:6], -1, row[7]) for row in ROWS]
    found = aligned(evaluated, rows)
    assert [row["outcome"] for row in found] == ["hit", "hit", "false_alarm", "false_alarm", "miss", "miss"]
    assert {row["decision"] for row in found} == {None}


def test_systems_come_in_the_given_order_and_one_without_detections_missed_everything() -> None:
    evaluated = engines.evaluation(OCCURRENCES, [0, 0, 0], n_queries=2)
    found = aligned(evaluated, [], r=ROWS)
    assert [row["outcome"] for row in found if row["system"] == "s"] == ["miss"] * 4
    assert [row["system"] for row in found] == ["s"] * 4 + ["r"] * (len(found) - 4)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("few", [0, 1000])
def test_the_size_of_pieces_changes_nothing(monkeypatch: pytest.MonkeyPatch, size: int, few: int) -> None:
    evaluated = engines.evaluation(OCCURRENCES, [0, 0, 0], n_queries=2, tolerance=S // 2, outside="false_alarm")
    archive = engines.archive_of({"s": ROWS, "t": ROWS[::2]})
    whole = table(archive, evaluated)
    monkeypatch.setattr(parquet_files, "_ROWS_PER_GROUP", 2)
    content = b"".join(rows_of(archive, evaluated).parts())
    pieces = engines.CellArchive(archive.runs, {name: cut(name) for name in "st"})
    monkeypatch.setattr(alignment_table, "ROWS_AT_ONCE", size)
    monkeypatch.setattr(alignment_table, "FEW_ROWS", few)
    assert table(pieces, evaluated).equals(whole)
    assert b"".join(rows_of(pieces, evaluated).parts()) == content
    again = SystemRows.of(whole, ALIGNMENT)
    assert b"".join(again.parts()) == content


def cut(system: str) -> list[engines.MemoryCell]:
    rows = ROWS if system == "s" else ROWS[::2]
    return [engines.cell_of(system, [row for row in rows if row[1] == document]) for document in (1, -1, 0)]


def test_a_failing_cell_is_named() -> None:
    class Broken:
        system, source, rows, is_distant = "s", "part-3.parquet", 7, False

        def read(self, columns: Any, *, checked: bool = True) -> Any:
            raise OSError("gone")

    archive = engines.CellArchive((engines.run_of("s", ROWS),), {"s": [Broken()]})
    with pytest.raises(ExecutionError, match=r"^system s: part-3\.parquet \(7 rows\): OSError: gone$"):
        table(archive, engines.evaluation(OCCURRENCES, [0, 0, 0], n_queries=2))


def test_targets_without_a_trial_are_ordered_by_channel_before_time() -> None:
    rows = aligned(engines.evaluation([(0, 0, 1, 20 * S, 21 * S), (0, 0, 2, 10 * S, 11 * S)], [0, 0]), [])
    assert [(row["channel"], row["reference_start"]) for row in rows] == [(1, 20.0), (2, 10.0)]
