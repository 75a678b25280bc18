"""Single attempts, by number, as `python -m tests.faults` makes them in processes of their own."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from tests.faults import flips, hostile, samples


def flip_evaluation(folder: str, seed: int) -> tuple[str, str]:
    """Flip a bit of an archive of detections."""
    return _flip(samples.evaluation, folder, seed)


def flip_discovery(folder: str, seed: int) -> tuple[str, str]:
    """Flip a bit of an archive of term discovery."""
    return _flip(samples.discovery, folder, seed)


def flip_results(folder: str, seed: int) -> tuple[str, str]:
    """Flip a bit of results."""
    return _flip(samples.results, folder, seed)


def flip_kept(folder: str, seed: int) -> tuple[str, str]:
    """Flip a bit of an archive that keeps results."""
    return _flip(samples.kept, folder, seed)


def try_hostile(folder: str, number: int) -> tuple[str, str]:
    """Score a hostile archive, the one of that number."""
    sample = _made(samples.evaluation, folder)[0]
    name, case = list(hostile.cases())[number]
    with tempfile.TemporaryDirectory(dir=folder) as place:
        copy = Path(shutil.copytree(sample.folder, Path(place) / "copy"))
        case(copy)
        names = {path.name for folder in (sample.folder, copy) for path in folder.rglob("*")}
        outcome = sample.outcome(copy)
        # Of a file whose name is itself what does harm, the archive is named.
        is_named = any(each in outcome.message for each in names) or (
            name.startswith("a fragment named") and str(copy) in outcome.message
        )
    kind = samples.UNCLEAR if outcome.kind == samples.REFUSED and not is_named else outcome.kind
    return kind, f"{name}: {outcome.message}"


@cache
def _made(make: Callable[[Path], samples.Sample], folder: str) -> tuple[samples.Sample, Path]:
    place = Path(tempfile.mkdtemp(dir=folder))
    sample = make(place / "sample")
    return sample, Path(shutil.copytree(sample.folder, place / "copy"))


def _flip(make: Callable[[Path], samples.Sample], folder: str, seed: int) -> tuple[str, str]:
    sample, copy = _made(make, folder)
    file, outcome = flips.flipped(sample, copy, seed)
    kind = samples.UNCLEAR if outcome.kind == samples.REFUSED and not flips.is_right(file, outcome) else outcome.kind
    return kind, f"{file}: {outcome.message}"
