"""Stamps of files.

A stamp shows that a file is unchanged without reading it. It consists of the size and the ETag of a file, or of the
size and the modification time; for a local file also of the time of its last status change, which copying with times
(`cp -p`, `rsync -t`) does not reset. The modification time proves nothing if a file was changed just before it was
listed, because it may change again within the same tick of the clock (git's index has the same problem). A weak ETag
(`W/...`) does not prove that the bytes are the same either. Such files, and files in storages that report neither, have
a stamp that is never repeated; `settles_in` returns for how long.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from swsdask.model.safe_text import without_secrets
from swsdask.places.reading import WITHOUT_LISTS, file_system, local_path, parted, storage_fault


def stamps_of(files: Iterable[str]) -> dict[str, str]:
    """Return the stamps of files. A folder in a store is listed by one request.

    Parameters
    ----------
    files : iterable of str
        Paths and URLs.

    Returns
    -------
    dict of str to str
        The stamp of every file that exists.

    Raises
    ------
    InputError
        If a storage cannot be listed.
    """
    found: dict[str, str] = {}
    folders: dict[str, list[str]] = {}
    for file in dict.fromkeys(files):
        path = local_path(file)
        if path is None:
            folders.setdefault(parted(file)[0], []).append(file)
        elif os.path.isfile(path):
            state = os.stat(path)
            found[file] = stamp_of(
                {"size": state.st_size, "mtime": state.st_mtime, "created": state.st_ctime, "ino": state.st_ino}
            )
    for folder, inside in folders.items():
        try:
            found.update(_in_store(folder, inside))
        except Exception as error:
            raise storage_fault(without_secrets(folder), error) from None
    return found


def _in_store(folder: str, files: list[str]) -> Iterator[tuple[str, str]]:
    filesystem, _ = file_system(files[0])
    filesystem.invalidate_cache()
    protocol, has_folder, _ = folder.partition("://")
    listed = len(files) > _FEW and bool(has_folder) and "::" not in folder and protocol not in WITHOUT_LISTS
    infos = {info["name"].rstrip("/"): info for info in filesystem.ls(file_system(folder)[1])} if listed else {}
    for file in files:
        path = file_system(file)[1]
        try:
            info = infos.get(path) if listed else filesystem.info(path)
        except FileNotFoundError:
            continue
        if info is not None and info.get("type", "file") == "file":
            yield file, stamp_of({} if "::" in file else info)


def stamp_of(info: Mapping[str, object]) -> str:
    """Return the stamp of a file from the information of its fsspec file system."""
    said = _tag(info) or " ".join(map(str, _changed(info)))
    return f"{info.get('size')} {said}" + (f" at {time.time_ns()}" if settles_in(info) else "")


def settles_in(info: Mapping[str, object]) -> float:
    """Return the seconds until the stamp of an unchanged file is repeated: 0 if it already is, inf if it never is.

    It is inf if the modification time is in the future by more than the clocks of two hosts differ.
    """
    if _tag(info) is not None:
        return 0.0
    left = max(_changed(info), default=math.inf) + SETTLED_S - time.time()
    return max(left, 0.0) if left <= 2 * SETTLED_S else math.inf


def _tag(info: Mapping[str, object]) -> str | None:
    tag = next((f"{info[name]}" for name in _TAGS if info.get(name)), None)
    return None if tag is None or tag.startswith("W/") else tag


def _changed(info: Mapping[str, object]) -> list[float]:
    """The times, in seconds since 1970, of the last change of a file and of a local one's state; empty if unknown."""
    said = [next((info[name] for name in _TIMES if info.get(name) is not None), None)]
    if "ino" in info:  # For local files, fsspec gives this name to the time of the last status change.
        said.append(info["created"])
    times = [at.timestamp() if isinstance(at, datetime) else at for at in said]
    return [at for at in times if isinstance(at, int | float)]


SETTLED_S = 2.0
"""The age from which a modification time is trusted: no file system has longer clock ticks."""

_TAGS = ("ETag", "etag")
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")
_FEW = 3
"""The number of files of a folder in a store up to which they are queried one by one, as the folder may be large."""
