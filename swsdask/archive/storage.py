"""Where an archive lies: a folder on any fsspec URL, with the one operation that a commit needs.

`write_new` creates a file unless it exists, so that of two writers one wins whatever happens between them. It is safe
on a local file system (a link made to a finished file), in memory (under a lock) and on S3 (a conditional put, tried
out before it is trusted); elsewhere an archive can be read but not written.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from swsdask.model.errors import ArchiveError

_LOCAL = ("file", "local")
_MEMORY = ("memory",)
_CONDITIONAL_PUT = ("s3", "s3a")

_memory_lock = threading.Lock()


_FOOTERS = 64
"""Of how many Parquet files the footer is kept."""

_footers: dict[tuple[str, str], pq.FileMetaData] = {}


@dataclass(frozen=True)
class Storage:
    """A folder and what stands in it, by paths relative to it. Picklable."""

    url: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @cached_property
    def _opened(self) -> tuple[AbstractFileSystem, str]:
        try:
            filesystem, root = url_to_fs(self.url, **self.options)
        except (ValueError, ImportError) as error:
            raise ArchiveError(f"{self.url}: cannot be opened: {error}") from None
        return filesystem, root.rstrip("/")

    def __getstate__(self) -> dict[str, Any]:
        """A folder of this machine travels by its full path: who gets it may stand elsewhere."""
        return {"url": self._opened[1] if self.is_local else self.url, "options": dict(self.options)}

    @property
    def _filesystem(self) -> AbstractFileSystem:
        return self._opened[0]

    @cached_property
    def _protocols(self) -> tuple[str, ...]:
        protocol = self._filesystem.protocol
        return (protocol,) if isinstance(protocol, str) else tuple(protocol)

    def _is(self, protocols: tuple[str, ...]) -> bool:
        return any(name in protocols for name in self._protocols)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return self._is(_LOCAL)

    def path(self, name: str) -> str:
        """The full path of a file. Raises `ArchiveError` for a name that leads out of the folder."""
        if name.startswith("/") or ".." in name.split("/"):
            raise ArchiveError(f"{self.url}: a file name that leads out of the archive: {name!r}.")
        return f"{self._opened[1]}/{name}"

    def read(self, name: str) -> bytes:
        """The bytes of a file. Raises `FileNotFoundError`."""
        content: bytes = self._filesystem.cat_file(self.path(name))
        return content

    def write(self, name: str, content: pa.Buffer | bytes) -> None:
        """Write a whole file; on a local file system it is on the disk when this returns."""
        self.write_temporary(name, content)
        if self.is_local:
            path = self.path(name)
            with self._explained("written"):
                _sync(path)
                _sync(str(Path(path).parent))

    def write_temporary(self, name: str, content: pa.Buffer | bytes) -> None:
        """Write a whole file that need not outlast this machine's running."""
        path = self.path(name)
        with self._explained("written"):
            self._filesystem.makedirs(path.rsplit("/", 1)[0], exist_ok=True)
            if self.is_local:
                with open(path, "wb") as file:
                    file.write(content)
            else:
                self._filesystem.pipe_file(path, bytes(content))

    def read_table(self, name: str) -> pa.Table:
        """A whole Parquet file. Raises `ArchiveError` if it is gone or cannot be read.

        No thread is begun (as `pq.read_table` begins one): now and then a process that ends right behind it is aborted.
        """
        try:
            return pq.ParquetFile(pa.BufferReader(self.read(name)), pre_buffer=False).read(use_threads=False)
        except (OSError, pa.ArrowException) as error:
            raise self.unreadable(name, error) from error

    def unreadable(self, name: str, error: Exception) -> ArchiveError:
        """What to say of a file of the archive that `error` came from."""
        found = "none" if isinstance(error, FileNotFoundError) else f"one that cannot be read ({error})"
        return ArchiveError(
            f"{self.url}/{name}: expected a Parquet file of this archive; found {found}. Restore it from a copy of the "
            "archive, or ingest the reference and the runs into a new one."
        )

    def write_table(self, name: str, table: pa.Table) -> None:
        """Write a table as a Parquet file."""
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        self.write(name, sink.getvalue())

    def write_new(self, name: str, content: bytes) -> bool:
        """Write a whole file unless there is one of that name; whether it was written."""
        path = self.path(name)
        with self._explained("written"):
            if self.is_local:
                return _link_new(path, content)
            if self._is(_MEMORY):
                return self._pipe_new(path, content)
            return self._put_new(path, content)

    def check_writable(self) -> None:
        """Raise `ArchiveError` where two writers could both win."""
        if self._is(_LOCAL) or self._is(_MEMORY):
            return
        if not self._is(_CONDITIONAL_PUT):
            raise ArchiveError(
                f"{self.url}: expected a store where a file can be created only if it does not exist (a local folder, "
                f"memory, s3); found {'/'.join(self._protocols)}. Ingest into a local folder and copy it there."
            )
        probe = f"probe-{secrets.token_hex(8)}"
        try:
            is_safe = self.write_new(probe, b"first") and not self.write_new(probe, b"second")
        finally:
            with suppress(ArchiveError):
                self.remove(probe)
        if not is_safe:
            raise ArchiveError(
                f"{self.url}: expected a store that honours If-None-Match; found one that overwrites. "
                "Ingest into a local folder and copy it there."
            )

    def files(self, *, below: bool) -> list[str]:
        """The names of the files in the folder, with those `below` it or without, sorted; none if it does not exist."""
        filesystem, root = self._opened
        with self._explained("listed"):
            filesystem.invalidate_cache()
            found = filesystem.find(root, maxdepth=None if below else 1)
        return sorted(path.removeprefix(root).lstrip("/") for path in found)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; nothing happens if there is none."""
        path = self.path(name)
        with self._explained("removed"):
            self._filesystem.invalidate_cache()
            if self._filesystem.exists(path):
                self._filesystem.rm(path, recursive=True)

    def open_arrow(self, name: str) -> pa.NativeFile:
        """A file opened for reading at any place."""
        path = self.path(name)
        if self.is_local:
            return pa.memory_map(path)
        if self._is(_MEMORY):
            return pa.BufferReader(self.read(name))
        return pa.PythonFile(self._filesystem.open(path, "rb"), mode="r")

    def open_parquet(self, name: str) -> pq.ParquetFile:
        """A Parquet file opened for reading. Files of one name never change, so the footer of one is read once."""
        footer = _footers.get((self.url, name))
        file = pq.ParquetFile(self.open_arrow(name), metadata=footer, pre_buffer=not self.is_local)
        if footer is None:
            _footers[self.url, name] = file.metadata
            while len(_footers) > _FOOTERS:
                _footers.pop(next(iter(_footers)), None)
        return file

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        """Whatever the store raises, as an `ArchiveError`."""
        try:
            yield
        except ArchiveError:
            raise
        except Exception as error:
            raise ArchiveError(f"{self.url}: cannot be {done}: {type(error).__name__}: {error}") from error

    def _pipe_new(self, path: str, content: bytes) -> bool:
        with _memory_lock:
            if self._filesystem.exists(path):
                return False
            self._filesystem.pipe_file(path, content)
            return True

    def _put_new(self, path: str, content: bytes) -> bool:
        try:
            self._filesystem.pipe_file(path, content, mode="create")
        except FileExistsError:
            return False
        except OSError as error:
            if "PreconditionFailed" in str(error) or "ConditionalRequestConflict" in str(error):
                return False
            raise
        return True


def _link_new(path: str, content: bytes) -> bool:
    """Write a file aside and link it to its name, which fails if the name is taken."""
    folder = Path(path).parent
    folder.mkdir(parents=True, exist_ok=True)
    aside = Path(f"{path}.{secrets.token_hex(8)}.part")
    try:
        aside.write_bytes(content)
        _sync(str(aside))
        os.link(aside, path)
    except FileExistsError:
        return False
    except OSError as error:
        raise ArchiveError(
            f"{path}: this file system cannot create a file only if it does not exist: {error}."
        ) from None
    finally:
        aside.unlink(missing_ok=True)
    _sync(str(folder))
    return True


def _sync(path: str) -> None:
    """Wait until a file, or what stands in a folder, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
