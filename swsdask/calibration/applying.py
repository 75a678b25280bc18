"""Applying a map of scores to runs.

Runs are read, mapped and written piece by piece, in flat memory, each in the format of its source.
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.calibration.maps import AffineMap, StepMap
from swsdask.execution.executor import Executor, SerialExecutor
from swsdask.formats.recognise import RUNS, TYPED, AnyFormat, Format, expect
from swsdask.formats.runs.encoding import Encoding
from swsdask.formats.runs.read import read_run
from swsdask.formats.runs.rewrite import in_system, rewrite_table, stays_table, system_to_add
from swsdask.formats.runs.write import Losses, writer_of
from swsdask.formats.runs.write_xml import write_lists
from swsdask.formats.runs.xml import DIALECTS, Dialect
from swsdask.formats.xml_stream import read_elements
from swsdask.model.errors import InputError, Problem, Problems
from swsdask.model.safe_text import without_secrets
from swsdask.model.schemas import RunPiece
from swsdask.model.trials import F64
from swsdask.places.reading import Pipe, before_query, is_folder, is_local, join_path, parted
from swsdask.places.writing import together

_FILE = re.compile(r"\.(xml|tsv|csv)(\.gz|\.zst)?$|\.parquet$", re.IGNORECASE)
_ENDINGS: dict[AnyFormat, tuple[str, str]] = {
    Format.RUN_XML: (r"\.xml(\.gz|\.zst)?$", ".xml"),
    **dict.fromkeys(TYPED, (r"\.parquet$", ".parquet")),
}
_OF_TABLES = r"\.[tc]sv(\.gz|\.zst)?$", ".tsv"
"""By format: the pattern that the name of a run must match, and the ending that is appended if it does not. Runs in
other formats become tables in text."""


def target_files(sources: Sequence[str], out: str) -> list[str]:
    """Return the target file of each run. `out` is a folder unless its name has the ending of a run.

    In a folder, a run keeps its name; an ending is appended if the name does not show the format. A run that is neither
    XML nor Parquet becomes a table in text. Raises `InputError` if a target is one of the runs that are read, if two
    runs have the same target, or if `out` is a file and there are several runs, and as `expect` does.
    """
    if _FILE.search(out) and not is_folder(out):
        if len(sources) > 1:
            raise InputError(Problem(out, None, "a folder for several runs", "a file", "Name a folder."))
        targets = [out]
    else:
        targets = [join_path(out, _name(source)) for source in sources]
    uses, given = Counter(targets), {*sources}
    existing = {target for target in uses if (os.path.exists(target) if is_local(target) else target in given)}
    for source, target in zip(sources, targets, strict=True):
        if uses[target] > 1:
            found = "runs of several folders with the same name"
            raise InputError(Problem(target, None, "one run for each file", found, "Apply it folder by folder."))
        if target in existing and any(_are_same(each, target) for each in sources):
            raise InputError(Problem(target, None, "a new file", f"the run {source}", "Name another folder."))
    return targets


def _are_same(source: str, target: str) -> bool:
    if is_local(source) and is_local(target):
        return os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target)
    return source == target


def write_like(source: str, pieces: Iterable[RunPiece], target: str) -> None:
    """Write the pieces of one run, in the format that the name of the target shows.

    Lists of detections are written piece by piece, in their own dialect unless the name has another ending. Memory is
    bounded by the largest piece, unless a table becomes lists.
    """
    dialect = _dialect(source, target)
    if dialect is None:
        writer_of(target)(pieces, target)
    else:
        write_lists(pieces, dialect, target)


def _dialect(source: str, target: str) -> Dialect | None:
    """Return the dialect in which a list of detections is written; None for a table, as source or target."""
    if expect(source, *RUNS) is not Format.RUN_XML or not re.search(_ENDINGS[Format.RUN_XML][0], target, re.IGNORECASE):
        return None
    named = re.search(r"\.(kws|std)list\.", target, re.IGNORECASE)
    return DIALECTS[f"{named[1].lower()}list" if named else next(read_elements(source)).path[0]]


def _name(source: str) -> str:
    name = before_query(source)[0].rstrip("/").rsplit("/", 1)[-1]
    known, ending = _ENDINGS.get(expect(source, *RUNS), _OF_TABLES)
    return name if re.search(known, name, re.IGNORECASE) else name + ending


@dataclass
class Applied:
    """A run that was written: `rows` with scores from `lowest` to `highest`, of which `accepted` are decided YES.

    `systems` are the systems of the rows. `rounded` counts times finer than 0.1 ms. `dropped` lists what the written
    run lacks (see `formats.runs.write.Losses`). A table in text that stays one keeps everything.
    """

    source: str
    target: str
    rows: int = 0
    accepted: int = 0
    lowest: float = np.inf
    highest: float = -np.inf
    rounded: int = 0
    dropped: tuple[str, ...] = ()
    systems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Application:
    """The options of mapping runs: see `apply_to_runs`."""

    score_map: AffineMap | StepMap
    threshold: float | None
    encoding: Encoding | None


@dataclass(frozen=True)
class _Run:
    """A run, its target, and the temporary file beside the target."""

    source: str
    target: str
    beside: str

    def __str__(self) -> str:
        return without_secrets(self.source)


def apply_to_runs(
    score_map: AffineMap | StepMap,
    sources: Sequence[str],
    out: str,
    threshold: float | None,
    encoding: Encoding | None = None,
    executor: Executor | None = None,
) -> list[Applied]:
    """Write runs with mapped scores and new decisions: YES at or above `threshold`.

    A threshold of None keeps the decisions. Declared minimum and maximum scores are mapped too. For `out` see
    `target_files`. `encoding` describes the tables that are read; the written tables have seconds, and scores that rise
    with confidence. Each run is a task of the `executor`; None: this process writes them. Either all files are written
    or none. Raises `InputError` with every problem of the runs, and for targets that cannot be written.
    """
    targets = target_files(sources, out)
    problems = Problems()
    done = []
    folder = parted(targets[0])[0] if targets else ""
    executor = executor or SerialExecutor()
    with together(folder or ".") as hidden:
        place = hidden.resolve()
        probe = place / "probe"
        probe.touch()
        executor.check([str(probe), *(source for source in sources if not isinstance(source, Pipe))])
        probe.unlink()
        both = zip(sources, targets, strict=True)
        runs = [_Run(source, target, str(place / parted(target)[1])) for source, target in both]
        shared = executor.share(_Application(score_map, threshold, encoding))
        for applied, faults in executor.map(_apply_to_run, runs, shared, name="apply"):
            done.append(applied)
            problems.extend(faults)
        problems.raise_if_any()
    return done


def _apply_to_run(run: _Run, how: _Application) -> tuple[Applied, Problems]:
    """Write a run beside its target. Also return its problems."""
    applied, problems = Applied(run.source, run.target), Problems()
    read = read_run(run.source, problems, encoding=how.encoding)
    dialect = _dialect(run.source, run.target)
    losses = Losses(run.target if dialect is None else f"*.{dialect.root}.xml")
    pieces = (_map_piece(piece, how.score_map, how.threshold, applied, losses) for piece in read)
    if not how.encoding and stays_table(run.source, run.target):
        deque(pieces, 0)
        losses = Losses(run.target)
        if not len(problems):
            _rewrite(run, how)
    for first in pieces:
        write_like(run.source, chain([first], pieces), run.beside)
    applied.rounded, applied.dropped = losses.rounded, losses.dropped
    return applied, problems


def _rewrite(run: _Run, how: _Application) -> None:
    """Write a table as a table, beside its target. It keeps its columns and digits."""
    system = system_to_add(run.source, run.target)

    def anew(scores: F64) -> dict[str, pa.StringArray]:
        mapped = how.score_map(scores)
        values = {"score": pa.array(mapped).cast(pa.string())}
        if how.threshold is not None:
            values["decision"] = pc.if_else(pa.array(mapped >= how.threshold), "YES", "NO")
        return {**values, **in_system(system, scores)}

    rewrite_table(run.source, run.beside, anew)


def _map_piece(
    piece: RunPiece, score_map: AffineMap | StepMap, threshold: float | None, applied: Applied, losses: Losses
) -> RunPiece:
    header = piece.header
    if header.declared_scores:
        low, high = score_map(np.array(header.declared_scores)).tolist()
        header = replace(header, declared_scores=(low, high))
    score = score_map(piece.score)
    beyond = np.isfinite(piece.score) & ~np.isfinite(score)
    if beyond.any():
        found = repr(float(piece.score[beyond][0]))
        expected = "scores with finite log-likelihood ratios"
        raise InputError(Problem(piece.file, None, expected, found, "Was the calibration fitted on such scores?"))
    decision = piece.decision if threshold is None else (score >= threshold).astype(np.int8)
    applied.rows += len(piece)
    applied.accepted += int((decision == 1).sum())
    applied.lowest = min(applied.lowest, score.min(initial=np.inf))
    applied.highest = max(applied.highest, score.max(initial=-np.inf))
    losses.add(piece)
    if header.system not in applied.systems:
        applied.systems.append(header.system)
    return replace(piece, header=header, score=score, decision=decision)
