"""Files and folders at a path or a URL: reading, lists, and pipes.

fsspec is imported only for URLs.

Errors of a storage are raised unchanged, unless a function says that it explains them.

Pipes may be given as files: named pipes, `<(...)` of a shell, /dev/stdin. Readers open a file more than once. The bytes
of a pipe are therefore copied once, when it is given, to a temporary file without a name, which never outlives the
process. A pipe must have a writer within a minute; its bytes are then waited for without limit.
"""

from __future__ import annotations

import os
import re
import select
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from glob import has_magic
from itertools import takewhile
from pathlib import PurePath, PurePosixPath
from typing import IO, TYPE_CHECKING, Self

from swsdask.model.errors import InputError, Problem, ResourceError, SettingsError
from swsdask.model.limits import NO_SPACE, shortage
from swsdask.model.wording import counted
from swsdask.places.store_options import OBJECT_STORES, remember_all

_SLASHES = re.compile(r"/{2,}")

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

Location = str | os.PathLike[str]
"""A path or a URL."""

_LOCAL = "file://"
ARCHIVED = re.compile(r"manifest-(\d{8})\.json")
"""The name of a file that makes its folder an archive: the manifest of a version, see `archive.versions`."""


def is_local(place: str) -> bool:
    """Return whether a place is a local path, for which fsspec is not needed."""
    return "://" not in place


def local_path(place: Location) -> str | None:
    """Return the local path of a path or a local URL; None for other URLs."""
    path = os.fspath(place)
    return path.removeprefix(_LOCAL) if is_local(path.removeprefix(_LOCAL)) else None


def file_system(url: str, **options: object) -> tuple[AbstractFileSystem, str]:
    """The file system of a URL, with these options and those that fsspec is configured with, and the path in it."""
    from fsspec.core import url_to_fs

    remember_all()
    filesystem, path = url_to_fs(url, **options)
    if not is_local(url) and "://" not in path:  # a web server may distinguish names by their slashes
        path = _SLASHES.sub("/", path)  # stores list names without the empty parts that they are written with
    return filesystem, path


def as_path(place: Location) -> str:
    """Return a path or URL as text. Raises `SettingsError` for another type."""
    if not isinstance(place, str | os.PathLike):
        raise SettingsError(f"expected a path or URL; found the type {type(place).__name__}.")
    return os.fspath(place)


def join_path(folder: Location, name: str) -> str:
    """Return the place of a name in a folder."""
    path = as_path(folder)
    return os.path.join(path, name) if is_local(path) else f"{path.rstrip('/')}/{name}"


def parted(place: Location) -> tuple[str, str]:
    """Return the folder and the name of a place; the folder of a bare name is empty."""
    path = os.fspath(place)
    if is_local(path):
        return os.path.split(path)
    scheme, mark, inner = path.partition("://")
    folder, _, name = inner.rpartition("/")
    return f"{scheme}{mark}{folder}", name


def before_query(url: str) -> tuple[str, str]:
    """Split a place into the part before the query string of a URL, and that string with its question mark."""
    path, mark, query = url.partition("?") if "://" in url else (url, "", "")
    return path, mark + query


def is_folder(place: Location) -> bool:
    """Return whether there is a folder. Errors of a storage are explained as an `InputError`."""
    path = os.fspath(place)
    try:
        if is_local(path):
            return os.path.isdir(path)
        filesystem, inner = file_system(path)
        return bool(filesystem.isdir(inner))
    except Exception as error:
        raise storage_fault(path, error) from None


def is_file(place: Location) -> bool:
    """Return whether there is a file. Errors of a storage are explained as an `InputError`."""
    path = os.fspath(place)
    try:
        if is_local(path):
            return os.path.isfile(path)
        filesystem, inner = file_system(path)
        return bool(filesystem.isfile(inner))
    except Exception as error:
        raise storage_fault(path, error) from None


SMALL = 1 << 20
"""The maximum size of a settings file in bytes."""


def read_small(place: Location) -> bytes:
    """Return the bytes of a file, or a pipe. More than `SMALL` bytes are an `InputError`. Raises as `read_whole`."""
    path = os.fspath(place)
    if is_local(path) and _is_pipe(path):
        content = b"".join(_until(SMALL, _blocks(path)))
    elif is_local(path):
        with open(path, "rb") as file:
            content = file.read(SMALL + 1)
    else:
        content = read_whole(path)
    if len(content) > SMALL:
        remedy = "Check that it is the right file."
        raise InputError(Problem(path, None, f"a file of at most {SMALL:,} bytes", "a longer one", remedy))
    return content


