"""Whole processes: scoring ten thousand detections in XML, and the help, with everything in the page cache.

The first score of an installation compiles its kernels, here into a folder that is empty.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.bench.cost import Cost, cost
from tests.bench.data import Data
from tests.bench.process import run_process
from tests.bench.table import Row
from tests.bench.xml_rows import write_xml

SWSDASK = str(Path(sys.executable).with_name("swsdask"))
EMPTY = (
    sys.executable,
    "-c",
    "import os, subprocess, sys, tempfile\n"
    "with tempfile.TemporaryDirectory() as kept:\n"
    "    subprocess.run(sys.argv[1:], check=True, env={**os.environ, 'NUMBA_CACHE_DIR': kept})",
)
"""Runs a command that finds no compiled kernels."""

LIBRARIES = (sys.executable, "-c", "import numpy, pyarrow")


def rows(data: Data) -> Iterator[Row]:
    """CPU and wall-clock seconds over those of importing numpy and pyarrow, and over the limits."""
    folder = data.folder / "small"
    run = write_xml(folder, 10_000, n_queries=100, n_documents=100, n_occurrences=1000)
    libraries = _costs(LIBRARIES)
    for what, limit, command in (
        ("swsdask score, 10 000 detections in XML", 0.6, (SWSDASK, "score", str(folder), run, "--preset", "sws2013")),
        (
            "swsdask score, 10 000 detections in XML, with a report",
            0.6,
            (SWSDASK, "score", str(folder), run, "--preset", "sws2013", "--out", str(folder / "out")),
        ),
        ("swsdask --help", 0.3, (SWSDASK, "--help")),
        (
            "the first swsdask score of an installation",
            12.0,
            (*EMPTY, SWSDASK, "score", str(folder), run, "--preset", "sws2013", "--out", str(folder / "out")),
        ),
    ):
        ours = _costs(command, repeats=1 if command[: len(EMPTY)] == EMPTY else 7)
        peaks = {"peak": ours.peak, "peak_of_theirs": libraries.peak}
        yield Row(f"{what}, CPU", ours.cpu, "import numpy, pyarrow", libraries.cpu, ours.cpu / libraries.cpu, **peaks)
        yield Row(
            f"{what}, wall", ours.wall, "import numpy, pyarrow", libraries.wall, ours.wall / libraries.wall, **peaks
        )
        yield Row(f"{what}, wall", ours.wall, "limit", limit, ours.wall / limit, most=1.0, peak=ours.peak)


def _costs(command: Sequence[str], repeats: int = 7) -> Cost:
    found = cost(run_process, tuple(command), repeats=repeats)
    return replace(found, peak=found.result)
