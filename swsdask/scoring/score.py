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
from swsdask.measures.averages import knows_absent, without_absent
from swsdask.measures.measure import Measure
from swsdask.measures.names import family_name
from swsdask.measures.processing_load import ProcessingLoad
from swsdask.model.errors import ArchiveError
from swsdask.model.resources import SECONDS_PER_HOUR
from swsdask.model.results import ALIGNMENT, CURVES, SCORES
from swsdask.model.settings import EngineSettings, EvaluationSettings, Settings
from swsdask.model.trials import Reference
from swsdask.scoring.alignment_table import align_systems, check_complete
from swsdask.scoring.rounds import Found, Round, groups, merge, rounds, statistics_of, tasks
from swsdask.statistics.counts import Counts
from swsdask.statistics.statistic import Statistic


def score_table(
    system: str,
    found: Found,
    measures: Sequence[Measure],
    names: Sequence[str] | None,
    reference: Reference,
    settings: EvaluationSettings,
) -> pa.Table:
    """The numbers of one system as rows of `SCORES`; of `names` only, None: all that the measures yield.

    The name `twv@` stands for `twv@0.5` and all others. Ordered by condition, then the numbers over all queries before
    those of each query in the order of the list, then by measure in the order of `measures`.
    """
    condition_rank = {condition.name: rank for rank, condition in enumerate(reference.conditions)}
    query_rank: dict[str | None, int] = {query: rank for rank, query in enumerate(reference.query_ids)}
    query_rank[None] = -1
    asked = None if names is None else {*names}
    values = [
        value
        for measure in measures
        for value in measure.values(found, reference, settings)
        if asked is None or value.measure in asked or family_name(value.measure) in asked
    ]
    values.sort(key=lambda value: (condition_rank[value.condition], query_rank[value.query]))
    condition, query, measure, number = zip(*values, strict=True) if values else ((), (), (), ())
    return pa.table([[system] * len(values), condition, query, measure, number], schema=SCORES)


def curve_table(system: str, found: Found, reference: Reference, settings: EvaluationSettings) -> pa.Table:
    """The curves of one system as rows of `CURVES`: of each kind by condition, those whose statistics were found."""
    drawn = list(curves(found, reference, settings))
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
    by_presence = knows_absent(settings.evaluation)
    for system, found in score_systems(
        archive,
        systems,
        reference,
        families,
        executor,
        settings.engine,
        progress or Unseen(),
        beside=(Counts,) if by_presence else (),
    ):
        if settings.evaluation.impute == "error" and Counts in found:
            check_complete(archive, runs[system], found[Counts], reference)
        its_families = [of_run(family, runs[system], archive) for family in families]
        its_reference = without_absent(reference, found[Counts]) if by_presence else reference
        scores.append(score_table(system, found, its_families, measures, its_reference, settings.evaluation))
        curves.append(curve_table(system, found, its_reference, settings.evaluation))
        notes += [(system, note) for note in system_notes(found, its_reference, settings.evaluation)]
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
