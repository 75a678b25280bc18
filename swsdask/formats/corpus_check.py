"""Files of term discovery, each checked on its own: how much they hold of what, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from swsdask.errors import Problems
from swsdask.formats.alignment_file import read_alignment
from swsdask.formats.class_file import read_classes
from swsdask.formats.corpus_files import CorpusFiles
from swsdask.formats.sniff import Format
from swsdask.formats.speaker_map import read_speakers
from swsdask.formats.stretch_files import read_folds, read_stretches

ROLES = {
    "phones": Format.ALIGNMENT,
    "words": Format.ALIGNMENT,
    "split": Format.STRETCHES,
    "folds": Format.FOLDS,
    "within": Format.FOLDS,
    "speakers": Format.SPEAKERS,
}
"""What a file must be, by its role in `CorpusFiles`."""


def roles(files: CorpusFiles) -> dict[str, Format]:
    """The files of a corpus, and what each must be."""
    return {file: kind for role, kind in ROLES.items() if (file := getattr(files, role)) is not None}


def _check_alignment(file: str, problems: Problems) -> dict[str, int]:
    table = read_alignment(file, problems)
    counts = {"lines": len(table), "files": _distinct(table, "file"), "labels": _distinct(table, "label")}
    return counts | _rounded(table)


def _check_classes(file: str, problems: Problems) -> dict[str, int]:
    found = read_classes(file, problems)
    counts = {"classes": len(found.classes), "fragments": len(found.fragments)}
    return counts | {"files": _distinct(found.fragments, "file")} | _rounded(found.fragments)


def _check_stretches(file: str, problems: Problems) -> dict[str, int]:
    table = read_stretches(file, problems)
    return {"stretches": len(table), "files": _distinct(table, "file")} | _rounded(table)


def _check_folds(file: str, problems: Problems) -> dict[str, int]:
    table = read_folds(file, problems)
    counts = {"folds": _distinct(table, "fold"), "stretches": len(table), "files": _distinct(table, "file")}
    return counts | _rounded(table)


def _check_speakers(file: str, problems: Problems) -> dict[str, int]:
    table = read_speakers(file, problems)
    return {"files": len(table), "speakers": _distinct(table, "speaker")}


CHECKS: dict[Format, Callable[[str, Problems], dict[str, int]]] = {
    Format.ALIGNMENT: _check_alignment,
    Format.CLASSES: _check_classes,
    Format.STRETCHES: _check_stretches,
    Format.FOLDS: _check_folds,
    Format.SPEAKERS: _check_speakers,
}
"""How much a file holds, by what it is; what is wrong with it is added to the problems."""


def _distinct(table: pa.Table, column: str) -> int:
    return int(pc.count_distinct(table[column].cast(pa.string())).as_py())


def _rounded(table: pa.Table) -> dict[str, int]:
    return {"rounded times": int((table.schema.metadata or {}).get(b"rounded", 0))}
