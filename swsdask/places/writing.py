"""Writing of result files: several files of a folder change together.

Files are written into a hidden folder inside the target folder and moved from there when all of them are complete. A
set of results has a `manifest.json` with the size and hash of every other file. While files are moved, there is no
manifest; the new one is moved last. So a process that is killed at any moment leaves the old results, the new results,
or files without a manifest, and a reader that checks the hashes never reads a mixture.

A writer holds a lock on its hidden folder, which ends with its process. The next writer removes the folders that are
not locked. Temporary folders are kept and removed in the same way.

For a store, at any URL that fsspec can write, files are made in a local temporary folder and uploaded when all of them
are complete, in the same order: the old manifest is removed first, the new one is uploaded last.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir, mkdtemp
from typing import IO, TYPE_CHECKING

import xxhash

from swsdask.model.errors import InputError, Problem
from swsdask.model.limits import NO_SPACE, shortage
from swsdask.places.reading import UNKNOWN_OPTION, Location, file_system, local_path, parted, storage_fault

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

MANIFEST = "manifest.json"
"""The file of a set of results that is moved last. Its entry `files` holds the fingerprints of the others."""

_HIDDEN = ".swsdask-"
TEMPORARY = "swsdask-tmp-"
_PROBE = ".probe-"


_READ_ONLY = ("http", "https")


@contextmanager
def replacing(place: Location) -> Iterator[IO[bytes]]:
    """Open a file for writing that replaces the one at a place when the context ends without an error.

    A local link stays, and the file that it leads to is replaced.

    Parameters
    ----------
    place
        The path or URL of the file to replace.

    Yields
    ------
    IO[bytes]
        The new file. If the context ends with an error, the old one stays unchanged.

    Raises
    ------
    OSError, InputError
        As `together`.
    """
    path = local_path(place)
    if path is not None:
        _check_replaceable(Path(path))
        place = os.path.realpath(path) if os.path.islink(path) else place
    folder, name = parted(place)
    with together(folder or ".") as hidden, (hidden / name).open("wb") as file:
        yield file


@contextmanager
def together(folder: Location) -> Iterator[Path]:
    """Provide a local folder. Its files are moved or uploaded to `folder` when the context ends without an error.

    Parameters
    ----------
    folder
        The target, a path or a URL, made if it does not exist. Other files in it stay, except those that the replaced
        manifest lists and the new one does not.

    Yields
    ------
    Path
        The hidden folder. Files in subfolders become files in subfolders of the same names.

    Raises
    ------
    OSError
        If a local `folder` cannot be written, or a folder, a device or a pipe has the name of a file that is to be
        moved.
    InputError
        If a store cannot be written.
    """
    path = local_path(folder)
    if path is None:
        with temporary_folder() as made:
            yield made
            _send(made, os.fspath(folder))
        return
    local = Path(path)
    local.mkdir(parents=True, exist_ok=True)
    hidden, lock = _locked_folder(local, _HIDDEN)
    try:
        yield hidden
        _move(hidden, local)
        _remove_abandoned(local, _HIDDEN)
    except OSError as error:
        if error.errno in NO_SPACE and error.filename is None:  # That of a write does not know its file.
            raise OSError(error.errno, error.strerror, str(local)) from error
        raise
    finally:
        try:
            rmtree(hidden, ignore_errors=True)
        finally:
            os.close(lock)


def check_writable(folder: Location) -> None:
    """Raise, before the work begins, for a place that cannot be written. In a store, write and remove a test file.

    Raises
    ------
    OSError
        If a local folder, or its nearest existing parent, is a file or may not be written.
    InputError
        If a store cannot be written.
    """
    path = local_path(folder)
    if path is None:
        url = os.fspath(folder)
        with _explained(url):
            filesystem, root = _writable(url)
            probe = f"{root}/{_PROBE}{secrets.token_hex(8)}"
            filesystem.pipe_file(probe, b"")
            filesystem.rm_file(probe)
        return
    there = next(place for place in (Path(path), *Path(path).absolute().parents) if place.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"{there} is a file.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"no permission to write into {there}.")


def _writable(url: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of a URL and the path in it. Raises `InputError` for a protocol that only reads."""
    if url.partition("://")[0] in _READ_ONLY:
        expected = "a folder here or in a store (s3, gs, az, ...)"
        raise InputError(Problem(url, None, expected, "a web address, which can only be read", "Name another place."))
    filesystem, root = file_system(url)
    return filesystem, root.rstrip("/")


@contextmanager
def _explained(url: str) -> Iterator[None]:
    """Raise an `InputError` for whatever a store raises."""
    try:
        yield
    except InputError:
        raise
    except ImportError as error:
        raise storage_fault(url, error) from None
    except Exception as error:
        if (short := shortage(error, url)) is not None:
            raise short from error
        found = f"{type(error).__name__}: {error}"
        refused = "Check the name, the credentials and their permissions."
        remedy = UNKNOWN_OPTION if isinstance(error, TypeError) else refused
        raise InputError(Problem(url, None, "a store that can be written", found, remedy)) from error


