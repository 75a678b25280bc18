"""The official files, read into the tables and rows that archives are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from swsdask.archive.judged import JudgedFiles, read_judged
from swsdask.archive.sources import RunSource
from swsdask.archive.tables import ReferenceTables
from swsdask.errors import Problems
from swsdask.formats.ecf import read_ecf
from swsdask.formats.opening import file_size
from swsdask.formats.queries import read_queries, text_encoding
from swsdask.formats.reference import ReferenceFiles
from swsdask.formats.rttm import read_rttm
from swsdask.formats.run_encoding import Encoding
from swsdask.formats.run_resources import resources_of_runs
from swsdask.formats.runs import split_run

__all__ = ["JudgedFiles", "ReferenceFiles", "RunFile", "read_reference", "sources_of"]

BYTES_PER_SOURCE = 1 << 28
"""About how much of a large file one task reads."""


@dataclass(frozen=True)
class RunFile:
    """A file with runs, and the system it is of where the user gives one; else the file says it.

    `encoding` is that of a table's times and scores.
    """

    url: str
    system: str | None = None
    encoding: Encoding | None = None


def read_reference(files: ReferenceFiles | JudgedFiles) -> ReferenceTables:
    """The tables of three official files, or of judgments. Raises `InputError` with everything wrong with them."""
    problems = Problems()
    if isinstance(files, JudgedFiles):
        judged = read_judged(files, problems)
        problems.raise_if_any()
        return judged
    documents = read_ecf(files.ecf, problems)
    queries = read_queries(files.queries, problems)
    words, segments = read_rttm(files.rttm, problems, text_encoding(queries))
    problems.raise_if_any()
    return ReferenceTables(documents, queries, words, segments)


def sources_of(run_files: Sequence[RunFile]) -> list[RunSource]:
    """The files, in order, large ones in parts that can be read at the same time, with the resources told beside them.

    Raises `InputError` with everything that is wrong with the files of resources.
    """
    resources = resources_of_runs(file.url for file in run_files)
    return [
        replace(part, resources=resources.get(file.url))
        for file in run_files
        for part in split_run(
            file.url, 1 + file_size(file.url) // BYTES_PER_SOURCE, system=file.system, encoding=file.encoding
        )
    ]
