"""Results are old, new, or one clear error, wherever their writer is killed; never a mixture."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from swsdask.model.errors import InputError
from swsdask.model.results import ALIGNMENT, Result
from swsdask.model.system_rows import SystemRows
from swsdask.places import writing
from swsdask.places.writing import fingerprint, replacing, temporary_folder, together
from swsdask.render.outputs import read_outputs, renew_report, write_outputs
from tests.results import table, three_systems

NUMBERS = ("scores.parquet", "scores.json", "curves.parquet")
"""Files that others read beside the manifest, without looking at its hashes."""

FILE_OPERATIONS = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.scandir", "shutil.rmtree"}


class Killed(BaseException):
    """What a process that is killed does from then on: nothing."""


class Kill:
    """Ends all work on files below a folder at its operation of a number, as SIGKILL would."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.left = 0

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None or event not in FILE_OPERATIONS or self.folder not in str(arguments[0]):
            return
        self.left -= 1
        if self.left < 0:
            raise Killed

    @contextmanager
    def at(self, operation: int, folder: Path) -> Iterator[None]:
        self.folder, self.left = str(folder), operation
        try:
            yield
        except Killed:
            pass
        finally:
            self.folder = None


@pytest.fixture(scope="module")
def hooked() -> Kill:
    made = Kill()
    sys.addaudithook(made)
    return made


