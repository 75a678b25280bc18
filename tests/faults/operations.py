"""Writing interrupted at one operation on files: killed, refused by the disk, or cut off from power.

Operations are opening for writing, writing, syncing, moving, linking, removing, and making folders, as Python calls
them. An attempt runs in a forked process whose operations are counted from 0; what it had to write is cut in half.

A disk without power forgets what was not synced: of every name that was changed since its folder was synced the old or
the new state stays, and of a file's content what was synced last, nothing, or all, as chance will have it.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import pickle
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

ERRORS = (errno.ENOSPC, errno.EIO, errno.EDQUOT)
SECONDS = 60.0

_CALLS = ("replace", "rename", "link", "symlink", "unlink", "remove", "rmdir", "mkdir")
_open, _fsync, _os_open, _write_table = builtins.open, os.fsync, os.open, pq.write_table


class Disk:
    """The disk of the attempt's process: `strike` is called at the operation of that number."""

    def __init__(self, root: Path, number: int | None, strike: Callable[[], None]) -> None:
        self.root = os.path.realpath(root)
        self.number = number
        self.strike = strike
        self.count = 0
        self.names: set[str] = set()
        """Names that were changed since their folder was synced."""
        self.before: dict[str, bytes | None] = {}
        """What these names held before, as it was on the disk; None: nothing."""
        self.synced: dict[int, bytes] = {}
        """The synced content of files, by inode."""

    def install(self) -> None:
        """Take the place of Python's operations on files."""
        for name in _CALLS:
            setattr(os, name, self._counted(getattr(os, name)))
        builtins.open = io.open = self._opened  # type: ignore[assignment]
        os.fsync = self._fsynced
        pq.write_table = self._table_written

    def operation(self) -> bool:
        """Count an operation; whether it is the one that is struck."""
        self.count += 1
        return self.count - 1 == self.number

    def _concerns(self, path: Any) -> bool:
        return isinstance(path, str | os.PathLike) and self._real(path, None).startswith(self.root)

    def _real(self, path: Any, folder: int | None) -> str:
        start = os.readlink(f"/proc/self/fd/{folder}") if folder is not None else os.getcwd()
        return os.path.normpath(os.path.join(start, os.fspath(path)))

    def _changes(self, path: str) -> None:
        if path in self.names or os.path.isdir(path):
            return
        self.names.add(path)
        try:
            with _open(path, "rb") as file:
                content = file.read()
                self.before[path] = self.synced.get(os.fstat(file.fileno()).st_ino, content)
        except OSError:
            self.before[path] = None

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            folder = options.get("dir_fd", options.get("src_dir_fd"))
            paths = [self._real(each, folder) for each in arguments[:2] if isinstance(each, str | os.PathLike)]
            if any(path.startswith(self.root) for path in paths):
                if self.operation():
                    self.strike()
                for path in paths:
                    self._changes(path)
            return call(*arguments, **options)

        return counted

    def _fsynced(self, descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if path.startswith(self.root):
            if self.operation():
                self.strike()
            if os.path.isdir(path):
                for name in [name for name in self.names if os.path.dirname(name) == path]:
                    self.names.discard(name)
                    self.before.pop(name)
            elif os.path.exists(path):
                self.synced[os.stat(path).st_ino] = Path(path).read_bytes()
        _fsync(descriptor)

    def _opened(self, file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if not set(mode) & set("wxa+") or not self._concerns(file):
            return _open(file, mode, *arguments, **options)
        if self.operation():
            self.strike()
        self._changes(self._real(file, None))
        plain = io.BufferedWriter(_Writer(file, mode.replace("b", "").replace("t", ""), self))
        self.synced.pop(os.fstat(plain.fileno()).st_ino, None)
        return plain if "b" in mode else io.TextIOWrapper(plain, options.get("encoding") or "utf-8")

    def _table_written(self, table: Any, where: Any, **options: Any) -> None:
        if not isinstance(where, str | os.PathLike):
            _write_table(table, where, **options)
            return
        with self._opened(where, "wb") as file:
            _write_table(table, file, **options)

    def lose_power(self, seed: int) -> None:
        """Leave the folder as it might be found when power is back."""
        chance = random.Random(seed)
        back = {path for path in sorted(self.names) if not os.path.isdir(path) and chance.random() < 0.5}
        for path in back:
            _put(path, self.before[path])
        for folder, _, files in os.walk(self.root):
            for name in files:
                path = os.path.join(folder, name)
                if path in back:  # It has what was on the disk.
                    continue
                if path in self.names or os.stat(path).st_ino in self.synced:
                    content = self.synced.get(os.stat(path).st_ino, b"")
                    if chance.random() < 0.7 and content != Path(path).read_bytes() and os.stat(path).st_nlink == 1:
                        _put(path, content)


class _Writer(io.FileIO):
    """A file whose writes are counted as they reach the disk, behind the buffer of its process."""

    def __init__(self, file: Any, mode: str, disk: Disk) -> None:
        super().__init__(file, mode)
        self._disk = disk

    def write(self, data: Any) -> int:
        if self._disk.operation():
            super().write(bytes(data)[: len(bytes(data)) // 2])
            self._disk.strike()
        return super().write(data)


def _put(path: str, content: bytes | None) -> None:
    if os.path.lexists(path):
        os.unlink(path)
    if content is not None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with _open(path, "wb") as file:
            file.write(content)


def attempt(work: Callable[[], object], root: Path, how: str, number: int | None) -> tuple[int | None, str]:
    """Do `work` in a forked process, struck at an operation in a folder; how many operations it made, and its error.

    `how`: "kill", "power" or the number of an error. The count is None where the process did not come to its end.
    """
    disk = Disk(root, number, lambda: None)

    def strike() -> None:
        if how == "power":
            disk.number = None
            _restore()
            disk.lose_power(number or 0)
        if how in ("kill", "power"):
            os.kill(os.getpid(), signal.SIGKILL)
        raise OSError(int(how), os.strerror(int(how)))

    disk.strike = strike

    def struck() -> tuple[int, str]:
        disk.install()
        error = error_of(work)
        return disk.count, error

    return ended(begun(struck), SECONDS) or (None, "")


def error_of(work: Callable[[], object]) -> str:
    """Do some work; the name and the message of its error, empty for none."""
    try:
        work()
    except BaseException as raised:
        return f"{type(raised).__name__}: {raised}"[:4000]
    return ""


class Child(NamedTuple):
    """A forked process, and where its result is to be read."""

    number: int
    reading: int


def begun(work: Callable[[], Any]) -> Child:
    """Begin some work, which raises nothing, in a forked process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return Child(child, reading)
    os.write(writing, pickle.dumps(work()))
    os._exit(0)


def ended(child: Child, seconds: float) -> Any:
    """The result of a forked process; None if it did not end by itself. Raises `TimeoutError`."""
    deadline = time.monotonic() + seconds
    with _open(child.reading, "rb") as pipe:
        while os.waitpid(child.number, os.WNOHANG) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(child.number, signal.SIGKILL)
                os.waitpid(child.number, 0)
                raise TimeoutError(f"more than {seconds:g} s")
            time.sleep(0.002)
        said = pipe.read()
    return pickle.loads(said) if said else None


_originals = {name: getattr(os, name) for name in _CALLS}


def _restore() -> None:
    for name, call in _originals.items():
        setattr(os, name, call)
    builtins.open = io.open = _open  # type: ignore[assignment]
