"""Law 1 on worker processes: the same bytes as in one process, also when workers are killed mid-round."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pytest

from swsdask.execution import dask
from swsdask.execution.dask import DaskExecutor
from swsdask.execution.executor import SerialExecutor, ThreadExecutor
from swsdask.measures import select
from swsdask.measures.measure import Scored, Values
from swsdask.model.errors import ExecutionError, InputError
from swsdask.model.ranked_measures import RankRule
from swsdask.model.system_rows import SpilledRows
from swsdask.scoring import detections, rounds
from swsdask.scoring.score import score_archive
from swsdask.statistics.counts import Counts
from tests import engines
from tests.cluster import cells
from tests.cluster.cells import OCCURRENCES, SYSTEMS, by_query
from tests.cluster.conftest import killing
from tests.official_output import write_kwseval, write_stdeval

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def evaluated() -> Any:
    return engines.evaluation(OCCURRENCES, [0, 1, 0, 1, 1], n_queries=6)


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detections, "FEW_ROWS", 1)
    monkeypatch.setattr(rounds, "MOST_SYSTEMS", 2)


@pytest.mark.parametrize("fan_in", [2, 8])
def test_the_same_bytes_as_in_one_process(client: Any, evaluated: Any, fan_in: int) -> None:
    whole = engines.score(engines.archive_of(SYSTEMS), evaluated, SerialExecutor())
    cut = engines.archive_of(SYSTEMS, random.Random(fan_in))
    assert engines.score(cut, evaluated, DaskExecutor(client, fan_in), engines.settings(40)) == whole


def test_the_same_bytes_where_each_system_is_one_task(
    executor: DaskExecutor, evaluated: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = engines.score(engines.archive_of(SYSTEMS), evaluated, SerialExecutor())
    monkeypatch.setattr(detections, "FEW_ROWS", 1_000)
    assert engines.score(engines.archive_of(SYSTEMS, random.Random(4)), evaluated, executor) == whole


def test_the_same_bytes_where_workers_leave_rows_in_a_folder(
    client: Any, evaluated: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = engines.score(engines.archive_of(SYSTEMS), evaluated, SerialExecutor())
    monkeypatch.setattr(detections, "FEW_ROWS", 1_000)
    opened: list[SpilledRows] = []
    here = SpilledRows.here

    def noted(rows: SpilledRows) -> SpilledRows:
        assert list(tmp_path.iterdir()) or opened
        opened.append(rows)
        return here(rows)

    monkeypatch.setattr(SpilledRows, "here", noted)
    executor = DaskExecutor(client, folder=str(tmp_path))
    assert engines.score(engines.archive_of(SYSTEMS, random.Random(5)), evaluated, executor) == whole
    assert len(opened) == 2 * len(SYSTEMS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("killed", [1, 2])
def test_workers_killed_in_the_middle_of_a_round(
    executor: DaskExecutor,
    evaluated: Any,
    tmp_path: Path,
    killed: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The killed workers hold parts that were done, parts that were merged, and what tasks share."""
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(dask, "RECOUNT_S", 0.0)
    whole = engines.score(engines.archive_of(SYSTEMS), evaluated, SerialExecutor())
    archive = engines.CellArchive(
        engines.archive_of(SYSTEMS).runs, {name: list(by_query(name, rows, tmp_path)) for name, rows in SYSTEMS.items()}
    )
    with killing(tmp_path, killed) as dead:
        found = engines.score(archive, evaluated, executor, engines.settings(30))
    assert len(set(dead)) == killed
    assert found == whole
    assert sum("left the cluster" in message for message in caplog.messages) == killed


def test_a_measure_of_ones_own_is_computed_by_workers(executor: DaskExecutor, evaluated: Any) -> None:
    class Mapped:
        names = ("n_mapped",)
        needs = (Counts,)

        def values(self, scored: Scored) -> Iterator[Values]:
            for population in scored.populations:
                yield population.overall({"n_mapped": population.total(scored[Counts].mapped.sum(axis=(1, 2)))})

    cut = engines.archive_of(SYSTEMS, random.Random(9))
    tables = [
        score_archive(cut, list(SYSTEMS), evaluated, [Mapped()], engines.settings(40), each)
        for each in (executor, SerialExecutor())
    ]
    assert tables[0].scores.files == tables[1].scores.files
    assert tables[0].scores.num_rows == len(SYSTEMS) * len(evaluated.conditions)


