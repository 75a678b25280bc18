"""softplus against 50 digits, sums without rounding, and entropy of trials as they come."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from swsdask.kernels.entropy import softplus
from swsdask.model.trials import Reference
from swsdask.statistics.entropy import ClassCosts, Entropy, ExactSums
from swsdask.statistics.ladder import Hits
from tests.engines import plain
from tests.worlds import make_reference, make_trials, unaligned

REFERENCE = make_reference([[2, 0], [1, 1], [0, 3]], {"all": ([True] * 3, [True] * 2, 100)})
ETA = REFERENCE.prior_log_odds
(EVERY,) = REFERENCE.conditions
DIGITS = Context(prec=50)


def true_softplus(x: float) -> Decimal:
    """By 50 digits, with as many again where they cancel."""
    if x > 1000.0:
        return Decimal(x)
    wide = Context(prec=50 + max(0, int(-x)))
    return DIGITS.plus(wide.ln(wide.add(Decimal(1), wide.exp(Decimal(x)))))


def ulps(found: float, true: Decimal) -> float:
    return float(abs(Decimal(found) - true) / Decimal(math.ulp(float(true))))


def test_softplus_is_within_two_units_in_the_last_place() -> None:
    rng = np.random.default_rng(1)
    x = np.concatenate(
        [
            rng.normal(0, 4, 1500),
            rng.uniform(-1.2, 1.2, 1500),
            rng.uniform(-60, 60, 200),
            rng.uniform(-745, -700, 20),
            np.log(np.sqrt(2) - 1) + np.arange(-20, 20) * 1e-16,
            [-708.4, -708.3, -37.0, -36.7, 36.7, 37.0, 0.0, -0.0, 5e-324, -5e-324, 1e308],
        ]
    )
    worst = max(ulps(found, true_softplus(float(each))) for each, found in zip(x, softplus(x), strict=True))
    assert worst < 2.0


def test_softplus_at_its_ends() -> None:
    given = np.array([np.inf, -np.inf, -1e308, -746.0, -745.0, 1e308])
    assert softplus(given).tolist() == [math.inf, 0.0, 0.0, 0.0, 5e-324, 1e308]


def test_softplus_does_not_depend_on_the_place_of_a_number() -> None:
    x = np.random.default_rng(2).normal(-3, 5, 1003)
    whole = softplus(x)
    assert [softplus(x[row : row + 1])[0] for row in range(len(x))] == whole.tolist()
    assert softplus(x[5:]).tolist() == whole[5:].tolist()


def exact(x: list[float]) -> Fraction:
    return sum((Fraction(cost) for cost in softplus(np.array(x)).tolist()), Fraction(0))


def costs_of(rows: Iterable[tuple[int, int, float, int, bool]], reference: Reference = REFERENCE) -> ClassCosts:
    """The costs of both classes of some trials, summed from their scores alone."""
    trials = make_trials(rows)
    entropy = Entropy.from_trials(unaligned(trials), reference, ())
    return ClassCosts.of(entropy, Hits.from_trials(trials, reference, ()), reference.prior_log_odds)


def test_entropy_of_a_few_trials() -> None:
    rows = [
        (0, 0, 3.0, 1, True),
        (0, 0, 0.1, 0, True),
        (0, 1, -2.0, 1, False),
        (1, 1, 700.0, -1, True),
        (1, 1, -700.0, -1, False),
        (2, 1, 1e-300, 0, False),
    ]
    entropy = costs_of(rows)
    assert entropy.target.total(EVERY) == float(exact([-(3.0 + ETA), -(0.1 + ETA), -(700.0 + ETA)]))
    assert entropy.nontarget.total(EVERY) == float(exact([-2.0 + ETA, -700.0 + ETA, ETA]))
    first = np.array([True, False])
    assert entropy.target.by_query(first).tolist() == [float(exact([-(3.0 + ETA), -(0.1 + ETA)])), 0.0, 0.0]
    assert entropy.nontarget.by_query(~first).tolist() == [float(exact([each + ETA])) for each in (-2.0, -700.0, 0.0)]


def test_an_infinite_cost_makes_its_sum_infinite_and_no_other() -> None:
    rows = [(0, 0, math.inf, 1, True), (0, 0, 1.0, 1, True), (1, 0, -math.inf, 1, False), (2, 0, 1.0, 1, False)]
    entropy = costs_of(rows)
    assert entropy.target.total(EVERY) == float(exact([-(1.0 + ETA)]))
    assert entropy.nontarget.total(EVERY) == float(exact([1.0 + ETA]))
    both = costs_of([*rows, (0, 0, math.inf, 1, False), (1, 0, -math.inf, 1, True)])
    assert both.nontarget.by_query(np.ones(2, np.bool_)).tolist() == [math.inf, 0.0, float(exact([1.0 + ETA]))]
    assert both.target.by_query(np.ones(2, np.bool_))[1] == math.inf


def test_sums_keep_every_bit_and_round_once() -> None:
    scores = [2.0**60, 1.0, 2.0**-60, 2.0**900, 1e308, 1e308]
    rows = [(query, 0, score, 0, False) for query in range(3) for score in scores[: 3 + query]]
    reference = replace(REFERENCE, prior_log_odds=0.0)
    nontarget = costs_of(rows, reference).nontarget
    totals = nontarget.by_query(np.ones(2, np.bool_)).tolist()
    assert totals == [float(exact(scores[: 3 + query])) for query in range(3)]
    assert nontarget.merge(nontarget).by_query(np.ones(2, np.bool_)).tolist() == [
        *(2 * each for each in totals[:2]),
        math.inf,
    ]


def test_many_equal_costs() -> None:
    n = 200_003
    rows = make_trials([(1, 0, 0.3, 0, False)])
    many = replace(rows, query=np.full(n, 1, np.int32), score=np.full(n, 0.3), decision=None, group=None)
    assert Entropy.from_trials(many, REFERENCE, ()).costs.total(EVERY) == float(n * exact([0.3 + ETA]))


def test_columns_that_are_read_only_strided_or_absent() -> None:
    rows = [(q, 0, float(s), -1, s > 3) for q in range(3) for s in range(5)]
    whole = make_trials(rows)
    score = whole.score.copy()
    score.flags.writeable = False
    expected = plain(Entropy.from_trials(whole, REFERENCE, ()))
    for column in (np.repeat(whole.score, 2)[::2], score):
        trials = replace(whole, score=column, group=None, decision=None)
        assert plain(Entropy.from_trials(trials, REFERENCE, ())) == expected


def test_no_rows() -> None:
    nothing = costs_of([])
    assert nothing.target.total(EVERY) == nothing.nontarget.total(EVERY) == 0.0
    entropy = Entropy.from_trials(make_trials([]), REFERENCE, ())
    some = Entropy.from_trials(make_trials([(0, 0, 3.0, 1, True), (2, 1, 3.0, 1, False)]), REFERENCE, ())
    for merged in (some.merge(entropy), entropy.merge(some)):
        assert plain(merged) == plain(some)
    only_hits = costs_of([(0, 0, 3.0, 1, True), (2, 1, -math.inf, 1, True)])
    assert only_hits.nontarget.digits.size == 0


def test_what_hits_cost_is_taken_away_to_the_last_bit() -> None:
    """The lowest bits of two costs are those of none of them once they are added up."""
    hits = [(0, 0, score, 1, True) for score in (-37.5, -37.5, 0.1, 41.0)]
    others = [(0, 0, score, 1, False) for score in (0.3, -700.0)]
    assert plain(costs_of([*hits, *others]).nontarget) == plain(costs_of(others).nontarget)


def test_a_sum_carries_through_all_its_digits() -> None:
    full = ExactSums.of(33, np.full((1, 1, 3), 2**32 - 1))
    one = ExactSums.of(33, np.array([[[1]]]))
    carried = full.merge(one)
    assert carried.first == 36
    assert carried.digits.tolist() == [[[1]]]
