from __future__ import annotations

import itertools
import weakref
from graphlib import CycleError
from typing import Any

import numpy as np
import pytest

from swsdask.execution.executor import SerialExecutor
from swsdask.measures import select
from swsdask.model.errors import ArchiveError, ExecutionError, InputError
from swsdask.model.trials import Detections
from swsdask.scoring.detections import CellTask, HeldCell, Round, rounds
from swsdask.scoring.rounds import merge
from swsdask.scoring.score import runs_of, score_archive
from swsdask.statistics.counts import Counts
from swsdask.statistics.ladder import AllScores, Hits, Ladder, QueryLadder
from swsdask.statistics.onsets import Onsets, PointsBefore
from tests import engines

ROWS = [(0, 0, 1, 10, 4, 0.5, 1, 1), (1, 1, 1, 10, 4, 0.25, 0, 1), (1, 2, 1, 50, 4, 0.75, 1, 1)]
REFERENCE = engines.evaluation([(0, 0, 1, 10, 14), (1, 1, 1, 30, 34)], [0, 0, 0, 0], n_queries=2)


def statistic(name: str, *after: Any) -> Any:
    return type(name, (), {"after": after})


def names(order: Any) -> list[set[str]]:
    return [{each.__name__ for each in of} for of in order]


def test_what_is_needed_and_all_it_comes_after_in_as_few_rounds_as_there_can_be() -> None:
    a, b = statistic("a"), statistic("b")
    c = statistic("c", a)
    d = statistic("d", c, b)
    assert names(rounds([d])) == [{"a", "b"}, {"c"}, {"d"}]
    assert names(rounds([b, c, b])) == [{"a", "b"}, {"c"}]
    assert rounds([]) == []
    c.after = (d,)
    with pytest.raises(CycleError):
        rounds([d])


def test_every_threshold_measure_takes_two_rounds() -> None:
    order = rounds(needed for family in select(["atwv", "mtwv", "otwv", "eer"]) for needed in family.needs)
    assert [set(of) for of in order] == [{Counts, Hits, AllScores}, {Ladder, QueryLadder}]
    assert [any(s.aligned for s in of) for of in order] == [True, False]


def test_gap_takes_two_rounds_without_alignment() -> None:
    order = rounds(needed for family in select(["mgap"]) for needed in family.needs)
    assert order == [(Onsets,), (PointsBefore,)]
    assert not any(s.aligned for of in order for s in of)


class Sum:
    after = ()
    aligned = False

    def __init__(self, value: int) -> None:
        self.value = value

    def merge(self, other: Sum) -> Sum:
        return Sum(self.value + other.value)


def test_parts_are_merged_per_system_and_left_as_they_are() -> None:
    one: Any = {"a": {Sum: Sum(1)}, "b": {Sum: Sum(2)}}
    other: Any = {"b": {Sum: Sum(3)}, "c": {Sum: Sum(4)}}
    merged = merge(one, other)
    assert {system: found[Sum].value for system, found in merged.items()} == {"a": 1, "b": 5, "c": 4}
    assert one["b"][Sum].value == 2
    assert other["b"][Sum].value == 3


class Asked:
    """A cell that notes which columns are read, and may fail."""

    is_distant = False

    def __init__(self, error: Exception | None = None, system: str = "sys") -> None:
        self.system, self.rows, self.source = system, len(ROWS), "part-0.parquet"
        self.parts = (self.rows,)
        self.columns: list[set[str]] = []
        self.error = error

    def read(self, columns: Any, *, checked: bool = True) -> Any:
        self.columns.append(set(columns))
        if self.error:
            raise self.error
        return engines.cell_of("sys", ROWS).read(columns, checked=checked)

    def confirm(self, columns: Any) -> None:
        pass


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """No system is small."""
    monkeypatch.setattr("swsdask.scoring.detections.FEW_ROWS", 1)


def run(*cells: Any, measures: tuple[str, ...] = (), executor: SerialExecutor | None = None) -> Any:
    systems = [cell.system for cell in cells]
    archive = engines.CellArchive(
        tuple(engines.run_of(each, ROWS) for each in systems), {cell.system: [cell] for cell in cells}
    )
    families = select(measures or None)
    return score_archive(archive, systems, REFERENCE, families, engines.settings(), executor or SerialExecutor())


@pytest.mark.usefixtures("few_rows")
def test_the_second_round_reads_only_what_scores_need() -> None:
    cell = Asked()
    run(cell, measures=("mtwv", "map"), executor=engines.Forgetful())
    first, second = cell.columns
    assert first == {"query", "document", "channel", "start", "duration", "score", "decision", "inside"}
    assert second == {"query", "score", "inside"}


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize(("held_bytes", "reads"), [(0, 2), (len(ROWS) * 13 - 1, 2), (len(ROWS) * 13, 1)])
def test_what_later_rounds_need_is_held_where_memory_is_shared_and_there_is_room(
    monkeypatch: pytest.MonkeyPatch, held_bytes: int, reads: int
) -> None:
    """Of each row its query, score and place: 4 + 8 + 1 bytes."""
    monkeypatch.setattr("swsdask.scoring.detections.HELD_BYTES", held_bytes)
    cell, apart = Asked(), Asked()
    measures = ("mtwv", "map")
    found, right = run(cell, measures=measures), run(apart, measures=measures, executor=engines.Forgetful())
    assert (len(cell.columns), len(apart.columns)) == (reads, 2)
    assert (found.scores.files, found.curves.files) == (right.scores.files, right.curves.files)


