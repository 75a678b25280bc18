"""Scoring runs: all of them at once, or as they come in batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pyarrow as pa

from swsdask.api.manifest import circumstances, manifest_of
from swsdask.api.opening import Evaluation, as_evaluation
from swsdask.api.runs import GivenRuns, Runs, given_runs, rows_to_score, runs_for, with_runs
from swsdask.archive.cache import CacheCounts, cached_statistics_of
from swsdask.archive.conditions import OF_RUNS
from swsdask.archive.memory import RunsInMemory
from swsdask.archive.protocols import Archive, Run, check_reference, check_runs
from swsdask.archive.reference import build_references, collection_statistics
from swsdask.archive.reference_tables import ReferenceTables
from swsdask.execution.executor import Executor, Progress, SerialExecutor
from swsdask.execution.open import MANY, engine_of, for_systems, working
from swsdask.formats.reference.nist_xml import texts_of
from swsdask.formats.runs.encoding import read_encoding
from swsdask.measures import MEASURES, RANKED, interpretation, require_judgments, select, with_points
from swsdask.measures.generalised_average_precision import GeneralisedAveragePrecision
from swsdask.measures.measure import Measure
from swsdask.measures.names import as_names, check_some
from swsdask.model.errors import SettingsError
from swsdask.model.results import QUERY_TEXTS, Note, Result, note_lines
from swsdask.model.settings import Settings
from swsdask.model.trials import Reference
from swsdask.model.wording import LISTED, counted, cut, listed
from swsdask.places.reading import Location
from swsdask.scoring.result_tables import Observer, cached_results_of
from swsdask.scoring.rounds import ResultTables
from swsdask.scoring.run_notes import note_missing_loads, note_missing_times, note_unlisted_queries
from swsdask.scoring.score import runs_of, score_archive

Measures = str | Measure | Iterable[str | Measure] | None
"""Names of measures, user-defined measures, or both; None for every measure."""


def score(
    evaluation: Evaluation | Location,
    measures: Measures = None,
    *,
    runs: Runs = None,
    by: str | Iterable[str] = (),
    frame_shift: float | None = None,
    negate_scores: bool = False,
    segments: Location | None = None,
    executor: Executor | str | None = None,
    alignment: bool = False,
    buckets: int | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Result:
    """Score runs against an evaluation.

    Parameters
    ----------
    evaluation : Evaluation, path or URL
        The evaluation that `open` returns, or the location of one to open with its own settings.
    measures : str, Measure, or iterable of these, optional
        Names of measures, and objects that follow the protocol `Measure`. A name may end in a point: ``twv@0.5`` is
        TWV at the threshold 0.5, ``p_miss@0.001`` is P_miss at the false-alarm rate 0.001. Names of trec_eval and
        ir_measures are accepted too: ``ndcg_cut_10``, ``P(rel=2)@5``. Default: the measures that the setting
        ``measures`` selects.
    runs : path, URL, glob, iterable of these, or mapping, optional
        Files or directories with runs, tables in memory, or names of systems of the archive. A mapping gives the file,
        directory of Parquet files or table of each system, or its scores as ``{query: {document: score}}``; an empty
        list is a system without detections. Default: every run of the archive.
    by : str or iterable of str, optional
        Conditions to score separately, in addition to the whole evaluation. Each is one key, or several keys joined by
        commas: a query attribute such as ``language`` or ``oov``, a computed key such as ``n_words``, ``n_true``,
        ``source_type``, ``talker`` or ``duration``, ``query_pattern:REGEX`` or ``document_pattern:REGEX``.
        ``n_words:quartiles`` and ``n_true:1/5/20`` choose the bins of numbers; ``source_type:bnews+cts`` joins values.
    frame_shift : float, optional
        Seconds per frame, for tables whose times are frame numbers, such as those of Kaldi's kws-search.
    negate_scores : bool, default False
        Negate the scores of tables, for tables whose scores are costs.
    segments : path or URL, optional
        Kaldi's ``segments`` file, for tables whose documents are utterances and whose times begin at the utterance.
    executor : Executor or str, optional
        Where the work runs, see `cluster`. Default: the executor of the settings' ``[engine]``. The numbers do not
        depend on it.
    alignment : bool, default False
        Also return the alignment: one row per trial of a run, and one per target that it misses.
    buckets : int, optional
        The number of parts into which queries are divided when runs in files are stored temporarily. Default: runs
        stay in memory if the executor shares it. The numbers do not depend on it.
    cache : bool, default True
        Use the statistics and results in the cache of the archive, and store new ones there. The numbers do not depend
        on it. Runs in files are always counted anew.
    progress : Progress, optional
        Receives the phases of the work and the number of rows done.

    Returns
    -------
    Result
        The scores, curves, manifest and notes.

    Raises
    ------
    InputError
        Lists every problem of the runs.
    SettingsError
        A measure, setting or condition is unknown, or conflicts with another.
    ArchiveError
        The archive cannot be read.
    ClusterError
        The workers cannot be reached, or were lost.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> evaluation = sws.open("demo/files", preset="sws2013")
    >>> result = sws.score(evaluation, ["atwv", "mtwv"], runs="demo/files/runs")
    >>> overall = result.scores[result.scores["query"].isna()]
    >>> overall.pivot(index="system", columns="measure", values="value").round(4)
    measure             atwv    mtwv
    system
    calibrated        0.5038  0.5525
    keyword-specific  0.4938  0.4637
    middling          0.3517  0.3585
    overconfident     0.4584  0.5142
    weak              0.2883  0.2903

    Score two systems of an archive, with out-of-vocabulary queries as a separate condition:

    >>> result = sws.score("demo/archive", "mtwv", runs=["calibrated", "weak"], by="oov")
    >>> list(result.scores["condition"].unique())
    ['all', 'oov=false', 'oov=true']
    """
    encoding = read_encoding(frame_shift, negate_scores, segments)
    evaluation = as_evaluation(evaluation)
    given = runs_for(evaluation, runs, encoding)
    return score_observed(evaluation, measures, given, by, executor, alignment, buckets, progress, cache=cache)[0]


def score_observed(
    evaluation: Evaluation,
    measures: Measures,
    runs: GivenRuns,
    by: str | Iterable[str],
    executor: Executor | str | None = None,
    alignment: bool = False,
    buckets: int | None = None,
    progress: Progress | None = None,
    observer: Observer | None = None,
    cache: bool = True,
) -> tuple[Result, dict[str, Any]]:
    """Score as `score` does. Also return what the `observer` collects from each system."""
    by = as_names(by) or []
    began = time.time()
    names, families, settings = resolve_measures(measures, evaluation.settings)
    weighed = any(family not in RANKED for family in families)
    if evaluation.judged:
        families = [each for each in families if not isinstance(each, GeneralisedAveragePrecision)]
    with ExitStack() as stack:
        rows = rows_to_score(evaluation.archive, runs)
        after = stack.enter_context(ExitStack())
        distant = evaluation.archive.is_distant
        opened = stack.enter_context(working(settings, executor, rows, progress, distant=distant))
        archive, systems = stack.enter_context(with_runs(evaluation, runs, opened, buckets, after))
        prepared = _prepare(archive, systems, names, settings, by, evaluation.judged, observer)

        def choose(n_systems: int) -> Executor:
            return for_systems(n_systems, archive.place, opened, engine_of(settings, executor), progress, stack)

        scoring = _Scoring(archive, names, families, settings, opened, choose, alignment, progress, observer, cache)
        tables = ResultTables.joined([scoring.score(*each) for each in prepared.references], systems)
        notes = [*prepared.notes, *scoring.notes]
        of_systems = {system: (*prepared.of_runs[system], *own) for system, own in tables.notes.items()}
        manifest = manifest_of(archive, systems, settings, names, by)
        manifest["collection"] = collection_statistics(archive.queries, prepared.reference)
        manifest |= circumstances(began, scoring.executor, archive.verification, evaluation.overridden, of_systems)
        manifest["run"] |= scoring.count_reused()
    on_systems = tuple(note_lines(of_systems))
    result = Result(
        score_rows=tables.scores,
        curve_rows=tables.curves,
        overall=tables.overall,
        alignment_rows=tables.alignment,
        text_table=_query_texts(archive.queries),
        manifest=manifest,
        notes=(
            *evaluation.notes,
            *interpretation(prepared.reference, settings.evaluation, costs=weighed),
            *notes,
            *on_systems,
        ),
        system_notes=on_systems,
    )
    return result, tables.observed


@dataclass(frozen=True, eq=False)
class _Prepared:
    """The references, each with the runs that are scored against it; notes on the reference, and on each run."""

    references: list[tuple[Reference, list[Run]]]
    notes: list[str]
    of_runs: dict[str, list[Note]]

    @property
    def reference(self) -> Reference:
        """The first of the references, whose collection and settings a result reports."""
        return self.references[0][0]


def _prepare(
    archive: Archive,
    systems: Sequence[str],
    names: Sequence[str] | None,
    settings: Settings,
    by: Sequence[str],
    judged: bool,
    observer: Observer | None,
) -> _Prepared:
    """Check the reference and the runs, and build what the runs are scored against.

    Raises `SettingsError` if the requested measures, conditions or observer do not go with the reference or the runs.
    """
    held = runs_of(archive, systems)
    notes = [*check_reference(archive, settings.evaluation)]
    of_runs = {system: [*own] for system, own in check_runs(archive, held, settings.evaluation).items()}
    apart = observer is not None and observer.apart
    keys = [key.split(",") for key in by]
    references = build_references(archive, settings.evaluation, keys, held, apart=apart)
    for system, note in (
        *note_missing_loads(held, names, settings.evaluation.processing_load),
        *note_missing_times(held, names, judged=judged),
        *note_unlisted_queries(references),
    ):
        of_runs[system].append(note)
    require_judgments(names, references[0][0])
    if len(references) > 1 and apart:
        raise SettingsError(
            f'Documents cannot be resampled, because {OF_RUNS} or unlisted_queries = "exclude" gives each run its own '
            "queries."
        )
    return _Prepared(references, notes, of_runs)


@dataclass(eq=False)
class _Scoring:
    """The scoring of runs against one reference after another, with the caches of the archive.

    `executor` is the open one until `choose`, called with the number of systems to score, returns another.
    """

    archive: Archive
    names: list[str] | None
    families: Sequence[Measure]
    settings: Settings
    executor: Executor
    choose: Callable[[int], Executor]
    alignment: bool
    progress: Progress | None
    observer: Observer | None
    cache: bool
    _has_chosen: bool = False
    _statistics: list[CacheCounts] = field(default_factory=list)
    _results: list[CacheCounts] = field(default_factory=list)

    def score(self, reference: Reference, runs: Sequence[Run]) -> ResultTables:
        """Score the runs of one reference."""
        statistics = cached_statistics_of(self.archive, reference) if self.cache else None
        results = None
        if self.cache and self.observer is None:
            results = cached_results_of(self.archive, reference, self.settings.evaluation, self.families, self.names)
        self._statistics += [] if statistics is None else [statistics.files.tally]
        self._results += [] if results is None else [results.files.tally]
        if not self._has_chosen:
            chosen = self.choose(len(runs) if results is None else results.count_missing(runs, MANY))
            self._has_chosen, self.executor = chosen is not self.executor, chosen
        return score_archive(
            self.archive,
            [run.system for run in runs],
            reference,
            self.families,
            self.settings,
            self.executor,
            names=self.names,
            alignment=self.alignment,
            progress=self.progress,
            observer=self.observer,
            cached_statistics=statistics,
            cached_results=results,
        )

    @property
    def notes(self) -> list[str]:
        """A note if what was computed could not be stored."""
        faults = [each.fault for each in (*self._statistics, *self._results) if each.fault is not None]
        if not faults:
            return []
        return [f"What was computed cannot be cached in the archive; it is computed again next time: {faults[0]}"]

    def count_reused(self) -> dict[str, dict[str, int] | None]:
        """Count the statistics and results that were reused, and those that were made; None without a cache."""
        return {
            "statistics": _count_reused(self._statistics, "counted"),
            "results": _count_reused(self._results, "computed"),
        }


def _count_reused(tallies: Sequence[CacheCounts], made: str) -> dict[str, int] | None:
    if not tallies:
        return None
    return {"kept": sum(each.used for each in tallies), made: sum(each.made for each in tallies)}


def plan(
    evaluation: Evaluation | Location,
    measures: Measures = None,
    *,
    runs: Runs = None,
    by: str | Iterable[str] = (),
    frame_shift: float | None = None,
    negate_scores: bool = False,
    segments: Location | None = None,
) -> str:
    """Check everything that `score` would read, and report what it would do. Nothing is scored.

    Parameters
    ----------
    evaluation, measures, runs, by, frame_shift, negate_scores, segments : optional
        As for `score`.

    Returns
    -------
    str
        Lines with the signature, the runs, the conditions, the measures and the notes.

    Raises
    ------
    InputError, SettingsError, ArchiveError
        As `score`.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> print(sws.plan("demo/archive", ["atwv", "mtwv"], runs="weak"))
    swsdask 0.3.0.dev0 outside=false_alarm p_target=0.00015 c_miss=100.0 c_fa=1.0 ...
    weak: 131 detections
    all: 19 queries, 3,600 trials each
    measures: atwv, mtwv
    """
    encoding = read_encoding(frame_shift, negate_scores, segments)
    evaluation = as_evaluation(evaluation)
    names, families, settings = resolve_measures(measures, evaluation.settings)
    given, by = runs_for(evaluation, runs, encoding), as_names(by) or []
    with with_runs(evaluation, given, SerialExecutor()) as (archive, systems):
        held = runs_of(archive, systems)
        notes = (
            *check_reference(archive, settings.evaluation),
            *note_lines(check_runs(archive, held, settings.evaluation)),
        )
        references = build_references(archive, settings.evaluation, [key.split(",") for key in by], held)
        require_judgments(names, references[0][0])
        computed = [name for family in families for name in family.names] if names is None else names
        lines = [
            manifest_of(archive, systems, settings, names, by)["signature"],
            *(f"{run.system}: {counted(run.rows, 'detections')}" for run in held[:LISTED]),
            *_others(held[LISTED:]),
            *(
                f"{'' if len(references) == 1 else listed([run.system for run in runs_of_it]) + ', '}{c.name}: "
                f"{counted(int(c.queries.sum()), 'queries')}, {counted(c.n_trials, 'trials')} each"
                for reference, runs_of_it in references
                for c in reference.conditions
            ),
            f"measures: {', '.join(computed)}",
            *evaluation.notes,
            *notes,
        ]
    return "\n".join(lines)


def _others(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the line that counts the runs that a plan does not name."""
    if runs:
        yield f"and {counted(len(runs), 'systems')} more: {counted(sum(run.rows for run in runs), 'detections')}"


