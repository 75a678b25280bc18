"""Nothing that happens to a writer harms an archive: failures at any write, kills at any moment, races."""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from swsdask.archive import change
from swsdask.archive.change import ChangePolicy
from swsdask.archive.cleaning import named_files, vacuum
from swsdask.archive.ingest import write_runs
from swsdask.archive.storage import Storage
from swsdask.archive.store import EVALUATION, open_archive
from swsdask.archive.verify import verify
from swsdask.archive.versions import Layout, versions
from swsdask.model.errors import ArchiveError, ExecutionError
from swsdask.model.layers import Layers
from swsdask.model.settings import EvaluationSettings
from tests.archives import COLUMNS, Pieces, as_rows, excerpt, queries, rewritten, rows, source, tables

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = EvaluationSettings()
SMALL = Layout(buckets=4, rows_per_group=40, rows_per_fragment=90, rows_in_memory=100)
TABLES = tables(
    [excerpt("d0", 0, 900), excerpt("d1", 0, 500), excerpt("d2", 100, 1000)],
    queries({f"q{n}": f"w{n}" for n in range(12)}),
)


def write(url: str, *sources: Pieces, **policy: Any) -> int:
    return write_runs(Storage(url), TABLES, sources, SETTINGS, layout=SMALL, policy=ChangePolicy(**policy)).version


def contents(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all runs of the current version."""
    archive = open_archive(url)
    return {run.system: as_rows(cell.read(COLUMNS) for cell in archive.cells(run.system, 50)) for run in archive.runs}


def all_files_are_named(url: str) -> bool:
    """Whether the current version names every file of the archive but the manifests."""
    storage = Storage(url)
    named = {stored.file for stored in named_files(storage)}
    return {name for name in storage.files(below=True) if not name.startswith("manifest")} == named


@pytest.fixture(params=["local", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "archive") if request.param == "local" else f"memory://{tmp_path}/archive"


class BrokenError(Exception):
    """A fault of the store."""


@pytest.mark.parametrize("how", ["before", "torn", "after"])
def test_a_failure_at_any_write_leaves_the_former_version(url: str, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(url, source(rows(200)))
    before = contents(url)
    real_write, real_write_new = Storage.write_temporary, Storage.write_new
    countdown = 0

    def broken_write(self: Storage, name: str, content: Any) -> None:
        nonlocal countdown
        countdown -= 1
        if countdown == 0:
            if how != "before":
                real_write(self, name, bytes(content)[: None if how == "after" else len(bytes(content)) // 2])
            raise BrokenError(name)
        real_write(self, name, content)

    def broken_write_new(self: Storage, name: str, content: bytes) -> bool:
        nonlocal countdown
        countdown -= 1
        if countdown == 0 and how != "after":
            raise BrokenError(name)
        return real_write_new(self, name, content)

    monkeypatch.setattr(Storage, "write_temporary", broken_write)
    monkeypatch.setattr(Storage, "write_new", broken_write_new)
    failures = 0
    for step in range(1, 100):
        countdown = step
        try:
            version = write(url, source(rows(250, 1), "b"), source(rows(300, 2)), replace=True)
        except (BrokenError, ExecutionError):
            failures += 1
            assert open_archive(url).version == 1
            assert contents(url) == before
        else:
            break
    assert failures >= 10
    assert version == 2
    assert set(contents(url)) == {"a", "b"}
    monkeypatch.undo()
    vacuum(url, older_than_s=0)
    assert len(contents(url)["a"]) == 300
    assert all_files_are_named(url)


def test_a_damaged_manifest_is_reported_and_former_versions_stay(tmp_path: Path) -> None:
    url = str(tmp_path)
    write(url, source(rows(20)))
    newest = tmp_path / "manifest-00000002.json"
    whole = (tmp_path / "manifest-00000001.json").read_bytes()
    for torn in (b"", whole[:-40], b"[1]", b"7"):
        newest.write_bytes(torn)
        for attempt in (
            lambda: open_archive(url),
            lambda: open_archive(url, 2),
            lambda: write(url, source(rows(9), "b")),
        ):
            with pytest.raises(ArchiveError, match=r"manifest-00000002\.json"):
                attempt()
        assert open_archive(url, 1).version == 1
    newest.unlink()
    assert write(url, source(rows(20), "b")) == 2
    assert set(contents(url)) == {"a", "b"}


def test_old_versions_may_be_deleted(tmp_path: Path) -> None:
    for n in range(3):
        write(str(tmp_path), source(rows(20), f"s{n}"))
    (tmp_path / "manifest-00000001.json").unlink()
    (tmp_path / "manifest-00000002.json").unlink()
    assert write(str(tmp_path), source(rows(20), "b")) == 4
    assert sorted(contents(str(tmp_path))) == ["b", "s0", "s1", "s2"]


def test_a_manifest_of_a_later_format_is_refused(tmp_path: Path) -> None:
    write(str(tmp_path))
    manifest = tmp_path / "manifest-00000001.json"
    rewritten(manifest, lambda said: said.update(format_version=4))
    with pytest.raises(ArchiveError, match="expected archive format 3 with hash 1; found 4 with 1"):
        open_archive(str(tmp_path))
    manifest.write_text('{"format_version": 1, "hash_version": 1, "surprise": 3}')
    with pytest.raises(ArchiveError, match="not a manifest"):
        open_archive(str(tmp_path))


CHILD = """
    import os, random, signal, sys, time
    from pathlib import Path
    from swsdask.archive.storage import Storage
    from swsdask.model.errors import ArchiveError
    from tests.archives import source
    from tests.unit.test_archive_commit import rows, write

    what, url, go, *arguments = sys.argv[1:]
    Path(go + f".{os.getpid()}").touch()
    while not Path(go).exists():
        time.sleep(0.001)
    if what == "die":
        at, calls = int(arguments[0]), 0
        def dying(real):
            def call(*values):
                global calls
                calls += 1
                if calls == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*values)
            return call
        from swsdask.archive import local
        local.sync, os.link = dying(local.sync), dying(os.link)
        Storage.write_temporary = dying(Storage.write_temporary)
    if what == "race":
        system, seed, count = arguments
        for number in range(int(count)):
            try:
                print(write(url, source(rows(60, int(seed) + number), f"{system}{number}")), flush=True)
            except ArchiveError as error:
                print("lost", flush=True)
    else:
        for seed in range(100, 1100):
            print(write(url, source(rows(150, seed), f"s{seed}")), flush=True)
