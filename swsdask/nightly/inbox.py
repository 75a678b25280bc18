"""The inbox, where runs arrive: its files, with the system of each and a stamp that changes when the file does.

The stamp of a file that changed within the last tick of the clock is not repeated later, even if the file is unchanged
(`places.stamps`). `look` therefore waits until the file has settled, at most a few seconds, so that a repeated night
finds the same stamps.

Only regular files are runs, and folders of regular Parquet files that are one table (`formats.runs.parquet`). Links,
pipes and devices are skipped, each with a warning: a link in an inbox could name any file that the night can read, and
messages about problems would show lines of it. Folders in an inbox that cannot be listed are skipped with a warning
too; an inbox that cannot be listed is an error.
"""

from __future__ import annotations

import logging
import math
import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from swsdask.formats.find import is_glob, resource_places
from swsdask.formats.runs.parquet import ENDING, is_one_table, parts_of
from swsdask.formats.values import system_of_file
from swsdask.model.errors import InputError, Problem
from swsdask.model.safe_text import is_text, one_line, without_secrets
from swsdask.places.reading import all_below, all_matching, is_local, join_path, no_folder, start_of
from swsdask.places.stamps import settles_in, stamp_of

LOG = logging.getLogger("swsdask.nightly")

_RESOURCES = ".resources.toml"


@dataclass(frozen=True)
class Arrived:
    """A file with a run, its system and its stamp."""

    url: str
    system: str
    stamp: str

    @property
    def shown(self) -> str:
        """The URL without secrets, by which the history and the board know the file."""
        return without_secrets(self.url)


def look(inbox: Iterable[str], pattern: str | None = None) -> list[Arrived]:
    """Return the runs in an inbox, one file for each system, by name.

    Parameters
    ----------
    inbox : iterable of str
        Folders, globs or URLs. The system of a file in a folder one level below is the name of that folder; the system
        of any other file is the name of the file.
    pattern : str, optional
        A regular expression with the group `system`, and optionally `date` and `tag`. It is searched in the paths of
        files at any depth below the inbox, and determines the system instead. Files without a match are skipped. The
        system of a run with a tag is SYSTEM-TAG. Dates are compared as text: the year comes first.

    Returns
    -------
    list of Arrived
        Of several files of one system, the last by date, then by name; numbers in names are compared by value. If files
        in different folders have the same system and date, a warning names the file that is skipped.

    Raises
    ------
    InputError
        If a place cannot be listed, or there is no such folder.
    """
    named = None if pattern is None else re.compile(pattern)
    found: dict[str, tuple[str, Arrived]] = {}
    for entry in inbox:
        listed = _runs(entry, deepest=2 if named is None else None)
        for url, (depth, stamp) in sorted(listed.items(), key=lambda each: _by_name(each[0])):
            if not _may_be_run(url):
                continue
            if not is_text(url):
                LOG.warning("skipped, its name is not UTF-8: %r", url)
                continue
            if any(is_local(place) and os.path.islink(place) for place in resource_places(url)):
                LOG.warning("skipped, links are not followed, and its resources are one: %s", one_line(url))
                continue
            date, system = "", url.rsplit("/", 2)[-2] if depth == 1 and not is_glob(entry) else system_of_file(url)
            if named is not None:
                match = named.search(url)
                if match is None:
                    continue
                groups = match.groupdict()
                if not groups["system"]:
                    LOG.warning("skipped, the pattern matches but names no system: %s", one_line(url))
                    continue
                date, system = groups.get("date") or "", groups["system"]
                system = f"{system}-{groups['tag']}" if groups.get("tag") else system
            beside = listed.get(f"{_folder(url)}/{system_of_file(url)}{_RESOURCES}")
            arrived = Arrived(url, system, stamp if beside is None else f"{stamp} {beside[1]}")
            if (rival := found.get(system)) and rival[0] == date and _folder(rival[1].url) != _folder(url):
                earlier = min(rival[1].url, url, key=_by_name)
                LOG.warning(
                    "skipped, a later file belongs to the same system, %s: %s", one_line(system), one_line(earlier)
                )
            if rival is None or (date, _by_name(url)) >= (rival[0], _by_name(rival[1].url)):
                found[system] = date, arrived
        if named is not None and listed and not any(map(named.search, listed)):
            first = one_line(min(listed))
            LOG.warning("skipped, no file matches the pattern (it is searched in whole paths, such as %s)", first)
    return [arrived for _, (_, arrived) in sorted(found.items())]


