from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from swsdask.archive.protocols import Run
from swsdask.model.trials import ScoreRange
from swsdask.scoring import detections, rounds
from swsdask.scoring.detections import CellTask, NoDetections, tasks
from swsdask.scoring.rounds import groups


@dataclass(frozen=True)
class Cell:
    system: str
    rows: int
    number: int

    @property
    def source(self) -> str:
        return f"{self.system}-{self.number}.parquet"


@dataclass(frozen=True)
class Archive:
    sizes: dict[str, list[int]]

    def cells(self, system: str, rows_per_task: int) -> Iterator[Cell]:
        for number, rows in enumerate(self.sizes[system]):
            yield Cell(system, rows, number)


def runs(*rows: int) -> list[Run]:
    return [Run(f"s{i}", n, "", True, ScoreRange(None, (0.0, 1.0))) for i, n in enumerate(rows)]


def of(archive: Archive) -> list[Run]:
    return [Run(name, sum(rows), "", True, ScoreRange(None, (0.0, 1.0))) for name, rows in archive.sizes.items()]


def sizes(archive: Archive, rows_per_task: int, workers: int = 1) -> list[list[int]]:
    made = tasks(archive.cells, of(archive), workers, rows_per_task)
    return [[cell.rows for cell in task.cells] for task in made]


def test_small_cells_and_small_systems_share_a_task_and_large_cells_have_their_own() -> None:
    archive = Archive({"a": [3, 3, 3], "b": [1], "c": [1, 20], "d": [5, 5]})
    assert sizes(archive, 10) == [[3, 3, 3, 1], [1], [20], [5, 5]]
    assert sizes(archive, 1) == [[3], [3], [3], [1], [1], [20], [5], [5]]
    assert sizes(archive, 1000) == [[3, 3, 3, 1, 1, 20, 5, 5]]


def test_many_workers_get_larger_tasks_so_that_the_scheduler_keeps_up(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = Archive({"a": [1] * 1000})
    monkeypatch.setattr(detections, "FEW_ROWS", 2)
    monkeypatch.setattr(detections, "SERVED", 4)
    assert min(map(len, sizes(archive, 100, workers=4)[:-1])) == 2
    assert min(map(len, sizes(archive, 100, workers=6)[:-1])) == 3
    assert min(map(len, sizes(archive, 100, workers=40)[:-1])) == 20
    assert max(map(len, sizes(archive, 5, workers=4))) == 5
    assert max(map(len, sizes(archive, 1, workers=40))) == 10


def test_a_system_without_cells_has_one_without_rows() -> None:
    archive = Archive({"a": [], "b": [2]})
    (task,) = tasks(archive.cells, of(archive), 1, 10)
    assert task.cells == (NoDetections("a"), Cell("b", 2, 0))
    read = task.cells[0].read(["document", "inside"])
    assert len(read) == 0
    assert read.document is not None
    assert (read.query.dtype, read.score.dtype, read.document.dtype) == (np.int32, np.float64, np.int32)
    assert read.start is None


def test_a_task_names_its_systems_and_files() -> None:
    cells = tuple(Cell("a", 1, number) for number in range(5))
    assert str(CellTask(cells)) == "system a: a-0.parquet, a-1.parquet, a-2.parquet and 2 more"
    assert str(CellTask((Cell("a", 1, 0), Cell("b", 1, 0)))) == "system a, b: a-0.parquet, b-0.parquet"


def test_groups_end_when_every_worker_has_enough_or_there_are_many_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "MOST_SYSTEMS", 3)
    rows = [[run.rows for run in group] for group in groups(runs(50, 30, 10, 10, 10, 10, 100, 1), 80)]
    assert rows == [[50, 30], [10, 10, 10], [10, 100], [1]]
    assert list(groups([], 80)) == []


def test_tasks_shrink_towards_the_end_so_that_workers_end_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detections, "FEW_ROWS", 2)
    archive = Archive({"a": [1] * 40})
    totals = [sum(task) for task in sizes(archive, 8, workers=2)]
    assert totals == [8, 8, 6, 4, 3, 2, 2, 2, 2, 2, 1]
    assert [sum(task) for task in sizes(archive, 3, workers=2)] == [3] * 10 + [2] * 5


def test_no_task_is_tiny_only_for_the_sake_of_idle_workers() -> None:
    assert sizes(Archive({"a": [detections.FEW_ROWS // 2] * 2}), 5_000_000, workers=100) == [
        [detections.FEW_ROWS // 2] * 2
    ]
