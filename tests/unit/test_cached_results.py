"""Cached results: nothing is computed twice, and none is used for anything but what it was computed for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import swsdask as sws
from swsdask.archive.storage import Storage
from swsdask.archive.versions import CACHE
from swsdask.model.errors import ArchiveError
from swsdask.model.hashes import hash_bytes
from swsdask.scoring import result_tables, score
from swsdask.scoring.result_tables import MOST
from swsdask.statistics.counts import Counts
from tests.engines import Apart, bytes_of, forget_results
from tests.unit.test_cached_statistics import DAMAGES, damage_all, sample

RESOURCES = "query_seconds = {}\n[indexing]\ncpu_hours = 2\npeak_memory_gb = 3\n"


def taken(found: sws.Result) -> tuple[int, int]:
    """How many results were cached, and how many computed."""
    said = found.manifest["run"]["results"]
    return said["kept"], said["computed"]


def cached_files(archive: Path) -> list[Path]:
    return sorted((archive / CACHE).rglob("results-*"))


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An archive with results of two systems, all measures, and no cached statistics."""
    made = sample(tmp_path / "archive", ("a", 1), ("b", 2))
    sws.score(made)
    for file in set((made / CACHE).rglob("*.arrow")) - set(cached_files(made)):
        file.unlink()
    return made


@pytest.fixture
def n_computed(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """For how many systems numbers were computed, and forget it."""
    seen: list[str] = []
    inner = score.CountedRun

    def computing(system: str, *more: Any) -> Any:
        seen.append(system)
        return inner(system, *more)

    def count() -> int:
        n = len(seen)
        seen.clear()
        return n

    monkeypatch.setattr(score, "CountedRun", computing)
    return count


def test_nothing_is_counted_nor_computed_again(archive: Path, n_computed: Callable[[], int]) -> None:
    without = sws.score(archive, cache=False)
    assert n_computed() == 2
    again = sws.score(archive)
    assert n_computed() == 0
    assert bytes_of(again) == bytes_of(without)
    assert again.manifest["notes"] == without.manifest["notes"]
    assert taken(again) == (2, 0)
    assert again.manifest["run"]["statistics"] == {"kept": 0, "counted": 0}


def test_only_what_is_new_is_computed(archive: Path) -> None:
    sample(archive, ("c", 3))
    assert taken(sws.score(archive)) == (2, 1)
    assert bytes_of(sws.score(archive)) == bytes_of(sws.score(archive, cache=False))
    assert taken(sws.score(archive, runs=["b"])) == (1, 0)


def test_every_choice_has_results_of_its_own(archive: Path) -> None:
    """Reference, settings, measures, conditions; and the same in another order is the same."""
    choices: list[dict[str, Any]] = [
        {"settings": {"operating_point": {"p_target": 1e-4, "c_miss": 1, "c_fa": 1}}},
        {"settings": {"tolerance_s": 0.1}},
        {"settings": {"average_precision": {"ties": "worst"}}},
        {"measures": ["atwv", "mtwv"]},
        {"measures": ["atwv", "twv@0.5"]},
        {"by": ["document_pattern:1"]},
    ]

    def scored(choice: dict[str, Any], **more: Any) -> sws.Result:
        evaluation = sws.open(archive, settings={"evaluation": choice.get("settings", {})})
        return sws.score(evaluation, choice.get("measures"), by=choice.get("by", ()), **more)

    for choice in choices:
        first = scored(choice)
        assert taken(first) == (0, 2)
        again = scored(choice)
        assert taken(again) == (2, 0)
        assert bytes_of(first) == bytes_of(again) == bytes_of(scored(choice, cache=False))
    assert taken(sws.score(archive, ["mtwv", "atwv"])) == (2, 0)


def test_a_run_by_another_name_is_computed_under_that_name(archive: Path) -> None:
    sample(archive, ("other", 1))
    found = sws.score(archive)
    assert taken(found) == (2, 1)
    assert bytes_of(found) == bytes_of(sws.score(archive, cache=False))


def test_another_run_of_a_system_is_computed(archive: Path) -> None:
    sample(archive, ("a", 7))
    found = sws.score(archive)
    assert taken(found) == (1, 1)
    assert bytes_of(found) == bytes_of(sws.score(archive, cache=False))


@pytest.mark.parametrize("cut", [(), ("b",), ("a", "b")])
def test_workers_score_small_systems_from_first_to_last_and_keep_what_they_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut: tuple[str, ...]
) -> None:
    """The systems that are `cut` are counted in several tasks, all others from first to last in one."""
    archive = sample(tmp_path / "archive", ("a", 1), ("b", 2), ("c", 3))
    monkeypatch.setattr(score, "is_small", lambda run: run.system not in cut)
    right = sws.score(archive, cache=False)
    for cached, computed in ((0, 3), (3, 0)):
        found = sws.score(archive, executor=Apart())
        assert bytes_of(found) == bytes_of(right)
        assert taken(found) == (cached, computed)
        assert (found.manifest["run"]["statistics"]["counted"] > 0) == (computed > 0)
    forget_results(archive)
    again = sws.score(archive, executor=Apart())
    assert (bytes_of(again), again.manifest["run"]["statistics"]["counted"]) == (bytes_of(right), 0)


