"""What a corpus is read from: the files, and the tables they make, before any definition is applied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from swsdask.errors import Problems
from swsdask.formats.alignment_file import read_alignment
from swsdask.formats.speaker_map import read_speakers
from swsdask.formats.stretch_files import read_folds, read_stretches


@dataclass(frozen=True)
class CorpusFiles:
    """Paths or URLs: of the alignments, the stretches of speech, the folds, those within talkers, the speaker map."""

    phones: str
    words: str
    split: str | None = None
    folds: str | None = None
    within: str | None = None
    speakers: str | None = None


@dataclass(frozen=True, eq=False)
class CorpusTables:
    """The tables of those files (schemas of `model.corpus_schemas`); None where none was given.

    `files` names where they were read from, for messages.
    """

    files: CorpusFiles
    phones: pa.Table
    words: pa.Table
    split: pa.Table | None = None
    folds: pa.Table | None = None
    within: pa.Table | None = None
    speakers: pa.Table | None = None


def read_corpus_files(files: CorpusFiles) -> CorpusTables:
    """Read the files of a corpus. Raises `InputError` with everything that is wrong with them."""
    problems = Problems()

    def read(url: str | None, reader: Callable[[str, Problems], pa.Table]) -> pa.Table | None:
        return None if url is None else reader(url, problems)

    tables = CorpusTables(
        files,
        read_alignment(files.phones, problems),
        read_alignment(files.words, problems),
        read(files.split, read_stretches),
        read(files.folds, read_folds),
        read(files.within, read_folds),
        read(files.speakers, read_speakers),
    )
    problems.raise_if_any()
    return tables
