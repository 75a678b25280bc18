"""Files and folders at a path or a URL. Only what lies at a URL needs fsspec, which is imported then.

What a storage raises is raised, unless a function says that it is explained.
"""

from __future__ import annotations

import os
import stat
from typing import Any

from swsdask.model.errors import InputError, Problem
from swsdask.places.options import remember_all

Place = str | os.PathLike[str]
"""A path or a URL."""

_LOCAL = "file://"


def is_local(place: str) -> bool:
    """Whether it is a path of this machine, for which fsspec is not needed."""
    return "://" not in place


def local_path(place: Place) -> str | None:
    """The path that it is, or that its URL names; None for another URL."""
    path = os.fspath(place)
    return path.removeprefix(_LOCAL) if is_local(path.removeprefix(_LOCAL)) else None


def file_system(url: str, **options: Any) -> tuple[Any, str]:
    """The file system of a URL, with these options and those that fsspec is configured with, and the path in it."""
    from fsspec.core import url_to_fs

    remember_all()
    filesystem, path = url_to_fs(url, **options)
    return filesystem, path


def joined(folder: Place, name: str) -> str:
    """The place of a name in a folder."""
    path = os.fspath(folder)
    return os.path.join(path, name) if is_local(path) else f"{path.rstrip('/')}/{name}"


def parted(place: Place) -> tuple[str, str]:
    """The folder and the name of a place; the folder of a bare name is empty."""
    path = os.fspath(place)
    if is_local(path):
        return os.path.split(path)
    folder, _, name = path.rpartition("/")
    return folder, name


def is_folder(place: Place) -> bool:
    """Whether there is a folder; what a storage raises is explained as an `InputError`."""
    path = os.fspath(place)
    try:
        if is_local(path):
            return os.path.isdir(path)
        filesystem, inner = file_system(path)
        return bool(filesystem.isdir(inner))
    except Exception as error:
        raise storage_fault(path, error) from None


def is_file(place: Place) -> bool:
    """Whether there is a file; what a storage raises is explained as an `InputError`."""
    path = os.fspath(place)
    try:
        if is_local(path):
            return os.path.isfile(path)
        filesystem, inner = file_system(path)
        return bool(filesystem.isfile(inner))
    except Exception as error:
        raise storage_fault(path, error) from None


SMALL = 1 << 20
"""The most bytes of a file of settings."""


def read_small(place: Place) -> bytes:
    """The bytes of a file, or a pipe, of at most `SMALL` bytes; more are an `InputError`. Raises as `read_whole`."""
    path = os.fspath(place)
    if is_local(path):
        with open(path, "rb") as file:
            content = file.read(SMALL + 1)
    else:
        content = read_whole(path)
    if len(content) > SMALL:
        remedy = "Check that it is the right file."
        raise InputError(Problem(path, None, f"a file of at most {SMALL:,} bytes", "a longer one", remedy))
    return content


def read_whole(place: Place) -> bytes:
    """The bytes of a regular file.

    Raises `FileNotFoundError`, and `OSError` or `InputError` for what else is wrong. A pipe is not waited for, and a
    device is not read.
    """
    path = os.fspath(place)
    if is_local(path):
        with open(path, "rb", opener=without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                remedy = "Write it to a file."
                raise InputError(Problem(path, None, "a regular file", "a device or a pipe", remedy))
            return file.read()
    try:
        filesystem, inner = file_system(path)
        content: bytes = filesystem.cat_file(inner)
    except OSError:
        raise
    except Exception as error:
        raise storage_fault(path, error) from None
    return content


def without_waiting(path: str, flags: int) -> int:
    """A pipe without a writer would keep a blocking open waiting for ever."""
    return os.open(path, flags | os.O_NONBLOCK)


def storage_fault(url: str, error: Exception) -> InputError:
    """Return the remedy where a path or URL cannot be listed, opened or read."""
    if isinstance(error, InputError):
        return error
    if isinstance(error, FileNotFoundError):
        return InputError(Problem(url, None, "a file or folder", "nothing there", "Check the path."))
    if isinstance(error, IsADirectoryError):
        return InputError(Problem(url, None, "a file", "a folder", "Name a file in it."))
    if isinstance(error, PermissionError):
        return InputError(Problem(url, None, "a file that may be read", "no permission to", "Change its permissions."))
    if isinstance(error, ImportError):
        return InputError(Problem(url, None, "a storage that is installed", f"{error}", "Install what that names."))
    found = f"{type(error).__name__}: {error}"
    return InputError(Problem(url, None, "a readable file or folder", found, "Check the path and the access to it."))
