"""Results whose rankings are known, and rank correlations counted pair by pair."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

from swsdask.model.results import CURVES, SCORES, Result
from tests.results import MANIFEST, table


def of_numbers(
    numbers: Mapping[str, Sequence[float]],
    systems: Sequence[str] = "abcdefgh",
    condition: str = "all",
    asked: Sequence[str] | None = None,
) -> Result:
    """The result of systems with these numbers by measure, all requested unless `asked` says otherwise."""
    rows = [
        (system, condition, None, measure, value)
        for measure, values in numbers.items()
        for system, value in zip(systems, values, strict=False)
    ]
    manifest = {**MANIFEST, "measures": "all" if asked is None else list(asked)}
    return Result.of(table(rows, SCORES), table([], CURVES), manifest)


def in_two_conditions(numbers: Mapping[str, Sequence[float]]) -> Result:
    """The same numbers in two conditions, in the second without the last system."""
    less = {measure: values[:-1] for measure, values in numbers.items()}
    whole, part = of_numbers(numbers), of_numbers(less, condition="oov=true")
    rows = [tuple(row.values()) for made in (whole, part) for row in made.table.to_pylist()]
    return Result.of(table(rows, SCORES), whole.curve_table, whole.manifest)


def sign(difference: float) -> int:
    return (difference > 0) - (difference < 0)


def slow_tau_ap(x: Sequence[float], y: Sequence[float]) -> float:
    """tau_AP of x with y as the truth by its definition, in fractions."""
    shares = []
    for own_x, own_y in zip(x, y, strict=True):
        above = [sign(other_y - own_y) for other_x, other_y in zip(x, y, strict=True) if other_x > own_x]
        if above:
            shares.append(Fraction(sum(above), len(above)))
    return float(sum(shares) / len(shares)) if shares else math.nan


def paper_tau_ap(ranking: str, truth: str) -> float:
    """tau_AP without ties as the paper has it: 2 / (N - 1) sum over i = 2 .. N of C(i) / (i - 1), less 1."""
    n = len(ranking)
    right = [
        Fraction(sum(truth.index(above) < truth.index(ranking[i]) for above in ranking[:i]), i) for i in range(1, n)
    ]
    return float(2 * sum(right) / (n - 1) - 1)
