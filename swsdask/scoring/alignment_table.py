"""The alignment as a table: every trial with its target, and every target without a trial.

Cells come in any order and hold any part of a system's trials, but every (query, document) lies in one cell. So each
cell's rows are sorted in the task that aligns it, stored in a separate file, and then merged: memory does not grow with
the number of trials, and the order of the rows does not depend on the cells. Targets are numbered as in
`Trials.occurrence`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from operator import or_
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdask.archive.decoded import UnknownDocuments
from swsdask.archive.protocols import Archive, Cell, Run
from swsdask.execution.executor import Executor, Progress, naming
from swsdask.model import system_rows
from swsdask.model.columns import distinct_pairs
from swsdask.model.parquet_files import encoded_in_turn
from swsdask.model.results import ALIGNMENT
from swsdask.model.schemas import WITHOUT_TIMES
from swsdask.model.settings import EngineSettings
from swsdask.model.trials import I64, Bool, Detections, Reference, ScoreRange, Trials, given_scores
from swsdask.model.units import TICKS_PER_SECOND
from swsdask.places.writing import temporary_folder
from swsdask.scoring.detections import FEW_ROWS, CellTask, cell_name, read_ahead, tasks
from swsdask.statistics.alignment import make_trials, trial_columns
from swsdask.statistics.segment_trials import targets_of_segments

ABSENT = int(np.iinfo(np.int64).min)
"""The value of the channel or times of a target without them."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Equally long int64 columns; times in ticks."""

    query: I64
    document: I64
    channel: I64
    start: I64
    end: I64


def targets_of(reference: Reference) -> Targets:
    """Occurrences for virtual trials; for the others (query, segment) or (query, document) with an occurrence."""
    if reference.rule.trials == "virtual":
        return _targets(reference.query, reference.document, reference.channel, reference.start, reference.end)
    if reference.rule.trials == "document":
        query, document = distinct_pairs(reference.query, reference.document)
        absent = np.full(len(query), ABSENT)
        return _targets(query, document, absent, absent, absent)
    segments = reference.segments
    if segments is None:
        raise ValueError("segment trials need segments")
    query, segment = targets_of_segments(reference, segments)
    return _targets(query, *(getattr(segments, name)[segment] for name in ("document", "channel", "start", "end")))


def _targets(*columns: np.ndarray[tuple[int], np.dtype[np.integer]]) -> Targets:
    return Targets(*(column.astype(np.int64) for column in columns))


Rows = NDArray[np.void]

ROW = np.dtype(
    [
        ("query", np.int32),
        ("document", np.int32),
        ("channel", np.int64),
        ("reference_start", np.int64),
        ("reference_end", np.int64),
        ("start", np.int64),
        ("end", np.int64),
        ("score", np.float64),
        ("decision", np.int8),
        ("outcome", np.int8),
    ]
)
"""A row of the alignment, before codes are replaced by ids, ticks by seconds, and integers `ABSENT` by nulls."""

OUTCOMES = ("hit", "miss", "false_alarm", "correct_nondetection")
HIT, MISS, FALSE_ALARM, CORRECT_NONDETECTION = range(4)

ROWS_AT_ONCE = 250_000
"""The number of rows that a task aligns, and the approximate number of rows of a table."""


def align_systems(
    archive: Archive,
    runs: Sequence[Run],
    reference: Reference,
    executor: Executor,
    settings: EngineSettings,
    progress: Progress,
    spill: system_rows.Spill,
) -> dict[str, system_rows.Rows]:
    """Return the rows of `model.results.ALIGNMENT` of each run, encoded, in memory or spilled.

    A run of at most `FEW_ROWS` detections is one task. The cells of a larger one are tasks, and merged here.

    Rows are ordered by system as given, query as in the list, document as in the evaluation; within a document first
    the trials by channel, start, end and score from the highest, then the targets that no trial is mapped to. Mapped
    trials are hits, or misses if their decision is NO; the others are false alarms, or correct non-detections. Times of
    the reference are those of the occurrence or the segment, null for document trials; times of a run without times are
    null. Documents that are not in the evaluation come before the others, by id; an archive of a release that did not
    keep their ids gives "".
    """
    known_everywhere = executor.share(reference)
    rows_per_task = min(ROWS_AT_ONCE, settings.rows_per_task)
    small = [run for run in runs if run.rows <= FEW_ROWS]
    found: dict[str, system_rows.Rows] = {}
    progress.begin("alignment", sum(run.rows for run in runs))
    whole = (_WholeRun(run, tuple(archive.cells(run.system, rows_per_task))) for run in small)
    for system, content in executor.map(
        _align_whole, whole, known_everywhere, done=lambda each: progress.advance(each.run.rows), name="alignment"
    ):
        found[system] = spill.hold(content, ALIGNMENT)
    n_targets = len(targets_of(reference).query)
    for run in (run for run in runs if run.rows > FEW_ROWS):
        work = tasks(archive.cells, [run], executor.workers, rows_per_task)
        mapped = np.zeros(n_targets, np.bool_)
        with temporary_folder() as folder:
            parts: list[Rows] = []
            unknown = UnknownDocuments.of(run)
            for aligned in _aligned(executor, work, known_everywhere, (run.scores, unknown), progress):
                mapped[aligned.mapped] = True
                parts.append(_put_by(aligned.rows, folder / f"{len(parts)}.npy"))
            found[run.system] = spill.hold(_encoded(run, parts, mapped, reference, unknown), ALIGNMENT)
    return found


