"""The board of a history: pages and files. Except for the report of the last night, the history determines them.

index.html                 the current leaderboard, the last moves, refused runs, trend lines, all nights
nights/00000001.html       the report of a night: its new systems and their baselines
feed.xml                   an Atom entry per night
metrics.prom               OpenMetrics, for monitoring; the only file that has the duration
latest.json                the current numbers; written last: a board that has it is complete
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable

from swsdask import __version__
from swsdask.api.results import report
from swsdask.archive.local import PART
from swsdask.archive.nights import History
from swsdask.archive.storage import Storage
from swsdask.model.measures import better
from swsdask.model.results import Result
from swsdask.nightly.settings import NightlyEvaluation
from swsdask.places.writing import temporary_folder
from swsdask.render.nightly import BoardPage, Trend, atom_feed, index, metrics, page_of

LATEST = "latest.json"
BOARD = ("index.html", "feed.xml", "metrics.prom", LATEST)
"""The files of a board beside the reports of nights, in the order in which they are written."""


def is_published(job: NightlyEvaluation, past: History, *, by_this_release: bool = True) -> bool:
    """Whether the board is whole, and shows the last night of this history; if `by_this_release`, made by this one."""
    out = Storage(job.out)
    if not {*BOARD} <= {*out.files(below=False)}:
        return False
    try:
        latest = json.loads(out.read_all([LATEST]).get(LATEST, b"{}"))
    except (ValueError, RecursionError):
        return False
    expected = {"evaluation": job.name, "hash": past.nights[-1].hash}
    expected |= {"swsdask": __version__} if by_this_release else {}
    return isinstance(latest, dict) and all(latest.get(name) == value for name, value in expected.items())


def publish(job: NightlyEvaluation, past: History, result: Result | None, began: float) -> bytes:
    """Write the board of the history. Returns `latest.json`.

    `result` has the systems of the last night's report; `began` is the value of `time.monotonic` when the call began.
    """
    out, last = Storage(job.out), past.nights[-1].record
    place = page_of(last)
    if result is not None and place is not None:
        with temporary_folder() as folder:
            path = folder / "report.html"
            report(result, path)
            out.replace(place, path.read_bytes())
    page = board_page(job, past, reports=out.files(below=True))
    latest = (json.dumps(_latest(page, past), sort_keys=True, allow_nan=False) + "\n").encode()
    out.replace("index.html", index(page).encode())
    out.replace("feed.xml", atom_feed(page).encode())
    out.replace("metrics.prom", metrics(page, time.monotonic() - began).encode())
    out.replace(LATEST, latest)
    for name in out.modified():
        if name.endswith(PART):  # Left by a killed night: only the holder of the lease publishes.
            out.remove(name)
    return latest


def board_page(job: NightlyEvaluation, past: History, reports: Iterable[str] = ()) -> BoardPage:
    """Return the content of the board; `reports` are files of the board, among them the existing reports of nights."""
    current = past.current()
    trends: dict[str, list[tuple[int, float]]] = {}
    found = past.leaderboard(job.scored)
    leading = found.by[0] if found.by else ""
    for row in past.rows_of(leading):
        trends.setdefault(row["system"], []).append((row["night"], row["value"]))
    return BoardPage(
        name=job.name,
        measures=found.columns,
        leading=leading,
        numbers=found,
        nights=tuple(night.record for night in past.nights),
        reports=frozenset(reports),
        refused=tuple(past.refused.values()),
        trends=tuple(Trend(system, tuple(trends.get(system, ()))) for system in found.systems),
        n_systems=len(set(current["system"].to_pylist())),
    )


def _latest(page: BoardPage, past: History) -> dict[str, object]:
    last, found = page.nights[-1], page.numbers
    return {
        "evaluation": page.name,
        "night": last.number,
        "hash": past.nights[-1].hash,
        "date": last.date,
        "swsdask": __version__,
        "systems": {
            system: {
                "night": past.standings[system].night,
                "content": past.standings[system].content,
                "signature": past.standings[system].signature,
                "values": {
                    condition: {measure: _number(found.value(condition, system, measure)) for measure in found.measures}
                    for condition in found.conditions
                },
            }
            for system in found.systems
        },
        "leading": page.leading,
        "new": [move.system for move in last.moves],
        "refused": [each.url for each in page.refused],
        "gates": list(last.gates),
        "order": {measure: better(measure) for measure in found.measures},
    }


def _number(value: float) -> float | str | None:
    """Return a number for JSON: infinite ones as text, NaN as None."""
    return None if math.isnan(value) else value if math.isfinite(value) else str(value)