def read_whole(place: Location) -> bytes:
    """Return the bytes of a regular file.

    Raises `FileNotFoundError`, and `OSError` or `InputError` for other problems. A pipe is not waited for, and a device
    is not read.
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
    """Open without blocking, because a blocking open of a pipe without a writer waits forever."""
    return os.open(path, flags | os.O_NONBLOCK)


class Pipe(str):
    """The path of a pipe, as given, and the copy of its bytes, which exists as long as this object.

    Picklable: other processes of the machine read the same copy.
    """

    copy: str
    """The path at which the copy is opened."""

    same: tuple[int, int, int]
    """Device, inode and size of the copy: on another machine, its path may belong to another file."""

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

    def __reduce__(self) -> tuple[object, ...]:
        return Pipe, (str(self), self.copy, self.same)


def readable(place: Location) -> str:
    """Return a path or URL as text. A pipe is read to its end.

    Raises `InputError` if that fails, and `SettingsError` for another type.
    """
    path = as_path(place)
    if isinstance(path, Pipe) or "://" in path or not _is_pipe(path):
        return path
    held, name = tempfile.mkstemp(prefix="swsdask-")
    try:
        os.unlink(name)
        with open(held, "wb", closefd=False) as copy:
            copy.writelines(_blocks(path))
    except BaseException as error:
        os.close(held)
        if not isinstance(error, OSError):
            raise
        found = f"{type(error).__name__}: {error}"
        raise InputError(Problem(path, None, "a pipe that can be read", found, "Write it to a file.")) from None
    return Pipe(path, f"/proc/{os.getpid()}/fd/{held}", _identity(held), held)


def locations(given: Location | Iterable[Location]) -> list[str]:
    """Return one place or several as strings; read pipes."""
    return [readable(given)] if isinstance(given, str | os.PathLike) else [readable(place) for place in given]


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


WRITER_S = 60.0
"""The time within which a pipe must be opened for writing."""

_BLOCK = 1 << 20


def _blocks(path: str) -> Iterator[bytes]:
    """Yield the bytes of a pipe. Raises `InputError` if it has no writer."""
    with open(path, "rb", buffering=0, opener=without_waiting) as pipe:
        block = _first_block(pipe)
        os.set_blocking(pipe.fileno(), True)
        while block is None or block:
            if block:
                yield block
            block = pipe.read(_BLOCK)


def _first_block(pipe: IO[bytes]) -> bytes | None:
    """Return the bytes in a pipe that has a writer; None if it has not written yet, empty if it has closed the pipe."""
    events = select.poll()
    events.register(pipe, select.POLLIN)
    deadline = time.monotonic() + WRITER_S
    while True:
        block: bytes | None = pipe.read(_BLOCK)
        if block != b"":
            return block
        # Without a writer a pipe is at its end; only one that has had a writer since it was opened is hung up.
        if any(event == select.POLLHUP for _, event in events.poll(100)):
            return b""
        if time.monotonic() > deadline:
            found = f"one that none opened within {counted(WRITER_S, 'seconds', 'g')}"
            remedy = "Start the program that writes it, or name a file."
            raise InputError(Problem(str(pipe.name), None, "a pipe that a program opens for writing", found, remedy))


def _until(most: int, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Blocks until they are longer than `most`."""
    for block in blocks:
        yield block
        most -= len(block)
        if most < 0:
            return