def _send(made: Path, url: str) -> None:
    """Send all files of a folder to a URL, the manifest last; remove what the old manifest lists and the new does not.

    The file system's list of what is there may be older than this process: it is forgotten first and last.
    """
    names = _files(made)
    with _explained(url):
        filesystem, root = _writable(url)
        filesystem.invalidate_cache()
        if MANIFEST in names:
            names = [*(name for name in names if name != MANIFEST), MANIFEST]
            with suppress(FileNotFoundError):
                outdated = _listed_by(filesystem.cat_file(f"{root}/{MANIFEST}")) - _listed_in(made / MANIFEST)
                filesystem.rm_file(f"{root}/{MANIFEST}")
                for name in sorted(outdated):
                    with suppress(FileNotFoundError):
                        filesystem.rm_file(f"{root}/{name}")
        for name in names:
            filesystem.put_file(str(made / name), f"{root}/{name}")
        filesystem.invalidate_cache()


def fingerprint(content: bytes) -> dict[str, object]:
    """Return the size and the hash (xxh3, 128 bits) of the content of a file."""
    return {"bytes": len(content), "xxh3_128": xxhash.xxh3_128_hexdigest(content)}


def fingerprints(folder: Path) -> dict[str, dict[str, object]]:
    """Return the fingerprint of every file in a folder and its subfolders, by its path from there, sorted."""
    return {name: _fingerprint_of(folder / name) for name in _files(folder)}


def _fingerprint_of(path: Path) -> dict[str, object]:
    state, size = xxhash.xxh3_128(), 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
            size += len(block)
    return {"bytes": size, "xxh3_128": state.hexdigest()}


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Provide a folder for files that no other process reads later. Also remove those that killed processes left.

    Yields
    ------
    Path
        The folder. It is removed with its content when the context ends in this process. A forked process removes
        nothing.

    Examples
    --------
    >>> with temporary_folder() as folder:
    ...     _ = (folder / "part").write_text("some rows")
    >>> folder.exists()
    False
    """
    place, owner = Path(gettempdir()), os.getpid()
    _remove_abandoned(place, TEMPORARY)
    folder, lock = _locked_folder(place, TEMPORARY)
    try:
        yield folder
    finally:
        if os.getpid() == owner:
            rmtree(folder, ignore_errors=True)
        os.close(lock)


def _locked_folder(folder: Path, prefix: str) -> tuple[Path, int]:
    """Return a new folder inside another and the descriptor that holds its lock."""
    while True:
        made = Path(mkdtemp(prefix=prefix, dir=folder))
        # Another process may take the folder for an abandoned one until it is locked.
        try:
            lock = os.open(made, os.O_RDONLY)
        except FileNotFoundError:
            continue
        if _lock(lock) and made.exists():
            return made, lock
        os.close(lock)


def _lock(descriptor: int) -> bool:
    """Take the lock and return whether this succeeded. On a file system without locks it always does."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def _move(hidden: Path, folder: Path) -> None:
    names = _files(hidden)
    for name in names:
        _check_replaceable(folder / name)
        sync(hidden / name)
    if MANIFEST in names:
        names = [*(name for name in names if name != MANIFEST), MANIFEST]
        outdated = _listed(folder) - _listed_in(hidden / MANIFEST)
        for name in sorted(outdated):
            _remove(folder, name)
        (folder / MANIFEST).unlink(missing_ok=True)
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (hidden / name).replace(folder / name)
    try:
        sync(folder)
    except OSError as error:
        said = f"{error.strerror}: the new files are committed and can be read, but a power cut might undo that"
        raise OSError(error.errno, said, str(folder)) from error


def _check_replaceable(place: Path) -> None:
    """Raise `OSError` if a place exists and is not a file."""
    if place.is_dir():
        raise IsADirectoryError(f"{place} is a folder, where a file is to be written")
    if place.exists() and not place.is_file():
        raise OSError(f"{place} is a device or a pipe, where a file is to be written")


def _listed(folder: Path) -> set[str]:
    """The files of earlier results: those of the manifest or, if a writer was killed, those that it would have moved.

    Hidden folders of other writers count only if there is no manifest, because a writer removes it first.
    """
    if (folder / MANIFEST).exists():
        return _listed_in(folder / MANIFEST)
    return {name for hidden in _abandoned(folder, _HIDDEN) for name in _listed_in(hidden / MANIFEST)}


def _listed_in(manifest: Path) -> set[str]:
    try:
        return _listed_by(manifest.read_bytes())
    except OSError:
        return set()


def _listed_by(manifest: bytes) -> set[str]:
    try:
        names = json.loads(manifest)["files"]
        return {name for name in names if not name.startswith("/") and ".." not in name.split("/")}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return set()


def _remove(folder: Path, name: str) -> None:
    """Remove a file, and the subfolders that are empty without it."""
    with suppress(OSError):
        (folder / name).unlink()
        for parent in (folder / name).relative_to(folder).parents:
            if parent != Path():
                (folder / parent).rmdir()


def _remove_abandoned(folder: Path, prefix: str) -> None:
    for made in _abandoned(folder, prefix):
        rmtree(made, ignore_errors=True)


def _abandoned(folder: Path, prefix: str) -> Iterator[Path]:
    """Yield the folders whose processes have ended. Each is locked meanwhile."""
    for made in sorted(folder.glob(f"{prefix}*")):
        with suppress(OSError):
            lock = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if _lock(lock):
                    yield made
            finally:
                os.close(lock)


def sync(path: str | Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
