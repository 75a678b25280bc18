"""Old versions are removed with what only they name; whatever interrupts it, the archive stays whole."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from swsdask.archive import change, cleaning, verify, version_list
from swsdask.archive.change import GROWTH
from swsdask.archive.cleaning import expire, named_files, vacuum
from swsdask.archive.storage import Storage
from swsdask.archive.store import EVALUATION, open_archive
from swsdask.archive.stored_tables import StoredFile, StoredRun
from swsdask.archive.version_list import Version, difference, list_versions
from swsdask.archive.versions import manifest_name, versions
from swsdask.cli import main
from swsdask.model.errors import ArchiveError, SettingsError
from swsdask.model.layers import Layers
from tests.archives import detections, rows, source, write

DAY_S = 86_400


@pytest.fixture(params=[1, GROWTH], ids=["replaced entries in older parts", "one part"])
def url(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Five versions, committed 40, 30, 20, 10 days ago and now: a is replaced twice, b is added, settings change."""
    monkeypatch.setattr(change, "GROWTH", request.param)
    place = str(tmp_path / "a")
    write(place, source(rows(300)), keep=Layers(None, None, {}))
    write(place, source(rows(200)), replace=True)
    write(place, source(rows(20), "b"))
    write(place, source(rows(100)), replace=True)
    write(place, source(rows(20), "b"), keep=Layers(None, "kwseval", {}), change_settings=True)
    for version, days in enumerate((40, 30, 20, 10), 1):
        then = time.time() - days * DAY_S
        os.utime(Path(place) / manifest_name(version), (then, then))
    return place


def left(url: str) -> list[int]:
    return versions(Storage(url))


@pytest.mark.parametrize(
    ("keep", "days", "stay"),
    [
        (1, None, [5]),
        (3, None, [3, 4, 5]),
        (9, None, [1, 2, 3, 4, 5]),
        (None, 25, [3, 4, 5]),
        (None, 0, [5]),
        (4, 35, [2, 3, 4, 5]),
        (2, 35, [2, 3, 4, 5]),
        (4, 5, [2, 3, 4, 5]),
    ],
)
def test_versions_stay_that_are_new_or_young(url: str, keep: int | None, days: float | None, stay: list[int]) -> None:
    older_than_s = None if days is None else days * DAY_S
    before = Storage(url).files(below=True)
    planned = expire(url, keep=keep, older_than_s=older_than_s, dry_run=True)
    assert Storage(url).files(below=True) == before
    assert expire(url, keep=keep, older_than_s=older_than_s) == planned
    assert left(url) == stay
    assert sorted(planned.versions) == sorted({1, 2, 3, 4, 5} - set(stay))
    gone = {*planned.files, *map(manifest_name, planned.versions)}
    assert Storage(url).files(below=True) == [name for name in before if name not in gone]
    for version in stay:
        for system in [run.system for run in open_archive(url, version).runs]:
            detections(open_archive(url, version), system)
    assert sws.verify(url).damaged == {}


def test_no_file_of_a_replaced_run_is_left(url: str) -> None:
    expire(url, keep=1)
    named = {fragment.file.file for stored in open_archive(url).stored_runs for fragment in stored.fragments}
    assert {name for name in Storage(url).files(below=True) if name.startswith("detections/")} == named


