"""Pipes that are given as files: named ones, `<(...)` of a shell, /dev/stdin.

Readers open a file more than once. The bytes of a pipe are therefore copied once, when it is given, to a temporary file
without a name, which no end of the process leaves behind.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from typing import IO, Any, Self

from swsdask.model.errors import InputError, Problem
from swsdask.places.reading import without_waiting


class Pipe(str):
    """The path of a pipe, as given, and the copy of its bytes, which lives as long as this object.

    Picklable: other processes of the machine read the same copy.
    """

    copy: str
    """Where the copy is opened."""

    same: tuple[int, int, int]
    """Device, inode and size of the copy: on another machine its place may be that of another file."""

    _held: int | None
    """The descriptor that keeps the copy, in the process that made it."""

    def __new__(cls, path: str, copy: str, same: tuple[int, int, int], held: int | None = None) -> Self:
        """See the class."""
        pipe = super().__new__(cls, path)
        pipe.copy, pipe.same, pipe._held = copy, same, held
        return pipe

    def __del__(self) -> None:
        if self._held is not None:
            os.close(self._held)

    def __reduce__(self) -> tuple[Any, ...]:
        return Pipe, (str(self), self.copy, self.same)


def readable(place: str | os.PathLike[str]) -> str:
    """A path or URL as text; a pipe is read to its end. Raises `InputError` if that fails."""
    path = os.fspath(place)
    if isinstance(path, Pipe) or "://" in path or not _is_pipe(path):
        return path
    held, name = tempfile.mkstemp(prefix="swsdask-")
    try:
        os.unlink(name)
        with open(path, "rb", buffering=0) as pipe, open(held, "wb", buffering=0, closefd=False) as copy:
            shutil.copyfileobj(pipe, copy, 1 << 20)
    except BaseException as error:
        os.close(held)
        if not isinstance(error, OSError):
            raise
        found = f"{type(error).__name__}: {error}"
        raise InputError(Problem(path, None, "a pipe that can be read", found, "Write it to a file.")) from None
    return Pipe(path, f"/proc/{os.getpid()}/fd/{held}", _identity(held), held)


def open_local(path: str) -> IO[bytes]:
    """Open a regular file, or the copy of a pipe, without a buffer.

    Raises `InputError` for a pipe or a device that was not given by name, and `OSError` as `open` does.
    """
    where = path.copy if isinstance(path, Pipe) else path
    file = open(where, "rb", buffering=0, opener=without_waiting)  # noqa: SIM115
    of_another = isinstance(path, Pipe) and _identity(file.fileno()) != path.same
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode) and not of_another:
        return file
    file.close()
    if isinstance(path, Pipe):
        remedy = "Write it to a file that every worker can read."
        raise InputError(Problem(path, None, "a pipe whose copy is on this machine", "another file there", remedy))
    remedy = "Name a file, or a pipe by itself rather than by a glob."
    raise InputError(Problem(path, None, "a regular file", "a device or a pipe", remedy))


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _identity(descriptor: int) -> tuple[int, int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino, found.st_size
