"""Comparison of systems and measures, and lists of the errors of systems."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Literal, get_args

from swsdask.api.opening import Evaluation, as_evaluation
from swsdask.api.results import read_result
from swsdask.api.runs import GivenRuns, Runs, rows_to_score, runs_for
from swsdask.api.scoring import score_observed
from swsdask.archive.reference import trial_counts
from swsdask.execution.executor import Executor, Progress
from swsdask.execution.open import working
from swsdask.formats.runs.encoding import read_encoding
from swsdask.measures import select
from swsdask.measures.names import as_names, family_name, name_in_gate, requested_names, with_points
from swsdask.model.comparison import Adjustment, Comparison, Drawn, Interval, Resampling
from swsdask.model.errors import SettingsError, check_choice, check_whole
from swsdask.model.results import Result
from swsdask.model.settings import EvaluationSettings, Settings
from swsdask.model.tables import LateImport
from swsdask.model.wording import listed
from swsdask.model.worst_queries import Errors
from swsdask.places.reading import Location

if TYPE_CHECKING:
    import pandas as pd

    from swsdask.comparison.compare import Samples
    from swsdask.comparison.gates import Gate
    from swsdask.measures.resampling import OfCondition
    from swsdask.measures.resampling.drawn import TrialCounts
    from swsdask.model.samples import Sample, SampleOfQueries
    from swsdask.model.trials import Reference
else:
    pd = LateImport("pandas")


def rank_correlation(
    result: Result | Location, measures: str | Iterable[str] | None = None, condition: str = "all"
) -> pd.DataFrame:
    """Compute the rank correlation between measures over the systems of a result.

    Parameters
    ----------
    result : Result, path or URL
        The result of `score` or `discover`, with two or more systems, or the directory to which it was written.
    measures : str or iterable of str, optional
        Names of measures. Default: the requested measures that can rank systems or, if every measure was requested,
        those that weigh misses against false alarms.
    condition : str, default "all"
        The condition whose values rank the systems.

    Returns
    -------
    pandas.DataFrame
        One row per ordered pair of measures: Kendall's tau-b, and tau_AP with the ranking under `other` as the truth
        (columns condition, measure, other, n_systems, n_left_out, tau_b, tau_ap, tau_ap_symmetric).

    Raises
    ------
    SettingsError
        The result has too few systems or measures to compare.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> result = sws.score("demo/archive", ["atwv", "mtwv"])
    >>> table = sws.rank_correlation(result)
    >>> table.loc[1, ["measure", "other", "tau_b", "tau_ap"]].to_dict()
    {'measure': 'atwv', 'other': 'mtwv', 'tau_b': 0.8, 'tau_ap': 0.75}
    """
    from swsdask.comparison.rank_correlation import rank_correlation as correlate

    result = result if isinstance(result, Result) else read_result(result)
    frame: pd.DataFrame = correlate(result, as_names(measures), condition).table.to_pandas()
    return frame


DEFAULT_MEASURES = ("atwv", "mtwv", "otwv", "stwv", "map")
"""The default measures of a comparison of an evaluation, if they are defined for any system."""

RANKED_MEASURES = ("map", "ndcg", "r_precision", "bpref", "reciprocal_rank")
"""The same if the setting `measures` is "ranked"."""


def compare(
    source: Result | Evaluation | Location,
    measures: str | Iterable[str] | None = None,
    *,
    pair: tuple[str, str] | None = None,
    baseline: str | None = None,
    runs: Runs = None,
    by: str | Iterable[str] = (),
    frame_shift: float | None = None,
    negate_scores: bool = False,
    segments: Location | None = None,
    resample: Literal["queries", "documents"] = "queries",
    seed: int = 0,
    replicates: int | None = None,
    level: float = 0.95,
    interval: Literal["percentile", "bca"] = "percentile",
    adjust: Literal["holm", "max-t"] = "holm",
    fail_if: str | Iterable[str] = (),
    executor: Executor | str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compute confidence intervals, and test differences between systems, by resampling the queries of an evaluation.

    Parameters
    ----------
    source : Result, Evaluation, or path
        The result of `score`, or a directory that ``swsdask score --out`` wrote: its numbers by query are resampled. Or
        an evaluation, an archive or a reference directory, as for `score`: its runs are scored first.
    measures : str or iterable of str, optional
        Averages over queries: "atwv", "otwv", "stwv", "map", "mgap", "r_precision", "p_miss", "p_fa" and others. For an
        evaluation also "mtwv" and "cnxe_min", whose threshold and map are optimised again in every replicate,
        "twv@0.5" and other thresholds, "twv_bayes", "ap", "cxe", "cnxe", and their differences: "calibration_loss",
        "loss_threshold" and the other losses. Default for an evaluation: those of "atwv", "mtwv", "otwv", "stwv" and
        "map" that are defined for any system, or "map", "ndcg", "r_precision", "bpref" and "reciprocal_rank" if
        the setting `measures` is "ranked". Default for a result: the requested measures that can rank systems.
    pair : (str, str), optional
        Compare these two systems. Default: every pair.
    baseline : str, optional
        Compare each of the other systems with this one.
    runs : Runs, optional
        The runs to score, as for `score`. For an evaluation only.
    by : str or iterable of str, optional
        Conditions, as for `score`. For an evaluation only.
    frame_shift, negate_scores, segments : optional
        How runs are encoded, as for `score`.
    resample : {"queries", "documents"}
        The units to resample: queries, or queries and documents independently (for an evaluation only). Results of
        `discover` are resampled by fold; if there are as many folds as files, a fold is a file. Intervals from queries
        alone describe the uncertainty for other queries on the same documents. Tests that exchange systems query by
        query are undefined (NaN) when documents are resampled.
    seed : int, default 0
        The seed of the replicates. The same seed gives the same bits for any order of systems and queries.
    replicates : int, optional
        The number of replicates. Default: 10000, with documents 1000.
    level : float, default 0.95
        The confidence level of intervals.
    interval : {"percentile", "bca"}
        The method of intervals: percentile, or bias-corrected and accelerated.
    adjust : {"holm", "max-t"}
        How `p_adjusted` takes the number of pairs into account: Holm's step-down procedure, or the largest of all
        differences in each replicate. For averages over queries it is the p value of exchanges that is adjusted, for
        other measures that of the bootstrap.
    fail_if : str or iterable of str, optional
        Gates, such as "atwv drops .005 with p < .05": a measure, "drops" or "rises", the tolerance (default 0),
        optionally "in" and a condition (default "all"), and optionally "with p <" and a level: then only a loss with
        `p_adjusted` below it fails. With `pair` (a, b), the system a is tested against b; otherwise each system against
        `baseline`. `failures` lists the gates that fail. Without `measures`, the measures of the gates are compared.
    executor : Executor or str, optional
        Where the work runs, as for `score`: scoring, resampling and comparing.
    progress : Progress, optional
        Receives the phases of the work and the number of rows done.

    Returns
    -------
    Comparison
        The DataFrames `intervals` and `differences`; `notes` on ties with the best system and on what was left out; and
        the `failures` of gates.

    Raises
    ------
    SettingsError
        A measure cannot be resampled, a system is unknown, or an argument is out of its range.
    InputError, ArchiveError, ClusterError
        As `open` and `score` raise them.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> found = sws.compare("demo/archive", "atwv", baseline="weak", replicates=1000)
    >>> found.differences.loc[0, ["a", "b", "p_sign"]].to_dict()
    {'a': 'calibrated', 'b': 'weak', 'p_sign': 0.012725830078125}
    """
    from swsdask.comparison.compare import compare as compared
    from swsdask.comparison.compare import pairs_of
    from swsdask.comparison.resampled import candidates, folds
    from swsdask.measures.resampling import NAMES
    from swsdask.render.outputs import is_result

    if replicates is None:
        replicates = 1000 if resample == "documents" else 10_000
    how = Resampling(seed, replicates, level, interval, adjust, resample)
    _check(how, pair, baseline)
    encoding = read_encoding(frame_shift, negate_scores, segments)
    gates = _gates(fail_if, pair, baseline)
    names, _ = with_points(requested_names(measures), EvaluationSettings())
    if gates:
        names = list(dict.fromkeys([*(names or ()), *(gate.measure for gate in gates)]))
    if not isinstance(source, Result | Evaluation) and is_result(source):
        source = read_result(source)
    if isinstance(source, Result):
        if runs is not None or as_names(by) or encoding:
            raise SettingsError(
                "A result has its runs and conditions: give runs, their encoding and `by` when you score."
            )
        if resample == "documents":
            raise SettingsError("A result has no numbers by document: compare the archive, or the reference and runs.")
        chosen, rows = Settings(), 0
    else:
        possible = ", ".join(dict.fromkeys((*DEFAULT_MEASURES, *NAMES)))
        _check_known(names or [], f"Among those that can be compared are {possible}.")
        evaluation = as_evaluation(source)
        given = runs_for(evaluation, runs, encoding)
        chosen, rows = evaluation.settings, rows_to_score(evaluation.archive, given)
    with working(chosen, executor, rows, progress) as opened:
        n_documents: dict[str, int] = {}
        tried: list[str] = []
        if isinstance(source, Result):
            result = source
            if folds(result):
                how = replace(how, resample="folds")
            wanted = candidates(result) if names is None else names
            tried = wanted if names is None else []
            samples, n_queries = _samples(result, wanted, names is not None)
        else:
            tried = default_measures(evaluation) if names is None else []
            result, samples, n_queries, n_documents = sample_evaluation(
                evaluation, names, given, by, opened, progress, documents=resample == "documents"
            )
        report = None if progress is None else lambda label: progress.begin(label, 0)
        found = compared(
            samples,
            n_queries,
            result.score_rows.systems,
            how,
            pairs_of(result.score_rows.systems, pair, baseline),
            gates,
            str(result.manifest.get("signature", "")),
            n_documents=n_documents,
            report=report,
            executor=opened,
        )
    notes = [] if isinstance(source, Result) else list(result.system_notes)  # A result has shown its own.
    notes += found.notes
    absent = [measure for measure in tried if not any(measure in measures for measures in samples.values())]
    if absent:
        why = "no system has them"
        if isinstance(source, Result):
            why = "the results lack what they are resampled from; an archive, or a reference and runs, has it"
        notes.append(f"Not compared, for {why}: {', '.join(absent)}.")
    return replace(found, notes=tuple(notes))