def _runs(entry: str, deepest: int | None) -> dict[str, tuple[int, str]]:
    """Return the depth and stamp of the regular files of an entry. A folder that is one table replaces its files."""
    listed, folders = _list_entry(entry, deepest)
    tables = {url: depth for url, depth in folders.items() if is_glob(entry) or url.endswith(ENDING)}
    within = [(url, depth) for url, (depth, _) in listed.items() if url.endswith(ENDING)]
    within += [(url, depth) for url, depth in folders.items() if _is_part(url) and depth > 0]
    for url, depth in within:
        table, above = _folder(url), depth - 1
        while _is_part(table) and above > 0:  # the name of the entry itself does not count
            table, above = _folder(table), above - 1
        tables[table] = above
    found = dict(listed)
    for table, depth in sorted(tables.items()):
        if is_one_table(table):
            parts = parts_of(table)
            inside = listed if parts.keys() <= listed.keys() else _list_entry(table, deepest=None)[0]
            found = {url: each for url, each in found.items() if not url.startswith(f"{table}/")}
            if parts.keys() <= inside.keys():
                found[table] = depth, " ".join(inside[part][1] for part in parts)
            else:
                LOG.warning("skipped, a table with links or special files: %s", one_line(table))
    deeper = sorted(url for url, depth in folders.items() if depth > 0)
    if deepest is not None and deeper and not any(map(_may_be_run, found)):
        first = one_line(deeper[0])
        LOG.warning("skipped, nested folders, where runs are found only with a pattern: %s", first)
    return found


def _may_be_run(url: str) -> bool:
    """Return whether a file is neither a README nor the resources of a run."""
    name = url.rsplit("/", 1)[-1]
    return not (name.endswith(_RESOURCES) or name.lower().startswith("readme"))


def _is_part(folder: str) -> bool:
    """Return whether a folder is named KEY=VALUE, like the folders of a partitioned table."""
    return "=" in folder.rsplit("/", 1)[-1]


def _list_entry(entry: str, deepest: int | None) -> tuple[dict[str, tuple[int, str]], dict[str, int]]:
    """The depth and stamp of regular files, and the depth of folders: levels below the entry, at most `deepest`."""
    filesystem, root, infos = _find_entry(entry, deepest)
    files = [info for info in infos.values() if info.get("type") != "directory"]
    if wait := max((left for left in map(settles_in, files) if left < math.inf), default=0.0):
        time.sleep(wait)
        filesystem, root, infos = _find_entry(entry, deepest)
    if isinstance(filesystem, _Local):
        for folder, error in filesystem.missed.items():
            LOG.warning("skipped, a folder that cannot be listed (%s): %s", error.strerror, one_line(folder))
    listed: dict[str, tuple[int, str]] = {}
    folders: dict[str, int] = {}
    for path, info in infos.items():
        depth = path.removeprefix(f"{root}/").count("/") if path != root else 0
        url = path if isinstance(filesystem, _Local) else filesystem.unstrip_protocol(path)
        if info.get("type") == "directory":
            if path != root:
                folders[url] = depth
        elif info.get("type", "file") == "file":
            listed[url] = depth, stamp_of(info)
        else:
            what = "links are not followed" if info.get("islink") else "not a regular file"
            LOG.warning("skipped, %s: %s", what, one_line(url))
    return listed, folders


def _find_entry(entry: str, deepest: int | None) -> tuple[AbstractFileSystem, str, dict[str, Mapping[str, object]]]:
    """Return the file system, the folder where the entry begins, and the details of all that is not hidden below it."""
    try:
        filesystem, path = url_to_fs(entry)
        filesystem.invalidate_cache()
        folder = start_of(path) if is_glob(entry) else path
        if folder and not filesystem.exists(folder):
            raise FileNotFoundError(folder)
        if isinstance(filesystem, LocalFileSystem):
            filesystem = _Local()
            if is_glob(entry):
                infos = filesystem.glob(path, detail=True, on_error="raise")
            else:
                infos = filesystem.find(path, maxdepth=deepest, withdirs=True, detail=True, on_error="raise")
        else:
            infos = all_matching(filesystem, path) if is_glob(entry) else all_below(filesystem, path, deepest)
    except Exception as error:
        remedy, found = "Check the path and its permissions", f"{type(error).__name__}: {error}"
        if isinstance(error, FileNotFoundError):
            missing = no_folder(join_path(entry, "*"))
            found = f"nothing there{missing}"
            if not is_local(entry) and not missing:
                remedy += "; a store has no empty folders: a README keeps one"
        expected = "a folder or glob that can be listed"
        raise InputError(Problem(entry, None, expected, found, f"{remedy}. Nothing was changed.")) from None
    root = folder.rstrip("/")
    return filesystem, root, {each.rstrip("/"): info for each, info in infos.items() if "/." not in each[len(root) :]}


def _by_name(url: str) -> tuple[list[str | int], str]:
    """Return the key by which names are ordered: texts and numbers, in turn.

    The name itself comes last: 01 and 1 differ.
    """
    parts = re.split("([0-9]+)", url)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)], url


def _folder(url: str) -> str:
    return url.rsplit("/", 1)[0]


class _Local(LocalFileSystem):  # type: ignore[misc]
    """Local files. `missed` has the folders that could not be listed: below other folders, fsspec ignores them."""

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
