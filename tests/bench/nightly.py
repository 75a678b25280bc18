"""Nights of hundreds of systems: one that finds one run, over scoring that run alone, and over scoring all.

All from the files are the new runs, under many names.
Every side is a whole process, imports included. The archive and its history hold `SYSTEMS` systems; in each turn one
more arrives, which is scored alone from its file first, then by a night.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from shutil import copyfile

import swsdask as sws
from swsdask.archive.fragments import detections_as_table
from swsdask.archive.ingest import write_runs
from swsdask.archive.nights import HISTORY, commit_night, read_history
from swsdask.archive.storage import Storage
from swsdask.model.leaderboard import REPLACED, Move, Record
from swsdask.model.schemas import SEGMENTS
from swsdask.nightly.board import board_page
from swsdask.nightly.settings import load_nightly
from swsdask.render.nightly import atom_feed, index, metrics
from swsdask.simulate.evaluation import SimulatedEvaluation, write
from tests.bench.cost import Cost, cost
from tests.bench.data import Data, Shape, SimulatedRun
from tests.bench.process import peak_of_children, run_with_all
from tests.bench.scoring import settings
from tests.bench.small import SWSDASK
from tests.bench.table import Row

SYSTEMS = 300
ROWS = 100_000
TURNS = 3
NIGHTS = 365

SETTINGS = """\
[[evaluation]]
name = "bench"
reference = "files"
archive = "archive"
out = "board"
inbox = ["inbox"]
preset = "sws2013"
"""


def rows(data: Data) -> Iterator[Row]:
    """A night over scoring its run alone and over scoring all; all again from what is kept; the history of a year."""
    folder = data.folder / "nightly"
    n = data.rows(SYSTEMS)
    prepare(folder, n, ROWS)
    _spent(folder, "nightly", "nightly.toml")
    alone, printed, night, quiet = [], [], [], []
    arrived = [f"files/runs/new{number}.kwslist.xml" for number in range(TURNS)]
    for number, file in enumerate(arrived):
        alone.append(_spent(folder, "score", "files", file, "--preset", "sws2013", "--out", "alone"))
        printed.append(_spent(folder, "score", "files", file, "--preset", "sws2013"))
        copyfile(folder / file, folder / "inbox" / f"new{number}.kwslist.xml")
        night.append(_spent(folder, "nightly", "nightly.toml"))
        quiet.append(_spent(folder, "nightly", "nightly.toml"))
    ours = _middle(night)
    what = f"a night with one new run beside {n} of {ROWS:,} detections, all measures"
    for over, costs, most in (
        ("scoring it alone, from its file, with a report", alone, 1.5),
        ("scoring it alone, numbers printed only", printed, None),
        ("a night without news", quiet, None),
    ):
        theirs = _middle(costs)
        peaks = {"peak": ours.peak, "peak_of_theirs": theirs.peak}
        yield Row(what, ours.cpu, over, theirs.cpu, ours.cpu / theirs.cpu, most=most, **peaks)
    runs = [f"s{number}={arrived[number % TURNS]}" for number in range(n)]
    for how, command in (
        ("all, from the archive", ("archive", "--no-cache")),
        ("all, from the archive, with a report", ("archive", "--no-cache", "--out", "all")),
        ("all, from the files, with a report", ("files", *runs, "--preset", "sws2013", "--out", "all")),
    ):
        every = _spent(folder, "score", *command)
        peaks = {"peak": ours.peak, "peak_of_theirs": every.peak}
        yield Row(what, ours.cpu, f"scoring {how}", every.cpu, every.cpu / ours.cpu, least=30.0, **peaks)
    what = f"all measures of {n} systems of {ROWS:,} detections again"
    yield _within(f"{what}, from cached results", _spent(folder, "score", "archive"), 10)
    other = _spent(folder, "score", "archive", "--set", "operating_point.c_miss=50")
    yield _within(f"{what} with another C_miss, from cached statistics", other, 10)
    lengthen(folder)
    yield _within(f"swsdask history of {NIGHTS} nights", _spent(folder, "history", "archive"), 3)
    yield _within(f"the board of {NIGHTS} nights", cost(_pages, folder, repeats=1), 3)


def _within(what: str, ours: Cost, seconds: float) -> Row:
    return Row(what, ours.cpu, f"{seconds} s", seconds, ours.cpu / seconds, most=1.0, peak=ours.peak)


def _middle(costs: Sequence[Cost]) -> Cost:
    """The cost of median CPU time."""
    return sorted(costs, key=lambda each: each.cpu)[len(costs) // 2]


def prepare(folder: Path, n_systems: int, n_rows: int) -> None:
    """An archive of many systems, and the files of a few more."""
    shape = Shape(n_rows)
    blocks = shape.blocks()
    runs = {f"new{number}": detections_as_table(blocks.block(0, n_systems + number)) for number in range(TURNS)}
    tables = blocks.documents, blocks.queries, blocks.words, SEGMENTS.empty_table(), blocks.occurrences
    write(SimulatedEvaluation(*tables, runs), folder / "files")
    (folder / "inbox").mkdir()
    (folder / "nightly.toml").write_text(SETTINGS)
    sws.ingest(folder / "archive", folder / "files", preset="sws2013")
    sources = [SimulatedRun(shape, number) for number in range(n_systems)]
    write_runs(Storage(str(folder / "archive"), {}), None, sources, settings({}).evaluation)


def lengthen(folder: Path) -> None:
    """Nights with one run each, of a system that was there, until there are `NIGHTS`."""
    storage = Storage(str(folder / "archive"), {})
    past = read_history(storage)
    bare = past.current().drop_columns(HISTORY.names[:3])
    own: dict[str, list[dict[str, object]]] = {}
    for row in bare.to_pylist():
        own.setdefault(row["system"], []).append(row)
    systems = sorted(own)
    for number in range(len(past.nights) + 1, NIGHTS + 1):
        system = systems[number % len(systems)]
        move = Move(system, REPLACED, f"{system} (night 1)", "atwv", 0.5, 0.4, 0.01)
        day = date.fromordinal(date(2020, 1, 1).toordinal() + number).isoformat()
        record = Record(number, day, number, sws.__version__, stamps={f"/inbox/{system}": str(number)}, moves=(move,))
        commit_night(storage, record, own[system])


def _pages(folder: Path) -> Callable[[], int]:
    """Reads the history and makes the pages that follow from it."""
    (asked,) = load_nightly(folder / "nightly.toml").evaluation

    def step() -> int:
        page = board_page(asked, read_history(Storage(asked.archive)))
        return len(index(page)) + len(atom_feed(page)) + len(metrics(page, 0.0))

    return step


def _spent(folder: Path, *command: str) -> Cost:
    """The cost of a command, with the highest resident memory of its processes."""
    found = cost(_command, folder, command, repeats=1)
    return replace(found, peak=found.result)


def _command(folder: Path, command: Sequence[str]) -> Callable[[], int]:
    def step() -> int:
        run_with_all([SWSDASK, *command], cwd=folder)
        return peak_of_children()

    return step
