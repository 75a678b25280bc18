"""Damaged archives and results: flipped bits, exchanged files and row groups, hostile archives; attempts by number.

`python -m tests.faults` makes attempts in processes of their own.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq

from swsdask.archive.cells import chunk_range
from swsdask.archive.store import open_archive
from swsdask.model.errors import SwsdaskError
from swsdask.nightly.board import LATEST
from swsdask.nightly.lease import BusyError
from swsdask.nightly.steps import run_night
from tests.faults import hostile, nights, samples
from tests.faults.samples import IDENTICAL, REFUSED, Outcome, Sample


def files_of(folder: Path) -> list[Path]:
    """All files of an archive, relative to it."""
    return sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def flipped(sample: Sample, copy: Path, seed: int) -> tuple[Path, Outcome]:
    """Flip a bit of a file, chosen by the seed, in a copy of an archive that is as the sample; then restore it."""
    file, whole = _flipped_of(copy, files_of(copy), seed)
    outcome = sample.outcome(copy)
    (copy / file).write_bytes(whole)
    return file, outcome


def _flipped_of(folder: Path, files: Iterable[Path], seed: int) -> tuple[Path, bytes]:
    """Flip a bit of one of some files, of every kind alike: which, and what it was before."""
    chance = random.Random(seed)
    kinds: dict[str, list[Path]] = {}
    for file in (file for file in files if (folder / file).stat().st_size):
        kinds.setdefault("fragment" if "detections" in file.parts else file.name.split("-")[0], []).append(file)
    file = chance.choice(kinds[chance.choice(sorted(kinds))])
    whole = (folder / file).read_bytes()
    damaged = bytearray(whole)
    place = chance.randrange(len(damaged))
    damaged[place] ^= 1 << chance.randrange(8)
    (folder / file).write_bytes(damaged)
    return file, whole


def is_right(file: Path, outcome: Outcome) -> bool:
    """Whether damage of a file changed nothing, or was refused with the file named."""
    return outcome.kind == IDENTICAL or (outcome.kind == REFUSED and file.name in outcome.message)


def exchanged(folder: Path) -> Iterator[tuple[str, str]]:
    """Exchange the first files of two systems, then two row groups of one, and restore them: what was done, where.

    The exchanged file has the name of the other, with a footer of its own; of the row groups, the bytes of a column are
    exchanged as far as they go.
    """
    runs = open_archive(str(folder)).stored_runs
    one, other = (folder / run.fragments[0].file.file for run in runs[:2])
    contents = one.read_bytes(), other.read_bytes()
    one.write_bytes(contents[1])
    other.write_bytes(contents[0])
    yield "files of two systems", one.name
    one.write_bytes(contents[0])
    other.write_bytes(contents[1])
    metadata = pq.read_metadata(one)
    column = metadata.schema.names.index("score")
    (begin, length), (later, other_length) = (
        chunk_range(metadata.row_group(group).column(column)) for group in range(2)
    )
    length = min(length, other_length)
    damaged = bytearray(contents[0])
    damaged[begin : begin + length], damaged[later : later + length] = (
        damaged[later : later + length],
        damaged[begin : begin + length],
    )
    one.write_bytes(damaged)
    yield "scores of two row groups", one.name
    one.write_bytes(contents[0])


def flip_evaluation(folder: str, seed: int) -> tuple[str, str]:
    """Flip a bit of an archive of detections."""
    return _flip(samples.evaluation, folder, seed)


def flip_discovery(folder: str, seed: int) -> tuple[str, str]:
    """Flip a bit of an archive of term discovery."""
    return _flip(samples.discovery, folder, seed)


def flip_results(folder: str, seed: int) -> tuple[str, str]:
    """Flip a bit of results."""
    return _flip(samples.results, folder, seed)


def flip_cached(folder: str, seed: int) -> tuple[str, str]:
    """Flip a bit of an archive that keeps results."""
    return _flip(samples.cached, folder, seed)


def flip_night(folder: str, seed: int) -> tuple[str, str]:
    """Flip a bit of what a killed night left, in its archive or in what its board is known by, and do the night."""
    cut = _cut_night(folder)
    cut.place.become(cut.left)
    there = Path(cut.place.url)
    file, _ = _flipped_of(there, [file for file in files_of(there) if _is_read(file)], seed)
    try:
        run_night(cut.asked, nights.SECOND)
        differing = set(nights.differing(cut.expected, cut.place.state())) - {str(file)}
    except BusyError as error:
        return REFUSED if file.name.startswith("lease") else samples.UNCLEAR, f"{file}: {error}"
    except SwsdaskError as error:
        return REFUSED if file.name in str(error) else samples.UNCLEAR, f"{file}: {error}"
    except Exception as error:
        return samples.UNCLEAR, f"{file}: {type(error).__name__}: {error}"
    return samples.SILENT if differing else IDENTICAL, f"{file}: {sorted(differing)}"


def _is_read(file: Path) -> bool:
    """Whether a night reads a file again: of its board only what names the night."""
    return file.parts[0] == "archive" or file.name == LATEST


@cache
def _cut_night(folder: str) -> nights.Cut:
    place = Path(tempfile.mkdtemp(dir=folder))
    return nights.cut(place, nights.Place(str(place / "there")))


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
            name.startswith(("a fragment named", "a newer part out of")) and str(copy) in outcome.message
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
    file, outcome = flipped(sample, copy, seed)
    kind = samples.UNCLEAR if outcome.kind == samples.REFUSED and not is_right(file, outcome) else outcome.kind
    return kind, f"{file}: {outcome.message}"
