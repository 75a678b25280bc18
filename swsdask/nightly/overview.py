"""The page of all evaluations of a file: the standing of each, and the way to its board.

The page follows from `latest.json` of the boards alone, so that it has the same bytes whichever call made it, and it is
written only if these changed.
"""

from __future__ import annotations

import os
import posixpath
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from swsdask.archive.storage import Storage
from swsdask.model.measures import better, describe, written
from swsdask.model.safe_text import without_secrets
from swsdask.nightly.board import LATEST
from swsdask.nightly.settings import NightlyEvaluation, NightlySettings
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
    states = [_state(each, link(settings.out, each.out)) for each in settings.evaluation]
    content = overview(states).encode()
    if Storage(settings.out).read_all([PAGE]).get(PAGE) == content:
        return None
    place = join_path(settings.out, PAGE)
    with replacing(place) as file:
        file.write(content)
    return place


def link(page: str, board: str) -> str | None:
    """Return the relative address of a board from the folder of the page; None if no relative address leads there.

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
    """Return the part of a URL up to its bucket or host."""
    protocol, rest = url.split("://", 1)
    return f"{protocol}://{rest.split('/', 1)[0]}"


class _System(BaseModel):
    values: dict[str, dict[str, float | None]]


class _Latest(BaseModel):
    """The entries of `latest.json` that the page shows. Boards of earlier releases do not say what leads."""

    night: int
    date: str
    leading: str = ""
    systems: dict[str, _System]
    new: tuple[str, ...]
    refused: tuple[str, ...]
    gates: tuple[str, ...]


def _state(job: NightlyEvaluation, way: str | None) -> EvaluationState:
    """Return the state of an evaluation; without a night if it has no board, or one that cannot be understood."""
    place = without_secrets(job.out)
    content = Storage(job.out).read_all([LATEST]).get(LATEST, b"")
    try:
        latest = _Latest.model_validate_json(content)
    except ValidationError:
        return EvaluationState(job.name, way, place)
    measure = latest.leading
    values = {
        system: number
        for system, own in latest.systems.items()
        if (number := own.values.get("all", {}).get(measure)) is not None
    }
    best = max(values, key=lambda system: better(measure) * values[system], default="")
    return EvaluationState(
        job.name,
        way,
        place,
        night=latest.night,
        date=latest.date,
        best=best,
        measure=describe(measure).heading if best else "",
        value=written(measure, values[best]) if best else "",
        systems=len(latest.systems),
        scored=len(latest.new),
        refused=len(latest.refused),
        gates=latest.gates,
    )