"""


class Children:
    """Processes that write, started together."""

    def __init__(self, folder: Path) -> None:
        self.go = folder / "go"
        self.running: list[subprocess.Popen[str]] = []

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        what, url, *more = arguments
        command = [sys.executable, "-c", textwrap.dedent(CHILD), what, url, str(self.go), *more]
        child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        self.running.append(child)
        return child

    def release(self) -> None:
        while len(list(self.go.parent.glob("go.*"))) < len(self.running):
            assert all(child.poll() is None for child in self.running)
            time.sleep(0.01)
        self.go.touch()


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    started = Children(tmp_path)
    yield started
    for child in started.running:
        child.kill()
        child.communicate()


def test_killed_writers_leave_whole_versions(tmp_path: Path, children: Children) -> None:
    """Some processes kill themselves at a step of writing, others are killed from outside, some time after a commit."""
    chance = random.Random(5)
    archives = [str(tmp_path / f"archive{number}") for number in range(6)]
    dying = [children.start("die", archives[n], str(chance.randrange(2, 90))) for n in range(3)]
    killed = [children.start("write", archives[n]) for n in range(3, 6)]
    children.release()
    first: dict[subprocess.Popen[str], str] = {}
    for child in killed:
        assert child.stdout is not None
        first[child] = "".join(child.stdout.readline() for _ in range(chance.randrange(1, 4)))
        threading.Timer(0.3 * chance.random(), child.kill).start()
    for child, url in zip([*dying, *killed], archives, strict=True):
        assert child.stdout is not None
        out = first.get(child, "") + child.stdout.read()
        assert child.wait(60) == -signal.SIGKILL
        committed = [int(line) for line in out.split()]
        assert committed or child in dying
        there = versions(Storage(url))
        assert there[: len(committed)] == committed
        assert len(there) <= len(committed) + 1
        for version in there:
            archive = open_archive(url, version)
            assert [len(as_rows(c.read(COLUMNS) for c in archive.cells(run.system, 50))) for run in archive.runs] == [
                150
            ] * version
        write(url, source(rows(70), "after"))
        vacuum(url, older_than_s=0)
        assert len(contents(url)["after"]) == 70
        assert not [name for name in Storage(url).files(below=True) if name.startswith("temporary")]


def test_writers_that_race_all_get_in_unless_they_contradict_each_other(tmp_path: Path, children: Children) -> None:
    url = str(tmp_path / "archive")
    apart = [children.start("race", url, system, "7", "5") for system in ("a", "b")]
    against = [children.start("race", url, "same", seed, "5") for seed in ("20", "40")]
    children.release()
    said = [child.communicate(timeout=60)[0].split() for child in (*apart, *against)]
    wins = [int(each) for lines in said for each in lines if each != "lost"]
    assert len(wins) == len(set(wins)) == 15
    assert versions(Storage(url)) == sorted(wins) == list(range(1, 16))
    assert all("lost" not in lines for lines in said[:2])
    assert all((one == "lost") != (other == "lost") for one, other in zip(*said[2:], strict=True))
    found = contents(url)
    assert sorted(found) == sorted(f"{system}{n}" for system in ("a", "b", "same") for n in range(5))
    assert all(len(each) == 60 for each in found.values())


def test_threads_race_in_memory(tmp_path: Path) -> None:
    url = f"memory://{tmp_path}/archive"
    write(url)
    threads = [threading.Thread(target=write, args=(url, source(rows(50, n), f"s{n}"))) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert versions(Storage(url)) == list(range(1, 8))
    assert sorted(contents(url)) == [f"s{n}" for n in range(6)]


class Interloper:
    """Another writer that commits just before the first try of this one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, act: Any) -> None:
        real = Storage.write_new

        def first(storage: Storage, name: str, content: bytes) -> bool:
            monkeypatch.setattr(Storage, "write_new", real)
            act()
            return real(storage, name, content)

        monkeypatch.setattr(Storage, "write_new", first)


