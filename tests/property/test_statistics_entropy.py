"""Entropy is, stratum by stratum, the sum of the costs of the trials, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdask.kernels.entropy import softplus
from swsdask.statistics.entropy import ClassCosts, Entropy
from swsdask.statistics.ladder import Hits
from tests.conftest import examples
from tests.engines import plain
from tests.property.worlds import World, cells, worlds
from tests.worlds import make_trials, unaligned

LOG_ODDS = st.sampled_from([-9.2, -4.2, 0.0, 3.0]) | st.floats(-231.0, 231.0)


def literal(world: World, mapped: bool, log_odds: float) -> list[list[float]]:
    """The sum of softplus over the trials of every stratum, one by one and rounded once."""
    sums = [[Fraction(0)] * world.reference.n_groups for _ in range(world.reference.n_queries)]
    for query, group, score, _, is_mapped in world.rows:
        if is_mapped == mapped:
            x = np.array([score + log_odds])
            sums[query][group] += Fraction(softplus(-x if mapped else x)[0])
    return [[_rounded(each) for each in line] for line in sums]


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return float("inf")


@examples(150)
@given(worlds(decisions=(-1, 0, 1)), LOG_ODDS)
def test_a_literal_sum_has_the_same_bits(world: World, log_odds: float) -> None:
    reference = replace(world.reference, prior_log_odds=log_odds)
    trials = make_trials(world.rows)
    entropy = Entropy.from_trials(unaligned(trials), reference, ())
    costs = ClassCosts.of(entropy, Hits.from_trials(trials, reference, ()), log_odds)
    for mapped, sums in ((True, costs.target), (False, costs.nontarget)):
        expected = literal(world, mapped, log_odds)
        for group in range(reference.n_groups):
            column = sums.by_query(np.arange(reference.n_groups) == group).tolist()
            assert column == [line[group] for line in expected]
        for query in range(reference.n_queries):
            one = np.arange(reference.n_queries) == query
            condition = replace(reference.conditions[0], queries=one, groups=np.arange(reference.n_groups) == 0)
            assert sums.total(condition) == expected[query][0]


@examples(150)
@given(worlds().flatmap(lambda w: st.tuples(st.just(w), cells(w.rows))), LOG_ODDS)
def test_any_split_gives_the_same_arrays(
    split: tuple[World, list[list[tuple[int, int, float, int, bool]]]], log_odds: float
) -> None:
    world, parts = split
    reference = replace(world.reference, prior_log_odds=log_odds)
    merged = Entropy.from_trials(make_trials([]), reference, ())
    for rows in parts:
        merged = Entropy.from_trials(make_trials(rows), reference, ()).merge(merged)
    assert plain(merged) == plain(Entropy.from_trials(make_trials(world.rows), reference, ()))
