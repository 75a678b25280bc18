"""A run rewritten in another format."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from swsdask.errors import InputError, Problem, Problems
from swsdask.formats.opening import is_local
from swsdask.formats.reference import is_folder
from swsdask.formats.run_encoding import Encoding
from swsdask.formats.run_rewrite import rewrite_table, stays_table, system_to_add
from swsdask.formats.run_write import write_kwslist, write_stdlist, write_table
from swsdask.formats.runs import read_run
from swsdask.model.runs import RunPiece


def convert(source: str, target: str, system: str | None = None, encoding: Encoding | None = None) -> int:
    """Rewrite the run at one path or URL at another, in the format that its name tells; how many rows.

    A table in text that stays one keeps its columns, its quotes and every digit.
    The run is read twice, so that nothing is written of a faulty one. `system` is its name, in place of what the file
    says; of a table with another `encoding` of times and scores the target has seconds and rising scores. Raises
    `InputError` with everything that is wrong with the source, and then leaves the target as it was.
    """
    write = writer_of(target)
    folder, name = os.path.split(target)
    local = is_local(target)
    if local and not is_folder(folder or "."):
        raise InputError(Problem(target, None, "a folder to write into", f"no folder {folder}", "Make it first."))
    problems = Problems()
    rows = sum(len(piece) for piece in read_run(source, problems, system=system, encoding=encoding))
    problems.raise_if_any()
    unfinished = os.path.join(folder, f".unfinished-{name}") if local else target
    try:
        if not encoding and stays_table(source, target):
            told = system or system_to_add(source, target)
            rewrite_table(source, unfinished, lambda scores: {"system": [told] * len(scores)} if told else {})
        else:
            write(read_run(source, problems, system=system, encoding=encoding), unfinished)
        if local:
            os.replace(unfinished, target)
    finally:
        if local and os.path.exists(unfinished):
            os.remove(unfinished)
    return rows


def writer_of(target: str) -> Callable[[Iterable[RunPiece], str], None]:
    """What writes a run in the format that a file's name tells. Raises `InputError` if it tells none."""
    name = target.lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith(".stdlist.xml"):
        return write_stdlist
    if name.endswith(".xml"):
        return write_kwslist
    if name.endswith((".tsv", ".csv")) or target.lower().endswith(".parquet"):
        return write_table
    raise InputError(
        Problem(
            target,
            None,
            "a name that ends in .kwslist.xml, .stdlist.xml, .tsv, .csv (also .gz, .zst) or .parquet",
            repr(os.path.basename(target)),
            "Choose one.",
        )
    )