@dataclass(frozen=True, eq=False)
class _WholeRun:
    """A small run, and its cells."""

    run: Run
    cells: tuple[Cell, ...]

    def __str__(self) -> str:
        return f"alignment of {self.run.system}"


def _align_whole(whole: _WholeRun, reference: Reference) -> tuple[str, pa.Buffer]:
    """Return the encoded rows of a small run."""
    run, unknown = whole.run, UnknownDocuments.of(whole.run)
    mapped = np.zeros(len(targets_of(reference).query), np.bool_)
    parts = []
    if whole.cells:
        (aligned,) = _align((0, CellTask(whole.cells)), (reference, (run.scores, unknown))).values()
        mapped[aligned.mapped] = True
        parts.append(aligned.rows)
    return run.system, _encoded(run, parts, mapped, reference, unknown)


def _encoded(
    run: Run, parts: Sequence[Rows], mapped: Bool, reference: Reference, unknown: UnknownDocuments
) -> pa.Buffer:
    """Return the rows of sorted parts, and the targets without a trial, as a Parquet file."""
    missed = _missed(targets_of(reference), ~mapped)
    return encoded_in_turn((_table(run, rows, reference, unknown) for rows in _merged([*parts, missed])), ALIGNMENT)


@dataclass(frozen=True, eq=False)
class Aligned:
    """Some cells' trials in canonical order, and the numbers of the targets that they are mapped to."""

    rows: Rows
    mapped: I64


def _aligned(
    executor: Executor,
    work: Iterator[CellTask],
    reference: Reference,
    of_run: tuple[ScoreRange, UnknownDocuments],
    progress: Progress,
) -> Iterator[Aligned]:
    """Align the tasks, a few at a time, and yield the results in order."""
    shared = (reference, executor.share(of_run))
    while some := list(enumerate(islice(work, 2 * executor.workers))):
        parts = executor.map_reduce(
            _align,
            some,
            or_,
            shared,
            label=lambda numbered: str(numbered[1]),
            done=lambda numbered: progress.advance(numbered[1].rows),
        )
        yield from (parts or {}).values()


def _align(
    numbered: tuple[int, CellTask], shared: tuple[Reference, tuple[ScoreRange, UnknownDocuments]]
) -> dict[int, Aligned]:
    number, task = numbered
    reference, (scores, unknown) = shared
    targets = targets_of(reference)
    every = ("document", "channel", "start", "duration", "decision", "unknown_document")
    columns = list(dict.fromkeys([*trial_columns(reference.rule, reference.n_groups, True), *every]))
    rows, mapped = [], []
    with closing(read_ahead(task.cells, [columns] * len(task.cells), [True] * len(task.cells))) as reads:
        for cell in task.cells:
            with naming(cell, cell_name):
                detections = next(reads)
                trials = make_trials(detections, reference, scores, aligned=True, source=cell.source)
                rows.append(_rows(trials, detections, targets, unknown))
            mapped.append(np.asarray(trials.occurrence, np.int64))
    return {number: Aligned(_in_order(np.concatenate(rows)), np.concatenate(mapped))}


