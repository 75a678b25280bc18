"""Try damage, hostile archives, interruptions, races and lost processes; write the table of what became of them."""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import date
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from tests.faults import damage, hostile, interrupted, nights, processes, races, samples

RESULTS = Path(__file__).parents[2] / "docs" / "reliability.md"
SECONDS = 60.0
IN_MEMORY = "/dev/shm"
"""Where files are written if it is there. What is lost without power is simulated: to wait for a disk finds nothing."""
LAST_MINUTES = 2
"""How long the strikes that are begun last may take."""
PREPARED_S = 300.0
"""What the first attempt in a process, which makes what is damaged, may take more on a busy machine."""
KINDS = (
    samples.IDENTICAL,
    samples.REFUSED,
    samples.SILENT,
    samples.UNCLEAR,
    samples.CRASHED,
    samples.HUNG,
    samples.LEFT,
    samples.ORPHANED,
    samples.COMMITTED,
)

INTRODUCTION = """\
# Reliability

This page lists what `make faults` tried and how each attempt ended. The same numbers: equal to the last bit. An error:
one line that names the file or the cluster, and no numbers. Silent: other numbers without an error. Unclear: a
traceback, or an error that does not name the file. Crashed: a segmentation fault or similar. Hung: not finished within
a minute, with worker processes within seven.

**Damage.** One bit of one file is flipped, for every kind of file. Hostile archives are readable Parquet and JSON with
valid hashes and contents that no archive can have.

**Interruptions.** Writing is interrupted at each of its operations on files (opening, writing, syncing, moving,
linking, removing, making folders), and the data being written are cut in half. A reader must find either the old or the
new content. `--out` and `verify --repair` may also leave one error until they are run again. Left: files that neither
the next writer nor `swsdask vacuum` removed. Unreported: an error that did not say that a commit had happened. A power
cut is simulated: where a folder was not synced, a changed name is randomly the old or the new one; where a file was not
synced, its content is randomly lost.

**Races.** Five processes ingest, two of them contradictory data for the same system; others replace a system, vacuum,
expire and score. Everything that a process reported as written must be there, with the same numbers as without the
other processes.

**Nights.** `swsdask nightly` is killed at every operation and run again, and run by two processes at once: history,
board, archive and cached results must equal those of an undisturbed night. Bits are flipped in the files that a killed
night left.

**Processes.** `score`, of an archive and of files, and `ingest` run with two workers, which the command starts or a
running scheduler has. In one phase (start, reading, systems, each round, numbers, alignment, writing) a client,
scheduler, nanny or worker gets SIGKILL, SIGSTOP or SIGTERM; a client also SIGINT or SIGHUP. Phases are lengthened so
that signals arrive in them. Every one of the {strikes} combinations of process, signal and phase is tried once, at a
moment drawn from the seed. The table gives the total where some were not tried, because time was too short or because a
phase ended three times before the signal. A client that was killed or terminated counts as an error. Orphans: processes
that ran for a minute after the command that started them had ended.
"""

Attempt = Callable[[str, int], tuple[str, str]]


