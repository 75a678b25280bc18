"""Scores of systems: statistics over cells, then measures, then tables of results in canonical order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from swsdask.archive.protocols import Archive, Run
from swsdask.archive.reference_tables import HALF_TICKS_PER_SECOND, audio_time
from swsdask.execution.executor import Executor, Progress, Unseen
from swsdask.measures import curves, system_notes
from swsdask.measures.averages import counts_present_only
from swsdask.measures.measure import Measure, Scored
from swsdask.measures.names import family_name
from swsdask.measures.processing_load import ProcessingLoad
from swsdask.model.errors import ArchiveError
from swsdask.model.resources import SECONDS_PER_HOUR
from swsdask.model.results import ALIGNMENT, CURVES, SCORES
from swsdask.model.settings import EngineSettings, Settings
from swsdask.model.trials import F64, I64, Reference
from swsdask.scoring.alignment_table import align_systems, check_complete
from swsdask.scoring.rounds import Found, Round, groups, merge, rounds, statistics_of, tasks
from swsdask.statistics.counts import Counts
from swsdask.statistics.statistic import Statistic


def score_table(system: str, scored: Scored, measures: Sequence[Measure], names: Sequence[str] | None) -> pa.Table:
    """The numbers of one system as rows of `SCORES`; of `names` only, None: all that the measures yield.

    The name `twv@` stands for `twv@0.5` and all others. Ordered by condition, then the numbers over all queries before
    those of each query in the order of the list, then by measure in the order of `measures`.
    """
    conditions = [condition.name for condition in scored.reference.conditions]
    requested = None if names is None else {*names}
    columns: list[tuple[str, int, I64, F64]] = [
        (name, conditions.index(values.condition), _OVERALL if values.queries is None else values.queries, column)
        for measure in measures
        for values in measure.values(scored)
        for name, column in values.columns.items()
        if requested is None or name in requested or family_name(name) in requested
    ]
    lengths = [len(column) for *_, column in columns]
    condition = np.repeat(np.array([at for _, at, _, _ in columns], np.int64), lengths)
    query = np.concatenate([_OVERALL[:0], *(queries for _, _, queries, _ in columns)])
    order = np.argsort(condition * (len(scored.reference.query_ids) + 1) + query, kind="stable")
    query = query[order]
    return pa.table(
        [
            pa.array([system]).take(pa.array(np.zeros(len(order), np.int64))),
            pa.array(conditions, pa.string()).take(pa.array(condition[order])),
            pa.array(scored.reference.query_ids, pa.string()).take(pa.array(query, mask=query < 0)),
            _repeated([name for name, *_ in columns], lengths).take(pa.array(order)),
            np.concatenate([np.empty(0), *(column for *_, column in columns)])[order],
        ],
        schema=SCORES,
    )


_OVERALL = np.array([-1])
"""Stands for the numbers of queries where a number is over all of them."""


def curve_table(system: str, scored: Scored) -> pa.Table:
    """The curves of one system as rows of `CURVES`: of each kind by condition, those whose statistics were found."""
    drawn = list(curves(scored))
    points = [len(curve.threshold) for curve in drawn]
    return pa.table(
        [
            _repeated([system] * len(drawn), points),
            _repeated([curve.condition for curve in drawn], points),
            _repeated([curve.curve for curve in drawn], points),
            *(
                np.concatenate([getattr(curve, axis) for curve in drawn] or [np.empty(0)])
                for axis in ("threshold", "x", "y")
            ),
        ],
        schema=CURVES,
    )


def _repeated(texts: Sequence[str], times: Sequence[int]) -> pa.Array:
    return pa.array(texts, pa.string()).take(pa.array(np.repeat(np.arange(len(texts)), times)))


@dataclass(frozen=True, eq=False)
class Tables:
    """What scoring gives: tables of `model.results`, the alignment if it was asked for, and notes on systems."""

    scores: pa.Table
    curves: pa.Table
    alignment: pa.Table | None
    notes: tuple[str, ...]


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
) -> Tables:
    """The numbers of some systems of an archive, in the order of `systems`.

    `measures` are the names that are asked for (None: all that `families` yield). Raises what `score_systems` does,
    and `InputError` for a run that leaves out trials where `impute` calls that an error.
    """
    scores, curves, notes = [SCORES.empty_table()], [CURVES.empty_table()], []
    runs = {run.system: run for run in archive.runs}
    for system, found in score_systems(
        archive,
        systems,
        reference,
        families,
        executor,
        settings.engine,
        progress or Unseen(),
        beside=(Counts,) if counts_present_only(settings.evaluation) else (),
    ):
        if settings.evaluation.impute == "error" and Counts in found:
            check_complete(archive, runs[system], found[Counts], reference)
        scored = Scored(found, reference, settings.evaluation)
        its_families = [of_run(family, runs[system], archive) for family in families]
        scores.append(score_table(system, scored, its_families, measures))
        curves.append(curve_table(system, scored))
        notes += [(system, note) for note in system_notes(scored)]
    aligned = None
    if alignment:
        rows = align_systems(archive, systems, reference, executor, settings.engine, progress or Unseen())
        aligned = pa.concat_tables([ALIGNMENT.empty_table(), *rows]).combine_chunks()
    return Tables(
        scores=pa.concat_tables(scores).combine_chunks(),
        curves=pa.concat_tables(curves).combine_chunks(),
        alignment=aligned,
        notes=_told(notes, len(systems)),
    )


def _told(notes: Sequence[tuple[str, str]], n_systems: int) -> tuple[str, ...]:
    """The notes of systems in their order; what is so for all of several is said once."""
    times = Counter(note for _, note in notes)
    everywhere = {note for note, number in times.items() if number == n_systems > 1}
    return tuple(
        dict.fromkeys(f"all systems: {note}" if note in everywhere else f"{system}: {note}" for system, note in notes)
    )


def score_systems(
    archive: Archive,
    systems: Sequence[str],
    reference: Reference,
    families: Sequence[Measure],
    executor: Executor,
    settings: EngineSettings,
    progress: Progress,
    *,
    beside: Sequence[type[Statistic]] = (),
) -> Iterator[tuple[str, Found]]:
    """Each system with the merged statistics that the measures need, and those `beside`, in the order of `systems`.

    Raises `ArchiveError` for a system without a run, `ExecutionError` naming cell, system and file where a task fails,
    the `SwsdaskError` that reading or alignment raised, `ClusterError` where the cluster is lost.
    """
    order = rounds((*beside, *(needed for family in families for needed in family.needs)))
    known_everywhere = executor.share(reference)
    workers = executor.workers
    first = 1
    for group in groups(runs_of(archive, systems), workers, settings.rows_per_task):
        scores = {run.system: run.scores for run in group}
        found: dict[str, dict[type, object]] = {run.system: {} for run in group}
        for number, statistics in enumerate(order, 1):
            this = Round.of(statistics, scores, found, reference)
            needing = [run for run in group if run.system in this.prepared]
            if not needing:
                continue
            phase = _phase(first, len(group), len(systems), number, len(order))
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
        yield from found.items()


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


def _phase(first: int, count: int, every: int, number: int, of: int) -> str:
    some = f"system {first}" if count == 1 else f"systems {first}-{first + count - 1}"
    which = "" if count == every else f"{some} of {every}, "
    return f"{which}round {number} of {of}"
