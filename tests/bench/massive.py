"""Evaluations that are large in one way: systems, queries, documents, detections, a file.

All but the file are scored with all measures on two worker processes and written. Everything grows with what there is
much of, so costs are given for one of it, and peaks of the client (which Dask's scheduler shares) and of a worker. The
system with the most detections is on no disk (`tests.bench.copies`).
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import swsdask as sws
from swsdask.execution.open import open_executor
from swsdask.model.settings import EngineSettings
from tests.bench.copies import score_copies
from tests.bench.cost import cost, cpu_seconds, own_seconds
from tests.bench.data import Data, Shape
from tests.bench.ingesting import ROWS, repeated, table_of_text
from tests.bench.table import Row
from tests.bench.workers import peak_of_workers

GIB = 2**30
BYTES_PER_ROW = 20
COPIES = 1000
REPEATED = 250
BYTES_PER_LINE = 80
"""Of a text table, its archive and what is spilled, together."""


class Spent(NamedTuple):
    """CPU seconds of the client, and of it and its workers; the highest resident memory of a worker in bytes."""

    client: float
    every: float
    peak: int


def rows(data: Data) -> Iterator[Row]:
    """A thousand systems of a million detections, ten thousand of ten thousand; many queries, documents, detections."""
    n = data.rows
    yield from _scored(data, "thousand", Shape(n(1_000_000)), n(1000), client_ms=5.0)
    yield from _scored(data, "ten-thousand", Shape(n(10_000), n_occurrences=1000), n(10_000))
    yield from _scored(data, "queries", Shape(n(10_000_000), n_queries=n(100_000), n_occurrences=n(100_000)), 2)
    yield from _scored(data, "documents", Shape(n(10_000_000), n_documents=n(1_000_000)), 2)
    yield _copied(n(COPIES))
    yield from _one_file(data)


def _copied(number: int) -> Row:
    """One system, of which every number is known beforehand: its counts exceed 32 bits, and its values are exact."""
    block = Shape(5_000_000, n_occurrences=1000, n_queries=100)
    one, all_ = (cost(score_copies, block, n, repeats=1) for n in (1, number))
    for name, value in one.result.items():
        expected = value * number if name.startswith("n_") else value
        if all_.result[name] != expected:
            raise AssertionError(f"{name} of {number} copies: {all_.result[name]!r}, not {expected!r}")
    exponent = math.log(all_.cpu / one.cpu) / math.log(number)
    what = f"one system of {number * block.rows:,} detections, made when they are read: ATWV, MTWV"
    over = f"{block.rows:,}, exponent"
    return Row(what, all_.cpu, over, one.cpu, exponent, most=1.05, peak=all_.peak, peak_of_theirs=one.peak)


def _scored(data: Data, name: str, shape: Shape, n_systems: int, client_ms: float | None = None) -> Iterator[Row]:
    what = f"{n_systems:,} systems of {shape.rows:,} detections, {shape.n_queries:,} queries"
    what += f", {shape.n_documents:,} documents"
    if shutil.disk_usage(data.folder).free < shape.rows * n_systems * BYTES_PER_ROW:
        print(f"massive: left out {what}: there is not enough disk space")
        return
    archive = data.written(name, shape, n_systems)
    written = archive.writing
    rate = archive.rows / written.cpu / 1e6
    yield Row(f"{what}: ingested, M rows/s and core", rate, "", float("nan"), float("nan"), unit="M", peak=written.peak)
    found = cost(_score, archive.url, repeats=1)
    spent: Spent = found.result
    yield Row(
        f"{what}: scored, CPU; {found.wall:,.0f} s by the clock; peak of a worker beside that of the client",
        spent.every,
        "client",
        spent.client,
        spent.client / spent.every,
        peak=spent.peak,
        peak_of_theirs=found.peak,
    )
    if client_ms is not None:
        each = 1000 * spent.client / n_systems
        yield Row(f"{what}: client, a system", each, "limit", client_ms, each / client_ms, unit="ms", most=1.0)
    archive.remove()


def _score(url: str) -> Callable[[], Spent]:
    def step() -> Spent:
        evaluation = sws.open(url)
        own, every = own_seconds(), cpu_seconds()
        with (
            tempfile.TemporaryDirectory(prefix="swsdask-bench-") as folder,
            open_executor(EngineSettings(executor="processes", workers=2)) as executor,
        ):
            sws.write(sws.score(evaluation, executor=executor, cache=False), folder)
            peak = peak_of_workers(executor, 2)
        return Spent(own_seconds() - own, cpu_seconds() - every, peak)

    return step


def _one_file(data: Data) -> Iterator[Row]:
    """One text table that two worker processes cut, from the file to the archive."""
    reference, file = table_of_text(data.folder / "massive", data.rows(ROWS))
    n_rows = data.rows(ROWS) * REPEATED
    what = f"{n_rows:,} detections in one file of TSV, two processes"
    if shutil.disk_usage(data.folder).free < n_rows * BYTES_PER_LINE:
        print(f"massive: left out {what}: there is not enough disk space")
        return
    large = repeated(file, REPEATED)
    found = cost(_ingest, reference, str(large), repeats=1)
    wall, peak = found.result
    rate = n_rows / found.cpu / 1e6
    yield Row(
        f"{what}: ingested in {wall:,.0f} s, M rows/s and core", rate, "", math.nan, math.nan, unit="M", peak=peak
    )
    gib = peak / GIB
    yield Row(f"{what}: a worker", gib, "limit", 2.0, gib / 2, unit="GiB", most=1.0, peak=peak)
    yield Row(f"{what}: the client", found.peak / GIB, "", math.nan, math.nan, unit="GiB", peak=found.peak)
    shutil.rmtree(large.parent)


def _ingest(reference: str, file: str) -> Callable[[], tuple[float, int]]:
    """Wall-clock seconds, and the highest resident memory of a worker in bytes."""

    def step() -> tuple[float, int]:
        with open_executor(EngineSettings(executor="processes", workers=2)) as executor:
            began = time.perf_counter()
            sws.ingest(Path(file).with_name("archive"), reference, runs=file, executor=executor)
            return time.perf_counter() - began, peak_of_workers(executor, 2)

    return step
