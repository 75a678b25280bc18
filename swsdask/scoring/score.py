"""Scores of systems: statistics over cells, then measures, then tables of results in canonical order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Protocol

import pyarrow as pa

from swsdask.archive.protocols import Archive, Run
from swsdask.archive.reference_tables import HALF_TICKS_PER_SECOND, audio_time
from swsdask.execution.executor import Executor, Progress, Unseen, run_tasks
from swsdask.measures.averages import counts_present_only
from swsdask.measures.measure import Measure, Scored
from swsdask.measures.notes import Note, listed
from swsdask.measures.processing_load import ProcessingLoad
from swsdask.model.errors import ArchiveError
from swsdask.model.resources import SECONDS_PER_HOUR
from swsdask.model.results import ALIGNMENT, CURVES, SCORES
from swsdask.model.settings import EngineSettings, Settings
from swsdask.model.trials import Reference
from swsdask.scoring.alignment_table import align_systems, check_complete
from swsdask.scoring.result_tables import CountedSystem, label_of, results_of
from swsdask.scoring.rounds import Found, Round, groups, merge, rounds, statistics_of, tasks
from swsdask.statistics.counts import Counts
from swsdask.statistics.statistic import Statistic


@dataclass(frozen=True, eq=False)
class Tables:
    """The results of some systems: tables of `model.results`, the alignment if it was requested, and notes.

    `notes` are those to read, a line for many systems; `notes_of` are all of them, by system.
    """

    scores: pa.Table
    curves: pa.Table
    alignment: pa.Table | None
    notes: tuple[str, ...]
    notes_of: dict[str, list[str]]


class Observer(Protocol):
    """Takes what it needs of every system while that is scored."""

    needs: ClassVar[tuple[type[Statistic], ...]]

    def see(self, system: str, scored: Scored) -> None:
        """Take it. Called once per system."""
        ...


def score_archive(
    archive: Archive,
    systems: Sequence[str],
    reference: Reference,
    families: Sequence[Measure],
    settings: Settings,
    executor: Executor,
    *,
    measures: Sequence[str] | None = None,
    alignment: bool = False,
    progress: Progress | None = None,
    observer: Observer | None = None,
) -> Tables:
    """Score some systems of an archive.

    The client merges no numbers: each system is a task of its own, from its statistics to its tables.

    Parameters
    ----------
    archive
        What holds the runs.
    systems
        Which of them, in the order of the results.
    reference
        What was spoken and what a trial is.
    families
        The measures, with the statistics that they need.
    settings
        Those of the evaluation and of the engine.
    executor
        Where cells are counted and numbers computed.
    measures
        The names of the requested numbers; None: all of `families`.
    alignment
        Whether the alignment of every system is requested.
    progress
        What is told how far the work is.
    observer
        What is shown each system, in the client.

    Raises
    ------
    InputError
        For a run that leaves out trials where `impute` calls that an error.
    ArchiveError, ExecutionError, ClusterError
        As `score_systems` does.
    """
    shown = progress or Unseen()
    scores, curves = [SCORES.empty_table()], [CURVES.empty_table()]
    notes: dict[str, tuple[Note, ...]] = {}
    runs = {run.system: run for run in runs_of(archive, systems)}
    shared = executor.share(reference), executor.share((settings.evaluation, measures))
    beside = (
        *((Counts,) if counts_present_only(settings.evaluation) else ()),
        *(() if observer is None else observer.needs),
    )
    rows = {label_of(system): run.rows for system, run in runs.items()}
    done = 0
    for group in _counted_groups(archive, runs, reference, families, executor, settings.engine, shown, beside):
        waiting = [
            CountedSystem(system, found, [of_run(family, runs[system], archive) for family in families])
            for system, found in group.items()
        ]
        for each in waiting:
            if settings.evaluation.impute == "error" and Counts in each.statistics:
                check_complete(archive, runs[each.system], each.statistics[Counts], reference)
            if observer is not None:
                observer.see(each.system, Scored(each.statistics, reference, settings.evaluation))
        shown.begin(f"{_which(done + 1, len(waiting), len(runs))}numbers", sum(runs[name].rows for name in group))
        every = run_tasks(executor, results_of, waiting, shared, str, lambda label: shown.advance(rows[label]))
        for each, results in zip(waiting, every, strict=True):
            scores.append(results.scores.cast(SCORES))
            curves.append(results.curves.cast(CURVES))
            notes[each.system] = results.notes
        done += len(waiting)
    aligned = None
    if alignment:
        parts = align_systems(archive, systems, reference, executor, settings.engine, shown)
        aligned = pa.concat_tables([ALIGNMENT.empty_table(), *parts]).combine_chunks()
    return Tables(
        scores=pa.concat_tables(scores).combine_chunks(),
        curves=pa.concat_tables(curves).combine_chunks(),
        alignment=aligned,
        notes=tuple(dict.fromkeys(_joined(notes))),
        notes_of={system: [note.text for note in own] for system, own in notes.items() if own},
    )


FEW_SYSTEMS = 3
"""A note is repeated for so many systems; what holds for more of them is one line."""


def _joined(notes: Mapping[str, Sequence[Note]]) -> Iterator[str]:
    """A line for every note of a system, the same line for what holds for many systems or, word by word, for all."""
    holders: dict[str, list[str]] = {}
    texts: dict[str, set[str]] = {}
    for system, own in notes.items():
        for note in own:
            holders.setdefault(note.summary, []).append(system)
            texts.setdefault(note.summary, set()).add(note.text)
    for system, own in notes.items():
        for note in own:
            who, same = holders[note.summary], len(texts[note.summary]) == 1
            if same and len(who) == len(notes) > 1:
                yield f"all systems: {note.text}"
            elif len(who) <= FEW_SYSTEMS:
                yield f"{system}: {note.text}"
            else:
                what = note.text if same else note.summary
                yield f"{len(who)} of {len(notes)} systems ({listed(who, FEW_SYSTEMS)}): {what}"


def score_systems(
    archive: Archive,
    systems: Sequence[str],
    reference: Reference,
    families: Sequence[Measure],
    executor: Executor,
    settings: EngineSettings,
    progress: Progress,
) -> Iterator[tuple[str, Found]]:
    """Each system with the merged statistics that the measures need, in the order of `systems`.

    Raises `ArchiveError` for a system without a run, `ExecutionError` naming cell, system and file where a task fails,
    the `SwsdaskError` that reading or alignment raised, `ClusterError` where the cluster is lost.
    """
    runs = {run.system: run for run in runs_of(archive, systems)}
    for group in _counted_groups(archive, runs, reference, families, executor, settings, progress):
        yield from group.items()


def _counted_groups(
    archive: Archive,
    runs: Mapping[str, Run],
    reference: Reference,
    families: Sequence[Measure],
    executor: Executor,
    settings: EngineSettings,
    progress: Progress,
    beside: Sequence[type[Statistic]] = (),
) -> Iterator[dict[str, Found]]:
    """Group by group, the merged statistics that the measures need, and those `beside`, of each system in `runs`."""
    order = rounds((*beside, *(needed for family in families for needed in family.needs)))
    known_everywhere = executor.share(reference)
    workers = executor.workers
    first = 1
    for group in groups(runs.values(), workers, settings.rows_per_task):
        scores = {run.system: run.scores for run in group}
        found: dict[str, dict[type, object]] = {run.system: {} for run in group}
        for number, statistics in enumerate(order, 1):
            this = Round.of(statistics, scores, found, reference)
            needing = [run for run in group if run.system in this.prepared]
            if not needing:
                continue
            phase = f"{_which(first, len(group), len(runs))}round {number} of {len(order)}"
            progress.begin(phase, sum(run.rows for run in needing))
            merged = executor.map_reduce(
                statistics_of,
                tasks(archive, needing, workers, settings.rows_per_task),
                merge,
                (known_everywhere, executor.share(this)),
                done=lambda task: progress.advance(task.rows),
            )
            for name, values in (merged or {}).items():
                found[name].update(values)
        first += len(group)
        yield dict(found)


def runs_of(archive: Archive, systems: Sequence[str]) -> list[Run]:
    """The runs of some systems, in their order. Raises `ArchiveError` for a system that the archive does not hold."""
    runs = {run.system: run for run in archive.runs}
    missing = [system for system in systems if system not in runs]
    if missing:
        raise ArchiveError(f"no run of {', '.join(missing)}; there are: {', '.join(runs) or 'none'}.")
    return [runs[system] for system in systems]


def of_run(family: Measure, run: Run, archive: Archive) -> Measure:
    """The family as it measures one run: what the system took is told of the run, not found in its detections."""
    if run.resources is None or not isinstance(family, ProcessingLoad):
        return family
    half_ticks = sum(audio_time(archive.documents, "none").values())
    return ProcessingLoad(run.resources, Fraction(half_ticks, HALF_TICKS_PER_SECOND * SECONDS_PER_HOUR))


def _which(first: int, count: int, every: int) -> str:
    """Which of the systems a phase of the work is about; nothing where it is about all of them."""
    some = f"system {first}" if count == 1 else f"systems {first}-{first + count - 1}"
    return "" if count == every else f"{some} of {every}, "
