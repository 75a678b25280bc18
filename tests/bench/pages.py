"""The report of few and many systems, queries, and conditions: its size, and how long a browser takes to open it.

The time is from the start of the navigation to the event `load`, with scripts run and pages laid out, beside that of
a page without content: the median of some navigations, each in a browser of its own without a network.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import swsdask as sws
from tests.bench.data import Data, Shape
from tests.bench.table import Row
from tests.browser.chromium import CHROMIUM, POLICY

ROWS = 5_000
PAGES: dict[str, tuple[int, Shape, tuple[str, ...]]] = {
    "5 systems, 500 queries": (5, Shape(ROWS), ()),
    "300 systems, 500 queries": (300, Shape(ROWS), ()),
    "1,000 systems, 500 queries": (1000, Shape(ROWS), ()),
    "2 systems, 100,000 queries": (2, Shape(ROWS, n_queries=100_000, n_occurrences=100_000), ()),
    "2 systems, 1,000 talkers": (2, Shape(ROWS), ("talker",)),
}
"""How many systems, of what, and the conditions of each report."""

NAVIGATIONS = 5
TIMED = '<script>addEventListener("load", () => { document.title = performance.now(); });</script>'


def rows(data: Data) -> Iterator[Row]:
    """The size of the page, and how long it takes to open; no times where there is no Chromium."""
    folder = data.folder / "pages"
    folder.mkdir()
    empty = "<!doctype html><title>nothing</title><body></body>"
    for of, (n_systems, shape, by) in PAGES.items():
        archive = data.written(f"page-{n_systems}", replace(shape, rows=data.rows(shape.rows)), n_systems)
        result = sws.score(archive.url, by=by)
        archive.remove()
        sws.report(result, folder / "report.html")
        page = (folder / "report.html").read_text(encoding="utf-8")
        size = len(page.encode()) / 1e6
        what = f"the report of {of}"
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