MOST_REPLICATES = 10_000_000
"""80 MB for every system and measure."""


def _check(how: Resampling, pair: Sequence[str] | None, baseline: str | None) -> None:
    if not (isinstance(how.seed, Integral) and 0 <= how.seed < 2**64):
        raise SettingsError(f"seed is {how.seed!r}; expected a whole number from 0 to 2^64 - 1.")
    whole = isinstance(how.replicates, Integral) and not isinstance(how.replicates, bool)
    if not (whole and 1 <= how.replicates <= MOST_REPLICATES):
        raise SettingsError(
            f"replicates is {how.replicates!r}; expected a whole number from 1 to {MOST_REPLICATES:,}, "
            "all of which are in memory."
        )
    if not (isinstance(how.level, Real) and 0 < how.level < 1):
        raise SettingsError(f"level is {how.level!r}; expected a number between 0 and 1, such as 0.95.")
    check_choice("interval", how.interval, get_args(Interval))
    check_choice("adjust", how.adjust, get_args(Adjustment))
    check_choice("resample", how.resample, get_args(Drawn))
    if how.resample == "documents" and how.interval == "bca":
        raise SettingsError('interval="bca" needs resample="queries". Use interval="percentile".')
    if pair is not None and (isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2):
        raise SettingsError(f"pair is {pair!r}; expected the names of two systems.")
    if pair is not None and baseline is not None:
        raise SettingsError("Give two systems or a baseline, not both.")


