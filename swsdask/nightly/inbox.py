"""The inbox, where runs arrive: its files, with the system of each and a stamp that changes when the file does.

Of a file that changed within the last tick of the clock no stamp says that it is the same later (`places.reading`), so
the look waits until it has settled, at most some seconds. Then a night that is done again finds the same stamps.

Only regular files are runs, and folders of regular Parquet files that are one table (`formats.runs.parquet`). Whoever
may write into an inbox could make a link to any file that the night may read, and lines of it would be shown as what
was wrong: links are passed over, as are pipes and devices, with a warning each. So are folders in an inbox that cannot
be listed; where the inbox itself cannot, that is an error.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from glob import has_magic
from itertools import takewhile

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from swsdask.formats.find import is_glob
from swsdask.formats.runs.parquet import ENDING, is_one_table, parts_of
from swsdask.formats.values import system_of_file
from swsdask.model.errors import InputError, Problem
from swsdask.places.reading import is_local, settles_in, stamp_of

LOG = logging.getLogger("swsdask.nightly")

_RESOURCES = ".resources.toml"


@dataclass(frozen=True)
class Arrived:
    """A file with a run: whose it is, and its stamp."""

    url: str
    system: str
    stamp: str


def look(inbox: Iterable[str], pattern: str | None = None) -> list[Arrived]:
    """The runs in an inbox, one file for each system, by name.

    Parameters
    ----------
    inbox : iterable of str
        Folders, globs or URLs. A file in a folder one level below is of the system that the folder is named after;
        others are of the system that they are named after.
    pattern : str, optional
        A regular expression with the group `system`, and perhaps `date` and `tag`, that is searched in paths instead.
        Files without a match are passed over. The system of a run with a tag is SYSTEM-TAG.

    Returns
    -------
    list of Arrived
        Of several files of one system the last one, by date, then by name. Where files of different folders have the
        same system and date, a warning says which is passed over.

    Raises
    ------
    InputError
        If a place cannot be listed, or there is no such folder.
    """
    named = None if pattern is None else re.compile(pattern)
    found: dict[str, tuple[str, Arrived]] = {}
    for entry in inbox:
        listed = {}
        for file, depth, info in _listed(entry):
            if info.get("type", "file") == "file":
                listed[file] = depth, stamp_of(info)
            else:
                what = "a link: links are not followed" if info.get("islink") else "no regular file"
                LOG.warning("passed over, %s: %s", what, file)
        listed = _with_tables(listed)
        for url, (depth, stamp) in sorted(listed.items()):
            name = url.rsplit("/", 1)[-1]
            if name.startswith(".") or name.endswith(_RESOURCES) or name.lower().startswith("readme"):
                continue
            date, system = "", url.rsplit("/", 2)[-2] if depth == 1 else system_of_file(url)
            if named is not None:
                match = named.search(url)
                if match is None:
                    continue
                groups = match.groupdict()
                date, system = groups.get("date") or "", groups["system"]
                system = f"{system}-{groups['tag']}" if groups.get("tag") else system
            beside = listed.get(f"{_folder(url)}/{system_of_file(url)}{_RESOURCES}")
            arrived = Arrived(url, system, stamp if beside is None else f"{stamp} {beside[1]}")
            if (there := found.get(system)) and there[0] == date and _folder(there[1].url) != _folder(url):
                passed_over = min(there[1].url, url)
                LOG.warning("passed over, a later file is of the system %s too: %s", system, passed_over)
            if there is None or (date, url) >= (there[0], there[1].url):
                found[system] = date, arrived
    return [arrived for _, (_, arrived) in sorted(found.items())]


def _with_tables(listed: Mapping[str, tuple[int, str]]) -> dict[str, tuple[int, str]]:
    """The listed files, with a folder of Parquet files that is one table in place of its files, a level above them.

    One that has more than the files that are listed is passed over.
    """
    found = dict(listed)
    for folder in sorted({_folder(url) for url in listed if url.endswith(ENDING)}):
        if is_one_table(folder):
            parts = parts_of(folder)
            inside = [url for url in listed if _folder(url) == folder]
            depth = min(found.pop(url)[0] for url in inside)
            if parts.keys() <= listed.keys():
                found[folder] = depth - 1, " ".join(listed[part][1] for part in parts)
            else:
                LOG.warning("passed over, a table that has more than regular files directly in it: %s", folder)
    return found


def _listed(entry: str) -> Iterator[tuple[str, int, Mapping[str, object]]]:
    """Everything but folders: where it is, how many levels below the entry, and what its file system says of it."""
    filesystem, root, infos = _found(entry)
    if wait := max((left for left in map(settles_in, infos.values()) if left < math.inf), default=0.0):
        time.sleep(wait)
        filesystem, root, infos = _found(entry)
    if isinstance(filesystem, _Local):
        for folder, error in filesystem.missed.items():
            LOG.warning("passed over, a folder that cannot be listed (%s): %s", error.strerror, folder)
    for file, info in infos.items():
        depth = file.removeprefix(f"{root}/").count("/") if root and file != root else 0
        yield file if isinstance(filesystem, _Local) else filesystem.unstrip_protocol(file), depth, info


def _found(entry: str) -> tuple[AbstractFileSystem, str, dict[str, Mapping[str, object]]]:
    """The file system, the path of the entry in it (empty of a glob), and what it says of everything but folders."""
    try:
        filesystem, path = url_to_fs(entry)
        filesystem.invalidate_cache()
        strictly = {}
        if isinstance(filesystem, LocalFileSystem):
            filesystem, strictly = _Local(), {"on_error": "raise"}
        folder = _begin_of(path) if is_glob(entry) else path
        if folder and not filesystem.exists(folder):
            raise FileNotFoundError(folder)
        if is_glob(entry):
            infos, root = filesystem.glob(path, detail=True, **strictly), ""
        else:
            infos, root = filesystem.find(path, maxdepth=2, detail=True, **strictly), path.rstrip("/")
    except Exception as error:
        remedy = "Check the path and its permissions"
        if isinstance(error, FileNotFoundError) and not is_local(entry):
            remedy += "; a store has no empty folders: a README keeps one"
        found = "nothing there" if isinstance(error, FileNotFoundError) else f"{type(error).__name__}: {error}"
        expected = "a folder or glob that can be listed"
        raise InputError(Problem(entry, None, expected, found, f"{remedy}. Nothing was changed.")) from None
    return filesystem, root, {file: info for file, info in infos.items() if info.get("type") != "directory"}


def _folder(url: str) -> str:
    return url.rsplit("/", 1)[0]


def _begin_of(pattern: str) -> str:
    """The folder in which a glob begins; empty for that of the process."""
    return "/".join(takewhile(lambda part: not has_magic(part), pattern.split("/")))


class _Local(LocalFileSystem):  # type: ignore[misc]
    """Local files. Folders that could not be listed are `missed`: below others, fsspec passes over them silently."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.missed: dict[str, OSError] = {}

    def ls(self, path: str, *more: object, **named: object) -> object:
        """List a folder."""
        try:
            return super().ls(path, *more, **named)
        except OSError as error:
            self.missed[path] = error
            raise
