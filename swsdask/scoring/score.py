"""Scores of systems: statistics over cells, then measures, then tables of results in canonical order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

import pyarrow as pa

from swsdask.archive.kept_statistics import KeptStatistics
from swsdask.archive.protocols import Archive, Run
from swsdask.archive.reference_tables import HALF_TICKS_PER_SECOND, audio_time
from swsdask.execution.executor import Executor, Progress, Unseen
from swsdask.measures.averages import counts_present_only
from swsdask.measures.measure import Measure, Scored
from swsdask.measures.processing_load import ProcessingLoad
from swsdask.model.errors import ArchiveError
from swsdask.model.resources import SECONDS_PER_HOUR
from swsdask.model.results import ALIGNMENT
from swsdask.model.settings import EngineSettings, Settings
from swsdask.model.trials import Reference
from swsdask.scoring.alignment_table import align_systems, check_complete
from swsdask.scoring.detections import DetectionSource
from swsdask.scoring.kept_results import KeptResults
from swsdask.scoring.result_tables import CountedRun
from swsdask.scoring.rounds import Found, Tables, count_systems, score_systems
from swsdask.statistics.counts import Counts
from swsdask.statistics.statistic import Statistic


class Observer(Protocol):
    """Takes what it needs of every system while that is scored."""

    @property
    def needs(self) -> tuple[type[Statistic], ...]:
        """The statistics that it looks at."""
        ...

    @property
    def apart(self) -> bool:
        """Whether it needs statistics that keep every document apart."""
        ...

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
    kept: KeptStatistics | None = None,
    results: KeptResults | None = None,
) -> Tables:
    """Score some systems of an archive.

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
        Receives the phases of the work and the rows that are done.
    observer
        Sees each system, in the client.
    kept
        What the archive keeps of the statistics for this reference: what is there is not counted, what is counted is
        added.
    results
        What it keeps of results, likewise. An observer does not see systems whose results are there.

    Raises
    ------
    InputError
        For a run that leaves out trials where `impute` calls that an error.
    ArchiveError, ExecutionError, ClusterError
        As `score_systems` does.
    """
    shown = progress or Unseen()
    runs = runs_of(archive, systems)
    beside = (
        *((Counts,) if counts_present_only(settings.evaluation) else ()),
        *(() if observer is None else observer.needs),
    )

    def counted(run: Run, found: Found) -> CountedRun:
        if settings.evaluation.impute == "error" and Counts in found:
            check_complete(archive, run, found[Counts], reference)
        if observer is not None:
            observer.see(run.system, Scored(found, reference, settings.evaluation))
        own = [of_run(family, run, archive) for family in families]
        return CountedRun(run.system, run.rows, found, own, settings.evaluation, measures)

    source = _source(archive, reference, families, executor, settings.engine, beside, kept)
    tables = score_systems(runs, len(runs), source, counted, executor, shown, results)
    if not alignment:
        return tables
    parts = align_systems(archive, systems, reference, executor, settings.engine, shown)
    return replace(tables, alignment=pa.concat_tables([ALIGNMENT.empty_table(), *parts]).combine_chunks())


def count_archive(
    archive: Archive,
    systems: Sequence[str],
    reference: Reference,
    families: Sequence[Measure],
    executor: Executor,
    settings: EngineSettings,
    progress: Progress,
) -> Iterator[tuple[str, Found]]:
    """Each system with the merged statistics that the measures need, in the order of `systems`.

    Raises `ArchiveError` for a system without a run, and what `count_systems` does.
    """
    runs = runs_of(archive, systems)
    source = _source(archive, reference, families, executor, settings)
    for group in count_systems(runs, len(runs), source, executor, progress):
        for run, found in group:
            yield run.system, found


def _source(
    archive: Archive,
    reference: Reference,
    families: Sequence[Measure],
    executor: Executor,
    settings: EngineSettings,
    beside: Sequence[type[Statistic]] = (),
    kept: KeptStatistics | None = None,
) -> DetectionSource:
    """The source of what the measures need, and of the statistics `beside`."""
    statistics = (*beside, *(needed for family in families for needed in family.needs))
    return DetectionSource(archive, reference, statistics, executor, settings.rows_per_task, kept)


def runs_of(archive: Archive, systems: Sequence[str]) -> list[Run]:
    """The runs of some systems, in their order. Raises `ArchiveError` for a system that the archive does not hold."""
    runs = {run.system: run for run in archive.runs}
    missing = [system for system in systems if system not in runs]
    if missing:
        raise ArchiveError(f"no run of {', '.join(missing)}; there are: {', '.join(runs) or 'none'}.")
    return [runs[system] for system in systems]


def of_run(family: Measure, run: Run, archive: Archive) -> Measure:
    """The family as it measures one run: the resources are of the run, not found in its detections."""
    if not isinstance(family, ProcessingLoad) or run.told is None:
        return family
    half_ticks = sum(audio_time(archive.documents, "none").values())
    audio = Fraction(half_ticks, HALF_TICKS_PER_SECOND * SECONDS_PER_HOUR)
    return ProcessingLoad(run.told, audio, only_defined=run.resources is None)
