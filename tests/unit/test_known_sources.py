"""Files that did not change are not ingested again, and every other file is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import fsspec.config
import pytest

import swsdask as sws
from swsdask.archive import cache
from swsdask.archive.cache import SOURCES
from swsdask.archive.storage import Storage
from swsdask.formats import files as opening
from swsdask.model.errors import ArchiveError, InputError
from swsdask.places import stamps
from tests.small_evaluation import ECF, QUERIES, RTTM, RUN

LONG_AGO = 1_600_000_000


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files need not be old."""
    monkeypatch.setattr(stamps, "SETTLED_S", 0.0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in {"ref/x.ecf.xml": ECF, "ref/x.rttm": RTTM, "ref/x.kwlist.xml": QUERIES}.items():
        put(tmp_path / name, content)
    for name in ("first", "second"):
        put(tmp_path / f"runs/{name}.kwslist.xml", run_of(name))
    return tmp_path


def run_of(system: str, score: str = "0.9") -> str:
    return RUN.replace('"first"', f'"{system}"').replace('"0.9"', f'"{score}"')


def put(path: Path, content: str, at: int = LONG_AGO) -> None:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(content)
    os.utime(path, (at, at))


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are opened, reference and runs."""
    names: list[str] = []
    plain = opening.open_plain

    def counting(url: str) -> Any:
        names.append(url.rsplit("/", 1)[-1])
        return plain(url)

    monkeypatch.setattr(opening, "open_plain", counting)
    return names


@pytest.fixture
def ingest(folder: Path) -> Callable[..., Any]:
    return partial(sws.ingest, folder / "archive", folder / "ref", runs=folder / "runs")


def test_nothing_is_opened_again(ingest: Callable[..., Any], opened: list[str]) -> None:
    first = ingest()
    assert {"x.rttm", "first.kwslist.xml", "second.kwslist.xml"} <= {*opened}
    opened.clear()
    again = ingest()
    assert opened == []
    assert (again.version, again.runs) == (first.version, first.runs)
    ingest(rehash=True)
    assert {"x.rttm", "first.kwslist.xml", "second.kwslist.xml"} <= {*opened}


def test_only_what_changed_is_opened(ingest: Callable[..., Any], folder: Path, opened: list[str]) -> None:
    ingest()
    opened.clear()
    put(folder / "runs/second.kwslist.xml", run_of("second", "0.8"), LONG_AGO + 1)
    put(folder / "runs/third.kwslist.xml", run_of("third"))
    with pytest.raises(ArchiveError, match="'second' with other content"):
        ingest()
    assert "first.kwslist.xml" not in opened
    assert [run.system for run in ingest(replace=True).runs] == ["first", "second", "third"]
    opened.clear()
    os.utime(folder / "runs/second.kwslist.xml", (LONG_AGO, LONG_AGO))
    assert ingest().version == 2  # read again, and the same
    assert {*opened} == {"second.kwslist.xml"}
    opened.clear()
    ingest()
    assert opened == []


def test_a_file_of_equal_size_and_time_is_read(ingest: Callable[..., Any], folder: Path) -> None:
    """As where a corrected run is copied over the other with its times."""
    before = ingest().runs[0].scores
    put(folder / "runs/first.kwslist.xml", run_of("first", "0.8"))
    assert ingest(replace=True).runs[0].scores != before


def test_a_file_that_changes_within_a_tick_of_the_clock_is_read(
    ingest: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    now = int(stamps.time.time())
    monkeypatch.setattr(stamps, "SETTLED_S", 2.0)
    monkeypatch.setattr(stamps.time, "time", lambda: now + 0.5)
    run = folder / "runs/second.kwslist.xml"
    put(run, run_of("second"), now)
    ingest()
    put(run, run_of("second", "0.8"), now)  # as long, and changed at the same time as before
    opened.clear()
    ingest(replace=True)
    assert "second.kwslist.xml" in opened
    monkeypatch.setattr(stamps.time, "time", lambda: now + 60.0)
    ingest()
    opened.clear()
    ingest()
    assert opened == []


@pytest.mark.parametrize(
    "other",
    [
        {"runs": {"renamed": "first.kwslist.xml"}},
        {"settings": {"evaluation": {"unknown_queries": "error"}}, "change_settings": True},
        {"settings": {"evaluation": {"average_precision": {"ties": "input"}}}, "change_settings": True},
    ],
)
def test_a_file_that_is_read_otherwise_is_read_again(
    ingest: Callable[..., Any], folder: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str], other: dict[str, Any]
) -> None:
    monkeypatch.chdir(folder / "runs")
    ingest(settings={"evaluation": {"unknown_queries": "drop"}})
    opened.clear()
    ingest(replace=True, **other)
    assert "first.kwslist.xml" in opened


def test_another_release_reads_again(
    ingest: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    ingest()
    opened.clear()
    monkeypatch.setattr(cache, "source_digest", lambda of: f"another {of}")
    ingest()
    assert {"x.rttm", "first.kwslist.xml", "second.kwslist.xml"} <= {*opened}


def test_resources_beside_a_run_belong_to_it(ingest: Callable[..., Any], folder: Path, opened: list[str]) -> None:
    ingest()
    resources = folder / "runs/second.resources.toml"
    for hours in (1, 2):
        put(resources, f"audio_hours = {hours}\n[indexing]\nwall_seconds = 7\ncores = 1\n", LONG_AGO + hours)
        archive = ingest(replace=True)
        told = {run.system: run.resources for run in archive.runs}
        assert told["first"] is None
        assert told["second"] is not None
    opened.clear()
    ingest()
    assert opened == []
    resources.unlink()
    assert [run.resources for run in ingest(replace=True).runs] == [None, None]


def test_a_run_that_another_file_replaced_is_read_again(ingest: Callable[..., Any], folder: Path) -> None:
    before = {run.system: run.content for run in ingest().runs}
    put(folder / "elsewhere.xml", run_of("second", "0.8"))
    with pytest.raises(InputError, match="a run of 'second', as in"):
        ingest(runs=[folder / "runs", folder / "elsewhere.xml"])  # although one of the two is known
    changed = {run.system: run.content for run in ingest(runs=folder / "elsewhere.xml", replace=True).runs}
    assert changed["second"] != before["second"]
    assert {run.system: run.content for run in ingest(replace=True).runs} == before


def test_a_run_that_is_lost_meanwhile_is_reported(ingest: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    ingest()
    known = cache.known_sources

    def then_replaced(*given: Any, **more: Any) -> cache.KnownSources:
        found = known(*given, **more)
        found.contents["first"] = "another"
        for record in found.records.values():
            if "first" in record.get("systems", {}):
                record["systems"]["first"] = "another"
        return found

    monkeypatch.setattr("swsdask.api.archives.known_sources", then_replaced)
    with pytest.raises(ArchiveError, match="'first' was changed by another writer meanwhile"):
        ingest()


def test_another_reference_is_refused(ingest: Callable[..., Any], folder: Path) -> None:
    ingest()
    put(folder / "ref/x.rttm", RTTM.replace("1.60", "1.61"), LONG_AGO + 1)
    with pytest.raises(ArchiveError, match="one that differs in rttm"):
        ingest()


@pytest.mark.parametrize("damage", [b"", b"{", b'{"sources": {}, "hash": ""}', b"[" * 100_000, b'{"sources": 7}'])
def test_what_is_damaged_counts_for_nothing(
    ingest: Callable[..., Any], folder: Path, opened: list[str], damage: bytes
) -> None:
    ingest()
    (folder / "archive" / SOURCES).write_bytes(damage)
    opened.clear()
    assert ingest().version == 1
    assert {"first.kwslist.xml", "second.kwslist.xml"} <= {*opened}
    opened.clear()
    ingest()
    assert opened == []


def test_no_url_is_kept_and_cleaning_leaves_what_is_known(
    ingest: Callable[..., Any], folder: Path, opened: list[str]
) -> None:
    ingest()
    kept = (folder / "archive" / SOURCES).read_text()
    assert str(folder) not in kept
    assert len(json.loads(kept)["sources"]) == 3
    sws.vacuum(folder / "archive", older_than_s=0)
    opened.clear()
    ingest()
    assert opened == []


@pytest.mark.parametrize(
    ("info", "is_stable"),
    [
        ({"size": 3, "ETag": '"a"'}, True),
        ({"size": 3, "etag": "a", "LastModified": None}, True),
        ({"size": 3, "ETag": 'W/"a"'}, False),
        ({"size": 3, "ETag": 'W/"a"', "mtime": LONG_AGO}, True),
        ({"size": 3}, False),
        ({"size": 3, "created": 4e9}, False),
        ({"size": 3, "mtime": LONG_AGO, "created": LONG_AGO, "ino": 7}, True),
        ({"size": 3, "mtime": LONG_AGO, "created": 4e9, "ino": 7}, False),
    ],
)
def test_a_stamp_is_repeated_where_it_says_something(info: dict[str, Any], is_stable: bool) -> None:
    filesystem = fsspec.filesystem("memory")
    filesystem.store.clear()
    filesystem.pipe_file("/stamped", b"abc")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(filesystem), "info", lambda _, path, **__: {"name": path, "type": "file", **info})
        one, other = (stamps.stamps_of(["memory://stamped"]) for _ in range(2))
    assert (one == other) == is_stable
    filesystem.store.clear()


def test_files_that_cannot_be_written_are_no_error(ingest: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ArchiveError("full")

    monkeypatch.setattr(Storage, "replace", fail)
    assert ingest().version == 1
