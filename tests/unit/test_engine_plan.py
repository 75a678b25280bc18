from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from swsdask.archive.base import Run
from swsdask.engine import plan
from swsdask.engine.plan import NoDetections, Task, groups, task_rows, tasks
from swsdask.model.trials import ScoreRange


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


def sizes(archive: Archive, rows_per_task: int) -> list[list[int]]:
    made = tasks(archive, list(archive.sizes), rows_per_task)
    return [[cell.rows for cell in task.cells] for task in made]


def test_small_cells_and_small_systems_share_a_task_and_large_cells_stand_alone() -> None:
    archive = Archive({"a": [3, 3, 3], "b": [1], "c": [1, 20], "d": [5, 5]})
    assert sizes(archive, 10) == [[3, 3, 3, 1], [1], [20], [5, 5]]
    assert sizes(archive, 1) == [[3], [3], [3], [1], [1], [20], [5], [5]]
    assert sizes(archive, 1000) == [[3, 3, 3, 1, 1, 20, 5, 5]]


def test_a_system_without_cells_has_one_without_rows() -> None:
    (task,) = tasks(Archive({"a": [], "b": [2]}), ["a", "b"], 10)
    assert task.cells == (NoDetections("a"), Cell("b", 2, 0))
    read = task.cells[0].read(["document", "inside"])
    assert len(read) == 0
    assert read.document is not None
    assert (read.query.dtype, read.score.dtype, read.document.dtype) == (np.int32, np.float64, np.int32)
    assert read.start is None


def test_a_task_names_its_systems_and_files() -> None:
    cells = tuple(Cell("a", 1, number) for number in range(5))
    assert str(Task(cells)) == "system a: a-0.parquet, a-1.parquet, a-2.parquet and 2 more"
    assert str(Task((Cell("a", 1, 0), Cell("b", 1, 0)))) == "system a, b: a-0.parquet, b-0.parquet"


def test_groups_end_when_every_worker_has_enough_or_there_are_many_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MOST_SYSTEMS", 3)
    monkeypatch.setattr(plan, "TASKS_PER_WORKER", 2)
    rows = [[run.rows for run in group] for group in groups(runs(50, 30, 10, 10, 10, 10, 100, 1), 2, 10)]
    assert rows == [[50, 30], [10, 10, 10], [10, 100], [1]]
    assert list(groups([], 2, 10)) == []


def test_tasks_are_made_smaller_only_to_keep_workers_busy_and_never_tiny() -> None:
    assert task_rows(10**9, 2, 2_000_000) == 2_000_000
    assert task_rows(24_000_000, 2, 2_000_000) == 1_500_000
    assert task_rows(10_000, 2, 2_000_000) == plan.FEW_ROWS
    assert task_rows(10_000, 2, 50) == 50
