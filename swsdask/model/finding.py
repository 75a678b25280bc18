"""How the occurrences of queries are found in what was spoken: the settings that decide it."""

from __future__ import annotations

from typing import Literal, NamedTuple, Self

from swsdask.model.settings import EvaluationSettings, TextFilter
from swsdask.model.units import whole_ticks

Finder = Literal["own", "kwseval", "stdeval"]


class FindRule(NamedTuple):
    """`find_gap` is in ticks; `finder` says whose rules hold (`archive.occurrences`)."""

    find_gap: int
    text_filters: tuple[TextFilter, ...] = ()
    finder: Finder = "own"

    @classmethod
    def of(cls, settings: EvaluationSettings) -> Self:
        """The rule of an evaluation. Raises `SettingsError` for a gap that is no whole number of ticks."""
        finder: Finder = settings.compat if settings.compat in ("kwseval", "stdeval") else "own"
        return cls(whole_ticks("find_gap_s", settings.find_gap_s), settings.text_filters, finder)