@pytest.fixture
def kill(hooked: Kill, monkeypatch: pytest.MonkeyPatch) -> Kill:
    """With a page that is made at once, and no waiting for the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr("swsdask.render.outputs.page", lambda result, _: f"page of {result.notes}")
    return hooked


OLD = replace(
    three_systems(),
    notes=("old",),
    alignment_rows=SystemRows.of(
        table([("a", "q1", "d", 1, 0.5, 1.0, 0.4, 0.9, 2.5, "YES", "hit")], ALIGNMENT), ALIGNMENT
    ),
)
NEW = Result.of(OLD.table.slice(1), OLD.curve_table.slice(1), OLD.manifest, ("new",))


def score_out(text: str) -> Callable[[Path], list[Path]]:
    def write(folder: Path) -> list[Path]:
        (folder / "sub").mkdir()
        (folder / "sub" / "score.out").write_text(text)
        return [folder / "sub"]

    return write


def same(one: Result, other: Result) -> bool:
    """NaN equals itself."""
    tables = (one.table, other.table), (one.curve_table, other.curve_table)
    return one.notes == other.notes and all(repr(a.to_pylist()) == repr(b.to_pylist()) for a, b in tables)


def seen_in(folder: Path, before: Result | None, after: Result) -> str:
    """Whether a reader sees the result before, the one after or an error; fails for anything else."""
    try:
        found = read_outputs(folder)
    except InputError:
        return "error"
    if before is not None and same(found, before):
        return "old"
    assert same(found, after)
    return "new"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("before", "after"), [(None, NEW), (OLD, NEW), (NEW, OLD)])
def test_a_writer_killed_at_every_operation(kill: Kill, tmp_path: Path, before: Result | None, after: Result) -> None:
    """Afterwards a reader sees the old result, the new one or an error, and the next writer leaves only its own."""
    write_outputs(after, tmp_path / "whole")
    whole = contents(tmp_path / "whole")
    seen = set()
    for operation in range(1000):
        out = tmp_path / str(operation)
        if before is not None:
            write_outputs(before, out, official=score_out("before"))
        with kill.at(operation, out):
            write_outputs(after, out)
        done = kill.left >= 0
        seen.add(seen_in(out, before, after))
        if (out / "manifest.json").exists():
            listed = json.loads((out / "manifest.json").read_text())["files"]
            assert all(fingerprint((out / name).read_bytes()) == listed[name] for name in NUMBERS)
        write_outputs(after, out)
        assert contents(out) == whole, operation
        if done:
            break
    assert operation > 20
    assert seen == ({"new", "error"} if before is None else {"old", "new", "error"})


def test_a_report_renewed_and_killed_at_every_operation(kill: Kill, tmp_path: Path) -> None:
    for operation in range(1000):
        write_outputs(OLD, tmp_path, official=score_out("kept"))
        whole = contents(tmp_path)
        with kill.at(operation, tmp_path):
            renew_report(tmp_path, OLD)
        done = kill.left >= 0
        assert seen_in(tmp_path, None, OLD) in ("new", "error")
        if done:
            break
    assert operation > 5
    assert contents(tmp_path) == whole


@pytest.mark.parametrize("name", ["scores.parquet", "curves.parquet", "alignment.parquet"])
@pytest.mark.parametrize("other", [True, False])
def test_a_table_of_another_result_is_an_error(tmp_path: Path, name: str, other: bool) -> None:
    write_outputs(OLD, tmp_path)
    content = bytearray((tmp_path / name).read_bytes())
    if other:
        content.extend(b"more")
    else:
        content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: .*not the one manifest.json lists"):
        read_outputs(tmp_path)


def test_a_manifest_lists_every_other_file(tmp_path: Path) -> None:
    write_outputs(OLD, tmp_path, official=score_out("x"))
    listed = json.loads((tmp_path / "manifest.json").read_text())["files"]
    assert sorted(listed) == sorted(name for name in contents(tmp_path) if name != "manifest.json")
    assert all(listed[name]["bytes"] == len(content) for name, content in contents(tmp_path).items() if name in listed)


def test_names_that_lead_out_of_the_folder_are_not_removed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    write_outputs(OLD, tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    manifest["files"] = {"../mine": {}, str(tmp_path / "mine"): {}, "alignment.parquet": {}}
    (tmp_path / "out" / "manifest.json").write_text(json.dumps(manifest))
    write_outputs(NEW, tmp_path / "out")
    assert (tmp_path / "mine").read_text() == "kept"
    assert not (tmp_path / "out" / "alignment.parquet").exists()


def test_the_folder_of_a_running_writer_stays(tmp_path: Path) -> None:
    with together(tmp_path) as hidden:
        (hidden / "one").write_text("1")
        with replacing(tmp_path / "two") as file:
            file.write(b"2")
        assert hidden.exists()
    (tmp_path / ".swsdask-killed").mkdir()
    (tmp_path / ".swsdask-locked").mkdir()
    descriptor = os.open(tmp_path / ".swsdask-locked", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with replacing(tmp_path / "three") as file:
        file.write(b"3")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".swsdask-locked", "one", "three", "two"]
    os.close(descriptor)


def test_a_folder_where_a_file_is_to_be_written(tmp_path: Path) -> None:
    write_outputs(OLD, tmp_path)
    (tmp_path / "sub" / "score.out").mkdir(parents=True)
    before = contents(tmp_path)
    with pytest.raises(IsADirectoryError, match=r"sub/score\.out is a folder"):
        write_outputs(NEW, tmp_path, official=score_out("new"))
    assert contents(tmp_path) == before


def test_links_are_followed_and_pipes_and_devices_stay(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("other/target")
    for content in (b"first", b"second"):
        with replacing(tmp_path / "link") as file:
            file.write(content)
        assert (tmp_path / "other/target").read_bytes() == content
    assert (tmp_path / "link").is_symlink()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    for name in ("pipe", "null"):
        with pytest.raises(OSError, match=f"{name} is a device or a pipe"), replacing(tmp_path / name):
            pass
        with pytest.raises(OSError, match=f"{name} is a device or a pipe"), together(tmp_path) as hidden:
            (hidden / name).touch()
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "null").is_symlink()


def test_a_commit_that_the_disk_fails_after_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_outputs(three_systems(), tmp_path)
    new = three_systems(("good", "other", "weak"))

    def fail(path: Path, sync: Callable[[Path], None] = writing.sync) -> None:
        if path == tmp_path:
            raise OSError(errno.EIO, "Input/output error")
        sync(path)

    monkeypatch.setattr(writing, "sync", fail)
    with pytest.raises(OSError, match="Input/output error: the new files are committed and can be read"):
        write_outputs(new, tmp_path)
    assert read_outputs(tmp_path).table["system"].to_pylist() == new.table["system"].to_pylist()


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        "import os\n"
        "from swsdask.places.writing import temporary_folder\n"
        "with temporary_folder() as folder:\n"
        "    (folder / 'rows').write_bytes(b'x')\n"
        "    os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    other = tmp_path / "swsdask-kernels-1"
    other.mkdir()
    with temporary_folder() as folder:
        assert not left.exists()
        with temporary_folder() as inner:
            assert folder.exists()
            assert inner != folder
    assert list(tmp_path.iterdir()) == [other]


FORKED = """
import os
from swsdask.places.writing import temporary_folder

with temporary_folder() as folder:
    child = os.fork()
    if child == 0:
        raise SystemExit  # the context ends here too
    assert os.waitpid(child, 0)[1] == 0
    print(folder.exists())
print(folder.exists())
"""


def test_a_forked_process_leaves_the_temporary_folder_to_its_maker(tmp_path: Path) -> None:
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", FORKED], env=environ, capture_output=True, text=True, check=True)
    assert ran.stdout == "True\nFalse\n"
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_folder_that_another_process_removes_before_it_is_locked_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    def make(**where: Any) -> str:
        made.append(mkdtemp(**where))
        if len(made) == 1:
            os.rmdir(made[0])
        return made[-1]

    monkeypatch.setattr(writing, "mkdtemp", make)
    with temporary_folder() as folder:
        assert [str(folder)] == made[1:]


def test_a_full_disk_is_named_by_the_folder_that_is_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left") as caught, together(tmp_path / "out"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert caught.value.filename == str(tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())
