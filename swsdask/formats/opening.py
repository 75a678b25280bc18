"""Files to read, wherever they are: their bytes, with any compression undone.

What compresses a file is told by its first bytes, never by its name.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, BinaryIO, cast

import pyarrow as pa

from swsdask.errors import InputError, Problem

_STEP = 1 << 16
"""Most bytes that one `read` gives, and so that are lost where compressed data break off."""

COMPRESSED_ENDINGS = {".gz": "gzip", ".zst": "zstd"}
"""What the name of a file that is written ends in, if it is to be compressed, and how."""

_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


@contextmanager
def open_bytes(url: str) -> Iterator[BinaryIO]:
    """The bytes of a file at a path or fsspec URL, gzip and zstd undone while reading; memory is bounded.

    It cannot be sought in, and a `read` may give fewer bytes than it was asked for: none only at the end. Raises
    `InputError`, here or from a later `read`, for a file that is not there, is a folder, may not be read, is empty, or
    whose compressed data are damaged or break off.
    """
    with ExitStack() as stack:
        try:
            plain = stack.enter_context(io.BufferedReader(_opened(url)))
            head = plain.peek(4)
        except Exception as error:
            raise storage_fault(url, error) from None
        stream: Any = plain
        compression = next((name for magic, name in _COMPRESSIONS.items() if head.startswith(magic)), None)
        if compression:
            stream = stack.enter_context(pa.CompressedInputStream(pa.PythonFile(plain, mode="r"), compression))
        yield cast(BinaryIO, _Source(url, stream, compression))


def file_size(url: str) -> int:
    """How many bytes a file has as it is stored. Raises `InputError` if it is not there."""
    try:
        if is_local(url):
            return os.stat(url).st_size
        from fsspec.core import url_to_fs

        filesystem, path = url_to_fs(url)
        return int(filesystem.size(path) or 0)
    except Exception as error:
        raise storage_fault(url, error) from None


def is_local(url: str) -> bool:
    """Whether `url` is a path of this machine, for which fsspec is not needed."""
    return "://" not in url


def storage_fault(url: str, error: Exception) -> InputError:
    """What to tell the user when a path or URL cannot be listed, opened or read."""
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


def _opened(url: str) -> Any:
    if is_local(url):
        return open(url, "rb", buffering=0)
    from fsspec.core import url_to_fs

    filesystem, path = url_to_fs(url)
    return filesystem.open(path, "rb")


class _Source(io.RawIOBase):
    """A stream whose faults are `InputError`s; one without a single byte is a fault."""

    def __init__(self, url: str, stream: Any, compression: str | None) -> None:
        self._url = url
        self._stream = stream
        self._compression = compression
        self._empty = True

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return self.readall()
        try:
            data: bytes = self._stream.read(min(size, _STEP))
        except Exception as error:
            raise self._fault(error) from None
        if self._empty and not data and size:
            remedy = "Was it written to its end? Write or copy it again."
            raise InputError(Problem(self._url, None, "a file with content", "an empty file", remedy))
        self._empty = False
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _fault(self, error: Exception) -> InputError:
        if self._compression is None or not isinstance(error, OSError) or error.errno is not None:
            return storage_fault(self._url, error)
        cut = "Truncated" in str(error)
        found = "data that break off" if cut else f"damaged data ({error})"
        return InputError(
            Problem(self._url, None, f"whole {self._compression} data", found, "Compress or copy the file again.")
        )


@contextmanager
def writing(url: str) -> Iterator[pa.NativeFile]:
    """A file to write to, compressed as its name tells."""
    with ExitStack() as stack:
        try:
            if is_local(url):
                raw: Any = stack.enter_context(open(url, "wb"))
            else:
                from fsspec.core import url_to_fs

                filesystem, path = url_to_fs(url)
                raw = stack.enter_context(filesystem.open(path, "wb"))
        except Exception as error:
            raise storage_fault(url, error) from None
        sink = stack.enter_context(pa.PythonFile(raw, mode="w"))
        codec = next((codec for ending, codec in COMPRESSED_ENDINGS.items() if url.lower().endswith(ending)), None)
        yield stack.enter_context(pa.CompressedOutputStream(sink, codec)) if codec else sink