RULES = {
    "virtual": [RankRule("document-descending", single=True, duplicates="ignore"), RankRule("input")],
    "document": [RankRule("document-ascending", duplicates="first")],
}


def test_rankings_with_rules_of_their_own_and_gap(executor: DaskExecutor, tmp_path: Path) -> None:
    """Rules that order equal scores need documents or positions; a worker is killed in the middle of a round."""
    names = ("ap", "map", "gap", "mgap")
    cut = engines.archive_of(SYSTEMS, random.Random(3))
    waiting = {name: list(by_query(name, rows, tmp_path)) for name, rows in SYSTEMS.items()}
    in_danger = engines.CellArchive(cut.runs, waiting)
    for trials, rules in RULES.items():
        plain = engines.evaluation(OCCURRENCES, [0, 1, 0, 1, 1], n_queries=6, trials=trials)
        without = rankings(engines.archive_of(SYSTEMS), plain, SerialExecutor(), engines.settings(), names)
        for rule in rules:
            ruled = replace(plain, ranking=rule)
            using = engines.settings(25, average_precision={"ties": rule.order, "interpolation": "none"})
            whole = rankings(engines.archive_of(SYSTEMS), ruled, SerialExecutor(), using, names)
            assert whole != without
            for here in (ThreadExecutor(3), engines.AnyOrder(random.Random(3), 3, 2)):
                assert rankings(cut, ruled, here, using, names) == whole
                here.close()
            if (tmp_path / "go").exists():
                assert rankings(cut, ruled, executor, using, names) == whole
                continue
            with killing(tmp_path, 1) as dead:
                found = rankings(in_danger, ruled, executor, using, names)
            assert len(dead) == 1
            assert found == whole


def rankings(archive: Any, evaluated: Any, executor: Any, using: Any, names: tuple[str, ...]) -> bytes:
    systems = [run.system for run in archive.runs]
    tables = score_archive(archive, systems, evaluated, select(names), using, executor, names=names)
    assert {row["measure"] for row in tables.scores.table.to_pylist()} == set(names)
    return b"".join(tables.scores.parts())


def broken(kind: type[engines.MemoryCell]) -> engines.CellArchive:
    cut = engines.archive_of(SYSTEMS, random.Random(5))
    first = cut.cut["b"][0]
    return engines.CellArchive(cut.runs, {**cut.cut, "b": [kind("b", "runs/b-0007.parquet", first.held)]})


def test_a_failing_cell_is_named_with_its_system_and_file(executor: DaskExecutor, evaluated: Any) -> None:
    with pytest.raises(ExecutionError, match=r"^system b: runs/b-0007\.parquet \(\d+ rows\): OSError: the disk is on"):
        engines.score(broken(cells.BrokenCell), evaluated, executor, engines.settings(30))


def test_bad_input_found_by_a_worker_comes_through_as_it_is(executor: DaskExecutor, evaluated: Any) -> None:
    with pytest.raises(InputError, match=r"runs/b-0007\.parquet: expected a table; found a picture") as caught:
        engines.score(broken(cells.FaultyCell), evaluated, executor, engines.settings(30))
    assert caught.value.problems[0].remedy == "Ingest it again."


def test_a_failure_while_merges_of_merges_wait_leaves_the_scheduler_well(
    executor: DaskExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        with pytest.raises(InputError, match="expected a table; found a picture"):
            executor.map_reduce(cells.first_fails, range(16), max)
    assert executor.map_reduce(max, range(16), max, 0) == 15
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_the_files_of_official_tools_at_a_url(executor: DaskExecutor, tmp_path: Path) -> None:
    by: dict[str, Any] = {"by": "source_type"}
    for write, case, how in ((write_stdeval, "stdeval/three-types", {}), (write_kwseval, "kwseval/conditions", by)):
        folder = Path(__file__).parents[1] / "cases" / case
        write(folder, {}, tmp_path / case, **how)
        write(folder, {}, f"memory://{case}", executor=executor, buckets=3, **how)
        names = [path.name for path in (tmp_path / case).iterdir() if path.suffix in (".txt", ".csv", ".dat")]
        assert len(names) == (2 if write is write_stdeval else 10)
        for name in names:
            assert fsspec.filesystem("memory").cat(f"/{case}/{name}") == (tmp_path / case / name).read_bytes()