@pytest.mark.usefixtures("few_rows")
def test_nothing_is_held_of_a_group_when_the_next_one_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[weakref.ref[Any]] = []
    alive: list[int] = []

    class Noted(HeldCell):
        def __init__(self, *of: Any) -> None:
            super().__init__(*of)
            alive.append(sum(each() is not None for each in held))
            held.append(weakref.ref(self))

    monkeypatch.setattr("swsdask.scoring.detections.HeldCell", Noted)
    monkeypatch.setattr("swsdask.scoring.detections.HELD_BYTES", len(ROWS) * 13)
    monkeypatch.setattr("swsdask.scoring.detections.TASKS_PER_WORKER", 1)
    run(*(Asked(system=each) for each in "abc"), measures=("mtwv", "map"))
    assert alive == [0, 0, 0]


@pytest.mark.usefixtures("few_rows")
def test_a_round_reads_what_its_statistics_need_of_detections() -> None:
    cell = Asked()
    run(cell, measures=("mgap",), executor=engines.Forgetful())
    assert cell.columns == [{"query", "document", "start", "score", "inside"}] * 2


def test_a_small_system_is_read_once() -> None:
    cell = Asked()
    run(cell, measures=("mtwv", "map"))
    assert len(cell.columns) == 1


class Ordered(Asked):
    """A cell that was read for the order of its rows, or was not: scores of zero keep their sign, or do not."""

    def read(self, columns: Any, *, checked: bool = True) -> Any:
        super().read(columns, checked=checked)
        score = np.array([-0.0, 1.0]) + (0.0 if "position" not in columns else -0.0)
        return Detections(np.zeros(2, np.int32), score, position=np.arange(2) if "position" in columns else None)


@pytest.mark.parametrize("names", [None, ["query", "score"], ["position"]])
def test_what_is_held_of_a_cell_is_what_reading_it_gives(names: list[str] | None) -> None:
    for first, second in itertools.product((["position"], ["query"], ["score"]), repeat=2):
        cell = Ordered()
        held = HeldCell(cell, names)  # type: ignore[arg-type]
        for columns in (first, second):
            found, right = held.read(columns), Ordered().read(columns)
            assert found.score.tobytes() == right.score.tobytes()
            assert (found.position is None) == (right.position is None)
        again = names == ["query", "score"] and "position" in first
        assert len(cell.columns) == 1 + (again or ("position" in first) != ("position" in second))


def test_what_is_held_unchecked_is_read_again_where_it_must_be_checked_unless_it_was_found_sound() -> None:
    cell = Asked()
    held = HeldCell(cell)  # type: ignore[arg-type]
    held.read(["query"], checked=False)
    held.read(["query"], checked=False)
    assert len(cell.columns) == 1
    held.read(["query"])
    held.read(["query"])
    assert len(cell.columns) == 2
    found = HeldCell(cell)  # type: ignore[arg-type]
    found.read(["query"], checked=False)
    found.confirm(["query"])
    found.read(["query"])
    assert len(cell.columns) == 3


def test_a_failing_cell_is_named_with_its_system_and_file() -> None:
    message = r"^system sys: part-0\.parquet \(3 rows\): OSError: disk on fire$"
    with pytest.raises(ExecutionError, match=message) as caught:
        run(Asked(OSError("disk on fire")))
    assert isinstance(caught.value.__cause__, OSError)


def test_an_error_of_ours_is_not_wrapped() -> None:
    with pytest.raises(ArchiveError, match=r"^gone$"):
        run(Asked(ArchiveError("gone")))


def test_detections_outside_are_refused_with_their_file() -> None:
    strict = engines.evaluation([(0, 0, 1, 10, 14)], [0, 0, 0, 0], n_queries=2, outside="error")
    cell = engines.cell_of("sys", [(*ROWS[0][:7], 0)])
    shared = (strict, Round.of((Counts,), {"sys": engines.run_of("sys", ROWS).scores}, {"sys": {}}, strict))
    with pytest.raises(InputError, match=r"sys\.0\.parquet"):
        CellTask((cell,)).count(shared)


def test_a_system_that_is_not_there_is_named_before_anything_runs() -> None:
    with pytest.raises(ArchiveError, match="no run of x, y; there are: sys"):
        runs_of(engines.CellArchive((engines.run_of("sys", ROWS),), {}), ["x", "sys", "y"])


def test_progress_of_small_systems_is_one_phase() -> None:
    seen = engines.Seen()
    systems = dict.fromkeys("abc", ROWS)
    archive: Any = engines.archive_of(systems)
    score_archive(archive, list(systems), REFERENCE, select(None), engines.settings(), SerialExecutor(), progress=seen)
    assert seen.phases == [["systems", 9, 9]]


@pytest.mark.usefixtures("few_rows")
def test_progress_reports_every_round_and_reaches_its_end() -> None:
    seen = engines.Seen()
    systems = dict.fromkeys("abc", ROWS)
    score_archive(
        engines.archive_of(systems),
        list(systems),
        REFERENCE,
        select(None),
        engines.settings(),
        SerialExecutor(),
        alignment=True,
        progress=seen,
    )
    assert seen.phases == [
        ["round 1 of 2", 9, 9],
        ["round 2 of 2", 9, 9],
        ["numbers", 9, 9],
        ["alignment", 9, 9],
    ]


@pytest.mark.usefixtures("few_rows")
def test_progress_reports_which_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsdask.scoring.rounds.MOST_SYSTEMS", 2)
    seen = engines.Seen()
    systems = dict.fromkeys("abc", ROWS)
    archive: Any = engines.archive_of(systems)
    score_archive(
        archive, list(systems), REFERENCE, select(["atwv"]), engines.settings(), SerialExecutor(), progress=seen
    )
    assert [phase for phase, _, _ in seen.phases] == [
        "round 1 of 1, systems 1-2 of 3",
        "numbers, systems 1-2 of 3",
        "round 1 of 1, system 3 of 3",
        "numbers, system 3 of 3",
    ]