def _query_texts(queries: pa.Table) -> pa.Table | None:
    """Return the texts of queries as a table of `QUERY_TEXTS`; None if none has one."""
    texts = texts_of(queries)
    return pa.table([queries["query"], pa.array(texts, pa.string())], schema=QUERY_TEXTS) if any(texts) else None


def resolve_measures(measures: Measures, settings: Settings) -> tuple[list[str] | None, list[Measure], Settings]:
    """Return the names of the requested measures (None: all), their families, and the settings with their points.

    Names such as `twv@0.5` add a point to the settings. Raises `SettingsError` for an unknown name, and for a
    user-defined measure with the name of another.
    """
    if not isinstance(measures, str | Measure | Iterable | None):
        raise SettingsError(f"measures: expected names and measures; found {measures!r}.")
    given = None if measures is None else [measures] if isinstance(measures, str | Measure) else list(measures)
    check_some(given)
    own = [each for each in given or () if not isinstance(each, str)]
    for each in own:
        if not isinstance(each, Measure):
            raise SettingsError(f"measures: expected names and measures; found {each!r}.")
        _check_measure(each)
    names, evaluation = with_points(
        None if given is None else [each for each in given if isinstance(each, str)], settings.evaluation
    )
    families = [*select(names, RANKED if evaluation.measures == "ranked" else MEASURES), *own]
    taken = {name for family in MEASURES for name in family.names}
    for name in (name for family in own for name in family.names):
        if name in taken:
            raise SettingsError(f"measure {name!r} is the name of another measure. Rename yours.")
        taken.add(name)
        names = [*(names or ()), name]
    return names, families, settings.model_copy(update={"evaluation": evaluation})


