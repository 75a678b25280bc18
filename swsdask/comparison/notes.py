"""Notes of a comparison: what is left out or not defined, and where intervals and tests are not reliable."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from swsdask.comparison.resampled import SampleReplicates
from swsdask.comparison.significance import ENUMERATED
from swsdask.model.comparison import Comparison, Resampling
from swsdask.model.trials import F64
from swsdask.model.wording import counted, listed

if TYPE_CHECKING:
    from swsdask.comparison.compare import ComparedSystems

FEW_QUERIES = 30
"""With fewer queries than this, a note says that intervals and tests are unreliable.

For two equal systems the bootstrap at 5 % rejects equality in 11 % of evaluations with 10 queries, 7 % with 20.
"""

NAMED = 5
"""The number of systems or pairs that a note names; the others are counted."""

_ROUNDING = 1e-12
"""A relative tolerance, because 1 - level is rounded."""


def unreliable(unit: str) -> str:
    """Return the clause about few queries, or units of another kind."""
    return f"intervals and tests based on fewer than {FEW_QUERIES} {unit} are unreliable"


def undefined_notes(condition: str, measure: str, resampled: Mapping[str, SampleReplicates]) -> list[str]:
    """Note the number of replicates in which a measure is not defined; systems with equal numbers share a note."""
    by_number: dict[int, list[str]] = defaultdict(list)
    for system, each in resampled.items():
        if not math.isnan(each.value) and not each.is_alone:
            by_number[each.n_undefined].append(system)
    return [
        f"{condition}, {measure}: not defined in {counted(number, 'replicates')} of {listed(systems, NAMED)}, "
        "which are left out."
        for number, systems in sorted(by_number.items())
        if number
    ]


def without_notes(condition: str, measure: str, systems: Sequence[str]) -> list[str]:
    """Note the systems that cannot be compared because they lack a measure."""
    return [f"{condition}, {measure}: not defined for {listed(systems, NAMED)}."] if systems else []


def replicate_notes(how: Resampling) -> list[str]:
    """Note that there are too few replicates for one beyond either end of an interval."""
    least = math.ceil(2 / (1 - how.level) * (1 - _ROUNDING))
    if how.replicates >= least:
        return []
    few = counted(how.replicates, "replicates")
    return [f"{few}: too few for intervals of {how.level:g}, which need at least {least:,}."]


def few_notes(condition: str, measure: str, resampled: Mapping[str, SampleReplicates], unit: str) -> list[str]:
    """Note the systems with few queries in a condition that has more."""
    few = [system for system, each in resampled.items() if np.count_nonzero(each.queries) < FEW_QUERIES]
    if not few:
        return []
    return [
        f"{condition}, {measure}: intervals and tests of {listed(few, NAMED)} are unreliable, because they are based "
        f"on fewer than {FEW_QUERIES} {unit}."
    ]


def alone_notes(condition: str, measure: str, resampled: Mapping[str, SampleReplicates], unit: str) -> list[str]:
    """Note the systems with a single query: its resamples do not vary."""
    alone = [system for system, each in resampled.items() if each.is_alone]
    one = counted(1, unit)
    return [f"{condition}, {measure}: {one} of {listed(alone, NAMED)}: no interval and no test."] if alone else []


def unpaired_notes(condition: str, measure: str, pairs: Sequence[ComparedSystems], unit: str) -> list[str]:
    """Note the pairs from which queries are left out; pairs with equal numbers share a note."""
    by_number: dict[tuple[int, int], list[str]] = defaultdict(list)
    for pair in pairs:
        if pair.n_only_one:
            by_number[pair.n_only_one, pair.n_both].append(f"{pair.a} and {pair.b}")
    return [
        f"{condition}, {measure}: {counted(number, unit)} left out of {listed(names, NAMED)}: "
        f"the measure counts them for only one of the two, and {n_both:,} for both"
        f"{f'; {unreliable(unit)}' if n_both < FEW_QUERIES else ''}."
        for (number, n_both), names in sorted(by_number.items())
    ]


class Least(NamedTuple):
    """The least p value that a difference can have.

    `n_exchanged` is the largest number of queries in which two systems are exchanged; None if they are not.
    """

    how: Resampling
    n_exchanged: int | None = None
    unit: str = "queries"

    @property
    def p(self) -> float:
        """The p value of one pair."""
        return 1 / (self.how.replicates + 1) if self._of_queries is None else 2.0 ** (1 - self._of_queries)

    @property
    def _of_queries(self) -> int | None:
        """The number of queries that it follows from; None if it follows from the number of replicates."""
        n, least = self.n_exchanged, 1 / (self.how.replicates + 1)
        few = n is not None and n <= ENUMERATED and (self.how.adjust == "holm" or 2.0 ** (1 - n) > least)
        return n if few else None

    def adjusted(self, n_pairs: int) -> float:
        """Return the p value adjusted for so many pairs."""
        return min(1.0, self.p * self._times(n_pairs))

    def _times(self, n_pairs: int) -> int:
        return n_pairs if self.how.adjust == "holm" else 1

    def __str__(self) -> str:
        n = self._of_queries
        return counted(self.how.replicates, "replicates") if n is None else counted(n, self.unit)

    def remedy(self, n_pairs: int) -> str:
        """Return the advice that leads to a smaller one, a sentence; empty if nothing does."""
        fewer = "--adjust max-t or fewer pairs (--baseline, --pair)" if self.p < self.how.alpha else ""
        enough = math.floor(self._times(n_pairs) / self.how.alpha)
        more = f"--replicates {enough}" if self._of_queries is None else ""
        return f" Use {', or '.join(filter(None, (fewer, more)))}." if fewer or more else ""


def coarse_notes(condition: str, measure: str, p_adjusted: F64, least: Least, *, advise: bool) -> list[str]:
    """Note if no difference can be significant with so few queries or replicates, or so many pairs."""
    tested, alpha = p_adjusted[~np.isnan(p_adjusted)], least.how.alpha
    n_pairs = len(tested)
    if not n_pairs or least.adjusted(n_pairs) < alpha or (tested < alpha).any():
        return []
    times = f", which Holm's adjustment multiplies by {counted(n_pairs, 'pairs')}" if least.p < alpha else ""
    remedy = least.remedy(n_pairs) if advise else ""
    return [
        f"{condition}, {measure}: no difference can be significant (p < {alpha:g}): the least p of {least} is "
        f"{least.p:.2g}{times}.{remedy}"
    ]


def tie_notes(found: Comparison, condition: str, measure: str) -> list[str]:
    """Note the systems that do not differ from the best one, if it was compared with all others."""
    tied = found.tied(condition, measure)
    if tied is None:
        return []
    others = listed(tied.others, NAMED) or "none"
    untested = f"; not tested: {listed(tied.untested, NAMED)}" if tied.untested else ""
    tied_at = f"tied with it (p >= {found.how.alpha:g})"
    return [f"{condition}, {measure}: best is {tied.best}; {tied_at}: {others}{untested}."]
