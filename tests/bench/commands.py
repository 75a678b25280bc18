"""Whole commands: `swsdask score ARCHIVE --out FOLDER` on hundreds of systems, from its start to its end.

Every system is counted, nothing kept is used, and all outputs are written: in one process, with one worker process and
with two, in turn.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from tests.bench.data import Data, Shape
from tests.bench.table import Row

SYSTEMS = 300
ROWS = 100_000
TURNS = 5

CLIENT = """
import atexit, json, resource
from pathlib import Path
def tell():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    print(json.dumps([usage.ru_utime + usage.ru_stime, 1024 * int(peak.split()[1])]))
atexit.register(tell)
from swsdask.__main__ import start
start()
"""
"""Runs the command line and prints, last, its own CPU seconds and its peak memory."""

ALL = """
import json, resource, sys
from tests.bench.process import run_with_all
written, wall = run_with_all(sys.argv[1:])
client, peak = json.loads(written.splitlines()[-1])
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([client, usage.ru_utime + usage.ru_stime, wall, peak]))
"""
"""Runs a `CLIENT`, and prints what it and all processes that it leaves behind take."""


class Command(NamedTuple):
    """CPU seconds of the client, and of it and its workers; wall-clock seconds; the client's peak memory in bytes."""

    client: float
    every: float
    wall: float
    peak: int


def rows(data: Data) -> Iterator[Row]:
    """CPU seconds in one process, the client's share of them beside two workers, and two workers over one."""
    archive = data.written("commands", Shape(data.rows(ROWS)), SYSTEMS)
    ways = (("serial",), ("processes", "--workers", "1"), ("processes", "--workers", "2"))
    turns = [[_command(archive.url, *way) for way in ways] for _ in range(TURNS)]
    alone, one, two = (Command(*map(statistics.median, zip(*own, strict=True))) for own in zip(*turns, strict=True))
    what = f"swsdask score, {SYSTEMS} systems of {data.rows(ROWS):,} detections, all outputs"
    yield Row(f"{what}, one process", alone.every, "limit", 12.0, alone.every / 12, most=1.0, peak=alone.peak)
    what += ", two workers"
    yield Row(f"{what}, wall", two.wall, "one worker", one.wall, one.wall / two.wall, least=1.7, peak=two.peak)
    share = two.client / two.every
    yield Row(f"{what}, client", two.client, "client and workers", two.every, share, most=0.2, peak=two.peak)
    archive.remove()


def _command(url: str, *executor: str) -> Command:
    with tempfile.TemporaryDirectory(prefix="swsdask-bench-") as folder:
        client = (sys.executable, "-c", CLIENT, "score", url, "--no-cache", "--out", folder, "--executor", *executor)
        found = subprocess.run((sys.executable, "-c", ALL, *client), check=True, capture_output=True, encoding="utf-8")
    return Command(*json.loads(found.stdout))