def _check_measure(measure: Measure) -> None:
    """Raise `SettingsError` if the names or the needs of a measure of a user are not tuples of names and statistics."""
    kind = type(measure).__name__
    if isinstance(measure.names, str) or not all(isinstance(name, str) for name in measure.names):
        raise SettingsError(f"{kind}.names is {cut(repr(measure.names))}; expected a tuple of names, such as ('f1',).")
    needs = measure.needs if isinstance(measure.needs, tuple | list) else (measure.needs,)
    if needs is not measure.needs or not all(hasattr(each, "from_trials") for each in needs):
        raise SettingsError(
            f"{kind}.needs is {cut(repr(measure.needs))}; expected a tuple of statistics, such as (Counts,)."
        )


class Scorer:
    """Score runs that come in batches, as a decoder or a pipeline yields them.

    The numbers equal those of `score` for all batches together, bit for bit. They do not depend on how detections are
    divided into batches, or on the order of batches. (If a setting makes the order in files count, such as
    ``compat = "mediaeval"``, the order of the batches counts.)

    Parameters
    ----------
    evaluation : Evaluation, path or URL
        As for `score`. The runs of an archive are not scored.
    measures : str, Measure, or iterable of these, optional
        As for `score`. Default: every measure.
    by : str or iterable of str, optional
        Conditions to score separately, as for `score`.

    Raises
    ------
    InputError, SettingsError, ArchiveError
        As `open` and `score`.

    Notes
    -----
    Detections are checked and encoded when they are added. Each takes about 30 bytes until the result is computed,
    because the mapping of detections to occurrences needs all of them.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> scorer = sws.Scorer("demo/archive", "mtwv")
    >>> for detections in sws.open("demo/archive").detections("weak"):
    ...     scorer.update(detections)
    >>> scorer.result().leaderboard().round(4)
              mtwv
    system
    weak    0.2903
    """

    def __init__(
        self, evaluation: Evaluation | Location, measures: Measures = None, *, by: str | Iterable[str] = ()
    ) -> None:
        self._evaluation = as_evaluation(evaluation)
        single = measures is None or isinstance(measures, str | Measure)
        self._measures: Measures = measures if single else list(cast("Iterable[str | Measure]", measures))
        resolve_measures(self._measures, self._evaluation.settings)
        self._by = as_names(by) or []
        settings = self._evaluation.settings.evaluation
        self._runs = RunsInMemory(ReferenceTables.of(self._evaluation.archive), settings)

    def update(self, runs: Runs) -> None:
        """Add a batch of detections. A batch with a problem raises, and nothing of it is added.

        Parameters
        ----------
        runs : DataFrame, Arrow table, list of dict, path, iterable of these, or mapping
            Detections of one system or of several, as for `score`.

        Raises
        ------
        InputError
            Lists every problem of the batch, with its rows or lines.
        """
        self._runs.add(given_runs(runs, judged=self._evaluation.judged).sources)

    def result(
        self, *, executor: Executor | str | None = None, alignment: bool = False, progress: Progress | None = None
    ) -> Result:
        """Score all batches that were added so far. More may be added afterwards.

        Parameters
        ----------
        executor, alignment, progress : optional
            As for `score`.

        Returns
        -------
        Result
            The scores, curves, manifest and notes.

        Raises
        ------
        InputError, SettingsError, ClusterError
            As `score`.
        """
        evaluation = replace(self._evaluation, archive=self._runs.archive())
        return score(evaluation, self._measures, by=self._by, executor=executor, alignment=alignment, progress=progress)