def test_the_loser_commits_on_top(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(url, source(rows(10)))
    Interloper(monkeypatch, lambda: write(url, source(rows(20), "b")))
    assert write(url, source(rows(30), "c")) == 3
    assert {system: len(found) for system, found in contents(url).items()} == {"a": 10, "b": 20, "c": 30}
    assert all_files_are_named(url)


def test_the_loser_of_the_same_run_has_nothing_to_do(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(url, source(rows(10)))
    Interloper(monkeypatch, lambda: write(url, source(rows(20), "b")))
    assert write(url, source(rows(20), "b")) == 2


def test_the_loser_of_another_run_of_that_name_is_reported(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(url, source(rows(10)))
    Interloper(monkeypatch, lambda: write(url, source(rows(20), "b")))
    with pytest.raises(ArchiveError, match="a run of 'b' with other content is there"):
        write(url, source(rows(30), "b"))
    assert len(contents(url)["b"]) == 20
    assert all_files_are_named(url)


def test_the_loser_replaces_only_what_it_saw(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(url, source(rows(10)))
    Interloper(monkeypatch, lambda: write(url, source(rows(20)), replace=True))
    with pytest.raises(ArchiveError, match="changed by another writer"):
        write(url, source(rows(30)), replace=True)
    assert len(contents(url)["a"]) == 20


def test_a_writer_whose_lease_was_taken_commits_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(url, source(rows(200)))
    before, made = contents(url), change.Change.commit_part

    def late(self: Any, *args: Any, **said: Any) -> Any:
        vacuum(url, older_than_s=-10)  # as if the writer had not renewed its lease for a day
        return made(self, *args, **said)

    monkeypatch.setattr(change.Change, "commit_part", late)
    with pytest.raises(ArchiveError, match="expected the lease of this writer"):
        write(url, source(rows(250, 1), "b"))
    assert contents(url) == before
    assert all_files_are_named(url)


def test_two_makers_of_one_archive(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Interloper(monkeypatch, lambda: write(url, source(rows(20), "b")))
    assert write(url, source(rows(10))) == 2
    assert sorted(contents(url)) == ["a", "b"]


def test_two_makers_of_different_archives(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tables([excerpt("d0", 0, 901)], queries({"q0": "w"}))
    Interloper(monkeypatch, lambda: write_runs(Storage(url), other, [], SETTINGS))
    with pytest.raises(ArchiveError, match="found one that differs in ecf, queries"):
        write(url, source(rows(10)))
    assert open_archive(url).runs == ()


def test_two_makers_that_keep_different_settings(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = (Layers(explicit={"evaluation": {"tolerance_s": each}}) for each in (1.0, 2.0))
    Interloper(monkeypatch, lambda: write(url, source(rows(20), "b"), keep=theirs))
    with pytest.raises(ArchiveError, match=r"found others: tolerance_s: kept 2\.0, given 1\.0\. Leave them out"):
        write(url, source(rows(10)), keep=ours)
    assert sorted(contents(url)) == ["b"]
    assert write(url, source(rows(10)), keep=ours, change_settings=True) == 2
    assert open_archive(url).kept == ours
    assert write(url, keep=ours) == 2


def parts_of(url: str) -> dict[str, int]:
    """How many runs each part of the table of runs has, the oldest first."""
    storage, manifest = Storage(url), open_archive(url).manifest
    return {part.file: len(EVALUATION.read(storage, part)) for part in EVALUATION.parts_of(manifest)}


@pytest.mark.parametrize("growth", [2, 8])
def test_many_commits_write_few_runs_each_and_leave_few_parts(
    growth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change, "GROWTH", growth)
    url = str(tmp_path)
    expected: dict[str, str] = {}
    before: dict[str, int] = {}
    written = 0
    for n in range(40):
        system = f"s{7 * n % 23:02d}"
        write(url, source(rows(3, n), system), replace=True)
        runs = open_archive(url).runs
        expected[system] = next(run.content for run in runs if run.system == system)
        assert {run.system: run.content for run in runs} == expected
        assert [run.system for run in runs] == sorted(expected)
        parts = parts_of(url)
        assert all(older >= growth * newer for older, newer in pairwise(parts.values()))
        written += sum(size for file, size in parts.items() if file not in before)
        before = parts
    assert len(set(expected.values())) == 23
    assert written < 40 * 12, "a commit copied the whole table"


def test_another_setting_writes_no_runs(tmp_path: Path) -> None:
    url = str(tmp_path)
    write(url, source(rows(10)))
    before = parts_of(url)
    assert write(url, keep=Layers(None, "kwseval", {}), change_settings=True) == 2
    assert parts_of(url) == before


def test_a_damaged_part_is_named_and_repaired_and_files_of_all_parts_are_known(tmp_path: Path) -> None:
    url, copy = str(tmp_path / "archive"), tmp_path / "copy"
    write(url, *(source(rows(10, n), f"s{n}") for n in range(8)))
    write(url, source(rows(30), "late"))
    shutil.copytree(url, copy)
    first, newer = parts_of(url)
    assert {file.file for file in named_files(Storage(url))} >= {first, newer}
    place = Path(url, newer)
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.write_bytes(content)
    with pytest.raises(ArchiveError, match=re.escape(newer)):
        _ = open_archive(url).runs
    assert list(verify(url).damaged) == [newer]
    assert verify(url, repair=str(copy)).repaired == (newer,)
    assert vacuum(url, older_than_s=0) == []
    assert len(open_archive(url).runs) == 9
