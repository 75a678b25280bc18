"""Nights that are killed, and nights of two hosts: `python -m tests.faults.nights KILLS RACES`.

A night is done in a process of its own, which kills itself (SIGKILL) at one of the operations on files, now and then in
the middle of a write. After a second run, history, board, kept statistics and the runs of the archive must be as those
of a night that nothing disturbed.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

from swsdask.archive import local
from swsdask.archive.store import open_archive
from swsdask.nightly.lease import BusyError
from swsdask.nightly.settings import load_nightly
from swsdask.nightly.steps import run_night
from swsdask.simulate.evaluation import simulate
from swsdask.simulate.files import write
from swsdask.simulate.nights import SETTINGS, nights

OPERATIONS = ("write_whole", "link_new", "replace", "sync", "remove")

WORKED, NOTHING, BUSY, FAILED = range(4)


def prepare(folder: Path) -> None:
    """An evaluation in its second night, nothing of which is done; the first is."""
    write(simulate(1, hours=0.3, n_queries=8), folder / "files")
    (folder / "nightly.toml").write_text(SETTINGS)
    (_, first), (_, second), (_, third) = nights(folder / "files" / "runs", folder / "inbox")
    first()
    assert night(folder, date(2020, 1, 1)) == WORKED
    second()
    third()


def night(folder: Path, today: date = date(2020, 1, 2)) -> int:
    """Do a night in this process."""
    (asked,) = load_nightly(folder / "nightly.toml").evaluation
    try:
        return NOTHING if run_night(asked, today).record is None else WORKED
    except BusyError:
        return BUSY
    except BaseException:
        traceback.print_exc()
        return FAILED


def state(folder: Path) -> dict[str, Any]:
    """Everything that must not depend on what disturbed a night."""
    archive = open_archive(str(folder / "archive"))
    files = [path for part in ("archive/history", "archive/kept", "board") for path in (folder / part).rglob("*")]
    whole = {str(path.relative_to(folder)): path.read_bytes() for path in files if path.is_file()}
    leases = [path.name for path in (folder / "archive/nightly").glob("*.json")]
    return {"runs": {run.system: run for run in archive.runs}, "version": archive.version, "leases": leases, **whole}


@contextmanager
def killed_at(operation: int) -> Iterator[list[str]]:
    """Kill this process at the operation of that number, before it or, where it writes, in the middle."""
    done: list[str] = []

    def wrap(name: str) -> Callable[..., Any]:
        inner = getattr(local, name)

        def wrapped(*arguments: Any) -> Any:
            done.append(name)
            if len(done) - 1 == operation:
                if name == "write_whole" and operation % 2:
                    path, content = arguments
                    inner(path, bytes(content)[: len(content) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return inner(*arguments)

        return wrapped

    before = {name: getattr(local, name) for name in OPERATIONS}
    for name in OPERATIONS:
        setattr(local, name, wrap(name))
    try:
        yield done
    finally:
        for name, function in before.items():
            setattr(local, name, function)


def apart(work: Callable[[], int]) -> int:
    """Begin to do something in a process of its own, whose exit code it is."""
    process = os.fork()
    if process == 0:
        code = FAILED
        try:
            code = work()
        finally:
            os._exit(code)
    return process


def ended(process: int) -> int:
    """The exit code of a process; minus the number of the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def differing(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def main(kills: int, races: int) -> list[str]:
    """What went wrong, in words."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="nights-") as scratch:
        folder, pristine = Path(scratch) / "evaluation", Path(scratch) / "pristine"
        prepare(folder)
        shutil.copytree(folder, pristine)

        def renew() -> None:
            shutil.rmtree(folder)
            shutil.copytree(pristine, folder)

        with killed_at(-1) as operations:
            assert night(folder) == WORKED
        expected = state(folder)
        assert night(folder) == NOTHING
        assert state(folder) == expected, "a night without news changed something"
        n_operations = len(operations)

        def kill(operation: int) -> int:
            with killed_at(operation):
                return night(folder)

        chance = random.Random(kills)
        chosen = [*range(n_operations)] if kills >= n_operations else sorted(chance.sample(range(n_operations), kills))
        for operation in [*chosen, *(chance.randrange(n_operations) for _ in range(kills - len(chosen)))]:
            renew()
            first = ended(apart(lambda number=operation: kill(number)))
            second = ended(apart(lambda: night(folder)))
            found = differing(expected, state(folder))
            if first != -signal.SIGKILL or second not in (WORKED, NOTHING) or found:
                wrong.append(f"killed at {operation} ({operations[operation]}): {first}, then {second}: {found}")
        for race in range(races):
            renew()
            codes = sorted(ended(process) for process in [apart(lambda: night(folder)) for _ in range(2)])
            found = differing(expected, state(folder))
            if codes not in ([WORKED, BUSY], [WORKED, NOTHING]) or found:
                wrong.append(f"race {race}: {codes}: {found}")
        print(f"{n_operations} operations in a night; {kills} kills, {races} races: {len(wrong)} wrong")
    return wrong


if __name__ == "__main__":
    faults = main(*map(int, sys.argv[1:]))
    print("\n".join(faults))
    sys.exit(bool(faults))
