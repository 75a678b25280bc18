"""Files as bytes: opened, decompressed, read once or repeatedly; and their problems, with file and line.

The first bytes of a file determine the compression, not its name.
"""

from __future__ import annotations

import bz2
import io
import lzma
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import IO, Any, BinaryIO, Protocol, cast

import pyarrow as pa

from swsdask.formats.values import FormatError, shown
from swsdask.model.errors import InputError, Problem, Problems, ResourceError, SettingsError
from swsdask.model.limits import NO_SPACE
from swsdask.places.reading import Pipe, file_system, is_local, open_local, storage_fault

_STEP = 1 << 16
"""The maximum number of bytes that one `read` of compressed data returns, and that are lost if data are cut off."""

_REPEATED = 1 << 21
"""The number of bytes that are kept of a file that is opened once: more than is read to recognise its format."""

COMPRESSED_ENDINGS = {".gz": "gzip", ".zst": "zstd"}
"""The endings of names of files that are written compressed, and the compression of each."""

COMPRESSED_NAME = re.compile(r"\.(gz|zst|bz2|xz|zip)$", re.IGNORECASE)
"""The ending of the name of a compressed file."""

EXPANDED_AT_EASE = 128 << 20
"""The number of bytes to which any file may expand: about as many as can be scored within 1 GB of memory."""

MAX_EXPANSION = 100.0
"""The factor by which larger files may expand. The environment variable `SWSDASK_MAX_EXPANSION` replaces it.

Lists of detections expand 5 to 40 times."""


def check_expansion(url: str, stored: int, expanded: int) -> None:
    """Raise `InputError` for a file whose `stored` bytes expand to too many."""
    said = os.environ.get("SWSDASK_MAX_EXPANSION") or MAX_EXPANSION
    try:
        most = float(said)
    except ValueError:
        raise SettingsError(f"SWSDASK_MAX_EXPANSION: expected a number; found {said!r}.") from None
    if expanded > max(EXPANDED_AT_EASE, most * stored):
        expected = f"data that expand at most {most:g} times, or to {EXPANDED_AT_EASE >> 20} MiB"
        found = f"{stored:,} bytes that expand to {expanded:,} or more"
        remedy = "If the file may be trusted, set SWSDASK_MAX_EXPANSION to a larger number."
        raise InputError(Problem(url, None, expected, found, remedy))


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes. An empty result means the end."""
        ...


def _expand(plain: BinaryIO, codec: str) -> pa.CompressedInputStream:
    return pa.CompressedInputStream(pa.PythonFile(plain, mode="r"), codec)


_IN_STEPS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""The compressions of members of a zip archive that `zipfile` expands in steps.

It expands 4 KiB of any other at once: to gigabytes, before `check_expansion` could count them."""


def _check_steps(compression: int) -> None:
    if compression not in _IN_STEPS:
        found = f"its compression method {compression}"
        raise FormatError("a zip archive compressed by deflate", found, "Compress the file again.")


_FINDERS = "__MACOSX/"
"""The folder in which macOS puts the attributes of the files of a zip archive."""


def _only_member(plain: BinaryIO) -> IO[bytes]:
    """Return the one file in a zip archive."""
    try:
        archive = zipfile.ZipFile(plain)
    except zipfile.BadZipFile:
        raise EOFError("no central directory") from None
    every = [each.filename for each in archive.infolist() if not each.is_dir()]
    members = [name for name in every if not name.startswith(_FINDERS)]
    if "xl/workbook.xml" in members:
        raise FormatError("a zip archive of one file", "an Excel workbook", "Save the sheet as CSV.")
    if len(members) != 1:
        remedy = "Name a member: zip://MEMBER::FILE."
        raise FormatError("a zip archive of one file", f"{len(members)} files: {shown(', '.join(members))}", remedy)
    _check_steps(archive.getinfo(members[0]).compress_type)
    return archive.open(members[0])


class _Streams(io.RawIOBase):
    """Compressed streams one after the other, with only zero bytes between and after them.

    `bz2.BZ2File` and `lzma.LZMAFile` ignore data after the first stream that do not begin like a stream: a damaged
    second stream would be lost.
    """

    def __init__(self, new: Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor], plain: BinaryIO) -> None:
        self._new = new
        self._plain = plain
        self._stream = new()

    def read(self, size: int = -1, /) -> bytes:
        """Read at least one byte and at most `size`; none at the end."""
        data = b""
        while not data:
            rest = b""
            if self._stream.eof:
                rest = self._stream.unused_data.lstrip(b"\0")
                while not rest and (more := self._plain.read(_STEP)):
                    rest = more.lstrip(b"\0")
                if not rest:
                    break
                self._stream = self._new()
            elif self._stream.needs_input:
                rest = self._plain.read(_STEP)
                if not rest:
                    raise EOFError("no end of stream")
            data = self._stream.decompress(rest, size)
        return data


