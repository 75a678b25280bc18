"""Application of a calibration to runs: read, mapped and written piece by piece, in flat memory.

The result is written in the form of the run that it comes from.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from swsdask.calibration.maps import AffineMap, StepMap
from swsdask.formats.run_encoding import Encoding
from swsdask.formats.run_rewrite import rewrite_table, stays_table, system_to_add
from swsdask.formats.runs.read import read_run
from swsdask.formats.runs.write import write_lists, writer_of
from swsdask.formats.runs.xml import DIALECTS, Dialect
from swsdask.formats.sniff import RUNS, Format, expect
from swsdask.formats.xml_stream import read_elements
from swsdask.model.errors import InputError, Problem, Problems
from swsdask.model.schemas import RunPiece
from swsdask.model.trials import F64

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


@dataclass
class Applied:
    """What became of one file: `rows` with scores from `lowest` to `highest`, of which `accepted` are decided YES.

    `systems` are those whose rows it holds. `rounded` counts times finer than 0.1 ms; `ignored` names the columns of a
    table that are no part of a run and are not written, where it does not stay a table in text.
    """

    source: str
    target: str
    rows: int = 0
    accepted: int = 0
    lowest: float = np.inf
    highest: float = -np.inf
    rounded: int = 0
    ignored: str = ""
    systems: list[str] = field(default_factory=list)


def apply_to_runs(
    score_map: AffineMap | StepMap,
    sources: Sequence[str],
    out: str,
    threshold: float | None,
    encoding: Encoding | None = None,
) -> list[Applied]:
    """Write the runs of some files with their scores mapped, and decided anew: YES at or above `threshold`.

    None keeps the decisions as they are. Declared minimum and maximum scores are mapped too. `out` is a folder, where
    files keep their names, or for one file a file (see `calibration.applying`). `encoding` is that of tables that are
    read; what is written has seconds and rising scores. All files are whole, or none is written.
    Raises `InputError` with everything that is wrong with the runs, and for places that cannot be written.
    """
    targets = target_files(sources, out)
    problems = Problems()
    done = []
    with ExitStack() as unfinished:
        written = []
        for source, target in zip(sources, targets, strict=True):
            folder, name = os.path.split(target)
            os.makedirs(folder or ".", exist_ok=True)
            beside = os.path.join(folder, f".unfinished-{name}")
            unfinished.callback(_remove, beside)
            applied = Applied(source, target)
            read = read_run(source, problems, encoding=encoding)
            pieces = (_mapped(piece, score_map, threshold, applied) for piece in read)
            if not encoding and stays_table(source, target):
                deque(pieces, 0)
                applied.ignored = ""
                if not len(problems):
                    _rewrite(source, target, beside, score_map, threshold)
            for first in pieces:
                write_like(source, chain([first], pieces), beside)
            written.append((beside, target))
            done.append(applied)
        problems.raise_if_any()
        for beside, target in written:
            os.replace(beside, target)
    return done


def _rewrite(source: str, target: str, beside: str, score_map: AffineMap | StepMap, threshold: float | None) -> None:
    """Write a table that stays a table, which has been read, `beside` its target: it keeps its columns and digits."""
    system = system_to_add(source, target)

    def anew(scores: F64) -> dict[str, list[str]]:
        mapped = score_map(scores)
        values = {"score": [repr(score) for score in mapped.tolist()]}
        if threshold is not None:
            values["decision"] = ["YES" if accepted else "NO" for accepted in (mapped >= threshold).tolist()]
        return values if system is None else {**values, "system": [system] * len(scores)}

    rewrite_table(source, beside, anew)


def _mapped(piece: RunPiece, score_map: AffineMap | StepMap, threshold: float | None, applied: Applied) -> RunPiece:
    header = piece.header
    if header.declared_scores:
        low, high = score_map(np.array(header.declared_scores)).tolist()
        header = replace(header, declared_scores=(low, high))
    score = score_map(piece.score)
    if not np.isfinite(score).all():
        found = repr(float(piece.score[~np.isfinite(score)][0]))
        expected = "scores whose log-likelihood ratios a float can hold"
        raise InputError(Problem(piece.file, None, expected, found, "Was the calibration fitted on such scores?"))
    decision = piece.decision if threshold is None else (score >= threshold).astype(np.int8)
    applied.rows += len(piece)
    applied.accepted += int((decision == 1).sum())
    applied.lowest = min(applied.lowest, score.min(initial=np.inf))
    applied.highest = max(applied.highest, score.max(initial=-np.inf))
    applied.rounded += piece.rounded
    applied.ignored = piece.header.attributes.get("ignored_columns", "")
    if header.system not in applied.systems:
        applied.systems.append(header.system)
    return replace(piece, header=header, score=score, decision=decision)


def _remove(path: str) -> None:
    if os.path.exists(path):
        os.remove(path)
