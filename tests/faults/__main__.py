"""Try damage and hostile archives on scoring, each attempt in a process that may die; write the table of results."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path

from tests.faults import hostile, samples
from tests.faults.attempts import flip_discovery, flip_evaluation, try_hostile

RESULTS = Path(__file__).parents[2] / "docs" / "reliability.md"
SECONDS = 60
CRASHED, HUNG = "crashed", "hung"
KINDS = (samples.IDENTICAL, samples.REFUSED, samples.SILENT, samples.UNCLEAR, CRASHED, HUNG)

INTRODUCTION = """\
# Reliability

What `make faults` tried, and what became of it. Survived: the numbers were the same to the last bit, or an error named
the file and nothing was printed. Silent: other numbers without an error. Crashed: a segmentation fault or a like end.
Hung: more than a minute.
"""

Attempt = Callable[[str, int], tuple[str, str]]


def campaign(what: str, attempt: Attempt, numbers: Sequence[int]) -> Counter[str]:
    """Make attempts in a process of their own, in a new one where it dies; how many ended in which way."""
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="swsdask-faults-") as folder:
        pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
        for number in numbers:
            try:
                kind, message = pool.submit(attempt, folder, number).result(SECONDS)
            except (BrokenProcessPool, TimeoutError) as error:
                kind, message = (CRASHED if isinstance(error, BrokenProcessPool) else HUNG), ""
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


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, help="repeats the flips of a run; random if none is given")
    parser.add_argument("--flips", type=int, default=2000, help="flipped bits, half of them in each kind of archive")
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(2**31) if asked.seed is None else asked.seed
    print(f"make faults: seed {seed}", flush=True)
    half = asked.flips // 2
    seeds = range(seed, seed + half)
    lines = [
        ("bits flipped in archives of detections", campaign("flips", flip_evaluation, seeds)),
        ("bits flipped in archives of term discovery", campaign("flips of discovery", flip_discovery, seeds)),
        ("hostile archives", campaign("hostile", try_hostile, range(len(list(hostile.cases()))))),
    ]
    table = [
        "| what | tried | the same numbers | an error (of flips: with the file) | silent | unclear | crashed | hung |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {what} | {' | '.join(f'{count:,}' for count in (found.total(), *(found[kind] for kind in KINDS)))} |"
            for what, found in lines
        ),
    ]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text("\n".join([INTRODUCTION, *table, "", f"Seed {seed}.", ""]), encoding="utf-8")
    sys.exit(any(found[kind] for _, found in lines for kind in KINDS[2:]))


if __name__ == "__main__":
    main()
