"""The report of few and of many systems: its size, and how long a browser takes to open it.

The time is from the start of the navigation to the event `load`, with scripts run and pages laid out, beside that of
a page without content: the median of some navigations, each in a browser of its own without a network.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path

import swsdask as sws
from tests.bench.data import Data, Shape
from tests.bench.table import Row
from tests.browser.chromium import CHROMIUM, POLICY

SYSTEMS = (5, 300, 1000)
ROWS = 5_000
NAVIGATIONS = 5
TIMED = '<script>addEventListener("load", () => { document.title = performance.now(); });</script>'


def rows(data: Data) -> Iterator[Row]:
    """The size of the page, and how long it takes to open; no times where there is no Chromium."""
    folder = data.folder / "pages"
    folder.mkdir()
    empty = "<!doctype html><title>nothing</title><body></body>"
    for n_systems in SYSTEMS:
        archive = data.written(f"{n_systems}-systems", Shape(data.rows(ROWS)), n_systems)
        result = sws.score(archive.url)
        archive.remove()
        sws.report(result, folder / "report.html")
        page = (folder / "report.html").read_text(encoding="utf-8")
        size = len(page.encode()) / 1e6
        what = f"the report of {n_systems:,} systems, 500 queries"
        yield Row(what, size, "10 MB", 10.0, size / 10, unit="MB", most=1.0)
        if CHROMIUM is not None:
            nothing = statistics.median(_opened(empty, folder) for _ in range(NAVIGATIONS))
            opened = statistics.median(_opened(page, folder) for _ in range(NAVIGATIONS))
            yield Row(f"{what}, opened by Chromium", opened, "a page without content", nothing, opened / nothing)


def _opened(page: str, folder: Path) -> float:
    """Seconds until a page is loaded."""
    path = folder / "page.html"
    path.write_text(POLICY.sub("", page).replace("</body>", f"{TIMED}</body>"), encoding="utf-8")
    profile = folder / "profile"
    assert CHROMIUM is not None
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}")
    done = subprocess.run(
        [CHROMIUM, *options, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    shutil.rmtree(profile)
    found = re.search(r"<title>([0-9.]+)</title>", done.stdout)
    assert found is not None
    return float(found.group(1)) / 1000
