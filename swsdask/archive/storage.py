"""The storage of an archive: a folder at any fsspec URL, with the one operation that a commit needs.

`write_new` creates a file unless it exists, so that exactly one of two writers wins. It is safe on a local file system
(a link to a finished file), in memory (under a lock) and in object stores (S3, Google Cloud Storage, Azure: a
conditional put, which is tested before it is used). On other storage, an archive can be read but not written. In a
local folder only regular files are read, and links are not followed (`archive.local`).
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import IO, TYPE_CHECKING

import pyarrow as pa

from swsdask.archive import local
from swsdask.model.errors import ArchiveError, StoreError, SwsdaskError
from swsdask.model.limits import shortage
from swsdask.model.safe_text import without_secrets
from swsdask.places.reading import UNKNOWN_OPTION, all_below, file_system, local_path, protocols
from swsdask.places.writing import sync

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_LOCAL = ("file", "local")
_MEMORY = ("memory",)
_CONDITIONAL_PUT = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")

_CONFLICT, _PRECONDITION_FAILED = 409, 412

_memory_lock = threading.Lock()

PROBE = "probe-"
"""The prefix of files that test whether a store can be written safely."""

_ELSEWHERE = "Ingest into a local folder and copy it there: it can be read from any store."

_NEAR = 1 << 16
"""Parts of a remote file that are at most this far apart are fetched by one request."""


@dataclass(frozen=True)
class Storage:
    """A folder and its files, by paths relative to it. Picklable."""

    url: str
    options: Mapping[str, object] = field(default_factory=dict, repr=False)

    @cached_property
    def _opened(self) -> tuple[AbstractFileSystem, str]:
        try:
            filesystem, root = file_system(self.url, **self.options)
        except Exception as error:
            if (short := shortage(error, self.url)) is not None:
                raise short from None
            raise ArchiveError(f"{self.url}: cannot be opened: {error}") from None
        return filesystem, root.rstrip("/")

    def __repr__(self) -> str:
        return f"Storage({without_secrets(self.url)!r})"

    def __getstate__(self) -> dict[str, object]:
        """Pickle a local folder by its full path, because the receiver may have another working directory."""
        return {"url": self._root if self.is_local else self.url, "options": dict(self.options)}

    @property
    def _filesystem(self) -> AbstractFileSystem:
        return self._opened[0]

    @cached_property
    def _folder(self) -> str | None:
        """The full path of a local folder, otherwise None. fsspec is imported only for other folders."""
        path = local_path(self.url)
        if path is not None:
            return os.path.abspath(os.path.expanduser(path)).rstrip("/")
        return self._opened[1] if self._is(_LOCAL) else None

    @property
    def _root(self) -> str:
        return self._opened[1] if self._folder is None else self._folder

    @cached_property
    def _fetched(self) -> dict[str, bytes]:
        """The contents that were fetched and not yet read, by name."""
        return {}

    @cached_property
    def _protocols(self) -> tuple[str, ...]:
        return protocols(self._filesystem)

    def _is(self, names: tuple[str, ...]) -> bool:
        return any(name in names for name in self._protocols)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return self._folder is not None

    def path(self, name: str) -> str:
        """Return the full path of a file. Raises `ArchiveError` for a name that leads out of the folder."""
        if name.startswith("/") or ".." in name.split("/"):
            raise ArchiveError(f"{self.url}: a file name that leads out of the archive: {name!r}.")
        return f"{self._root}/{name}"

    def place(self, name: str) -> str:
        """Return the full path or the URL of a file, by which other processes find it."""
        if self.is_local:
            return self.path(name)
        first, chain, outer = self.url.partition("::")  # a name in an archive stands before the archive
        return f"{first if first.endswith('://') else first.rstrip('/') + '/'}{name}{chain}{outer}"

    @property
    def is_distant(self) -> bool:
        """Whether every read is a request, with a latency that does not depend on its size."""
        return not self.is_local and not self._is(_MEMORY)

    def read(self, name: str, size: int | None = None) -> bytes:
        """Return the bytes of a file. In a store, a known `size` saves a request.

        Raises `FileNotFoundError`, `ArchiveError` if it is not a regular file, and `StoreError` if a store fails.
        """
        path = self.path(name)
        if name in self._fetched:
            return self._fetched.pop(name)
        if self.is_local:
            with local.open_regular(self._root, name) as file:
                return bytes(file.read(0, file.size))
        known = {} if size is None else {"start": 0, "end": size}
        with _store_errors(self.place(name)):
            content: bytes = self._filesystem.cat_file(path, **known)
            return content

    def read_all(self, names: Iterable[str], sizes: Mapping[str, int | None] | None = None) -> dict[str, bytes]:
        """Return the bytes of small files by name, without those that cannot be read.

        A store gets all requests at once.

        Known `sizes` save requests.
        """
        wanted = list(names)
        if not self.is_local:
            paths = [self.path(name) for name in wanted]
            ends = [(sizes or {}).get(name) for name in wanted]
            begins = [None if end is None else 0 for end in ends]
            found = self._filesystem.cat_ranges(paths, begins, ends, on_error="return") if paths else []
            return {name: each for name, each in zip(wanted, found, strict=True) if isinstance(each, bytes)}
        contents = {}
        for name in wanted:
            with suppress(OSError, ArchiveError):
                contents[name] = self.read(name)
        return contents

    def fetch(self, sizes: Mapping[str, int | None]) -> None:
        """If every read is a request, fetch whole files that will be read, by name with their sizes, all at once."""
        if self.is_distant:
            self._fetched.update(self.read_all(sizes, sizes))

    @contextmanager
    def open_parts(self, name: str, size: int | None = None) -> Iterator[Parts]:
        """Open a file to read some of its parts. `size` is its size, if known. Raises as `read`."""
        path = self.path(name)
        if self.is_local:
            with local.open_regular(self._root, name) as file:
                yield file
        elif not self.is_distant:
            yield Whole(pa.py_buffer(self.read(name)))
        else:
            yield Remote(self._filesystem, path, size, self.place(name))

    def open(self, name: str) -> IO[bytes]:
        """Return a file as its file system opens it, without read-ahead in a store."""
        file: IO[bytes] = self._filesystem.open(self.path(name), "rb", cache_type="none")
        return file

    def write(self, name: str, content: pa.Buffer | bytes) -> None:
        """Write a whole file; on a local file system it is on the disk when this returns."""
        self.write_temporary(name, content)
        if self.is_local:
            path = self.path(name)
            with self._explained("written"):
                sync(path)
                sync(path.rsplit("/", 1)[0])

    def write_temporary(self, name: str, content: pa.Buffer | bytes) -> None:
        """Write a whole file that may be lost if this machine stops."""
        path = self.path(name)
        with self._explained("written"):
            if self.is_local:
                local.write_whole(path, content)
            else:
                self._filesystem.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
                self._filesystem.pipe_file(path, bytes(content))

    def write_all(self, contents: Mapping[str, pa.Buffer | bytes]) -> None:
        """Write small files that may be lost in a power cut, each in one step; into a store at the same time."""
        if self.is_local:
            with self._explained("written"):
                for name, content in contents.items():
                    local.replace(self.path(name), content, lasting=False)
        elif contents:
            with self._explained("written"):
                self._filesystem.pipe({self.path(name): bytes(content) for name, content in contents.items()})

    def replace(self, name: str, content: pa.Buffer | bytes) -> None:
        """Write a whole file over whatever is there, in one step."""
        path = self.path(name)
        with self._explained("written"):
            if self.is_local:
                local.replace(path, content)
            else:
                self._filesystem.pipe_file(path, bytes(content))

    def write_new(self, name: str, content: bytes) -> bool:
        """Write a whole file unless one with that name exists. Return whether it was written.

        No other writer may write the same content. If the answer to a put is lost, the client library tries again; so
        a file with exactly this content counts as written by this writer.
        """
        path = self.path(name)
        with self._explained("written"):
            if self.is_local:
                return local.link_new(path, content)
            if self._is(_MEMORY):
                return self._pipe_new(path, content)
            return self._put_new(path, content)

    @property
    def takes_archives(self) -> bool:
        """Whether archives are written to storage of this kind. Others may have no lists, or cannot be opened here."""
        try:
            return self.is_local or self._is((*_MEMORY, *_CONDITIONAL_PUT))
        except ArchiveError:
            return False

    def check_writable(self) -> None:
        """Raise `ArchiveError` for a storage where two writers could both win."""
        if self.is_local or self._is(_MEMORY):
            return
        if not self.takes_archives:
            raise ArchiveError(
                f"{self.url}: expected a store where a file can be created only if it does not exist (a local folder, "
                f"memory, s3, gs, az); found {'/'.join(self._protocols)}. {_ELSEWHERE}"
            )
        probe = f"{PROBE}{secrets.token_hex(8)}"
        try:
            is_safe = self.write_new(probe, b"first") and not self.write_new(probe, b"second")
        finally:
            with suppress(ArchiveError):
                self.remove(probe)
        if not is_safe:
            raise ArchiveError(
                f"{self.url}: expected a store that creates a file only if it does not exist (If-None-Match); found "
                f"one that overwrites it. {_ELSEWHERE}"
            )

    def files(self, *, below: bool) -> list[str]:
        """The sorted names of the files in the folder, and in its subfolders if `below`; none if it does not exist."""
        with self._explained("listed"):
            return sorted(self._listed("", below=below))

    def names(self) -> list[str]:
        """Return the names of everything in the folder itself, including folders if the store has them."""
        if not self.is_local:
            return self.files(below=False)
        with self._explained("listed"):
            return local.names(self._root)

    def modified(self, folder: str = "") -> dict[str, float]:
        """Return the modification time of every file in the folder, or in a subfolder, in seconds since 1970."""
        with self._explained("listed"):
            if self.is_local:
                return dict(local.modified(self._root, folder))
            return {name: _time_of(info) for name, info in self._listed(folder, below=True).items()}

    def _listed(self, folder: str, *, below: bool) -> dict[str, Mapping[str, object]]:
        """The details of the files in a folder, and in its subfolders if `below`, by name; none if it does not exist.

        A listing that fails is never taken for an empty one: what no version names is removed. Stores list all levels
        by one request, and raise, also if there is no bucket.
        """
        filesystem, root = self._opened
        place = f"{root}/{folder}" if folder else root
        filesystem.invalidate_cache()
        infos: Mapping[str, Mapping[str, object]] = {}
        missing = [] if below and self._is(_CONDITIONAL_PUT) else [FileNotFoundError]
        with suppress(*missing):
            infos = all_below(filesystem, place, None if below else 1)
        found = {path.removeprefix(root).lstrip("/"): info for path, info in infos.items()}
        return {name: info for name, info in found.items() if name and info.get("type") != "directory"}

    def exists(self, name: str) -> bool:
        """Return whether there is a file of that name."""
        path = self.path(name)
        with self._explained("listed"):
            self._filesystem.invalidate_cache()
            return bool(self._filesystem.exists(path))

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content. Does nothing if there is none."""
        path = self.path(name)
        with self._explained("removed"):
            if self.is_local:
                local.remove(path)
                return
            self._filesystem.invalidate_cache()
            if self._filesystem.exists(path):
                self._filesystem.rm(path, recursive=True)

    def remove_empty_folders(self, names: Iterable[str], before: float) -> None:
        """If the store has folders, remove the empty ones below some that were last changed before a time."""
        if self.is_local:
            with self._explained("removed"):
                for name in names:
                    local.remove_empty_folders(self.path(name), before)

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        """Raise an `ArchiveError` for any error of the store."""
        try:
            yield
        except SwsdaskError:
            raise
        except Exception as error:
            found = f"{type(error).__name__}: {str(error).removesuffix('.')}"
            remedy = UNKNOWN_OPTION if isinstance(error, TypeError) else self._remedy
            raise ArchiveError(f"{self.url}: cannot be {done}: {found}. {remedy}") from error

    @property
    def _remedy(self) -> str:
        """The remedy to name when the store refuses an operation."""
        if self.is_local:
            return "Check the path, its permissions and the space that is left."
        return "Check the name, the credentials and their permissions."

    def _pipe_new(self, path: str, content: bytes) -> bool:
        with _memory_lock:
            if self._filesystem.exists(path):
                return False
            self._filesystem.pipe_file(path, content)
            return True

    def _put_new(self, path: str, content: bytes) -> bool:
        try:
            self._filesystem.pipe_file(path, content, mode="create")
        except Exception as error:
            if not _is_refusal(error):
                raise
            return self._has(path, content)
        return True

    def _has(self, path: str, content: bytes) -> bool:
        try:
            return bool(self._filesystem.cat_file(path) == content)
        except FileNotFoundError:
            return False


