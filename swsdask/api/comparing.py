"""Comparing systems and measures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from swsdask.api.arguments import as_names
from swsdask.model.late_import import LateImport
from swsdask.model.results import Result

if TYPE_CHECKING:
    import pandas as pd
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
    from swsdask.compare.rank_correlation import rank_correlation as compare

    frame: pd.DataFrame = compare(result, as_names(measures), condition).table.to_pandas()
    return frame
