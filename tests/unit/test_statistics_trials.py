"""Statistics of trials as they come: read-only columns, none, no rows, rows not clustered; and wrong references."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from swsdask.model.trials import Trials
from swsdask.statistics.counts import NO, YES, Counts, class_targets
from swsdask.statistics.ladder import Hits, Ladder, QueryLadder
from tests.worlds import make_reference, make_trials, statistics, unaligned

REFERENCE = make_reference([[2], [1], [0]], {"all": ([True, True, False], [True], 100)})


def test_counts_of_a_few_trials() -> None:
    rows = [
        (0, 0, 3.0, 1, True),
        (0, 0, 2.0, 1, False),
        (0, 0, 1.0, 0, True),
        (0, 0, 0.5, 0, False),
        (1, 0, 2.5, 1, False),
        (2, 0, 9.0, 1, False),
    ]
    counts: Counts = statistics([rows], REFERENCE)[Counts]
    assert counts.mapped[:, 0, YES].tolist() == [1, 0, 0]
    assert counts.mapped[:, 0, NO].tolist() == [1, 0, 0]
    assert counts.unmapped[:, 0, YES].tolist() == [1, 1, 1]
    assert counts.unmapped[:, 0, NO].tolist() == [1, 0, 0]
    assert counts.min_yes[:, 0].tolist() == [2.0, 2.5, 9.0]
    assert counts.max_no[:, 0].tolist() == [1.0, -np.inf, -np.inf]
    assert counts.has_decisions


def test_columns_that_are_read_only_strided_or_absent() -> None:
    rows = [(q, 0, float(s), -1, s > 3) for q in range(3) for s in range(5)]
    whole = make_trials(rows)
    doubled = np.repeat(whole.score, 2)[::2]
    score = whole.score.copy()
    score.flags.writeable = False
    for column in (doubled, score):
        trials = replace(whole, score=column, group=None, decision=None)
        counts = Counts.from_trials(trials, REFERENCE, None)
        np.testing.assert_array_equal(counts.mapped, Counts.from_trials(whole, REFERENCE, None).mapped)
        found = {Counts: counts, Hits: Hits.from_trials(trials, REFERENCE, None)}
        for kind in (Ladder, QueryLadder):
            prepared = kind.prepare(found, REFERENCE)
            one = kind.from_trials(replace(unaligned(trials), group=None), REFERENCE, prepared)
            np.testing.assert_array_equal(one.counts, statistics([rows], REFERENCE)[kind].counts)


def test_parts_together_have_the_lowest_and_the_highest_score_of_either() -> None:
    low, high = (Counts.from_trials(make_trials([(0, 0, score, 1, True)]), REFERENCE, None) for score in (1.0, 2.0))
    for merged in (low.merge(high), high.merge(low)):
        assert (merged.lowest[0, 0], merged.highest[0, 0]) == (1.0, 2.0)
        assert (merged.min_yes[0, 0], merged.max_no[0, 0]) == (1.0, -np.inf)


def test_no_rows() -> None:
    found = statistics([[]], REFERENCE)
    assert found[Counts].mapped.sum() == found[Counts].unmapped.sum() == len(found[Hits]) == 0
    assert found[Counts].has_decisions
    assert found[Ladder].rungs.tolist() == [np.inf]
    assert found[Ladder].counts.shape == (0, 1)
    assert found[QueryLadder].rungs.tolist() == [np.inf] * 3


def test_dropped_is_added_up() -> None:
    parts = [make_trials([], {"outside": 2}), make_trials([], {"unknown query": 1, "outside": 3})]
    counts = [Counts.from_trials(trials, REFERENCE, None) for trials in parts]
    assert counts[0].merge(counts[1]).dropped == {"outside": 5, "unknown query": 1}


def test_a_long_stretch_and_many_short_ones_count_alike() -> None:
    chance = np.random.default_rng(3)
    rows = [(0, 0, float(s), 0, bool(s > 1)) for s in chance.normal(size=2000)]
    reference = make_reference([[len(rows)]] * 2, {"all": ([True, True], [True], 10_000)})
    mixed = [row for s in rows for row in (s, (1, *s[1:]))]
    clustered = statistics([sorted(mixed)], reference)
    scattered = statistics([mixed], reference)
    for kind in (Ladder, QueryLadder):
        np.testing.assert_array_equal(clustered[kind].counts, scattered[kind].counts)
    rungs = clustered[Ladder].rungs
    expected = np.bincount(np.searchsorted(rungs, [row[2] for row in rows], side="right"), minlength=len(rungs))
    np.testing.assert_array_equal(clustered[Ladder].counts, [2 * expected])


def test_a_ladder_widens_its_counts_when_they_might_not_fit() -> None:
    found = statistics([[(0, 0, 1.0, 1, True), (1, 0, 0.5, 1, True)]], REFERENCE)
    small = replace(found[Ladder], n_trials=2**30)
    large = small.merge(small)
    assert (small.counts.dtype, large.counts.dtype) == (np.int32, np.int64)
    assert large.n_trials == 2**31
    half = replace(small, classes=small.classes[:1], counts=small.counts[:1])
    for merged in (large.merge(half), half.merge(large)):
        assert merged.counts.dtype == np.int64
        np.testing.assert_array_equal(merged.counts, np.array([[3], [2]]) * small.counts)


def test_zero_and_minus_zero_are_one_score() -> None:
    rows = [(0, 0, -0.0, 1, True), (0, 0, 0.0, 1, True), (1, 0, 0.0, 0, False)]
    found = statistics([rows], REFERENCE)
    assert found[Ladder].rungs.tobytes() == np.array([0.0, np.inf]).tobytes()
    assert found[Ladder].counts.sum(axis=0).tolist() == [0, 3]
    for cells in ([[rows[0]], [rows[1]]], [[rows[1]], [rows[0]]]):
        parts = statistics(cells, REFERENCE)
        for name in ("min_yes", "lowest", "highest"):
            assert not np.signbit(getattr(parts[Counts], name)[0, 0]), name
        assert not np.signbit(parts[Hits].score).any()


@pytest.mark.parametrize("kind", [Counts, Hits])
def test_outcomes_are_needed(kind: type[Counts] | type[Hits]) -> None:
    trials: Trials = unaligned(make_trials([(0, 0, 1.0, 1, True)]))
    with pytest.raises(ValueError, match="aligned"):
        kind.from_trials(trials, REFERENCE, None)


@pytest.mark.parametrize("class_of", [[[0], [0], [-1]], [[0], [1], [0]]])
def test_classes_that_a_condition_distinguishes(class_of: list[list[int]]) -> None:
    with pytest.raises(ValueError, match="distinguishes strata of one class"):
        class_targets(replace(REFERENCE, class_of=np.array(class_of, np.int32)))
