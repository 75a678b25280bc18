"""Small archives of both kinds, and what scoring one gives: numbers, or an error that names a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np

import swsdask as sws
from swsdask.archive import change
from swsdask.archive.change import ChangePolicy
from swsdask.archive.discovery import ingest_discovery
from swsdask.archive.ingest import write_runs
from swsdask.archive.storage import Storage
from swsdask.archive.versions import Layout
from swsdask.formats.discovery import read_corpus_files
from swsdask.model.errors import SwsdaskError
from swsdask.model.layers import Layers
from swsdask.model.settings import EvaluationSettings
from swsdask.render.outputs import read_outputs
from tests.archives import Row, excerpt, queries, source, tables, words
from tests.discovery_worlds import random_world

N_QUERIES, N_DOCUMENTS = 12, 3
MEASURES = ("atwv", "mtwv", "cnxe", "map")
LAYOUT = Layout(buckets=4, rows_per_group=60, rows_per_fragment=150, rows_in_memory=200)

IDENTICAL, REFUSED, SILENT, UNCLEAR = "identical", "refused", "silent", "unclear"
CRASHED, HUNG, LEFT, COMMITTED, ORPHANED = "crashed", "hung", "left", "committed", "orphaned"
MISSED, LATE = "missed", "not begun"
"""Nothing was tried: what was to be struck had ended before, or no time was left."""

in_parts = patch.object(change, "GROWTH", 1)
"""Commits write a part of what they add alone, and join it with no older one."""


@dataclass(frozen=True)
class Outcome:
    """What became of an attempt: identical numbers, an error of exit code 2, silently other numbers, another error."""

    kind: str
    message: str = ""


@dataclass(frozen=True)
class Sample:
    """An archive and what scoring it gives."""

    folder: Path
    score: Callable[[Path], str]
    numbers: str

    def outcome(self, folder: Path) -> Outcome:
        """Score a damaged copy."""
        try:
            numbers = self.score(folder)
        except SwsdaskError as error:
            return Outcome(REFUSED if error.exit_code == 2 else UNCLEAR, str(error))
        except Exception as error:
            return Outcome(UNCLEAR, f"{type(error).__name__}: {error}")
        return Outcome(IDENTICAL if numbers == self.numbers else SILENT)


def rows(n: int, seed: int) -> list[Row]:
    """Random detections, half of them with fractional scores."""
    chance = np.random.default_rng(seed)
    columns = [
        [f"q{number}" for number in chance.integers(0, N_QUERIES, n)],
        [f"d{number}" for number in chance.integers(0, N_DOCUMENTS, n)],
        [1] * n,
        chance.integers(0, 40_000, n).tolist(),
        chance.integers(0, 2_000, n).tolist(),
        chance.normal(size=n).tolist(),
        chance.integers(0, 2, n).tolist(),
    ]
    return list(zip(*columns, strict=True))


def evaluation(folder: Path) -> Sample:
    """An archive of detections: two systems of several fragments and row groups, two versions, two parts of runs."""
    spoken = [(f"w{number % N_QUERIES}", 700 * number, 700 * number + 300, "lex") for number in range(50)]
    reference = tables(
        [excerpt(f"d{number}", 0, 50_000) for number in range(N_DOCUMENTS)],
        queries({f"q{number}": f"w{number}" for number in range(N_QUERIES)}),
        words(spoken, document="d1"),
        [("d1", 1, 0, 40_000, "s")],
    )
    settings, keep = EvaluationSettings(), Layers()
    for run in (source(rows(400, 1), "a"), source(rows(500, 2), "b")):
        with in_parts:
            write_runs(Storage(str(folder)), reference, [run], settings, layout=LAYOUT, policy=ChangePolicy(keep=keep))
    return Sample(folder, _evaluated, _evaluated(folder))


def _evaluated(folder: Path) -> str:
    return text(sws.score(sws.open(folder), MEASURES, cache=False))


def discovery(folder: Path) -> Sample:
    """An archive of term discovery with two systems, in two versions."""
    files = folder.parent / f"{folder.name}-files"
    corpus = None
    for name, seed in (("one", 3), ("two", 4)):
        place = files / name
        place.mkdir(parents=True)
        read_from = random_world(seed).write(place)
        corpus = corpus or read_corpus_files(read_from)
        with in_parts:
            ingest_discovery(str(folder), corpus, {name: str(place / "w.classes")}, policy=ChangePolicy(keep=Layers()))
    return Sample(folder, _discovered, _discovered(folder))


def _discovered(folder: Path) -> str:
    return text(sws.discover(archive=folder))


def results(folder: Path) -> Sample:
    """A folder of results, as `--out` writes it, with all that it may have."""
    scored = sws.score(sws.open(evaluation(folder.parent / f"{folder.name}-of").folder), MEASURES, alignment=True)
    sws.write(replace(scored, comparison=sws.compare(scored)), folder)
    return Sample(folder, _read, _read(folder))


def _read(folder: Path) -> str:
    found = read_outputs(folder)
    tables = {name: found.to_arrow(name).to_pylist() for name, held in found.tables.items() if held is not None}
    return f"{tables} {found.comparison} {found.manifest} {found.notes}"


def cached(folder: Path) -> Sample:
    """An archive of detections that keeps the results of its systems."""
    evaluation(folder)
    return Sample(folder, _cached, _cached(folder))


def _cached(folder: Path) -> str:
    return text(sws.score(folder, MEASURES))


def text(result: sws.Result) -> str:
    """The numbers of a result, every bit of them."""
    return json.dumps(result.table.to_pylist())
