"""Nights that are killed, and nights of two hosts: `python -m tests.faults.nights KILLS RACES [URL] [--seed SEED]`.

A night is done in a process of its own, which kills itself (SIGKILL) at one of the operations on files, on a local disk
now and then in the middle of a write. After a second run, history, board, what is kept and the runs of the archive must
be as those of a night that nothing disturbed. Archive and board are in a temporary folder, or below a URL.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import date
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn

import fsspec
from fsspec.config import set_conf_env

from swsdask.archive import local
from swsdask.archive.cache import SOURCES
from swsdask.archive.storage import Storage
from swsdask.archive.store import open_archive
from swsdask.execution import fork_server
from swsdask.nightly.lease import BusyError
from swsdask.nightly.settings import NightlyEvaluation, load_nightly
from swsdask.nightly.steps import run_night
from swsdask.render.nightly import DURATION
from swsdask.simulate.evaluation import NIGHTLY_SETTINGS, nights, simulate, write
from tests.faults.samples import IDENTICAL, SILENT

ON_DISK = ("write_whole", "link_new", "replace", "sync", "remove")
IN_STORE = ("write_temporary", "write_all", "write_new", "replace", "remove")

WORKED, NOTHING, BUSY, FAILED = range(4)

_PROCESSES = get_context("forkserver")

SECOND = date(2020, 1, 2)
"""The date of the night that is disturbed."""


@dataclass(frozen=True)
class Place:
    """Where archive and board are: below a URL, or in a folder."""

    url: str

    @property
    def operations(self) -> tuple[Any, Sequence[str]]:
        """What writes there: a module or class, and the names of its functions."""
        return (Storage, IN_STORE) if "://" in self.url else (local, ON_DISK)

    def contents(self) -> dict[str, bytes]:
        """Every file with its bytes."""
        filesystem, root = fsspec.core.url_to_fs(self.url)
        filesystem.invalidate_cache()
        names = filesystem.find(root) if filesystem.exists(root) else []
        return {name.removeprefix(root).lstrip("/"): filesystem.cat_file(name) for name in names}

    def become(self, contents: Mapping[str, bytes]) -> None:
        """Have these files alone."""
        filesystem, root = fsspec.core.url_to_fs(self.url)
        filesystem.invalidate_cache()
        if filesystem.exists(root):
            filesystem.rm(root, recursive=True)
        for name, content in contents.items():
            filesystem.makedirs(f"{root}/{name}".rsplit("/", 1)[0], exist_ok=True)
            filesystem.pipe_file(f"{root}/{name}", content)

    def state(self) -> dict[str, Any]:
        """Everything that must not depend on what disturbed a night; an unfinished lease is removed by `vacuum`.

        What is known of sources depends on how long ago they were written, and metrics say how long a night took.
        """
        archive = open_archive(f"{self.url}/archive")
        parts = ("archive/history/", "archive/kept/", "archive/nightly/", "board/")
        named = {name: content for name, content in self.contents().items() if name.startswith(parts)}
        whole = {
            name: content
            for name, content in named.items()
            if not re.search(rf"nightly/.*\.part$|{re.escape(SOURCES)}", name)
        }
        whole["board/metrics.prom"] = timeless(whole["board/metrics.prom"])
        return {"runs": {run.system: run for run in archive.runs}, "version": archive.version, **whole}


def timeless(metrics: bytes) -> bytes:
    """The lines of metrics but for the duration of a night."""
    return b"\n".join(line for line in metrics.split(b"\n") if not line.startswith(f"swsdask_{DURATION}".encode()))


def prepare(folder: Path, place: Place) -> None:
    """An evaluation in its second night, nothing of which is done; the first is."""
    write(simulate(1, hours=0.3, n_queries=8), folder / "files")
    settings = NIGHTLY_SETTINGS.replace('"archive"', f'"{place.url}/archive"').replace(
        '"board"', f'"{place.url}/board"'
    )
    (folder / "nightly.toml").write_text(settings)
    (_, first), (_, second), (_, third) = nights(folder / "files" / "runs", folder / "inbox")
    first()
    assert night(folder, date(2020, 1, 1)) == WORKED
    second()
    third()


def asked_of(folder: Path) -> NightlyEvaluation:
    """The evaluation that a folder is prepared for."""
    (asked,) = load_nightly(folder / "nightly.toml").evaluation
    return asked


def night(folder: Path, today: date = SECOND) -> int:
    """Do a night in this process."""
    asked = asked_of(folder)
    try:
        return NOTHING if run_night(asked, today).record is None else WORKED
    except BusyError:
        return BUSY
    except BaseException:
        traceback.print_exc()
        return FAILED


@contextmanager
def killed_at(place: Place, operation: int) -> Iterator[list[str]]:
    """Kill this process at the operation of that number, before it or, where it writes, in the middle."""
    done: list[str] = []
    holder, names = place.operations

    def wrap(name: str) -> Callable[..., Any]:
        inner = getattr(holder, name)

        def wrapped(*arguments: Any, **more: Any) -> Any:
            done.append(name)
            if len(done) - 1 == operation:
                if name == "write_whole" and operation % 2:
                    path, content = arguments
                    inner(path, bytes(content)[: len(content) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return inner(*arguments, **more)

        return wrapped

    before = {name: getattr(holder, name) for name in names}
    for name in names:
        setattr(holder, name, wrap(name))
    try:
        yield done
    finally:
        for name, function in before.items():
            setattr(holder, name, function)


def apart(folder: Path, place: Place, operation: int | None = None) -> BaseProcess:
    """Begin a night in a process of its own, which ends with its code, or is killed at an operation.

    It is not forked from this process, which may have connections to a store: two processes would read from them.
    """
    fork_server.start()
    process = _PROCESSES.Process(target=_night_apart, args=(folder, place, operation, dict(os.environ)))
    process.start()
    return process


def _night_apart(folder: Path, place: Place, operation: int | None, environment: Mapping[str, str]) -> NoReturn:
    os.environ.update(environment)  # The fork server, and what it imported, has that of its start: of another store.
    set_conf_env(fsspec.config.conf)
    with nullcontext() if operation is None else killed_at(place, operation):
        sys.exit(night(folder))


def ended(process: BaseProcess) -> int | None:
    """The exit code of a process; minus the number of the signal that killed it."""
    process.join()
    return process.exitcode


@dataclass(frozen=True)
class Cut:
    """What a night left that was killed halfway, with its lease, and the state after another one."""

    asked: NightlyEvaluation
    place: Place
    left: Mapping[str, bytes]
    expected: dict[str, Any]


def cut(folder: Path, place: Place) -> Cut:
    """Prepare an evaluation, and kill its second night halfway."""
    prepare(folder, place)
    pristine = place.contents()
    with killed_at(place, -1) as operations:
        assert night(folder) == WORKED
    expected = place.state()
    place.become(pristine)
    assert ended(apart(folder, place, len(operations) // 2)) == -signal.SIGKILL
    return Cut(asked_of(folder), place, place.contents(), expected)


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def main(kills: int | None, races: int, url: str | None = None, seed: int = 0) -> tuple[int, list[str]]:
    """How many nights were disturbed, and what went wrong, in words. The same seed kills at the same operations.

    Without a number of `kills` one at every operation.
    """
    print(f"seed {seed}", flush=True)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="nights-") as scratch:
        folder = Path(scratch)
        place = Place(str(folder / "there") if url is None else url)
        prepare(folder, place)
        pristine = place.contents()
        with killed_at(place, -1) as operations:
            assert night(folder) == WORKED
        expected = place.state()
        assert night(folder) == NOTHING
        assert place.state() == expected, "a night without news changed something"
        n_operations = len(operations)
        kills = n_operations if kills is None else kills

        chance = random.Random(seed)
        chosen = [*range(n_operations)] if kills >= n_operations else sorted(chance.sample(range(n_operations), kills))
        for operation in [*chosen, *(chance.randrange(n_operations) for _ in range(kills - len(chosen)))]:
            place.become(pristine)
            first = ended(apart(folder, place, operation))
            second = ended(apart(folder, place))
            found = differing(expected, place.state())
            if first != -signal.SIGKILL or second not in (WORKED, NOTHING) or found:
                wrong.append(f"killed at {operation} ({operations[operation]}): {first}, then {second}: {found}")
        for race in range(races):
            place.become(pristine)
            codes = sorted(ended(process) or WORKED for process in [apart(folder, place) for _ in range(2)])
            found = differing(expected, place.state())
            if codes not in ([WORKED, BUSY], [WORKED, NOTHING]) or found:
                wrong.append(f"race {race}: {codes}: {found}")
        print(f"{n_operations} operations in a night; {kills} kills, {races} races: {len(wrong)} wrong")
    return kills + races, wrong


def campaign(kills: int | None, races: int, seed: int) -> Counter[str]:
    """Kill nights at their operations, and race them; how many ended in which way."""
    tried, wrong = main(kills, races, seed=seed)
    print("\n".join(wrong), end="", flush=True)
    return Counter({IDENTICAL: tried - len(wrong), SILENT: len(wrong)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.faults.nights", description=__doc__)
    parser.add_argument("kills", type=int)
    parser.add_argument("races", type=int)
    parser.add_argument("url", nargs="?")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    _, faults = main(**vars(parser.parse_args()))
    print("\n".join(faults))
    sys.exit(bool(faults))
