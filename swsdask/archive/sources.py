"""The files that runs come from, and the order of their rows, for the settings that depend on it.

Elsewhere the order of the input never shows. Under `compat = "mediaeval"`, and where `average_precision.ties` is
"input" or `average_precision.duplicates` "first", rows keep their `position`: the number of the source in which they
were read (a file, or a part of one, in order), then that of the row among the system's own there. However files are
cut into parts, positions ascend in the same order. A run's content hash is of its rows in that order then.

MediaEval's tool refuses a trial that a run has twice, where otherwise the best detection counts; so does this mode.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from swsdask.archive.encode import Codes
from swsdask.model.errors import SHOWN, InputError, Problem, Problems
from swsdask.model.schemas import RunPiece, RunSource
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Detections


def note_claims(claims: Mapping[str, Sequence[RunSource]], problems: Problems) -> None:
    """Add a problem for each system that two files say they are of.

    `claims` are the sources in which rows of a system were found. Parts of one file belong together, and so do files
    that the user gave the same name; two files that merely carry the same name could be two runs, or one run twice.
    """
    for system, sources in sorted(claims.items()):
        files = list(dict.fromkeys(source.file for source in sources))
        if len(files) > 1 and any(source.system is None for source in sources):
            for file in files[1:]:
                found = f"a run of {system!r}, as in {files[0]}"
                remedy = "Leave one out, or give each as NAME=FILE (in Python {name: file})."
                problems.add(file, None, "a run of another system", found, remedy)


_ROW_BITS = 40


@dataclass(frozen=True, eq=False)
class FileOrder:
    """The sources of some runs, in the order of the files, and the codes that their rows are given.

    `once`: no trial may be there twice.
    """

    sources: Sequence[RunSource]
    codes: Codes
    once: bool

    def read(self, number: int, problems: Problems) -> Iterator[RunPiece]:
        """The pieces of a source, by its number, with the positions of their rows."""
        rows: Counter[str] = Counter()
        for piece in self.sources[number].read(problems):
            system = piece.header.system
            begin = (number << _ROW_BITS) + rows[system]
            rows[system] += len(piece)
            yield replace(piece, position=np.arange(begin, begin + len(piece)))

    def check_once(self, system: str, rows: Detections) -> None:
        """Raises `InputError` for trials (query, document) that a system's rows, in canonical order, have twice.

        Nothing is checked unless every trial must be there once.
        """
        if not self.once:
            return
        assert rows.document is not None
        assert rows.position is not None
        same = (
            (rows.query[1:] == rows.query[:-1]) & (rows.document[1:] == rows.document[:-1]) & (rows.document[1:] >= 0)
        )
        again = np.flatnonzero(same)
        if not len(again):
            return
        later = np.maximum(rows.position[again], rows.position[again + 1])
        first = np.argsort(later)[:SHOWN]
        problems = (self._problem(system, rows, int(again[i]), int(later[i])) for i in first.tolist())
        raise InputError(*problems, total=len(again))

    def place_of(self, system: str, position: int) -> tuple[str, int | None]:
        """The file and, where that is known, the line of a system's row."""
        source = self.sources[position >> _ROW_BITS]
        return source.file, source.line_of(system, position & ((1 << _ROW_BITS) - 1))

    def _problem(self, system: str, rows: Detections, row: int, position: int) -> Problem:
        assert rows.document is not None
        file, line = self.place_of(system, position)
        query, document = self.codes.query_ids[rows.query[row]], self.codes.document_ids[rows.document[row]]
        return Problem(
            file=file,
            line=line,
            expected="every trial once",
            found=f"query {query} in document {document} again",
            remedy="Keep one of the two, or score without compat=mediaeval: then the best one counts.",
        )


def counts(settings: EvaluationSettings) -> bool:
    """Whether the order of a run's files does."""
    ranking = settings.average_precision
    return settings.compat == "mediaeval" or ranking.ties == "input" or ranking.duplicates == "first"


def file_order(sources: Sequence[RunSource], codes: Codes, settings: EvaluationSettings) -> FileOrder | None:
    """The file order of some sources where it counts, else None."""
    return FileOrder(sources, codes, settings.compat == "mediaeval") if counts(settings) else None
