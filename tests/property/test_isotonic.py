"""Pooling adjacent violators against the definition of isotonic regression, and against every other rising map."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.kernels.entropy import pool_adjacent_violators
from swsdask.measures.calibration import isotonic_blocks
from swsdask.measures.logistic_fit import prior_entropy, sigmoid, softplus
from tests.recalibration import min_max_shares

COUNTS = st.tuples(st.integers(0, 4), st.sampled_from([0, 1, 1, 2, 3, 10**9]))
LADDERS = st.lists(COUNTS, max_size=14)
BOTH_CLASSES = LADDERS.filter(lambda rows: any(t for t, _ in rows) and any(n for _, n in rows))


def columns(rows: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([t for t, _ in rows], np.int64), np.array([n for _, n in rows], np.int64)


@given(rows=LADDERS)
def test_shares_are_those_of_isotonic_regression(rows: list[tuple[int, int]]) -> None:
    rows = [row for row in rows if sum(row)]
    blocks = isotonic_blocks(*columns(rows))
    size = np.diff(np.append(blocks.first, len(rows)))
    shares = [Fraction(int(t), int(t + n)) for t, n in zip(blocks.target, blocks.nontarget, strict=True)]
    assert shares == sorted(set(shares))
    assert [share for share, times in zip(shares, size, strict=True) for _ in range(times)] == min_max_shares(rows)


@given(rows=BOTH_CLASSES)
def test_rows_without_trials_change_nothing(rows: list[tuple[int, int]]) -> None:
    with_gaps = [each for row in rows for each in (row, (0, 0))]
    found = isotonic_blocks(*columns([(0, 0), *with_gaps]))
    kept = isotonic_blocks(*columns([row for row in rows if sum(row)]))
    filled = found.target + found.nontarget > 0
    assert found.target[filled].tolist() == kept.target.tolist()
    assert found.nontarget[filled].tolist() == kept.nontarget.tolist()


@given(rows=BOTH_CLASSES, eta=st.floats(-9, 5))
def test_its_cost_is_that_of_its_log_likelihood_ratios(rows: list[tuple[int, int]], eta: float) -> None:
    target, nontarget = columns(rows)
    n_target, n_nontarget = int(target.sum()), int(nontarget.sum())
    blocks = isotonic_blocks(target, nontarget)
    costs = []
    for llr, t, n in zip(
        blocks.llr(n_target, n_nontarget).tolist(), blocks.target.tolist(), blocks.nontarget.tolist(), strict=True
    ):
        if t and n:
            costs.append(sigmoid(eta) * t / n_target * softplus(-(llr + eta)))
            costs.append(sigmoid(-eta) * n / n_nontarget * softplus(llr + eta))
        elif t or n:
            assert llr == (math.inf if t else -math.inf)
    cost = blocks.cost(n_target, n_nontarget, eta)
    assert cost == pytest.approx(math.fsum(costs), rel=1e-12, abs=1e-300)
    assert cost <= prior_entropy(eta) * (1 + 1e-12)


@given(rows=BOTH_CLASSES.filter(lambda rows: len(rows) <= 8), eta=st.floats(-6, 4))
def test_no_other_pooling_that_rises_is_better(rows: list[tuple[int, int]], eta: float) -> None:
    target, nontarget = columns(rows)
    n_target, n_nontarget = int(target.sum()), int(nontarget.sum())
    found = isotonic_blocks(target, nontarget).cost(n_target, n_nontarget, eta)
    for cuts in (cut for size in range(len(rows)) for cut in combinations(range(1, len(rows)), size)):
        first = [0, *cuts]
        pooled = [
            (int(target[a:b].sum()), int(nontarget[a:b].sum())) for a, b in zip(first, [*cuts, len(rows)], strict=True)
        ]
        held = [Fraction(t, t + n) for t, n in pooled if t + n]
        if held == sorted(held):
            u = [sigmoid(eta) * t / n_target for t, _ in pooled]
            v = [sigmoid(-eta) * n / n_nontarget for _, n in pooled]
            cost = math.fsum(
                a * math.log1p(b / a) + b * math.log1p(a / b) for a, b in zip(u, v, strict=True) if a > 0 and b > 0
            )
            assert found <= cost * (1 + 1e-12)


@given(parts=st.lists(LADDERS, max_size=5))
def test_lists_do_not_mix(parts: list[list[tuple[int, int]]]) -> None:
    offsets = np.cumsum([0, *(len(part) for part in parts)])
    together = isotonic_blocks(*columns([row for part in parts for row in part]), offsets)
    apart = [isotonic_blocks(*columns(part)).first + begin for part, begin in zip(parts, offsets, strict=False)]
    assert together.first.tolist() == [first for part in apart for first in part.tolist()]


def test_more_trials_than_can_be_counted() -> None:
    many = np.array([2**32], np.int64)
    with pytest.raises(ValueError, match="too many pairs"):
        isotonic_blocks(many, many)


def test_the_kernel_reads_read_only_columns() -> None:
    target, nontarget = columns([(1, 0), (0, 1)])
    target.flags.writeable = nontarget.flags.writeable = False
    assert pool_adjacent_violators(np.array([0, 2]), target, nontarget).tolist() == [0]
