"""Comparing systems and measures."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from swsdask.api.arguments import as_names
from swsdask.model.results import Result

if TYPE_CHECKING:
    import pandas as pd


def rank_correlation(
    result: Result, measures: str | Iterable[str] | None = None, condition: str = "all"
) -> pd.DataFrame:
    """How alike measures rank the systems of a condition: Kendall's tau-b and tau_AP of every pair, as a DataFrame.

    Columns are those of `model.rank_correlation.RANK_CORRELATION`; `tau_ap` takes the ranking under `other` as the
    truth. `measures` are names; None: those asked for that have an order of merit, or, where all were, those that weigh
    misses against false alarms. Raises `SettingsError` where there is nothing to compare.
    """
    from swsdask.compare.rank_correlation import rank_correlation as compare

    frame: pd.DataFrame = compare(result, as_names(measures), condition).table.to_pandas()
    return frame
