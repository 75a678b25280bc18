"""What writes an archive or results, struck at each of its operations on files, and what is found afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import swsdask as sws
from swsdask.archive.change import ChangePolicy
from swsdask.archive.discovery import ingest_discovery
from swsdask.archive.ingest import write_runs
from swsdask.archive.storage import Storage
from swsdask.archive.versions import table_name
from swsdask.model.errors import SwsdaskError
from swsdask.model.settings import EvaluationSettings
from swsdask.render.outputs import read_outputs
from tests.archives import source, without_hashes
from tests.discovery_worlds import random_world
from tests.faults.operations import ERRORS, attempt
from tests.faults.samples import (
    COMMITTED,
    HUNG,
    IDENTICAL,
    LAYOUT,
    LEFT,
    MEASURES,
    REFUSED,
    SILENT,
    UNCLEAR,
    discovery,
    evaluation,
    in_parts,
    rows,
    text,
)
from tests.results import three_systems


@dataclass(frozen=True)
class Work:
    """Writing in a folder.

    `prepare` makes the folder, `work` writes, `state` returns what a reader finds (an error of it names a file),
    `clean` does what the next writer does, after which `files` are all that may be there. `may_refuse`: where the
    work is cut short, a reader may find one clear error until it is done again.
    """

    name: str
    prepare: Callable[[Path], None]
    work: Callable[[Path], object]
    state: Callable[[Path], str]
    clean: Callable[[Path], object]
    may_refuse: bool = False


def works(samples: Path) -> Iterator[Work]:
    """Everything that writes: ingest, cached results, verify --repair and --adopt, vacuum, expire, `--out`."""
    sample = evaluation(samples / "sample")
    corpus = discovery(samples / "corpus")
    third = samples / "third"
    third.mkdir()
    random_world(5).write(third)

    def copied(folder: Path) -> None:
        shutil.copytree(sample.folder, folder, dirs_exist_ok=True)

    def ingest(folder: Path) -> object:
        return write_runs(Storage(str(folder)), None, [source(rows(300, 5), "c")], EvaluationSettings(), layout=LAYOUT)

    def beside(folder: Path) -> object:
        with in_parts:
            return ingest(folder)

    def replace(folder: Path) -> object:
        runs = [source(rows(300, 5), "a")]
        with in_parts:
            return write_runs(
                Storage(str(folder)), None, runs, EvaluationSettings(), layout=LAYOUT, policy=ChangePolicy(replace=True)
            )

    def aged(folder: Path) -> None:
        copied(folder)
        replace(folder)
        ingest(folder)

    def damaged(folder: Path) -> None:
        copied(folder)
        for file in [*sorted(folder.glob("*/*/*.parquet"))[:4], *sorted(folder.glob("tables/*.parquet"))[-4:]]:
            file.write_bytes(b"x")

    def earlier(folder: Path) -> None:
        copied(folder)
        without_hashes(folder)

    def orphaned(folder: Path) -> None:
        copied(folder)
        for number in range(3):
            Storage(str(folder)).write(table_name(f"old{number}", "0" * 16), b"x")

    def found(folder: Path) -> object:
        return ingest_discovery(str(folder), None, {"three": str(third / "w.classes")})

    def cached(folder: Path) -> str:
        return text(sws.score(folder, MEASURES))

    vacuum, expire = partial(sws.vacuum, older_than_s=-10), partial(sws.expire, keep=1)
    yield Work("ingest", copied, ingest, sample.score, vacuum)
    yield Work("ingest beside older parts of the table", copied, beside, sample.score, vacuum)
    yield Work("ingest --replace", copied, replace, sample.score, vacuum)
    yield Work(
        "ingest of discovery", partial(shutil.copytree, corpus.folder, dirs_exist_ok=True), found, corpus.score, vacuum
    )
    yield Work("caching results", copied, cached, cached, vacuum)
    repair = partial(sws.verify, repair=sample.folder)
    yield Work("verify --repair", damaged, repair, sample.score, lambda folder: (repair(folder), vacuum(folder)), True)
    yield Work("verify --adopt", earlier, partial(sws.verify, adopt=True), sample.score, vacuum)
    yield Work("vacuum", orphaned, vacuum, sample.score, vacuum)
    yield Work("expire", aged, expire, sample.score, expire)
    old, new = three_systems(), three_systems(("good", "other", "weak"))
    sws.write(old, samples / "results" / "out")

    def write(folder: Path) -> object:
        return sws.write(new, folder / "out")

    yield Work(
        "--out",
        partial(shutil.copytree, samples / "results", dirs_exist_ok=True),
        write,
        _results,
        write,
        may_refuse=True,
    )


def _results(folder: Path) -> str:
    return str(read_outputs(folder / "out").table.to_pylist())


def strikes(work: Work, how: str, every: int = 1) -> Iterator[tuple[int, str, str]]:
    """Strike the work at every operation, or every second, third, ...: the operation, what became of it, a message."""
    _known.clear()
    with tempfile.TemporaryDirectory(prefix="swsdask-faults-") as place:
        before, after = Path(place, "before"), Path(place, "after")
        for folder in (before, after):
            folder.mkdir()
            work.prepare(folder)
        count, error = attempt(lambda: work.work(after), after, "kill", None)
        assert count, error
        done = _state(work, after)
        states = {_state(work, before), done}
        allowed = _files(before) | _files(after)
        for number in range(0, count, every):
            folder = Path(place, str(number))
            folder.mkdir()
            work.prepare(folder)
            yield (number, *_struck(work, folder, how, number, states, done, len(allowed)))
            shutil.rmtree(folder)


def _struck(work: Work, folder: Path, how: str, number: int, states: set[str], done: str, most: int) -> tuple[str, str]:
    try:
        _, error = attempt(lambda: work.work(folder), folder, how, number)
    except TimeoutError as slow:
        return HUNG, str(slow)
    if error and not error.startswith(_CLEAR):
        return UNCLEAR, error
    found = _state(work, folder)
    if found not in states and not (work.may_refuse and found.startswith("refused")):
        return (UNCLEAR if found.startswith("refused") else SILENT), found[:300]
    if error and found == done and len(states) > 1 and "committed" not in error:
        return COMMITTED, error
    try:
        work.clean(folder)
    except SwsdaskError as cleaning:
        return UNCLEAR, f"cleaning: {cleaning}"
    if _state(work, folder) not in states:
        return SILENT, "after cleaning"
    left = [name for name in _files(folder) if ".swsdask-" in name or ".part" in name or "temporary" in name]
    if left or len(_files(folder)) > most:
        return LEFT, ", ".join(left)
    return (REFUSED if found.startswith("refused") else IDENTICAL), error


_CLEAR = ("ArchiveError", "InputError", "OSError", "ExecutionError")
"""Errors that the command line prints as one line."""


_known: dict[frozenset[tuple[str, bytes]], str] = {}
"""What a reader found in folders of the present work, by all that was in them."""


def _state(work: Work, folder: Path) -> str:
    content = frozenset((name, (folder / name).read_bytes()) for name in _files(folder))
    if content not in _known:
        try:
            _known[content] = work.state(folder)
        except SwsdaskError as error:
            _known[content] = f"refused: {error}".replace(str(folder), "")
    return _known[content]


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


HOWS = {
    "kills": ("kill",),
    "injected errors (ENOSPC, EIO, EDQUOT)": tuple(str(number) for number in ERRORS),
    "power cuts": ("power",),
}
"""The ways to strike, by what the table calls them."""


SHARES = 3
"""Into so many shares works are divided, each for a process of its own."""


def campaign(every: int, share: int) -> list[tuple[str, Counter[str]]]:
    """Interrupt a share of what writes, at every so many operations of it; how many ended in which way."""
    lines = []
    with tempfile.TemporaryDirectory(prefix="swsdask-faults-") as folder:
        for work in islice(works(Path(folder)), share, None, SHARES):
            for what, hows in HOWS.items():
                found: Counter[str] = Counter()
                for how in hows:
                    for number, kind, message in strikes(work, how, every):
                        found[kind] += 1
                        if kind not in (IDENTICAL, REFUSED):
                            print(f"{what} of {work.name}, {how} at operation {number}: {kind}: {message}", flush=True)
                print(f"{what} of {work.name}: {dict(found)}", flush=True)
                lines.append((f"{what} of {work.name}", found))
    return lines
