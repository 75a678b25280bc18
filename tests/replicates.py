"""A replicate as files: the query list and the runs have every query as often as it was drawn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_QUERY = re.compile(r'<kw kwid="([^"]*)">.*?</kw>\n', re.DOTALL)
_DETECTED = re.compile(r'<detected_kwlist kwid="([^"]*)".*?</detected_kwlist>\n', re.DOTALL)


def write_replicate(source: Path, target: Path, times: Mapping[str, int]) -> None:
    """From the files of `simulate.evaluation`: `times` says how often they have a query, none for those it lacks."""
    (target / "runs").mkdir(parents=True)
    (target / "sim.ecf.xml").write_bytes((source / "sim.ecf.xml").read_bytes())
    words = (source / "sim.rttm").read_text(encoding="utf-8").splitlines(keepends=True)
    (target / "sim.rttm").write_text("".join(copy for line in words for copy in _words(line, times)), encoding="utf-8")
    for pattern, names in (
        (_QUERY, ["sim.kwlist.xml"]),
        (_DETECTED, [f"runs/{f.name}" for f in (source / "runs").iterdir()]),
    ):
        for name in names:
            text = (source / name).read_text(encoding="utf-8")
            repeated = pattern.sub(lambda found: _copies(found, times), text)
            (target / name).write_text(repeated, encoding="utf-8")


def write_drawn_documents(source: Path, target: Path, times: Mapping[str, int]) -> None:
    """The same with documents, in the ECF, the RTTM and the runs: `times` says how often they have one."""
    (target / "runs").mkdir(parents=True)
    (target / "sim.kwlist.xml").write_bytes((source / "sim.kwlist.xml").read_bytes())
    for name in ["sim.ecf.xml", "sim.rttm", *(f"runs/{f.name}" for f in (source / "runs").iterdir())]:
        lines = (source / name).read_text(encoding="utf-8").splitlines(keepends=True)
        (target / name).write_text("".join(copy for line in lines for copy in _lines(line, times)), encoding="utf-8")


def write_turned(source: Path, target: Path) -> None:
    """The same files with their queries in the opposite order."""
    (target / "runs").mkdir(parents=True)
    for path in (path for path in source.rglob("*") if path.is_file()):
        text = path.read_text(encoding="utf-8")
        for pattern in (_QUERY, _DETECTED):
            turned = reversed([found[0] for found in pattern.finditer(text)])
            text = pattern.sub(lambda _, turned=turned: next(turned), text)
        (target / path.relative_to(source)).write_text(text, encoding="utf-8")


def _lines(line: str, times: Mapping[str, int]) -> list[str]:
    found = next((document for document in times if re.search(rf"\b{re.escape(document)}\b", line)), None)
    if found is None:
        return [line]
    return [re.sub(rf"\b{re.escape(found)}\b", f"{found}-{copy}", line) for copy in range(times[found])]


def _words(line: str, times: Mapping[str, int]) -> list[str]:
    """A word that is the id of a query is that of its copies, as compat=mediaeval finds occurrences."""
    word = line.split()[5]
    return [line.replace(f" {word} ", f" {word}#{copy} ") for copy in range(times[word])] if word in times else [line]


def _copies(found: re.Match[str], times: Mapping[str, int]) -> str:
    query = found[1]
    number = times.get(query, 0)
    return "".join(found[0].replace(f'"{query}"', f'"{query}#{copy}"', 1) for copy in range(number))
