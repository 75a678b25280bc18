"""Where calibrated runs are written, and in which form: that of the run they come from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from swsdask.errors import InputError, Problem
from swsdask.formats.run_convert import writer_of
from swsdask.formats.run_dialect import DIALECTS, Dialect
from swsdask.formats.run_write import write_lists
from swsdask.formats.sniff import RUNS, Format, expect
from swsdask.formats.xml_stream import read_elements
from swsdask.model.runs import RunPiece

_FILE = re.compile(r"\.(xml|tsv|csv)(\.gz|\.zst)?$|\.parquet$", re.IGNORECASE)
_ENDINGS = {
    Format.RUN_XML: (r"\.xml(\.gz|\.zst)?$", ".xml"),
    Format.PARQUET: (r"\.parquet$", ".parquet"),
    Format.TABLE: (r"\.[tc]sv(\.gz|\.zst)?$", ".tsv"),
    Format.KALDI: (r"\.[tc]sv(\.gz|\.zst)?$", ".tsv"),
}
"""What the name of a run in a format must end in, and what is put behind one that does not."""


def target_files(sources: Sequence[str], out: str) -> list[str]:
    """The file for each of some runs. `out` is a folder unless its name ends as a run's does.

    In a folder a run keeps its name, with an ending behind it where its own does not tell its format; one in Kaldi's
    form becomes a table. Raises `InputError` where a file would be written over a run that is read, or twice, where a
    file is asked for several runs, and as `expect` does.
    """
    if "://" in out:
        raise InputError(Problem(out, None, "a local folder or file", "a URL", "Write it here and copy it."))
    if _FILE.search(out) and not os.path.isdir(out):
        if len(sources) > 1:
            raise InputError(Problem(out, None, "a folder for several runs", "a file", "Name a folder."))
        targets = [out]
    else:
        targets = [os.path.join(out, _name(source)) for source in sources]
    for source, target in zip(sources, targets, strict=True):
        if targets.count(target) > 1:
            found = "runs of several folders with the same name"
            raise InputError(Problem(target, None, "one run for each file", found, "Apply it folder by folder."))
        if os.path.exists(target) and any(os.path.exists(s) and os.path.samefile(s, target) for s in sources):
            raise InputError(Problem(target, None, "a new file", f"the run {source}", "Name another folder."))
    return targets


def write_like(source: str, pieces: Iterable[RunPiece], target: str) -> None:
    """Write what was read from one run, in the format that the target's name tells.

    Lists of detections become lists as they come, in their own dialect unless the name says another; so memory is
    bounded by the largest piece, unless a table is to become lists.
    """
    dialect = _dialect(source, target)
    if dialect is None:
        writer_of(target)(pieces, target)
    else:
        write_lists(pieces, dialect, target)


def _dialect(source: str, target: str) -> Dialect | None:
    """The dialect in which a list of detections is written; None where it is none, or is to be a table."""
    if expect(source, *RUNS) is not Format.RUN_XML or not re.search(_ENDINGS[Format.RUN_XML][0], target, re.IGNORECASE):
        return None
    said = re.search(r"\.(kws|std)list\.", target, re.IGNORECASE)
    return DIALECTS[f"{said[1].lower()}list" if said else next(read_elements(source)).path[0]]


def _name(source: str) -> str:
    name = source.rstrip("/").rsplit("/", 1)[-1]
    known, ending = _ENDINGS[expect(source, *RUNS)]
    return name if re.search(known, name, re.IGNORECASE) else name + ending