def _gates(texts: str | Iterable[str], pair: Sequence[str] | None, baseline: str | None) -> list[Gate]:
    from swsdask.comparison.gates import parse_gate

    gates = [parse_gate(text, name_in_gate) for text in as_names(texts) or ()]
    if gates and pair is None and baseline is None:
        raise SettingsError(f"gate {gates[0].text!r}: name two systems, the second as the baseline, or a baseline.")
    return gates


def default_measures(evaluation: Evaluation) -> list[str]:
    """Return the default measures of a comparison of an evaluation."""
    ranked = evaluation.settings.evaluation.measures == "ranked"
    return list(RANKED_MEASURES if ranked else DEFAULT_MEASURES)


def sample_evaluation(
    evaluation: Evaluation,
    names: list[str] | None,
    runs: GivenRuns,
    by: str | Iterable[str] = (),
    executor: Executor | str | None = None,
    progress: Progress | None = None,
    *,
    documents: bool = False,
) -> tuple[Result, Samples, dict[str, int], dict[str, int]]:
    """Return the scores of an evaluation, the samples of its measures, and the numbers of queries and documents.

    These numbers are by condition; the last is empty unless `documents` are resampled.
    """
    from swsdask.comparison.resampled import DIFFERENCE_MEASURES, needed_for, with_parts
    from swsdask.measures.resampling import SampleObserver

    if documents and evaluation.judged:
        raise SettingsError(
            'resample="documents" is not possible with qrels: not every document is judged. Use resample="queries".'
        )
    given = names
    names = default_measures(evaluation) if names is None else names
    sampled = [name for name in with_parts(names) if name not in DIFFERENCE_MEASURES]
    observer = SampleObserver(sampled, _trials_of(evaluation) if documents else None)
    result, observed = score_observed(
        evaluation, needed_for(names), runs, by, executor=executor, progress=progress, observer=observer
    )
    n_documents: dict[str, int] = {}
    for of_system in observed.values():
        n_documents |= {condition: of.documents for condition, of in of_system.items()}
    return result, *_samples(result, names, given is not None, observed), n_documents