def _is_pipe(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _identity(descriptor: int) -> tuple[int, int, int]:
    found = os.fstat(descriptor)
    return found.st_dev, found.st_ino, found.st_size


UNKNOWN_OPTION = "Check the options of the store: its library does not accept one of them, or its value."
"""The remedy for a `TypeError` of a library."""


def storage_fault(url: str, error: Exception) -> InputError | ResourceError:
    """Return the error, with a remedy, for a path or URL that cannot be listed, opened or read."""
    if isinstance(error, InputError):
        return error
    if (short := shortage(error, url)) is not None:
        return short
    if isinstance(error, OSError) and error.errno in NO_SPACE:  # of a copy, which is made to seek in
        remedy = "Free some, or set TMPDIR to another folder."
        return ResourceError(f"{url}: no space left for its copy in {tempfile.gettempdir()}. {remedy}")
    no_member = url.startswith("zip://") and isinstance(error, KeyError)  # earlier versions of fsspec
    if no_member or isinstance(error, FileNotFoundError):
        return InputError(Problem(url, None, "a file or folder", f"nothing there{no_folder(url)}", "Check the path."))
    if isinstance(error, IsADirectoryError):
        return InputError(Problem(url, None, "a file", "a folder", "Name a file in it."))
    if isinstance(error, PermissionError):
        remedy = "Change its permissions." if is_local(url) else "Check the credentials and their permissions."
        found = "no permission" if is_local(url) else f"no permission: {error}".rstrip(".")
        problem = Problem(url, None, "a file that may be read", found, remedy)
    elif isinstance(error, ImportError):
        problem = Problem(url, None, "a storage whose library is installed", f"{error}", "Install what is missing.")
    else:
        found = f"{type(error).__name__}: {error}".rstrip(".")
        remedy = UNKNOWN_OPTION if isinstance(error, TypeError) else "Check the path and the access to it."
        problem = Problem(url, None, "a readable file or folder", found, remedy)
    return InputError(replace(problem, transient=True))


def no_folder(place: str) -> str:
    """Return `: there is no folder NAME`, of the outermost missing folder, bucket or container above a place.

    It is "" if there is none, or if that cannot be found out. A glob is in the folder where it begins.
    """
    path = local_path(place)
    with suppress(Exception):
        if path is not None:
            for folder in reversed(PurePath(path).parents):
                if has_magic(str(folder)):
                    break
                if not _is_there(folder):
                    return f": there is no folder {folder}"
        elif "::" not in place:
            filesystem, inner = file_system(place)
            kind = next((word for name, word in _OUTERMOST.items() if name in protocols(filesystem)), "")
            bucket = inner.lstrip("/").partition("/")[0]
            if kind and not filesystem.exists(bucket) and not _is_listed(filesystem, bucket):
                return f": there is no {kind} {bucket}"
    return ""


_OUTERMOST = {"s3": "bucket", "gs": "bucket", "abfs": "container"}
"""The words for the outermost folders of `OBJECT_STORES`."""


def _is_there(folder: PurePath) -> bool:
    """Return whether there is a folder. Raises `OSError` if that cannot be found out."""
    try:
        os.stat(folder)
    except FileNotFoundError:
        return False
    return True


def _is_listed(filesystem: AbstractFileSystem, bucket: str) -> bool:
    """Return whether a bucket can be listed: `exists` of fsspec is false without permission too."""
    try:
        filesystem.ls(bucket)
    except FileNotFoundError:
        return False
    return True


def protocols(filesystem: AbstractFileSystem) -> tuple[str, ...]:
    """Return the protocols of the URLs of a file system."""
    protocol = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def all_below(
    filesystem: AbstractFileSystem, folder: str, deepest: int | None = None
) -> dict[str, Mapping[str, object]]:
    """Return the details of all files and folders below a folder, at most `deepest` levels, by path; a file has itself.

    `find` of fsspec takes folders that it cannot list for empty ones, unless an object store lists all levels by one
    request. This function raises the error of the store. If there is no such folder, it raises `FileNotFoundError`, or
    finds nothing by one request.
    """
    if deepest is None and not {*OBJECT_STORES}.isdisjoint(protocols(filesystem)):
        files = filesystem.find(folder, detail=True)
        if not isinstance(files, dict):  # of a file, from Azure
            files = {each: filesystem.info(each) for each in files}
        holding = {PurePosixPath(parted(file)[0]) for file in files}
        above = {str(each) for of_files in holding for each in (of_files, *of_files.parents)}
        folders = (each for each in above if len(each) > len(folder))
        return {**{each: {"name": each, "type": "directory"} for each in folders}, **files}
    found: dict[str, Mapping[str, object]] = {}
    waiting, level = [folder], 0
    while waiting and level != deepest:
        inside: dict[str, Mapping[str, object]] = {}
        for each in waiting:
            try:
                inside |= {info["name"].rstrip("/"): info for info in filesystem.ls(each, detail=True)}
            except FileNotFoundError:  # A folder below was removed meanwhile.
                if level == 0:
                    raise
        new = {name: info for name, info in inside.items() if name not in found and name not in waiting}
        found |= new if level else inside
        waiting = [name for name, info in new.items() if info["type"] == "directory"]
        level += 1
    return found


def all_matching(filesystem: AbstractFileSystem, pattern: str) -> dict[str, Mapping[str, object]]:
    """Return the details of all files and folders that a glob matches, by path, sorted.

    `glob` of fsspec takes folders that it cannot list for empty ones. This function raises the error of a store.
    """
    from fsspec.utils import glob_translate

    folder = start_of(pattern)
    if not folder or not {*_LOCAL_FILES, *WITHOUT_LISTS}.isdisjoint(protocols(filesystem)):
        return dict(filesystem.glob(pattern, detail=True))
    deepest = None if "**" in pattern else pattern.count("/") - folder.count("/")
    matches = re.compile(glob_translate(pattern)).match
    try:
        there = all_below(filesystem, folder, deepest)
    except FileNotFoundError:
        return {}
    return {path: info for path, info in sorted(there.items()) if matches(path)}


def start_of(pattern: str) -> str:
    """Return the folder in which a glob begins; empty for the working directory."""
    return "/".join(takewhile(lambda part: not has_magic(part), pattern.split("/")))


WITHOUT_LISTS = ("http", "https")
"""The protocols whose folders cannot be listed."""

_LOCAL_FILES = ("file", "local")
