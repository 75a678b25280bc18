"""The assignment kernels against scipy, on groups too large to try every alignment."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit
from scipy.optimize import linear_sum_assignment

from swsdask.kernels import assignment
from tests.alignment import pairs, reference, trials
from tests.conftest import examples

WHOLE = 2**20


@njit
def assign(first, columns, values, n_columns):
    return assignment.assign(first, columns, values, n_columns)


@njit
def settle(first, columns, values, column_of, row_of, row_price, column_price):
    assignment.settle(first, columns, values, column_of, row_of, row_price, column_price)


def graph(rng, n_rows, n_columns, density, weights):
    """A random graph as compressed rows, and as a matrix with 0 where there is no edge."""
    matrix = rng.choice(weights, (n_rows, n_columns)) * (rng.random((n_rows, n_columns)) < density)
    rows, columns = np.nonzero(matrix)
    first = np.searchsorted(rows, np.arange(n_rows + 1))
    return matrix, first, columns.astype(np.int32), matrix[rows, columns].astype(np.int64)


@pytest.mark.parametrize("density", [0.05, 0.4, 1.0])
@pytest.mark.parametrize("weights", [np.arange(1, WHOLE), np.arange(3 * WHOLE, 3 * WHOLE + 40), np.array([WHOLE])])
@pytest.mark.parametrize(("n_rows", "n_columns"), [(40, 70), (70, 40), (1, 30), (30, 1)])
def test_the_sum_of_weights_is_the_greatest(density, weights, n_rows, n_columns):
    rng = np.random.default_rng([n_rows, n_columns, len(weights), int(100 * density)])
    matrix, first, columns, values = graph(rng, n_rows, n_columns, density, weights)
    column_of, row_of, row_price, column_price = assign(first, columns, values, n_columns)
    best = matrix[linear_sum_assignment(matrix, maximize=True)].sum()
    for _ in ("as found", "settled"):
        matched = np.flatnonzero(column_of >= 0)
        assert np.array_equal(row_of[column_of[matched]], matched)
        assert (row_of >= 0).sum() == len(matched)
        assert (matrix[matched, column_of[matched]] > 0).all()
        assert matrix[matched, column_of[matched]].sum() == best
        settle(first, columns, values, column_of, row_of, row_price, column_price)
    assert best == row_price.sum() + column_price.sum()
    assert (row_price >= 0).all()
    assert (column_price >= 0).all()
    slack = np.repeat(row_price, np.diff(first)) + column_price[columns] - values
    assert (slack >= 0).all()


def preferred(matrix):
    """The column of every row in the best matching; of equals, early columns are matched, and to early rows."""
    n_rows, n_columns = matrix.shape

    def worth(row_of):
        matched = [(row, column) for column, row in enumerate(row_of) if row < n_rows]
        total = sum(int(matrix[pair]) for pair in matched)
        return total, [row < n_rows for row in row_of], [-row for row, _ in matched]

    choices = [[*np.flatnonzero(matrix[:, column]).tolist(), n_rows] for column in range(n_columns)]
    possible = (c for c in product(*choices) if len({r for r in c if r < n_rows}) == sum(r < n_rows for r in c))
    row_of = max(possible, key=worth)
    return [row_of.index(row) if row in row_of else -1 for row in range(n_rows)]


@examples(300)
@given(arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.integers(0, 3)))
def test_ties_are_settled_in_order(matrix):
    rows, columns = np.nonzero(matrix)
    first, columns = np.searchsorted(rows, np.arange(len(matrix) + 1)), columns.astype(np.int32)
    values = matrix[matrix > 0]
    column_of, row_of, *prices = assign(first, columns, values, matrix.shape[1])
    settle(first, columns, values, column_of, row_of, *prices)
    assert column_of.tolist() == preferred(matrix)


def test_a_graph_without_edges():
    first, nothing = np.zeros(4, np.int64), np.empty(0, np.int64)
    column_of, row_of, *prices = assign(first, nothing.astype(np.int32), nothing, 2)
    settle(first, nothing.astype(np.int32), nothing, column_of, row_of, *prices)
    assert (column_of.tolist(), row_of.tolist()) == ([-1, -1, -1], [-1, -1])


def congruences(rows, occurrences, tolerance):
    """1e-6 sc + 1e-8 tc of every pair, and whether it is admissible."""
    found, spoken = np.array([row[3:6] for row in rows]).T, np.array([row[3:5] for row in occurrences]).T
    start, duration, score = found
    begin, end = spoken[:, :, None]
    middle = start + duration / 2
    overlap = np.minimum(start + duration, end) - np.maximum(start, begin)
    time = overlap / np.maximum(end - begin, 0.1)
    admissible = (begin - tolerance <= middle) & (middle <= end + tolerance)
    return 1e-6 * (score - score.min()) / (score.max() - score.min()) + 1e-8 * time, score, admissible


@pytest.mark.parametrize("objective", ["nist", "score"])
@pytest.mark.parametrize(
    ("n_detections", "n_occurrences", "length", "tolerance"),
    [(300, 60, 20_000, 5_000), (300, 60, 200_000, 5_000), (60, 150, 100_000, 5_000), (150, 100, 90_000, 200_000)],
)
def test_middle_groups(objective, n_detections, n_occurrences, length, tolerance):
    rng = np.random.default_rng([n_detections, length])

    def times(count):
        return zip(rng.integers(0, length, count).tolist(), rng.integers(0, 9_000, count).tolist(), strict=True)

    occurrences = sorted((0, 0, 1, start, start + duration) for start, duration in times(n_occurrences))
    rows = [(0, 0, 1, *time, round(rng.normal(), 2), 0, 1) for time in times(n_detections)]
    evaluation = reference(occurrences, tolerance=tolerance, objective=objective)
    ours = pairs(trials(rows, evaluation))
    assert len({row for row, _ in ours}) == len({occurrence for _, occurrence in ours}) == len(ours)

    congruence, score, admissible = congruences(rows, occurrences, tolerance)
    assert all(admissible[occurrence, row] for row, occurrence in ours)
    value = congruence if objective == "nist" else np.broadcast_to(score - score.min(), admissible.shape)
    many = 3 if objective == "nist" else n_detections * (np.ptp(score) + 1)
    theirs = linear_sum_assignment(np.where(admissible, many + value, 0), maximize=True)
    kept = admissible[theirs]
    assert len(ours) == kept.sum()
    assert sum(value[occurrence, row] for row, occurrence in ours) == pytest.approx(value[theirs][kept].sum(), rel=1e-9)


@pytest.mark.parametrize("objective", ["nist", "score"])
@pytest.mark.parametrize("tolerance", [5_000, 10_000_000])
def test_a_dense_group(objective, tolerance):
    rng = np.random.default_rng(7)
    occurrences = [(0, 0, 1, start, start + 4_000) for start in range(0, 600 * 3_000, 3_000)]
    starts = rng.integers(0, 600 * 3_000, 6_000).tolist()
    rows = [(0, 0, 1, start, 3_000, score, 0, 1) for start, score in zip(starts, rng.random(6_000), strict=True)]
    evaluation = reference(occurrences, tolerance=tolerance, objective=objective)
    ours = pairs(trials(rows, evaluation))
    assert len(ours) == 600
    if objective == "score" and tolerance > 600 * 3_000:
        best = np.argsort([-row[5] for row in rows])[:600]
        assert sorted(row for row, _ in ours) == sorted(best.tolist())