def _trials_of(evaluation: Evaluation) -> Callable[[Reference], TrialCounts]:
    """Return a function that gives, for a reference, the number of trials when documents have weights."""
    documents, settings = evaluation.archive.documents, evaluation.settings.evaluation
    return lambda reference: trial_counts(documents, settings, reference.segments, reference.group_of_document)


def _samples(
    result: Result,
    wanted: Sequence[str],
    named: bool,
    observed: Mapping[str, Mapping[str, OfCondition]] | None = None,
) -> tuple[Samples, dict[str, int]]:
    """Return the measures by condition and system, and how many queries each condition has.

    Raises `SettingsError` if no measure can be resampled or, for measures that were `named`, if one cannot.
    """
    from swsdask.comparison.resampled import conditions, needed_for, query_numbers, with_parts

    samples: dict[str, dict[str, Mapping[str, SampleOfQueries]]] = {}
    n_queries = {}
    for condition in conditions(result):
        numbers = query_numbers(result, condition, needed_for(wanted))
        own: dict[str, Mapping[str, SampleOfQueries] | None] = {
            name: numbers.averages(name) for name in with_parts(wanted)
        }
        if observed is not None:
            there = {system: of[condition] for system, of in observed.items() if condition in of}
            by_measure: dict[str, dict[str, Sample]] = defaultdict(dict)
            for system, of in there.items():
                for name, sample in of.samples.items():
                    by_measure[name][system] = sample
            own |= numbers.weighed(by_measure, {system: of.queries for system, of in there.items()})
        own |= {name: found for name in wanted if (found := numbers.differences(name, own))}
        samples[condition] = {measure: by_system for measure in wanted if (by_system := own.get(measure))}
        n_queries[condition] = len(numbers.queries)
    resampled = {measure for found in samples.values() for measure in found}
    missing = [measure for measure in wanted if named and measure not in resampled]
    if missing or not resampled:
        raise SettingsError(_why_not(result, missing or wanted, observed is not None))
    return samples, n_queries