def _rows(trials: Trials, detections: Detections, targets: Targets, unknown: UnknownDocuments) -> Rows:
    """Return the trials of a cell, in their own order."""
    rows = np.zeros(len(trials), ROW)
    at: slice | I64 = slice(None) if trials.row is None else trials.row
    for name in ("query", "channel", "start", "score"):
        rows[name] = getattr(detections, name)[at]
    rows["document"] = unknown.codes(detections)[at]
    rows["end"] = rows["start"] + np.asarray(detections.duration)[at]
    rows["decision"] = -1 if trials.decision is None else trials.decision
    for name in ("reference_start", "reference_end"):
        rows[name] = ABSENT
    hit = np.asarray(trials.hit)
    rows["reference_start"][hit] = targets.start[trials.occurrence]
    rows["reference_end"][hit] = targets.end[trials.occurrence]
    mapped = np.zeros(len(trials), np.bool_)
    mapped[hit] = True
    refused = rows["decision"] == 0
    rows["outcome"] = np.where(
        mapped, np.where(refused, MISS, HIT), np.where(refused, CORRECT_NONDETECTION, FALSE_ALARM)
    )
    return rows


def _in_order(rows: Rows) -> Rows:
    keys = ("outcome", "reference_end", "reference_start", "decision")
    place = ("end", "start", "channel", "document", "query")
    return rows[np.lexsort([*(rows[name] for name in keys), -rows["score"], *(rows[name] for name in place)])]


def _missed(targets: Targets, wanted: Bool) -> Rows:
    """Return the targets that no trial is mapped to, in canonical order."""
    rows = np.zeros(int(wanted.sum()), ROW)
    for name in ("query", "document", "channel"):
        rows[name] = getattr(targets, name)[wanted]
    rows["reference_start"], rows["reference_end"] = targets.start[wanted], targets.end[wanted]
    rows["start"] = rows["end"] = ABSENT
    rows["score"], rows["decision"], rows["outcome"] = np.nan, -1, MISS
    keys = ("reference_end", "reference_start", "channel", "document", "query")
    return rows[np.lexsort([rows[name] for name in keys])]


def _put_by(rows: Rows, file: Path) -> Rows:
    """Write rows to disk, and return them as a memory map."""
    if not len(rows):
        return rows
    np.save(file, rows)
    kept: Rows = np.load(file, mmap_mode="r")
    return kept


def _merged(parts: Sequence[Rows]) -> Iterator[Rows]:
    """Merge sorted parts, in pieces of whole (query, document) pairs; rows of equal pairs keep the order of parts."""
    keys = [_key(part) for part in parts]
    every, counts = np.unique(np.concatenate(keys), return_counts=True)
    begin = 0
    filled = np.cumsum(counts)
    while begin < len(every):
        before = filled[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(filled, before + ROWS_AT_ONCE, "right")))
        low, high = every[begin], every[end - 1]
        pieces = [
            part[np.searchsorted(key, low, "left") : np.searchsorted(key, high, "right")]
            for part, key in zip(parts, keys, strict=True)
        ]
        piece = np.concatenate(pieces)
        yield piece[np.argsort(_key(piece), kind="stable")]
        begin = end


def _key(rows: Rows) -> I64:
    """Query and document as one number that sorts as they do."""
    key: I64 = (rows["query"].astype(np.int64) << 32) + rows["document"]
    return key


def _table(run: Run, rows: Rows, reference: Reference, unknown: UnknownDocuments) -> pa.Table:
    queries, documents = pa.array(reference.query_ids, pa.string()), unknown.names(reference.document_ids)
    document = np.where(rows["document"] < 0, len(documents) + rows["document"], rows["document"])
    undecided, untimed = rows["decision"] < 0, WITHOUT_TIMES in run.attributes
    return pa.table(
        {
            "system": _named(np.zeros(len(rows)), pa.array([run.system])),
            "query": _named(rows["query"], queries),
            "document": _named(document, documents),
            "channel": pa.array(rows["channel"], mask=rows["channel"] == ABSENT).cast(pa.int8()),
            **{name: _seconds(rows[name]) for name in ("reference_start", "reference_end")},
            **{
                name: pa.nulls(len(rows), pa.float64()) if untimed else _seconds(rows[name])
                for name in ("start", "end")
            },
            "score": pa.array(given_scores(rows["score"]), mask=np.isnan(rows["score"])),
            "decision": _named(rows["decision"], pa.array(["NO", "YES"]), undecided),
            "outcome": _named(rows["outcome"], pa.array(OUTCOMES)),
        }
    )


def _named(codes: np.ndarray, names: pa.StringArray, absent: Bool | None = None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32), mask=absent), names)


def _seconds(times: I64) -> pa.Array:
    return pa.array(times / TICKS_PER_SECOND, mask=times == ABSENT)
