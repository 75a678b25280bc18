"""Try damage, hostile archives, interruptions, races and lost processes; write the table of what became of them."""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import date
from multiprocessing import get_context
from pathlib import Path

from tests.faults import hostile, interrupted, processes, races, samples
from tests.faults.damage import flip_discovery, flip_evaluation, flip_kept, flip_results, try_hostile

RESULTS = Path(__file__).parents[2] / "docs" / "reliability.md"
SECONDS = 60.0
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

What `make faults` tried, and how each attempt ended. The same numbers: to the last bit. An error: one line that names
the file or the cluster, and no numbers. Silent: other numbers without an error. Unclear: a traceback, or an error that
does not name the file. Crashed: a segmentation fault or a similar end. Hung: no end within a minute, with worker
processes within seven.

**Damage.** One bit of one file is flipped, of every kind of file. Hostile archives are readable Parquet and JSON with
valid hashes and contents that no archive can have.

**Interruptions.** Writing is interrupted at its operations on files (opening, writing, syncing, moving, linking,
removing, making folders), what was being written cut in half. Of more than {operations} operations every second, third,
... is taken, other ones with the next seed. A reader must find what was there before or what was to be written. `--out`
and `verify --repair` may also leave one error, until they are run again. Left: files that neither the next writer nor
`swsdask vacuum` removed. Untold: an error that did not say that a commit had happened. After a power cut a changed
name, unless its folder was synced, is the old or the new one, and a file's content, unless synced, is lost, by chance.

**Races.** Five processes ingest, two of them contradicting systems of one name; others replace a system, vacuum,
expire and score. What a process reported as written must be there, with the numbers that it has alone.

**Processes.** `score`, of an archive and of files, and `ingest` run with two workers, started by the command or of a
running scheduler. In a phase of it (start, reading, systems, each round, numbers, alignment, writing) a client,
scheduler, nanny or worker gets SIGKILL, SIGSTOP, SIGTERM, or as a client SIGINT or SIGHUP. Phases are lengthened, so
that they are met. One run sends every signal to every kind of process, and meets every phase; which signal in which
phase changes with the seed: {rounds} seeds in a row try all {strikes} combinations. A client that was killed or told to
end counts as an error. Orphans: processes that outlived by a minute the command that started them. A strike whose phase
ended before it came is not counted.
"""

Attempt = Callable[[str, int], tuple[str, str]]


def campaign(what: str, attempt: Attempt, numbers: Sequence[int], seconds: float = SECONDS) -> Counter[str]:
    """Make attempts in a process of their own, in a new one where it dies; how many ended in which way."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="swsdask-faults-") as folder:
        pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        for number in numbers:
            try:
                kind, message = pool.submit(attempt, folder, number).result(seconds)
            except (BrokenProcessPool, TimeoutError) as error:
                kind, message = (samples.CRASHED if isinstance(error, BrokenProcessPool) else samples.HUNG), ""
                for process in list((pool._processes or {}).values()):
                    process.kill()
                pool.shutdown(wait=False)
                pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
            found[kind] += 1
            if kind not in (samples.IDENTICAL, samples.REFUSED):
                print(f"{what}, number {number}: {kind}: {message}", flush=True)
        pool.shutdown()
    print(f"{what}: {dict(found)}", flush=True)
    return found


def interruptions(most: int, seed: int) -> Iterator[tuple[str, Counter[str]]]:
    """Interrupt everything that writes, at `most` operations each; how many ended in which way."""
    with tempfile.TemporaryDirectory(prefix="swsdask-faults-") as folder:
        for work in interrupted.works(Path(folder)):
            for what, hows in interrupted.HOWS.items():
                found: Counter[str] = Counter()
                for first, how in enumerate(hows, seed):
                    for number, kind, message in interrupted.strikes(work, how, most, first):
                        found[kind] += 1
                        if kind not in (samples.IDENTICAL, samples.REFUSED):
                            print(f"{what} of {work.name}, {how} at operation {number}: {kind}: {message}", flush=True)
                print(f"{what} of {work.name}: {dict(found)}", flush=True)
                yield f"{what} of {work.name}", found


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, help="repeats a run; random if none is given")
    parser.add_argument("--flips", type=int, default=2000, help="flipped bits")
    parser.add_argument("--operations", type=int, default=48, help="of each work at most so many are interrupted")
    parser.add_argument("--races", type=int, default=50, help="races of writers, cleaners and readers")
    parser.add_argument("--strikes", type=int, default=len(processes.KINDS), help="struck processes")
    parser.add_argument("--short", action="store_true", help="some minutes with a fixed seed; writes no table")
    asked = parser.parse_args()
    if asked.short:
        asked.seed, asked.flips, asked.operations, asked.races, asked.strikes = 1, 100, 4, 3, 3
    seed = random.SystemRandom().randrange(2**31) if asked.seed is None else asked.seed
    print(f"make faults: seed {seed}", flush=True)
    begun = time.monotonic()
    part = asked.flips // 10
    first_strike = seed * len(processes.KINDS)
    n_hostile = len(list(hostile.cases()))
    with ThreadPoolExecutor(1) as beside:
        # A command with struck processes mostly waits, until patience ends: so all the rest runs beside it.
        struck = beside.submit(
            campaign,
            "processes",
            processes.attempt,
            range(first_strike, first_strike + asked.strikes),
            processes.LIMIT_S + 3 * processes.GONE_S,
        )
        lines = [
            (
                "bits flipped in archives of detections",
                campaign("flips", flip_evaluation, range(seed, seed + 4 * part)),
            ),
            (
                "bits flipped in archives of term discovery",
                campaign("flips of discovery", flip_discovery, range(seed, seed + 4 * part)),
            ),
            (
                "bits flipped in archives with kept results",
                campaign("flips of kept", flip_kept, range(seed, seed + part)),
            ),
            ("bits flipped in results", campaign("flips of results", flip_results, range(seed, seed + part))),
            ("hostile archives", campaign("hostile", try_hostile, range(0, n_hostile, 8 if asked.short else 1))),
            *interruptions(asked.operations, seed),
            (
                "races of five writers, a replacement, vacuum, expire and a reader",
                campaign("races", races.attempt, range(seed, seed + asked.races), 4 * races.LIMIT_S),
            ),
            ("clients, schedulers, nannies and workers killed, frozen or told to end", struck.result()),
        ]
    tried = {what: sum(found[kind] for kind in KINDS) for what, found in lines}
    failed = any(found[kind] for _, found in lines for kind in KINDS[2:])
    failed = failed or any(found[samples.MISSED] > tried[what] for what, found in lines)
    if asked.short:
        sys.exit(failed)
    table = [
        "| what | tried | the same numbers | an error | silent | unclear | crashed | hung | left | orphans | untold |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(
            f"| {what} | {' | '.join(f'{count:,}' for count in (tried[what], *(found[kind] for kind in KINDS)))} |"
            for what, found in lines
        ),
    ]
    RESULTS.parent.mkdir(exist_ok=True)
    introduction = INTRODUCTION.format(
        operations=asked.operations, rounds=processes.ROUNDS, strikes=processes.COMBINATIONS
    )
    minutes = (time.monotonic() - begun) / 60
    end = f"Seed {seed}, {date.today().isoformat()}; {minutes:.0f} minutes on {os.cpu_count()} cores."
    RESULTS.write_text("\n".join([introduction, *table, "", end, ""]), encoding="utf-8")
    sys.exit(failed)


if __name__ == "__main__":
    main()