def _why_not(result: Result, measures: Sequence[str], scored_now: bool) -> str:
    """Why measures cannot be resampled, and what to do."""
    from swsdask.comparison.resampled import averaged
    from swsdask.measures.resampling import NAMES
    from swsdask.model.samples import AVERAGED

    there = set(result.score_rows.names("measure"))
    possible = f"These results have measures that can be resampled: {listed(averaged(result)) or 'none'}."
    _check_known([measure for measure in measures if measure not in there], possible)
    absent = [measure for measure in measures if measure not in there]
    by_statistics = [measure for measure in measures if measure in there and family_name(measure) in NAMES]
    without_parts = {
        measure: part
        for measure, (part, *more) in AVERAGED.items()
        if measure in measures and measure in there and not more and part not in there
    }
    others = [measure for measure in measures if measure not in (*absent, *by_statistics, *without_parts)]
    sentences = []
    if absent:
        sentences.append(
            f"the results have no {', '.join(absent)}: request {'it' if len(absent) == 1 else 'them'} when you score, "
            "or compare the archive, or the reference and the runs."
        )
    if by_statistics and not scored_now:
        sentences.append(
            f"{', '.join(by_statistics)} cannot be resampled from results: it is not an average of numbers by query, "
            "and results do not keep the counts of trials by query and score. Compare the archive, or the reference "
            "and the runs."
        )
    for measure, part in without_parts.items():
        sentences.append(
            f"{measure} is the average of {part} by query, which the results lack: request {part} too when you score, "
            "or compare the archive, or the reference and the runs."
        )
    if others or (by_statistics and scored_now):
        named = ", ".join([*others, *(by_statistics if scored_now else ())])
        sentences.append(f"{named} cannot be resampled: not an average over queries, or undefined for every system.")
    return " ".join([*sentences, possible])


def _check_known(measures: Sequence[str], possible: str) -> None:
    """Raise `SettingsError` for a measure that is none of detections, with a sentence on those that can be compared."""
    try:
        select(measures)
    except SettingsError as error:
        raise SettingsError(f"{error} {possible}") from None


def errors(
    evaluation: Evaluation | Location,
    *,
    runs: Runs = None,
    by: str | Iterable[str] = (),
    top: int = 20,
    false_alarms: int = 10,
    frame_shift: float | None = None,
    negate_scores: bool = False,
    segments: Location | None = None,
    executor: Executor | str | None = None,
    progress: Progress | None = None,
) -> Errors:
    """List the costliest queries of each system, with their highest-scoring false alarms and missed targets.

    Parameters
    ----------
    evaluation : Evaluation or path
        The evaluation, an archive or a reference directory, as for `score`.
    runs : Runs, optional
        The runs to analyse, as for `score`.
    by : str or iterable of str, optional
        Conditions, as for `score`. Each has its own list.
    top : int, default 20
        The number of queries to list for each system, in descending order of cost, P_miss + beta P_fa of the query.
    false_alarms : int, default 10
        The number of false alarms to list for each query, in descending order of score; at most 100.
    frame_shift, negate_scores, segments, executor, progress : optional
        As for `score`.

    Returns
    -------
    Errors
        The DataFrames `queries` and `events`, and `notes`.

    Raises
    ------
    SettingsError
        A number is out of its range.
    InputError, ArchiveError, ExecutionError, ClusterError
        As `score`.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> found = sws.errors("demo/archive", runs="weak", top=1)
    >>> found.queries[["n_target", "n_miss"]].to_dict("records")
    [{'n_target': 1, 'n_miss': 1}]
    """
    from swsdask.scoring.worst_queries import WorstQueries
    from swsdask.statistics.worst_queries import KEPT

    top, false_alarms = check_whole("top", top, 1), check_whole("false_alarms", false_alarms, 0)
    if false_alarms > KEPT:
        raise SettingsError(f"false_alarms is {false_alarms}; expected a number from 0 to {KEPT}.")
    observer = WorstQueries(top, false_alarms)
    encoding = read_encoding(frame_shift, negate_scores, segments)
    evaluation = as_evaluation(evaluation)
    given = runs_for(evaluation, runs, encoding)
    result, observed = score_observed(
        evaluation, ["n_target"], given, by, executor=executor, progress=progress, observer=observer
    )
    systems = result.score_rows.systems
    found = observer.errors([observed[system] for system in systems], str(result.manifest["signature"]))
    return replace(found, notes=tuple(dict.fromkeys((*result.system_notes, *found.notes))))
