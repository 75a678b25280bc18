"""A calibration applied to runs: read, mapped and written piece by piece, so that memory does not grow with a run."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from swsdask.calibration.maps import AffineMap, StepMap
from swsdask.calibration.targets import target_files, write_like
from swsdask.errors import InputError, Problem, Problems
from swsdask.formats.run_encoding import Encoding
from swsdask.formats.run_rewrite import rewrite_table, stays_table, system_to_add
from swsdask.formats.runs import read_run
from swsdask.model.runs import RunPiece
from swsdask.model.trials import F64


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
    files keep their names, or for one file a file (see `calibration.targets`). `encoding` is that of tables that are
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
