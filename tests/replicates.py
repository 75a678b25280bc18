"""A replicate as files: every query that was drawn stands in the query list and the runs as often as it was drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_QUERY = re.compile(r'<kw kwid="([^"]*)">.*?</kw>\n', re.DOTALL)
_DETECTED = re.compile(r'<detected_kwlist kwid="([^"]*)".*?</detected_kwlist>\n', re.DOTALL)


def write_replicate(source: Path, target: Path, times: Mapping[str, int]) -> None:
    """From the files of `simulate.files`: `times` says how often a query stands there, none for those it lacks."""
    (target / "runs").mkdir(parents=True)
    for name in ("sim.ecf.xml", "sim.rttm"):
        (target / name).write_bytes((source / name).read_bytes())
    for pattern, names in (
        (_QUERY, ["sim.kwlist.xml"]),
        (_DETECTED, [f"runs/{f.name}" for f in (source / "runs").iterdir()]),
    ):
        for name in names:
            text = (source / name).read_text(encoding="utf-8")
            repeated = pattern.sub(lambda found: _copies(found, times), text)
            (target / name).write_text(repeated, encoding="utf-8")


def _copies(found: re.Match[str], times: Mapping[str, int]) -> str:
    query = found[1]
    number = times.get(query, 0)
    return "".join(found[0].replace(f'"{query}"', f'"{query}#{copy}"', 1) for copy in range(number))
