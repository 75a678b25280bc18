"""Lists of files, and stamps of files: what says, without a file being read, that it is the one that was read before.

A stamp is the size and the ETag of a file, or the size and the time of its last change; of a local file also the time
at which its state changed, which copying with times (`cp -p`, `rsync -t`) does not set back. The time of a change says
nothing of a file that was changed just before it was listed, for it may be changed again within the same tick of the
clock; git's index has the same difficulty. Nor does a weak ETag (`W/...`) say that the bytes are the same. `stamps_of`
gives such files, and those of storages that tell neither, a stamp that is never repeated.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from swsdask.model.shown_text import without_secrets
from swsdask.places.reading import file_system, local_path, parted, storage_fault

SETTLED_S = 2.0
"""The age from which on the time of the last change is trusted: no file system's clock has longer ticks."""

_TAGS = ("ETag", "etag")
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")
_WITHOUT_LISTS = ("http", "https")
_FEW = 3
"""So many files of a folder in a store are looked at one by one: the folder may be large."""


def stamps_of(files: Iterable[str]) -> dict[str, str]:
    """Return the stamps of files: of local ones by their state, of a folder in a store by one list.

    Parameters
    ----------
    files : iterable of str
        Paths and URLs.

    Returns
    -------
    dict of str to str
        The stamp of every file that is there.

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
            info = {"size": state.st_size, "mtime": state.st_mtime}
            found[file] = f"{_once_if_young(info)} {state.st_ctime_ns}"
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
    listed = len(files) > _FEW and bool(has_folder) and "::" not in folder and protocol not in _WITHOUT_LISTS
    infos = {info["name"].rstrip("/"): info for info in filesystem.ls(file_system(folder)[1])} if listed else {}
    for file in files:
        path = file_system(file)[1]
        try:
            info = infos.get(path) if listed else filesystem.info(path)
        except FileNotFoundError:
            continue
        if info is not None and info.get("type", "file") == "file":
            yield file, _once_if_young({} if "::" in file else info)


def stamp_of(info: Mapping[str, Any]) -> str:
    """Return the stamp of a file by what its fsspec file system says of it, however young it is."""
    tag = _tag(info)
    changed = _changed(info) if tag is None else tag
    return f"{info.get('size')} {changed.isoformat() if isinstance(changed, datetime) else changed}"


def _once_if_young(info: Mapping[str, Any]) -> str:
    """The stamp of a file, or one that is never repeated."""
    changed = _changed(info)
    at = changed.timestamp() if isinstance(changed, datetime) else changed
    is_known = isinstance(at, int | float) and at <= time.time() - SETTLED_S
    return stamp_of(info) if _tag(info) or is_known else f"{stamp_of(info)} at {time.time_ns()}"


def _tag(info: Mapping[str, Any]) -> str | None:
    tag = next((f"{info[name]}" for name in _TAGS if info.get(name)), None)
    return None if tag is None or tag.startswith("W/") else tag


def _changed(info: Mapping[str, Any]) -> Any:
    return next((info[name] for name in _TIMES if info.get(name) is not None), None)