_COMPRESSIONS: dict[bytes, tuple[str, Callable[[BinaryIO], AbstractContextManager[Readable]]]] = {
    rb"\x1f\x8b": ("gzip", partial(_expand, codec="gzip")),
    rb"\x28\xb5\x2f\xfd": ("zstd", partial(_expand, codec="zstd")),
    rb"BZh[1-9](1AY&SY|\x17rE8P\x90)": ("bzip2", partial(_Streams, bz2.BZ2Decompressor)),
    rb"\xfd7zXZ\x00": ("xz", partial(_Streams, lzma.LZMADecompressor)),
    rb"PK\x03\x04": ("zip", _only_member),
}
"""By a pattern of the first bytes of a file: its compression and the decompressor."""

_DAMAGED = (EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error)


@contextmanager
def open_bytes(url: str) -> Iterator[BinaryIO]:
    """Provide the bytes of a file at a path or fsspec URL, decompressed while reading; memory is bounded.

    The stream cannot seek, and a `read` may return fewer bytes than requested; only at the end it returns none. Raises
    `InputError`, at once or from a later `read`, for a file that does not exist, is a folder, may not be read, is
    empty, or whose compressed data are damaged, truncated, or expand beyond `check_expansion`.
    """
    with ExitStack() as stack:
        try:
            stored = open_plain(url)
            plain = stack.enter_context(io.BufferedReader(stored))
            head = plain.peek(10)
        except Exception as error:
            raise storage_fault(url, error) from None
        stream: Readable = plain
        found = next((found for magic, found in _COMPRESSIONS.items() if re.match(magic, head)), None)
        compression, opened = found or (None, None)
        if compression and opened:
            try:
                stream = stack.enter_context(opened(plain))
            except FormatError as error:
                raise InputError(Problem(url, None, error.expected, error.found, error.remedy)) from None
            except Exception as error:
                raise _fault(url, compression, error) from None
        packed: int | None = getattr(stored, "packed_size", None)
        yield cast(BinaryIO, _Source(url, stream, compression, plain, packed))


@contextmanager
def decompress(url: str) -> Iterator[IO[bytes]]:
    """Provide a seekable copy of what `open_bytes` reads. The copy has no name, so it never outlives the process."""
    with tempfile.TemporaryFile() as copy, open_bytes(url) as stream:
        shutil.copyfileobj(stream, copy, _STEP)
        yield copy


def file_size(url: str) -> int:
    """Return the stored size of a file in bytes. Raises `InputError` if it does not exist."""
    try:
        if is_local(url):
            return os.stat(url.copy if isinstance(url, Pipe) else url).st_size
        filesystem, path = file_system(url)
        return int(filesystem.size(path) or 0)
    except Exception as error:
        raise storage_fault(url, error) from None


class Opened(str):
    """The path or URL of an open file: opening it gives the same stream, from its beginning.

    In another process, or after the file was closed, it is opened anew.
    """

    file: _Repeated | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return str, (str(self),)


@contextmanager
def open_once(url: str) -> Iterator[str]:
    """Provide a path or URL by which a file can be opened repeatedly, although it is opened and read only once.

    The first `_REPEATED` bytes are read again from memory. Errors of opening are raised when the file is opened within
    the context.
    """
    place = Opened(url)
    with ExitStack() as stack:
        if not isinstance(url, Pipe):
            with suppress(Exception):
                place.file = _Repeated(stack.enter_context(open_plain(url)))
        try:
            yield url if place.file is None else place
        finally:
            place.file = None


