"""From the numbers of folds to those of a condition: F-scores, means, spreads, and which folds are left out of them.

Measures of discovery are averaged over a set of folds, each fold weighing the same. Of a precision and a recall, the
F-score of every fold is their harmonic mean, 0 where both are 0; the mean F-score is the mean of these, not the F-score
of the means. The standard deviation is that of the folds themselves (population, ddof 0).

A number that is not defined in a fold (nothing was found there, or there was nothing to find) is NaN there. What then
becomes of the fold differs:

- document: each number is averaged over the folds in which it is defined, an F-score over those in which precision and
  recall are; the others are left out and counted. Where no fold is left the mean is NaN. The measures document of the
  Zero Resource challenge says nothing of this.
- tde2015: a fold in which precision or recall is not defined is left out of both and of the F-score; NED and coverage
  are left out singly. QUIRK: a coverage of 0 counts as not defined, so that a system that finds nothing in a fold is
  averaged over the others. QUIRK: where no fold is left precision, recall, F-score and coverage are 0, and NED is 1.
- tdev2: there is one fold, the corpus; its numbers stand as they are.

Numbers named "n_..." are counts: they are added up over folds, and have no spread.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from swsdask.model.corpus import Definition
from swsdask.model.trials import F64, Bool

PRECISION, RECALL, F_SCORE = "_precision", "_recall", "_f_score"
COUNT = "n_"

NOT_DEFINED = {"ned": 1.0}
"""What tde2015 takes for a measure that no fold defines; 0 for all others."""


@dataclass(frozen=True)
class Spread:
    """A number over folds. `left_out` folds did not count; where all were, the spread is NaN."""

    mean: float
    std: float
    least: float
    most: float
    left_out: int


def with_f_scores(values: Mapping[str, F64]) -> dict[str, F64]:
    """The numbers per fold, an F-score behind each recall that has its precision."""
    made: dict[str, F64] = {}
    for name, numbers in values.items():
        made[name] = numbers
        stem = name.removesuffix(RECALL)
        if stem != name and stem + PRECISION in values:
            made[stem + F_SCORE] = f_score(values[stem + PRECISION], numbers)
    return made


def f_score(precision: F64, recall: F64) -> F64:
    """2 P R / (P + R), float64 [n_folds]: 0 where both are 0, NaN where either is not defined."""
    together = precision + recall
    return np.where(together == 0, 0.0, 2 * precision * recall / np.where(together == 0, 1.0, together))


def spreads(values: Mapping[str, F64], definition: Definition) -> dict[str, Spread]:
    """Every number of `with_f_scores` over its folds, by the rules of a definition; counts are left to the caller."""
    counting = {name: _defined(name, values, definition) for name in values if not name.startswith(COUNT)}
    return {name: _spread(name, values[name], defined, definition) for name, defined in counting.items()}


def _defined(name: str, values: Mapping[str, F64], definition: Definition) -> Bool:
    """Which folds count for a number."""
    defined: Bool = ~np.isnan(values[name])
    if definition != "tde2015":
        return defined
    if name == "coverage":
        np.logical_and(defined, values[name] != 0, out=defined)
    for ending in (PRECISION, RECALL):
        other = _stem(name) + ending
        if other in values:
            np.logical_and(defined, ~np.isnan(values[other]), out=defined)
    return defined


def _stem(name: str) -> str:
    return next((name.removesuffix(end) for end in (PRECISION, RECALL, F_SCORE) if name.endswith(end)), name)


def _spread(name: str, numbers: F64, defined: Bool, definition: Definition) -> Spread:
    left = numbers[defined].tolist()
    out = len(numbers) - len(left)
    if not left and definition == "tde2015":
        value = NOT_DEFINED.get(name, 0.0)
        return Spread(value, 0.0, value, value, out)
    if not left:
        return Spread(math.nan, math.nan, math.nan, math.nan, out)
    mean = math.fsum(left) / len(left)
    variance = math.fsum((value - mean) ** 2 for value in left) / len(left)
    return Spread(mean, math.sqrt(variance), min(left), max(left), out)
