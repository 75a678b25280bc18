"""Files of an archive in a local folder: only regular files, written so that they survive a power cut."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from swsdask.model.errors import ArchiveError
from swsdask.places.writing import sync

_NOT_REGULAR = (errno.ELOOP, errno.ENOTDIR, errno.EMLINK, errno.ENXIO, errno.EISDIR)

PART = ".part"
"""The ending of an unfinished file, which is written beside its final place."""


@contextmanager
def open_regular(root: str, name: str) -> Iterator[OpenFile]:
    """Open a regular file below `root` for reading.

    Parameters
    ----------
    root : str
        The folder of the archive, which may itself be a link.
    name : str
        The path of the file relative to `root`, with slashes. No part of it may be a link.

    Yields
    ------
    OpenFile
        The file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ArchiveError
        If it is a link, a pipe, a folder or a device, or is behind a link.
    """
    descriptor = _descriptor(root, name)
    try:
        yield OpenFile(descriptor)
    finally:
        os.close(descriptor)


class OpenFile:
    """An open file, whose parts are read into memory.

    The file is not memory-mapped. If a mapped file is truncated meanwhile, the process ends (SIGBUS); if it is
    overwritten, the bytes that are used differ from those that were verified.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.size = os.fstat(descriptor).st_size

    def fetch(self, parts: Iterable[tuple[int, int]]) -> None:
        """Do nothing: parts are read when they are requested."""

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Return the bytes from an offset on, fewer at the end of the file."""
        content = np.empty(max(0, min(length, self.size - offset)), np.uint8).data
        done = 0
        while done < len(content) and (more := os.preadv(self._descriptor, [content[done:]], offset + done)):
            done += more
        return pa.py_buffer(content[:done])


def _descriptor(root: str, name: str) -> int:
    *folders, last = name.split("/")
    place = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            inner = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=place)
            os.close(place)
            place = inner
        # A blocking open of a pipe without a writer would wait forever.
        descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
    except ValueError as error:
        raise ArchiveError(f"{root}: not a file name: {name!r}: {error}.") from None
    except OSError as error:
        if error.errno in _NOT_REGULAR:
            raise _not_regular(root, name) from None
        error.filename = os.path.join(root, name)  # as opened, it is relative to the folder
        raise
    finally:
        os.close(place)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular(root, name)
    return descriptor


def _not_regular(root: str, name: str) -> ArchiveError:
    return ArchiveError(
        f"{root}/{name}: expected a regular file; found a link, a pipe, a folder or a device, or a folder on the way "
        "that is a link. An archive's links are not followed: put the file itself there."
    )


def write_whole(path: str, content: pa.Buffer | bytes) -> None:
    """Write a file, and its folder if there is none."""
    for _ in range(2):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            with open(path, "wb") as file:
                file.write(content)
            return
        except FileNotFoundError:
            continue  # `archive.cleaning` may remove a new folder while it is still empty.
    raise FileNotFoundError(path)


_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV)
"""The errors of a file system that has no hard links."""


def link_new(path: str, content: bytes) -> bool:
    """Write a temporary file and link it to its name, which fails if the name is taken. Return whether it succeeded."""
    aside = _aside(path)
    try:
        write_whole(str(aside), content)
        sync(str(aside))
        os.link(aside, path)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise ArchiveError(
            f"{path}: this file system cannot create a file only if it does not exist: {error}."
        ) from None
    finally:
        with suppress(OSError):  # The file may already have its name; `archive.cleaning` removes this one.
            aside.unlink()
    sync(os.path.dirname(path))
    return True


def replace(path: str, content: pa.Buffer | bytes, *, lasting: bool = True) -> None:
    """Write a temporary file and rename it to its name in one step, replacing any existing file.

    If not `lasting`, a power cut may truncate the file.
    """
    aside = _aside(path)
    try:
        write_whole(str(aside), content)
        if lasting:
            sync(str(aside))
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        os.replace(aside, path)
    finally:
        with suppress(OSError):  # The file may have been renamed already.
            aside.unlink()
    if not lasting:
        return
    try:
        sync(os.path.dirname(path))
    except OSError as error:
        said = f"{error.strerror}: the file was committed and can be read, but a power cut might undo that"
        raise OSError(error.errno, said, path) from error


def _aside(path: str) -> Path:
    return Path(f"{path}.{secrets.token_hex(8)}{PART}")


def names(folder: str) -> list[str]:
    """Return the names of everything in a folder; none if there is no such folder."""
    try:
        return sorted(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []


def remove(path: str) -> None:
    """Remove a file or a link, or a folder with everything in it; links are not followed."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        Path(path).unlink(missing_ok=True)


def modified(root: str, below: str) -> Iterator[tuple[str, float]]:
    """Yield the paths, relative to the root, and the modification times of the files in a folder `below` the root.

    Links are not followed. Raises `OSError` for a folder that cannot be listed, but not for a missing one.
    """

    def report(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error

    for folder, folders, files in os.walk(os.path.join(root, below), onerror=report):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        within = os.path.relpath(folder, root).replace(os.sep, "/")
        for name in (*files, *links):
            try:
                changed = os.lstat(os.path.join(folder, name)).st_mtime
            except FileNotFoundError:
                continue
            yield name if within == os.curdir else f"{within}/{name}", changed


def remove_empty_folders(path: str, before: float) -> None:
    """Remove the folders below `path` that are empty and were last changed before a time."""
    folders = [(folder, os.lstat(folder).st_mtime) for folder, _, _ in os.walk(path) if folder != path]
    for folder, changed in reversed(folders):
        if changed < before:
            with suppress(OSError):  # It is not empty.
                os.rmdir(folder)