class _Repeated:
    """An open file, and its first bytes as far as they were read."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain
        self._begin = bytearray()
        self._place = 0

    def read(self, place: int, size: int) -> bytes:
        """At most `size` bytes at a place. An empty result means the end."""
        if place < len(self._begin):
            return bytes(self._begin[place : place + size])
        if place != self._place:
            self._plain.seek(place)
        data: bytes = self._plain.read(size)
        self._place = place + len(data)
        if place == len(self._begin) < _REPEATED:
            self._begin += data
        return data

    def size(self) -> int:
        """Return the size of the file in bytes."""
        self._place = self._plain.seek(0, os.SEEK_END)
        return self._place


class _Again(io.RawIOBase):
    """A view of an open file with its own position, from the beginning. Closing it does not close the file."""

    def __init__(self, file: _Repeated) -> None:
        self._file = file
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        begin = {os.SEEK_SET: lambda: 0, os.SEEK_CUR: self.tell, os.SEEK_END: self._file.size}[whence]()
        self._place = begin + offset
        return self._place

    def readinto(self, buffer: Any, /) -> int:
        data = self._file.read(self._place, len(buffer))
        buffer[: len(data)] = data
        self._place += len(data)
        return len(data)


def open_plain(url: str) -> Any:
    """Open a file as it is stored, for reading and seeking. Raises errors of the storage, and `InputError`."""
    if isinstance(url, Opened) and url.file is not None:
        return _Again(url.file)
    if is_local(url):
        return open_local(url)
    filesystem, path = file_system(url)
    file = filesystem.open(path, "rb")
    if "::" in url:
        file.filesystem = filesystem  # an archive is closed with the last reference to its file system
        member = filesystem.info(path)
        file.packed_size = member.get("compress_size")
        try:
            _check_steps(member.get("compress_type", zipfile.ZIP_STORED))
        except FormatError as error:
            raise InputError(Problem(url, None, error.expected, error.found, error.remedy)) from None
    return file


class _Source(io.RawIOBase):
    """A stream whose errors are `InputError`s. An empty stream is an error."""

    def __init__(
        self, url: str, stream: Readable, compression: str | None, plain: BinaryIO, packed: int | None
    ) -> None:
        self._url = url
        self._stream = stream
        self._compression = compression
        self._plain = plain
        self._packed = packed  # the size of a member of an archive
        self._given = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return self.readall()
        try:
            data: bytes = self._stream.read(min(size, _STEP) if self._compression else size)
        except Exception as error:
            raise _fault(self._url, self._compression, error) from None
        if not self._given and not data and size:
            raise without_content(self._url)
        self._given += len(data)
        if self._packed is not None and self._given > EXPANDED_AT_EASE:
            check_expansion(self._url, self._packed, self._given)
        elif self._compression and self._given > EXPANDED_AT_EASE:
            check_expansion(self._url, self._plain.tell(), self._given)
        return data

    def readinto(self, buffer: Any, /) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def without_content(url: str) -> InputError:
    """Return the error of an empty file."""
    remedy = "Was it written to its end? Write or copy it again."
    return InputError(Problem(url, None, "a file with content", "an empty file", remedy))


def _fault(url: str, compression: str | None, error: Exception) -> InputError | ResourceError:
    """Describe why reading or decompressing a file raised an error."""
    of_data = isinstance(error, _DAMAGED) or (isinstance(error, OSError) and error.errno is None)
    if compression is None or not of_data:
        return storage_fault(url, error)
    cut = isinstance(error, EOFError) or "Truncated" in str(error)
    found = "data that break off" if cut else f"damaged data ({error})"
    return InputError(Problem(url, None, f"whole {compression} data", found, "Compress or copy the file again."))


@contextmanager
def writing(path: str) -> Iterator[pa.NativeFile]:
    """Provide a local file to write to, compressed according to its name."""
    codec = next((codec for ending, codec in COMPRESSED_ENDINGS.items() if path.lower().endswith(ending)), None)
    try:
        with ExitStack() as stack:
            try:
                sink = stack.enter_context(pa.OSFile(path, "wb"))
            except OSError as error:
                if error.errno in NO_SPACE:
                    raise
                raise storage_fault(path, error) from None
            yield stack.enter_context(pa.CompressedOutputStream(sink, codec)) if codec else sink
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise ResourceError(f"{path}: {os.strerror(error.errno)}. Free some space, or write elsewhere.") from None


@contextmanager
def noted(problems: Problems) -> Iterator[None]:
    """Add the problems of an `InputError` raised in the context to `problems`, and continue after it."""
    try:
        yield
    except InputError as error:
        for problem in error.problems:
            problems.note(problem)
        problems.total += error.total - len(error.problems)


@contextmanager
def noted_at(problems: Problems, file: str, line: int) -> Iterator[None]:
    """Add a `FormatError` raised in the context to `problems`, and continue after it."""
    try:
        yield
    except FormatError as error:
        problems.add(file, line, error.expected, error.found, error.remedy)


def with_line(error: InputError, line: int) -> InputError:
    """Give an error without a line the current line."""
    return InputError(*(replace(problem, line=problem.line or line) for problem in error.problems))
