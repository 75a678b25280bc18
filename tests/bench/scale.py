"""Growth from 5 million detections of one system to 500 million, and one query with 100 million.

The evaluation grows with the detections: 1000 recordings of ten minutes and 1000 occurrences with every 5 million. The
large query is searched in 1000 recordings only, so that hundreds of its detections lie near each occurrence.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator

from tests.bench.cost import Cost, cost
from tests.bench.data import Data, Shape
from tests.bench.scoring import FEW, score
from tests.bench.table import Row
from tests.bench.workers import two_processes, worked

GIB = 2**30
NEEDED = 20 * GIB
MILLION = 1_000_000


def rows(data: Data) -> Iterator[Row]:
    """CPU seconds over those of the smallest, and the exponent; the highest memory of a worker."""
    sizes = [data.rows(n * MILLION) for n in (5, 50, 500)]
    if shutil.disk_usage(data.folder).free < NEEDED * data.fraction:
        print(
            f"scale: left out {sizes.pop():,} detections and the large query, which need {NEEDED / GIB:.0f} GiB of disk"
        )
    costs: list[Cost] = []
    for n in sizes:
        archive = data.laid(f"scale-{n}", Shape(n, n_occurrences=max(n // 5000, 1), n_documents=max(n // 5000, 1)))
        costs.append(cost(score, archive.url, FEW, {}, repeats=3))
        if n > sizes[0]:
            exponent = math.log(costs[-1].cpu / costs[0].cpu) / math.log(n / sizes[0])
            over = f"{sizes[0]:,}, exponent"
            yield Row(
                f"one system, {n:,} detections",
                costs[-1].cpu,
                over,
                costs[0].cpu,
                exponent,
                most=1.05,
                peak=costs[-1].peak,
                peak_of_theirs=costs[0].peak,
            )
        if n == data.rows(500 * MILLION):
            two = two_processes(archive)
            yield two
            yield from _memory(f"one system, {n:,} detections", costs[-1].peak, two.peak)
        archive.remove()
    if len(sizes) == 3:
        yield from _large_query(data, costs[0])


def _large_query(data: Data, small: Cost) -> Iterator[Row]:
    n = data.rows(125 * MILLION)
    archive = data.laid("large-query", Shape(n, shares=(400.0, *[100.0 / 499] * 499)))
    large = cost(score, archive.url, FEW, {}, repeats=1)
    what = f"one query with {4 * n // 5:,} of {n:,} detections"
    exponent = math.log(large.cpu / small.cpu) / math.log(n / data.rows(5 * MILLION))
    yield Row(what, large.cpu, f"{data.rows(5 * MILLION):,}, exponent", small.cpu, exponent, most=1.05, peak=large.peak)
    yield from _memory(what, large.peak, cost(worked, archive.url, "processes", 2, 1, repeats=1).result.peak)
    archive.remove()


def _memory(what: str, alone: int, of_a_worker: int) -> Iterator[Row]:
    for which, peak in {"alone": alone, "of a worker, two at work": of_a_worker}.items():
        yield Row(
            f"{what}, peak memory {which}", peak / GIB, "2 GiB", 2.0, peak / (2 * GIB), unit="GiB", most=1.0, peak=peak
        )
