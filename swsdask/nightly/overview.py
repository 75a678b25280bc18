"""The page of all evaluations of a file: the standing of each, and the way to its board.

The page follows from `latest.json` of the boards alone, so that it has the same bytes whichever call made it, and it is
written only if these changed.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from swsdask.archive.storage import Storage
from swsdask.nightly.history import LATEST
from swsdask.nightly.settings import NightlySettings
from swsdask.places.reading import join_path, local_path
from swsdask.places.writing import replacing
from swsdask.render.nightly import EvaluationState, overview

PAGE = "index.html"


def publish_overview(settings: NightlySettings) -> str | None:
    """Write the page of all evaluations, unless it is there with the same content.

    Parameters
    ----------
    settings : NightlySettings
        All evaluations of a file, and `out`, the folder of the page.

    Returns
    -------
    str or None
        The place of the page if it was written.

    Raises
    ------
    ArchiveError, InputError, OSError
        A board cannot be read, or the page cannot be written.
    """
    if settings.out is None:
        return None
    states = [
        EvaluationState(each.name, link(settings.out, each.out), each.out, _latest(each.out))
        for each in settings.evaluation
    ]
    content = overview(states).encode()
    if Storage(settings.out).read_all([PAGE]).get(PAGE) == content:
        return None
    place = join_path(settings.out, PAGE)
    with replacing(place) as file:
        file.write(content)
    return place


def link(page: str, board: str) -> str | None:
    """The relative address of a board from the folder of the page; None if no relative address leads there.

    >>> link("s3://team/nightly", "s3://team/nightly/sws 2013")
    'sws%202013/index.html'
    >>> link("s3://team/nightly", "s3://others/sws2013")
    """
    here, there = local_path(page), local_path(board)
    if here is not None and there is not None:
        way = os.path.relpath(there, here).replace(os.sep, "/")
    elif here is None and there is None and (bucket := _bucket(page)) == _bucket(board):
        way = posixpath.relpath(f"/{board.removeprefix(bucket)}", f"/{page.removeprefix(bucket)}")
    else:
        return None
    return quote(posixpath.join(way, PAGE))


def _bucket(url: str) -> str:
    """The part of a URL up to its bucket or host."""
    protocol, rest = url.split("://", 1)
    return f"{protocol}://{rest.split('/', 1)[0]}"


def _latest(board: str) -> Mapping[str, Any]:
    """`latest.json` of a board; empty if there is none, or if it cannot be understood."""
    content = Storage(board).read_all([LATEST]).get(LATEST, b"{}")
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
