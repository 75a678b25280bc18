"""What is committed is on the disk: a power cut right after a commit loses nothing, and lost rows stop a commit."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from swsdask.archive.fragments import FragmentWriter
from swsdask.cli import main
from swsdask.model.errors import ExecutionError


class Disk:
    """A disk that keeps, of each file and each list of names, what was synced; folders themselves are kept."""

    def __init__(self) -> None:
        self.files: dict[int, bytes] = {}
        self.names: dict[Path, dict[str, int]] = {}

    def sync(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if path.is_dir():
            self.names[path] = {each.name: each.stat().st_ino for each in path.iterdir() if each.is_file()}
        else:
            self.files[path.stat().st_ino] = path.read_bytes()

    def restore(self, folder: Path, into: Path) -> None:
        """What is there when the power is back: synced names, with what was synced of their files."""
        into.mkdir()
        for name, number in self.names.get(folder, {}).items():
            (into / name).write_bytes(self.files.get(number, b""))
        for inner in folder.iterdir():
            if inner.is_dir():
                self.restore(inner, into / inner.name)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("durable")
    main(["demo", "--out", str(made), "--hours", "0.2", "--queries", "5"])
    return made / "files"


def test_a_committed_archive_outlasts_a_power_cut(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk()
    monkeypatch.setattr(os, "fsync", disk.sync)
    sws.ingest(tmp_path / "archive", demo, runs=demo / "runs", preset="sws2013")
    disk.restore(tmp_path / "archive", tmp_path / "restored")
    whole, restored = (sws.score(tmp_path / name, "mtwv").table for name in ("archive", "restored"))
    assert whole.num_rows > 0
    assert restored.equals(whole)


def test_rows_that_are_lost_on_the_way_stop_the_commit(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = FragmentWriter._fragment

    def losing(self: FragmentWriter, *given: Any) -> Any:
        whole = write(self, *given)
        return replace(whole, groups=(whole.groups[0] - 1, *whole.groups[1:]))

    monkeypatch.setattr(FragmentWriter, "_fragment", losing)
    with pytest.raises(ExecutionError, match=r"rows read and [\d,]+ written; nothing was committed"):
        sws.ingest(tmp_path / "archive", demo, runs=demo / "runs", preset="sws2013")
    with pytest.raises(sws.InputError, match="expected an ECF in the folder"):  # it is no archive
        sws.open(tmp_path / "archive")
