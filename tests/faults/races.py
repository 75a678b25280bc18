"""Writers, cleaners and readers of one archive at the same time.

Each is a process of its own that begins at a moment drawn by a seed. What a writer reported as written must be there
afterwards with the numbers that it has alone; every error must be a clear one; and nothing may be left.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any

import swsdask as sws
from swsdask.archive.change import ChangePolicy
from swsdask.archive.ingest import write_runs
from swsdask.archive.storage import Storage
from swsdask.model.settings import EvaluationSettings
from tests.archives import source
from tests.faults.operations import Child, begun, ended, error_of
from tests.faults.samples import CRASHED, HUNG, IDENTICAL, LAYOUT, LEFT, MEASURES, SILENT, UNCLEAR, evaluation, rows

LATEST_S = 0.15
LIMIT_S = 60.0
SEEDS = {"a": 1, "b": 2, "c": 5, "d": 6, "e": 7}
"""The systems: "a" and "b" are there before."""

_CLEAR = ("ArchiveError", "InputError")


def _ingest(folder: Path, system: str, seed: int, replace: bool = False) -> None:
    runs = [source(rows(300, seed), system)]
    write_runs(Storage(str(folder)), None, runs, EvaluationSettings(), layout=LAYOUT, policy=ChangePolicy(replace))


def _works(folder: Path) -> Mapping[str, Callable[[], Any]]:
    """What is done at the same time, by name; "same" is written twice, with contents that contradict each other."""
    return {
        **{system: partial(_ingest, folder, system, SEEDS[system]) for system in ("c", "d", "e")},
        "same": partial(_ingest, folder, "same", 8),
        "same again": partial(_ingest, folder, "same", 9),
        "replaced": partial(_ingest, folder, "a", 10, replace=True),
        "vacuum": partial(sws.vacuum, folder),
        "expire": partial(sws.expire, folder, keep=1),
        "score": partial(sws.score, folder, MEASURES),
    }


@cache
def _alone(folder: str) -> tuple[Path, dict[str, set[str]]]:
    """An archive, and the numbers that each system may have in the end."""
    place = Path(tempfile.mkdtemp(dir=folder))
    sample = evaluation(place / "sample")
    whole = Path(shutil.copytree(sample.folder, place / "whole"))
    for name in ("c", "d", "e", "same"):
        _works(whole)[name]()
    numbers = {system: {text} for system, text in _numbers(whole).items()}
    other = Path(shutil.copytree(sample.folder, place / "other"))
    for name in ("replaced", "same again"):
        _works(other)[name]()
    for system, text in _numbers(other).items():
        numbers[system].add(text)
    return sample.folder, numbers


def _numbers(folder: Path) -> dict[str, str]:
    found: dict[str, list[Any]] = {}
    for row in sws.score(sws.open(folder), MEASURES, cache=False).table.to_pylist():
        found.setdefault(row["system"], []).append(row)
    return {system: str(rows) for system, rows in found.items()}


def attempt(folder: str, seed: int) -> tuple[str, str]:
    """Let all of them race from moments drawn by the seed; what became of it, and a message."""
    sample, numbers = _alone(folder)
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        copy = Path(shutil.copytree(sample, Path(place) / "archive"))
        racing = {
            name: begun(partial(_later, work, chance.uniform(0.0, LATEST_S))) for name, work in _works(copy).items()
        }
        errors = {name: _error(child) for name, child in racing.items()}
        for kind in (HUNG, CRASHED):
            if kind in errors.values():
                return kind, str(errors)
        unclear = {name: error for name, error in errors.items() if error and not error.startswith(_CLEAR)}
        if unclear:
            return UNCLEAR, str(unclear)
        found = _numbers(copy)
        written = {name.split()[0] for name in ("c", "d", "e", "same", "same again") if errors[name] == ""}
        if not written <= set(found) or any(text not in numbers[system] for system, text in found.items()):
            return SILENT, f"{sorted(found)}, {errors}"
        failed = {name for name in ("c", "d", "e", "replaced") if errors[name]}
        if failed:
            return UNCLEAR, f"refused without a reason: { {name: errors[name] for name in failed} }"
        sws.expire(copy, keep=1)
        sws.vacuum(copy, older_than_s=-10)
        left = sws.vacuum(copy, older_than_s=-10, dry_run=True)
        hidden = [path.name for path in copy.rglob("*") if path.name.startswith(".") or path.name.endswith(".part")]
        if left or hidden:
            return LEFT, ", ".join([*left, *hidden])
    return IDENTICAL, ""


def _later(work: Callable[[], Any], after_s: float) -> str:
    """Do some work after a time; its error."""
    time.sleep(after_s)
    return error_of(work)


def _error(child: Child) -> str:
    """The error of a racing process once it has ended."""
    try:
        error = ended(child, LIMIT_S)
    except TimeoutError:
        return HUNG
    return CRASHED if error is None else str(error)