def campaign(what: str, attempt: Attempt, numbers: Sequence[int], seconds: float = SECONDS) -> Counter[str]:
    """Make attempts in a process of their own, in a new one where it dies; how many ended in which way."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="swsdask-faults-") as folder:
        pool = None
        for number in numbers:
            limit_s = seconds
            if pool is None:
                pool, limit_s = ProcessPoolExecutor(1, mp_context=get_context("spawn")), seconds + PREPARED_S
            try:
                kind, message = pool.submit(attempt, folder, number).result(limit_s)
            except (BrokenProcessPool, TimeoutError) as error:
                kind, message = (samples.CRASHED if isinstance(error, BrokenProcessPool) else samples.HUNG), ""
                for process in list((pool._processes or {}).values()):
                    process.kill()
                pool.shutdown(wait=False)
                pool = None
            found[kind] += 1
            if kind not in (samples.IDENTICAL, samples.REFUSED):
                print(f"{what}, number {number}: {kind}: {message}", flush=True)
        if pool is not None:
            pool.shutdown()
    print(f"{what}: {dict(found)}", flush=True)
    return found


Found = TypeVar("Found")


def apart(work: Callable[[], Found]) -> Found:
    """Do some work in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work).result()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, help="repeats a run; random if none is given")
    parser.add_argument("--flips", type=int, default=2000, help="flipped bits")
    parser.add_argument("--every", type=int, default=1, help="every so many operations of each work are interrupted")
    parser.add_argument("--kills", type=int, help="killed nights; one at each operation if no number is given")
    parser.add_argument("--races", type=int, default=50, help="races of writers, cleaners and readers")
    parser.add_argument("--strikes", type=int, default=len(processes.COMBINATIONS), help="struck processes")
    parser.add_argument("--minutes", type=float, default=20, help="strikes that might end later are not begun")
    parser.add_argument("--short", action="store_true", help="some minutes with a fixed seed; writes no table")
    asked = parser.parse_args()
    if asked.short:
        asked.seed, asked.flips, asked.every, asked.kills, asked.races, asked.strikes = 1, 120, 12, 4, 3, 3
    seed = random.SystemRandom().randrange(2**31) if asked.seed is None else asked.seed
    print(f"make faults: seed {seed}", flush=True)
    if os.access(IN_MEMORY, os.W_OK):
        os.environ["TMPDIR"] = IN_MEMORY
    begun = time.monotonic()
    part, first_strike = -(-asked.flips // 12), seed
    every_hostile = range(0, len(list(hostile.cases())), 8 if asked.short else 1)
    numbers = range(first_strike, first_strike + asked.strikes)
    with ThreadPoolExecutor(2 + interrupted.SHARES) as beside:
        # A command with struck processes mostly waits, until patience ends, and a disk for what is synced.
        limit_s = 60 * (asked.minutes - LAST_MINUTES)
        struck = beside.submit(apart, partial(processes.attempts, numbers, limit_s))
        written = [
            beside.submit(apart, partial(interrupted.campaign, asked.every, share))
            for share in range(interrupted.SHARES)
        ]
        disturbed = beside.submit(apart, partial(nights.campaign, asked.kills, max(1, asked.races // 5), seed))
        flips = [
            (f"bits flipped in {what}", campaign(f"flips in {what}", flip, range(seed, seed + share * part)))
            for what, flip, share in (
                ("archives of detections", damage.flip_evaluation, 4),
                ("archives of term discovery", damage.flip_discovery, 4),
                ("archives with cached results", damage.flip_cached, 1),
                ("results", damage.flip_results, 2),
                ("what killed nights left", damage.flip_night, 1),
            )
        ]
        lines = [
            *flips,
            ("hostile archives", campaign("hostile", damage.try_hostile, every_hostile)),
            (
                "races of five writers, a replacement, vacuum, expire and a reader",
                campaign("races", races.attempt, range(seed, seed + asked.races), 4 * races.LIMIT_S),
            ),
            *(line for share in written for line in share.result()),
            ("nights killed, and raced", disturbed.result()),
            ("clients, schedulers, nannies and workers that got a signal", struck.result()),
        ]
    tried = {what: sum(found[kind] for kind in KINDS) for what, found in lines}
    failed = any(found[kind] for _, found in lines for kind in KINDS[2:])
    not_tried = {what: found[samples.MISSED] + found[samples.LATE] for what, found in lines}
    failed = failed or any(number > tried[what] for what, number in not_tried.items())
    if asked.short:
        sys.exit(failed)
    table = [
        "| what | tried | the same numbers | an error | silent | unclear | crashed | hung | left | orphans "
        "| unreported |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {what} | {tried[what]:,}"
            + (f" of {tried[what] + not_tried[what]:,}" if not_tried[what] else "")
            + "".join(f" | {found[kind]:,}" for kind in KINDS)
            + " |"
            for what, found in lines
        ),
    ]
    RESULTS.parent.mkdir(exist_ok=True)
    introduction = INTRODUCTION.format(strikes=len(processes.COMBINATIONS))
    minutes, used = (time.monotonic() - begun) / 60, resource.getrusage(resource.RUSAGE_CHILDREN)
    work = f"{minutes:.0f} minutes, {(used.ru_utime + used.ru_stime) / 60:.0f} of CPU time, on {os.cpu_count()} cores"
    end = f"Seed {seed}, {date.today().isoformat()}; {work}."
    _, heading, by_hand = RESULTS.read_text(encoding="utf-8").partition("\n## ")  # It stays.
    RESULTS.write_text("\n".join([introduction, *table, "", end, ""]) + heading + by_hand, encoding="utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