@contextmanager
def _store_errors(place: str) -> Iterator[None]:
    """Raise a `StoreError` for whatever a client library raises while it reads a file that exists."""
    try:
        yield
    except (FileNotFoundError, SwsdaskError):
        raise
    except Exception as error:
        if (short := shortage(error, place)) is not None:
            raise short from error
        found = f"{type(error).__name__}: {str(error).removesuffix('.')}"
        remedy = "Check the credentials and their permissions, and try again later."
        raise StoreError(f"{without_secrets(place)}: cannot be read: {found}. {remedy}") from error


def _is_refusal(error: BaseException) -> bool:
    """Return whether a store refused to create a file because it exists or is being created.

    Stores word this in many ways, or not at all. So the raised error of the client library and its causes are examined
    by type and by HTTP status.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, FileExistsError) or _http_status(seen) in (_CONFLICT, _PRECONDITION_FAILED):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _http_status(error: BaseException) -> int | None:
    """Return the HTTP status of an error of botocore, aiohttp, azure-core or gcsfs."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        response = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return response if isinstance(response, int) else None
    codes = (getattr(error, name, None) for name in ("status_code", "status", "code"))
    return next((status for status in codes if isinstance(status, int)), None)


class Whole:
    """A file in memory."""

    def __init__(self, content: pa.Buffer) -> None:
        self.content = content
        self.size = content.size

    def fetch(self, parts: Iterable[tuple[int, int]]) -> None:
        """Do nothing: all parts are in memory."""

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Return the bytes from an offset on, fewer at the end of the file."""
        return self.content.slice(min(offset, self.size), length)


class Remote:
    """A file in a store. Each part is read by its own request. Raises as `Storage.read`, with its `place`."""

    def __init__(self, filesystem: AbstractFileSystem, path: str, size: int | None, place: str) -> None:
        self.filesystem = filesystem
        self.path = path
        self.place = place
        with _store_errors(self.place):
            self.size: int = filesystem.info(path)["size"] if size is None else size
        self._held: list[tuple[int, pa.Buffer]] = []

    def fetch(self, parts: Iterable[tuple[int, int]]) -> None:
        """Fetch parts (offset, length) that will be read, neighbours by one request, all requests at the same time."""
        merged: list[list[int]] = []
        for offset, length in sorted(parts):
            if merged and offset <= merged[-1][1] + _NEAR:
                merged[-1][1] = max(merged[-1][1], offset + length)
            else:
                merged.append([offset, offset + length])
        begins, ends = [begin for begin, _ in merged], [min(end, self.size) for _, end in merged]
        with _store_errors(self.place):
            found = self.filesystem.cat_ranges([self.path] * len(merged), begins, ends, on_error="raise")
        parts_of = zip(found, begins, ends, strict=True)
        self._held = [(begin, pa.py_buffer(self._part(content, begin, end))) for content, begin, end in parts_of]

    def read(self, offset: int, length: int) -> pa.Buffer:
        """Return the bytes from an offset on, fewer at the end of the file."""
        for begin, held in self._held:
            if begin <= offset and offset + length <= begin + held.size:
                return held.slice(offset - begin, length)
        end = min(offset + length, self.size)
        with _store_errors(self.place):
            return pa.py_buffer(self._part(self.filesystem.cat_file(self.path, start=offset, end=end), offset, end))

    def _part(self, content: bytes, begin: int, end: int) -> bytes:
        """Return the bytes from `begin` to `end`, also from a web server that always sends the whole file."""
        return content[begin:end] if end - begin < self.size == len(content) else content


Parts = local.OpenFile | Whole | Remote


def _time_of(info: Mapping[str, object]) -> float:
    """Return the modification time of a file, from the key that its store uses: local, memory, S3, others."""
    for name in ("mtime", "LastModified", "last_modified", "created", "updated"):
        reported = info.get(name)
        if isinstance(reported, datetime):
            return reported.timestamp()
        if isinstance(reported, int | float):
            return float(reported)
    return float("inf")
