"""Term discovery on simulated corpora: NED, grouping, matching and all measures, and how they grow with the phones.

The exponents are of CPU seconds from official files to numbers, in a process that has loaded everything; what is asked
of 80 000 and of ten million phones is asked of whole processes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import swsdask as sws
from swsdask.simulate.discovery import Discoverer, simulate_classes, simulate_corpus, write_classes, write_corpus
from tests.bench.cost import Cost, cost
from tests.bench.data import SEED, Data
from tests.bench.process import run_process
from tests.bench.small import SWSDASK
from tests.bench.table import Row

SIZES = (20_000, 40_000, 80_000, 160_000, 10_000_000)
SYSTEM = Discoverer("system", found=0.9, jitter_ms=30, mistaken=0.2, words_per_class=3, most_members=300)
FAMILIES = {"ned": "NED", "grouping": "grouping", "matching": "matching", None: "all measures"}

OFFICIAL_MATCHING_S = {20_000: 30.0, 40_000: 155.0, 80_000: 314.0}
"""What the official tool's matching took on a like machine, in 346 MB to 3.6 GB."""

LIMIT_S = 3.0
LIMIT_GIB = 8.0


def rows(data: Data) -> Iterator[Row]:
    """CPU seconds over those of the size before and the exponent; whole processes over their limits."""
    before: dict[str | None, Cost] = {}
    for place, size in enumerate(SIZES):
        folder = data.folder / f"discovery-{size}"
        n_phones = data.rows(size)
        write(folder, n_phones)
        large = size == SIZES[-1]
        for family, name in FAMILIES.items():
            ours = cost(discover, folder, family, repeats=1 if large else 5)
            what = f"{name}, {n_phones:,} phones"
            if place:
                smaller = data.rows(SIZES[place - 1])
                exponent = math.log(ours.cpu / before[family].cpu) / math.log(n_phones / smaller)
                over = f"{smaller:,} phones, exponent"
                yield Row(what, ours.cpu, over, before[family].cpu, exponent, peak=ours.peak)
            if family == "matching" and n_phones in OFFICIAL_MATCHING_S:
                theirs = OFFICIAL_MATCHING_S[n_phones]
                yield Row(f"{what}, wall", ours.wall, "tde, for scale", theirs, theirs / ours.wall, peak=ours.peak)
            before[family] = ours
        if size == 80_000 or large:
            yield from _whole(folder, n_phones, large)


def write(folder: Path, n_phones: int) -> None:
    """The official files of a corpus, and the classes of one system that finds nearly all words."""
    corpus = simulate_corpus(SEED, n_phones=n_phones)
    write_corpus(corpus, folder)
    write_classes(simulate_classes(corpus, SYSTEM), folder)


def discover(folder: Path, family: str | None) -> Callable[[], int]:
    """Scores one system by a family of measures, or by all; how many numbers there are."""

    def step() -> int:
        result = sws.discover(
            folder / "system.classes", phones=folder / "sim.phn", words=folder / "sim.wrd", measures=family
        )
        return result.table.num_rows

    return step


def _whole(folder: Path, n_phones: int, large: bool) -> Iterator[Row]:
    classes, phones, words, out = (str(folder / name) for name in ("system.classes", "sim.phn", "sim.wrd", "out"))
    command = (SWSDASK, "discover", classes, "--phones", phones, "--words", words, "--out", out)
    what = f"swsdask discover, {n_phones:,} phones, files to report"
    if large:
        for definition in ("tdev2", "tde2015"):
            ours = cost(run_process, (*command, "--definition", definition), repeats=1)
            gib = ours.result / 2**30
            told = f"{what}, {definition}, peak memory; {ours.wall:,.0f} s"
            yield Row(told, gib, "limit", LIMIT_GIB, gib / LIMIT_GIB, unit="GiB", most=1.0, peak=ours.result)
    else:
        ours = cost(run_process, command, repeats=5)
        ours = replace(ours, peak=ours.result)
        yield Row(f"{what}, wall", ours.wall, "limit", LIMIT_S, ours.wall / LIMIT_S, most=1.0, peak=ours.peak)
