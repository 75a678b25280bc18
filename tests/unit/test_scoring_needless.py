"""A statistic whose `prepare` says None is not computed for that system, and nothing is read for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from swsdask.execution.executor import Unseen
from swsdask.model.trials import Detections, Reference, Trials
from swsdask.scoring.score import count_archive
from swsdask.statistics.ladder import Hits
from tests import engines
from tests.alignment import Row

REFERENCE = engines.evaluation([(0, 0, 1, 10, 14), (1, 1, 1, 30, 34)], [0, 0, 0, 0], n_queries=2)
HIT: Row = (0, 0, 1, 10, 4, 0.5, 1, 1)
FALSE_ALARM: Row = (1, 2, 1, 50, 4, 0.75, 1, 1)


@dataclass(frozen=True)
class Rows:
    """How many trials a system has that has any hits; only read where there are some."""

    after: ClassVar[tuple[type, ...]] = (Hits,)
    aligned: ClassVar[bool] = False
    n: int

    @classmethod
    def prepare(cls, found: Mapping[type, Any], reference: Reference) -> int | None:
        return len(found[Hits]) or None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: int) -> Rows:
        return cls(len(trials))

    def merge(self, other: Rows) -> Rows:
        return Rows(self.n + other.n)


class Family:
    names = ("rows",)
    needs = (Rows,)


class Begun(Unseen):
    def __init__(self) -> None:
        self.phases: list[tuple[str, int]] = []

    def begin(self, phase: str, rows: int) -> None:
        self.phases.append((phase, rows))


@dataclass(frozen=True, eq=False)
class Read:
    """A cell that notes which columns are read of it."""

    inner: engines.MemoryCell
    seen: list[str]
    is_distant = False

    @property
    def system(self) -> str:
        return self.inner.system

    @property
    def source(self) -> str:
        return self.inner.source

    @property
    def rows(self) -> int:
        return self.inner.rows

    @property
    def parts(self) -> tuple[int, ...]:
        return self.inner.parts

    def read(self, columns: Sequence[str], *, checked: bool = True) -> Detections:
        self.seen.append(self.system)
        return self.inner.read(columns, checked=checked)

    def confirm(self, columns: Sequence[str]) -> None:
        self.inner.confirm(columns)


def run(systems: Mapping[str, list[Row]]) -> tuple[dict[str, Any], list[str], list[tuple[str, int]]]:
    seen: list[str] = []
    progress = Begun()
    cells = {name: [Read(engines.cell_of(name, rows), seen)] for name, rows in systems.items()}
    archive: Any = engines.CellArchive(tuple(engines.run_of(name, rows) for name, rows in systems.items()), cells)
    family: Any = Family()
    found = count_archive(
        archive, list(systems), REFERENCE, [family], engines.Forgetful(), engines.settings().engine, progress
    )
    return dict(found), seen, progress.phases


def test_only_systems_that_need_it_are_read_again() -> None:
    found, seen, phases = run({"a": [FALSE_ALARM], "b": [HIT, FALSE_ALARM]})
    assert set(found["a"]) == {Hits}
    assert found["b"][Rows] == Rows(2)
    assert sorted(seen) == ["a", "b", "b"]
    assert phases == [("round 1 of 2", 3), ("round 2 of 2", 2)]


def test_a_round_that_no_system_needs_is_not_run() -> None:
    found, seen, phases = run({"a": [FALSE_ALARM], "b": [FALSE_ALARM, FALSE_ALARM]})
    assert [set(of) for of in found.values()] == [{Hits}, {Hits}]
    assert sorted(seen) == ["a", "b"]
    assert phases == [("round 1 of 2", 3)]