def test_an_interrupted_expiry_leaves_a_whole_archive(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    remove, calls = Storage.remove, []

    def dying(self: Storage, name: str) -> None:
        calls.append(name)
        if len(calls) == 3:
            raise OSError("power")
        remove(self, name)

    with monkeypatch.context() as patched:
        patched.setattr(Storage, "remove", dying)
        with pytest.raises(OSError, match="power"):
            expire(url, keep=1)
    assert left(url) == [3, 4, 5]
    assert sws.verify(url).damaged == {}
    vacuum(url)
    expire(url, keep=1)
    assert left(url) == [5]


def test_nothing_is_removed_where_a_version_cannot_be_read(url: str) -> None:
    (Path(url) / manifest_name(2)).write_text("{")
    before = Storage(url).files(below=True)
    with pytest.raises(ArchiveError, match="manifest-00000002"):
        expire(url, keep=1)
    assert Storage(url).files(below=True) == before


def test_what_stays_must_be_said(url: str) -> None:
    with pytest.raises(SettingsError, match=r"--keep.*--older-than"):
        expire(url)
    with pytest.raises(SettingsError, match="keep is 0; expected a whole number, 1 or more"):
        expire(url, keep=0)


def test_versions_say_what_each_changed(url: str) -> None:
    found = list(list_versions(url))
    assert [each.number for each in found] == [1, 2, 3, 4, 5]
    assert [changes(each) for each in found] == [
        (["a"], [], [], 0),
        ([], ["a"], [], 0),
        (["b"], [], [], 0),
        ([], ["a"], [], 0),
        ([], [], [], len(found[4].changed.settings)),
    ]
    assert "compat" in [each.setting.rpartition(".")[2] for each in found[4].changed.settings]
    assert difference(url, 1, 3).replaced == ("a",)
    assert difference(url, 3, 1).removed == ("b",)
    with pytest.raises(ArchiveError, match="manifest-00000009"):
        difference(url, 1, 9)


def changes(each: Version) -> tuple[list[str], list[str], list[str], int]:
    changed = each.changed
    return list(changed.added), list(changed.replaced), list(changed.removed), len(changed.settings)


def test_a_part_that_versions_share_is_read_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(storage: Storage, part: StoredFile) -> dict[str, StoredRun]:
        read.append(part.file)
        return EVALUATION.read(storage, part)

    for module in (version_list, verify):
        monkeypatch.setattr(module, "EVALUATION", replace(EVALUATION, read=counted))
    for command in (lambda: list(list_versions(url)), lambda: vacuum(url), lambda: verify.verify(url)):
        read.clear()
        command()
        assert read
        assert len(set(read)) == len(read)


def test_the_command_line(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    def printed(*arguments: str) -> list[str]:
        main(list(arguments))
        return capsys.readouterr().out.splitlines()

    assert [line.split()[0] for line in printed("show", url, "--versions")[2:]] == ["1", "2", "3", "4", "5"]
    changed = [f"{url}, version 3 compared with version 1", "  added: b", "  replaced: a"]
    assert printed("show", url, "--diff", "1", "3") == changed
    assert printed("show", url, "--diff", "3", "3")[1:] == ["  the same systems and settings"]
    with pytest.raises(SystemExit):
        main(["show", url, "--versions", "--version", "1"])
    assert "Give one of" in capsys.readouterr().err
    planned = printed("expire", url, "--keep", "2", "--older-than", "15", "--dry-run")
    assert planned[:3] == ["version 1", "version 2", "version 3"]
    assert planned[-1].startswith(f"{url}: 3 versions, ")
    assert left(url) == [1, 2, 3, 4, 5]
    assert printed("expire", url, "--keep", "2", "--older-than", "360h")[-1].endswith("removed")
    assert left(url) == [4, 5]


def test_an_age_that_is_no_number_is_refused(url: str) -> None:
    for clean in (sws.vacuum, sws.expire):
        with pytest.raises(SettingsError, match="older_than_s=nan: expected a number of seconds"):
            clean(url, older_than_s=math.nan)
    assert left(url) == [1, 2, 3, 4, 5]


def meanwhile(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, happens: Callable[[], object]) -> None:
    """Let something happen once, before the first call of a function."""
    original, first = getattr(owner, name), iter([happens])

    def called(*args: Any, **named: Any) -> Any:
        for each in first:
            each()
        return original(*args, **named)

    monkeypatch.setattr(owner, name, called)


@pytest.mark.parametrize(
    ("listing", "removing", "name"), [(version_list, cleaning, "read_version"), (Storage, Storage, "modified")]
)
def test_versions_that_appear_while_they_are_listed_are_no_fault(
    url: str, monkeypatch: pytest.MonkeyPatch, listing: object, removing: object, name: str
) -> None:
    meanwhile(monkeypatch, listing, name, lambda: write(url, source(rows(10)), replace=True))
    assert [each.number for each in list_versions(url)] == [1, 2, 3, 4, 5]
    meanwhile(monkeypatch, removing, name, lambda: write(url, source(rows(12)), replace=True))
    assert expire(url, keep=1, older_than_s=5 * DAY_S).versions == (1, 2, 3, 4)
    assert left(url) == [5, 6, 7]


@pytest.mark.parametrize("name", ["kind_of", "read_version"])
def test_versions_that_disappear_while_they_are_listed_are_left_out(
    url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    meanwhile(monkeypatch, version_list, name, lambda: expire(url, keep=2))
    found = list(list_versions(url))
    assert [each.number for each in found] == [4, 5]
    assert found[0].changed is None, "there is nothing to compare it with"
    assert found[1].changed is not None
    capsys.readouterr()
    main(["show", url, "--versions"])
    (oldest, newest) = capsys.readouterr().out.splitlines()[2:]
    assert (len(oldest.split()), len(newest.split())) == (4, 8)


def replaced(url: str) -> None:
    """Another process commits a version, and removes all others."""
    write(url, source(rows(10)), replace=True)
    expire(url, keep=1)


@pytest.mark.parametrize(("owner", "name"), [(version_list, "kind_of"), (cleaning, "read_version")])
def test_vacuum_keeps_the_files_of_a_version_that_replaces_all_others_meanwhile(
    url: str, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    expire(url, keep=1)
    meanwhile(monkeypatch, owner, name, lambda: replaced(url))
    removed = vacuum(url)
    assert left(url) == [6]
    assert {file.file for file in named_files(Storage(url))}.isdisjoint(removed)
    assert sws.verify(url).damaged == {}


@pytest.mark.parametrize("name", ["kind_of", "read_version", "merged_entries", "_fault"])
def test_versions_that_disappear_while_they_are_verified_are_left_out(
    url: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    copy = shutil.copytree(url, f"{url}.copy")
    with monkeypatch.context() as patched:
        meanwhile(patched, verify, name, lambda: replaced(url))
        found = sws.verify(url, repair=copy)
    assert (found.damaged, found.repaired) == ({}, ())
    assert left(url) == [6]
    assert sws.verify(url).files in (
        found.files,
        found.files + 2,
    )  # the new manifest, and its part of the table of runs


def test_damage_is_found_in_files_that_a_newer_version_names_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expire(url, keep=1)
    segments = open_archive(url).manifest.tables["segments"].file
    (Path(url) / segments).write_bytes(b"PAR1")
    meanwhile(monkeypatch, verify, "_fault", lambda: replaced(url))
    assert list(sws.verify(url).damaged) == [segments]