def test_why_workers_can_keep_nothing_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise ArchiveError("no space left")

    archive = sample(tmp_path / "archive", ("a", 1), ("b", 2))
    monkeypatch.setattr(Storage, "write_all", full)
    found = sws.score(archive, executor=Apart())
    assert any("computed again next time: no space left" in note for note in found.notes)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_results_are_computed_and_written_again(archive: Path, damage: str) -> None:
    right = bytes_of(sws.score(archive, cache=False))
    contents = {file: file.read_bytes() for file in cached_files(archive)}
    n_damaged = damage_all(archive, damage)
    found = sws.score(archive)
    assert bytes_of(found)[:2] == right[:2]
    assert taken(found) == (2 - n_damaged, n_damaged)
    if damage != "folder":
        assert {file: file.read_bytes() for file in cached_files(archive)} == contents


@pytest.mark.parametrize("row", [{"nothing": [1]}, {"scores": [[1]], "curves": [[1]], "notes": [["x"]]}])
def test_a_row_that_is_no_result_is_computed_again(archive: Path, row: dict[str, Any]) -> None:
    """Its hash is right, so somebody else wrote it."""
    right = bytes_of(sws.score(archive, cache=False))
    batch = pa.RecordBatch.from_pydict(row)
    with pa.ipc.new_file(sink := pa.BufferOutputStream(), batch.schema) as stream:
        stream.write_batch(batch)
    content = sink.getvalue()
    for file in cached_files(archive):
        file.with_name(f"{file.name.rpartition('-')[0]}-{hash_bytes(content).hex()}.arrow").write_bytes(content)
        file.unlink()
    found = sws.score(archive)
    assert bytes_of(found) == right
    assert taken(found) == (0, 2)


def test_results_of_other_sources_are_not_used(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_tables, "source_digest", lambda packages: "0123456789abcdef")
    assert taken(sws.score(archive)) == (0, 2)


def test_resources_are_part_of_a_run(tmp_path: Path) -> None:
    """They may change while detections do not."""
    run = tmp_path / "first.kwslist.xml"
    folder = Path(__file__).resolve().parents[1] / "cases/kwseval/words"
    run.write_bytes((folder / "kwslist.xml").read_bytes())
    reference = {"ecf": folder / "ecf.xml", "rttm": folder / "ref.rttm", "queries": folder / "kwlist.xml"}
    for seconds in (20, 40):
        (tmp_path / "first.resources.toml").write_text(
            RESOURCES.format(seconds) + "[searching]\ncpu_hours = 1\npeak_memory_gb = 1\n"
        )
        sws.ingest(tmp_path / "archive", **reference, runs=run, replace=True)
        found = sws.score(tmp_path / "archive", ["ssf", "pl"])
        assert taken(found) == (0, 1)
        assert bytes_of(found) == bytes_of(sws.score(tmp_path / "archive", ["ssf", "pl"], cache=False))
        reference = {}


def test_observers_see_systems_whose_results_are_cached(archive: Path) -> None:
    found = sws.compare(archive, ["mtwv"], replicates=10)
    assert len(found.intervals) == 2


def test_measures_of_others_are_not_cached(archive: Path) -> None:
    class Own:
        names = ("own",)
        needs = (Counts,)

        def values(self, scored: sws.Scored) -> Any:
            for population in scored.populations:
                yield population.overall({"own": float(scored[Counts].mapped.sum())})

    before = cached_files(archive)
    for _ in range(2):
        assert sws.score(archive, ["atwv", Own()]).manifest["run"]["results"] is None
    assert cached_files(archive) == before


def test_the_oldest_of_many_choices_goes(archive: Path) -> None:
    first = cached_files(archive)
    for file in first:
        os.utime(file, (1, 1))
    for number in range(MOST + 1):
        assert len(cached_files(archive)) == 2 * min(number + 1, MOST)
        assert set(first) <= set(cached_files(archive)) or number == MOST
        sws.score(archive, [f"twv@{number}"])
    assert not set(first) & set(cached_files(archive))


def test_vacuum_keeps_what_is_needed(archive: Path) -> None:
    needed = cached_files(archive)
    assert sws.vacuum(archive, older_than_s=0) == []
    assert cached_files(archive) == needed
    forget_results(archive)
    assert taken(sws.score(archive)) == (0, 2)
