"""Comparing systems and measures."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from swsdask.api.arguments import Location, Runs, as_names
from swsdask.api.opening import Evaluation
from swsdask.execution.executor import Executor, Progress
from swsdask.model.errors import SettingsError
from swsdask.model.late_import import LateImport
from swsdask.model.results import Comparison, Resampling, Result

if TYPE_CHECKING:
    import pandas as pd

    from swsdask.comparison.compare import Samples
else:
    pd = LateImport("pandas")


def rank_correlation(
    result: Result, measures: str | Iterable[str] | None = None, condition: str = "all"
) -> pd.DataFrame:
    """Report how alike measures rank the systems of a result.

    Parameters
    ----------
    result : Result
        What `score` or `discover` returns, with two or more systems.
    measures : str or iterable of str, optional
        Names of measures. Default: the requested ones that have an order of merit, or, if every measure was
        requested, those that weigh misses against false alarms.
    condition : str, default "all"
        The condition to compare in.

    Returns
    -------
    pandas.DataFrame
        One row per ordered pair of measures: Kendall's tau-b, and tau_AP with the ranking under `other` as the truth
        (columns as in `model.results.RANK_CORRELATION`).

    Raises
    ------
    SettingsError
        There is nothing to compare.

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

    frame: pd.DataFrame = correlate(result, as_names(measures), condition).table.to_pandas()
    return frame


DEFAULT_MEASURES = ("atwv", "otwv", "stwv", "map")
"""What an evaluation is compared by where no measures are named."""


def compare(
    source: Result | Evaluation | Location,
    measures: str | Iterable[str] | None = None,
    *,
    pair: tuple[str, str] | None = None,
    baseline: str | None = None,
    runs: Runs = None,
    by: str | Iterable[str] = (),
    seed: int = 0,
    replicates: int = 10_000,
    level: float = 0.95,
    interval: Literal["percentile", "bca"] = "percentile",
    adjust: Literal["holm", "max-t"] = "holm",
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Report how sure numbers and their differences are, by resampling the queries of an evaluation.

    Parameters
    ----------
    source : Result, Evaluation, or path
        What `score` returns, or a directory that ``swsdask score --out`` wrote: its numbers by query are resampled. Or
        what `open` returns, an archive or a reference directory: its runs are scored first.
    measures : str or iterable of str, optional
        Averages over queries: "atwv", "otwv", "stwv", "map", "r_precision", "p_miss", "p_fa" and others. Default: the
        first four of an evaluation; of a result, the requested ones that have an order of merit.
    pair : (str, str), optional
        Compare these two systems. Default: every two.
    baseline : str, optional
        Compare each of the other systems with this one.
    runs : Runs, optional
        The runs to score, as for `score`; of an evaluation only.
    by : str or iterable of str, optional
        Conditions, as for `score`; of an evaluation only.
    seed : int, default 0
        Another seed gives other replicates. The same seed gives the same bits for any order of systems and queries.
    replicates : int, default 10000
        How often queries are drawn again.
    level : float, default 0.95
        The share of replicates in an interval.
    interval : {"percentile", "bca"}
        Quantiles of the replicates, or bias-corrected and accelerated ones.
    adjust : {"holm", "max-t"}
        How `p_adjusted` takes the number of pairs into account.
    executor : Executor, optional
        Where an evaluation is scored, as for `score`.
    progress : Progress, optional
        What is told of the progress of scoring.

    Returns
    -------
    Comparison
        The DataFrames `intervals` and `differences`, and `notes`: who is tied with the best, what was left out.

    Raises
    ------
    SettingsError
        A measure is no average over queries, a system is unknown, or an argument is out of its range.
    InputError, ArchiveError, ClusterError
        As `open` and `score` raise them.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> found = sws.compare("demo/archive", "atwv", baseline="weak", replicates=1000)
    >>> found.differences.loc[0, ["a", "b", "p_sign"]].to_dict()
    {'a': 'calibrated', 'b': 'weak', 'p_sign': 0.049041748046875}
    """
    from swsdask.comparison.compare import compare as compared

    how = Resampling(seed, replicates, level, interval, adjust)
    _check(how, pair, baseline)
    result, names = _scored(source, as_names(measures), runs, by, executor, progress)
    samples, n_queries = _samples(result, names)
    return compared(samples, n_queries, how, pair, baseline, signature=str(result.manifest.get("signature", "")))


def _check(how: Resampling, pair: Sequence[str] | None, baseline: str | None) -> None:
    if not 0 <= how.seed < 2**64:
        raise SettingsError(f"seed is {how.seed}; expected a whole number from 0 to 2^64 - 1.")
    if how.replicates < 1:
        raise SettingsError(f"replicates is {how.replicates}; expected 1 or more.")
    if not 0 < how.level < 1:
        raise SettingsError(f"level is {how.level}; expected a number between 0 and 1, such as 0.95.")
    if pair is not None and baseline is not None:
        raise SettingsError("Give two systems or a baseline, not both.")


def _scored(
    source: Result | Evaluation | Location,
    names: list[str] | None,
    runs: Runs,
    by: str | Iterable[str],
    executor: Executor | None,
    progress: Progress | None,
) -> tuple[Result, list[str] | None]:
    """The result to resample, as it is, read from its directory, or scored; and its measures to compare by."""
    if not isinstance(source, Result | Evaluation) and (Path(os.fspath(source)) / "scores.parquet").is_file():
        from swsdask.render.outputs import read_outputs

        source = read_outputs(Path(os.fspath(source)))
    if isinstance(source, Result):
        if runs or as_names(by):
            raise SettingsError("A result has its runs and conditions: name runs and `by` when it is scored.")
        return source, names
    from swsdask.api.scoring import score
    from swsdask.comparison.averages import needed_for

    names = list(DEFAULT_MEASURES) if names is None else names
    return score(source, needed_for(names), runs=runs, by=by, executor=executor, progress=progress), names


def _samples(result: Result, names: list[str] | None) -> tuple[Samples, dict[str, int]]:
    """The measures by condition and system, and how many queries each condition has."""
    from swsdask.comparison.averages import candidates, needed_for, query_numbers

    wanted = candidates(result) if names is None else names
    samples, n_queries = {}, {}
    for condition in result.table["condition"].unique().to_pylist():
        numbers = query_numbers(result, condition, needed_for(wanted))
        found = {measure: numbers.averages(measure) for measure in wanted}
        samples[condition] = {measure: own for measure, own in found.items() if own is not None}
        n_queries[condition] = len(numbers.queries)
    there = {measure for own in samples.values() for measure in own}
    missing = [measure for measure in names or () if measure not in there]
    if missing or not there:
        possible = ", ".join(measure for measure in candidates(result) if measure in there) or "none"
        raise SettingsError(
            f"measure {', '.join(missing) or 'any'} cannot be resampled: the result has no numbers by query that it is "
            f"the average of. Those that can be: {possible}."
        )
    return samples, n_queries
