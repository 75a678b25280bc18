"""The board of an evaluation: pages and files that follow from the history alone, but for the report of the last night.

index.html              the leaderboard of now, what moved last, refused runs, trend lines, all nights
nights/00000001.html    the report of a night: its new systems and their baselines
feed.xml                an Atom entry per night
metrics.prom            OpenMetrics, for monitoring; the only file that has the duration
latest.json             the numbers of now; written last: a board that has it is whole
"""

from __future__ import annotations

import json
import math
import time
from typing import Any

from swsdask import __version__
from swsdask.api.writing import report
from swsdask.archive.local import PART
from swsdask.archive.storage import Storage
from swsdask.model.measures import better
from swsdask.model.nights import Record
from swsdask.model.results import Result
from swsdask.nightly.history import History
from swsdask.nightly.settings import NightlyEvaluation
from swsdask.places.writing import temporary_folder
from swsdask.render.nightly import BoardPage, Trend, feed, index, metrics, page_of

LATEST = "latest.json"


def is_published(out: str, record: Record) -> bool:
    """Whether the board shows this night, and was made by this release."""
    content = Storage(out).read_all([LATEST]).get(LATEST)
    try:
        said = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return False
    return bool(said.get("night") == record.number and said.get("swsdask") == __version__)


def publish(asked: NightlyEvaluation, past: History, result: Result | None, began: float) -> bytes:
    """Write the board of the history. Returns `latest.json`.

    `result` has the systems of the last night's report; the call `began` at this time of `time.monotonic`.
    """
    out, last = Storage(asked.out), past.nights[-1].record
    page = board_page(asked, past)
    place = page_of(last)
    if result is not None and place is not None:
        with temporary_folder() as folder:
            path = folder / "report.html"
            report(result, path)
            out.replace(place, path.read_bytes())
    latest = (json.dumps(_latest(page, past), sort_keys=True) + "\n").encode()
    out.replace("index.html", index(page).encode())
    out.replace("feed.xml", feed(page).encode())
    out.replace("metrics.prom", metrics(page, time.monotonic() - began).encode())
    out.replace(LATEST, latest)
    for name in out.modified():
        if name.endswith(PART):  # Of a night that was killed: whoever publishes holds the lease.
            out.remove(name)
    return latest


def board_page(asked: NightlyEvaluation, past: History) -> BoardPage:
    """All that the board shows."""
    current = past.current()
    trends: dict[str, list[tuple[int, float]]] = {}
    found = past.board(asked.scored)
    leading = found.by[0] if found.by else ""
    for row in past.rows_of(leading):
        trends.setdefault(row["system"], []).append((row["night"], row["value"]))
    return BoardPage(
        name=asked.name,
        measures=found.columns,
        leading=leading,
        board=found,
        nights=tuple(night.record for night in past.nights),
        refused=tuple(past.refused.values()),
        trends=tuple(Trend(system, tuple(trends.get(system, ()))) for system in found.systems),
        n_systems=len(set(current["system"].to_pylist())),
    )


def _latest(page: BoardPage, past: History) -> dict[str, Any]:
    last, found = page.nights[-1], page.board
    return {
        "evaluation": page.name,
        "night": last.number,
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
        "new": [move.system for move in last.moves],
        "refused": [each.url for each in page.refused],
        "gates": list(last.gates),
        "order": {measure: better(measure) for measure in found.measures},
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
