"""Alignment against every possible alignment, on small groups."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.alignment import pairs, reference, trials
from tests.conftest import examples


def weight(detection, occurrence, low, high):
    """3 + 1e-6 sc + 1e-8 tc in units of 2^-59; times in ticks of 0.1 ms."""
    _, _, _, start, duration, score, _, _ = detection
    _, _, _, begin, end = occurrence
    sc = (score - low) / max(high - low, 1e-5)
    tc = (min(start + duration, end) - max(start, begin)) / max(end - begin, 0.1)
    return 3 * 2**59 + round(math.ldexp(1e-6 * sc, 59)) + round(math.ldexp(1e-8 * tc, 59))


def admissible(detection, occurrence, tolerance):
    _, _, _, start, duration, _, _, _ = detection
    _, _, _, begin, end = occurrence
    return Fraction(begin) - tolerance <= Fraction(2 * start + duration, 2) <= end + tolerance


def alignments(choices):
    """Every one-to-one choice of an occurrence, or None, for each detection."""
    for chosen in itertools.product(*([None, *some] for some in choices)):
        mapped = [occurrence for occurrence in chosen if occurrence is not None]
        if len(set(mapped)) == len(mapped):
            yield chosen


def best_of_group(found, spoken, tolerance, objective, whole_range):
    """(detection, occurrence) pairs of the preferred optimum; both are lists of (number, row)."""
    found = sorted(found, key=lambda f: (2 * f[1][3] + f[1][4], f[1][3], -f[1][5], -f[1][6], f[0]))
    scores = [row[5] for _, row in found]
    low, high = whole_range or (min(scores), max(scores))

    def worth(chosen):
        mapped = [(row, spoken[o][1]) for (_, row), o in zip(found, chosen, strict=True) if o is not None]
        if objective == "score":
            value = (len(mapped), sum(Fraction(row[5]) for row, _ in mapped))
        else:
            value = sum(weight(row, occurrence, low, high) for row, occurrence in mapped)
        return (value, [o is not None for o in chosen], [-o for o in chosen if o is not None])

    choices = [
        [o for o, (_, occurrence) in enumerate(spoken) if admissible(row, occurrence, tolerance)] for _, row in found
    ]
    chosen = max(alignments(choices), key=worth)
    return {(number, spoken[o][0]) for (number, _), o in zip(found, chosen, strict=True) if o is not None}


def best(rows, occurrences, tolerance, objective, whole_range=None):
    groups = defaultdict(lambda: ([], []))
    for number, row in enumerate(rows):
        groups[row[:3]][0].append((number, row))
    for number, occurrence in enumerate(sorted(occurrences)):
        groups[occurrence[:3]][1].append((number, occurrence))
    return sorted(
        pair
        for found, spoken in groups.values()
        if found and spoken
        for pair in best_of_group(found, spoken, tolerance, objective, whole_range)
    )


moments = st.integers(0, 30)
lengths = st.sampled_from([0, 0, 1, 3, 7, 12])
scores = st.one_of(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.floats(-3, 3).map(lambda x: round(x, 3)))
tolerances = st.sampled_from([0, 1, 4, 10, 1000])
channels = st.integers(1, 2)
objectives = st.sampled_from(["nist", "score"])


def rows_in(queries, documents, size, channels=channels):
    row = st.tuples(queries, documents, channels, moments, lengths, scores, st.integers(0, 1), st.just(1))
    return st.lists(row, max_size=size)


def occurrences_in(queries, documents, size, channels=channels):
    occurrence = st.tuples(queries, documents, channels, moments, lengths)
    return st.lists(occurrence.map(lambda o: (*o[:4], o[3] + o[4])), max_size=size)


def clustered(rows):
    return sorted(rows, key=lambda row: row[0])


@examples(500)
@given(
    rows_in(st.just(0), st.just(0), 5, st.just(1)),
    occurrences_in(st.just(0), st.just(0), 5, st.just(1)),
    tolerances,
    objectives,
)
def test_one_group(rows, occurrences, tolerance, objective):
    evaluation = reference(occurrences, tolerance=tolerance, objective=objective)
    assert pairs(trials(rows, evaluation)) == best(rows, occurrences, tolerance, objective)


@examples(200)
@given(
    rows_in(st.integers(0, 2), st.integers(-1, 2), 16).map(clustered),
    occurrences_in(st.integers(0, 2), st.integers(0, 2), 10),
    tolerances,
    objectives,
)
def test_groups_do_not_mix(rows, occurrences, tolerance, objective):
    evaluation = reference(occurrences, tolerance=tolerance, objective=objective)
    assert pairs(trials(rows, evaluation)) == best(rows, occurrences, tolerance, objective)


@examples(100)
@given(
    rows_in(st.just(0), st.just(0), 6),
    occurrences_in(st.just(0), st.just(0), 5),
    tolerances,
    st.tuples(st.floats(-5, -3), st.floats(3, 5)),
)
def test_a_declared_range_scales_the_scores(rows, occurrences, tolerance, declared):
    evaluation = reference(occurrences, tolerance=tolerance)
    assert pairs(trials(rows, evaluation, declared)) == best(rows, occurrences, tolerance, "nist", declared)


@examples(100)
@given(rows_in(st.just(0), st.just(0), 6), occurrences_in(st.just(0), st.just(0), 5), tolerances)
def test_the_range_of_the_whole_run_scales_the_scores(rows, occurrences, tolerance):
    far = [(2, 2, 1, 0, 1, score, 0, 1) for score in (-7.0, 7.0)]
    evaluation = reference(occurrences, tolerance=tolerance, score_scale="run")
    assert pairs(trials(rows + far, evaluation)) == best(rows, occurrences, tolerance, "nist", (-7.0, 7.0))


@examples(200)
@given(
    rows_in(st.integers(0, 1), st.integers(0, 1), 30),
    occurrences_in(st.integers(0, 1), st.integers(0, 1), 12),
    tolerances,
    objectives,
    st.randoms(use_true_random=False),
)
def test_the_order_of_rows_never_shows(rows, occurrences, tolerance, objective, random):
    evaluation = reference(occurrences, tolerance=tolerance, objective=objective)
    shuffled = rows.copy()
    random.shuffle(shuffled)
    outcomes = []
    for order in (clustered(rows), clustered(shuffled)):
        made = trials(order, evaluation)
        assert made.hit is not None
        assert (np.diff(made.hit) > 0).all()
        outcomes.append(sorted((order[row], occurrence) for row, occurrence in pairs(made)))
    assert outcomes[0] == outcomes[1]


@examples(200)
@given(rows_in(st.just(0), st.just(0), 20), occurrences_in(st.just(0), st.just(0), 8), tolerances)
def test_the_objective_score_gives_the_most_hits_at_every_threshold(rows, occurrences, tolerance):
    made = trials(rows, reference(occurrences, tolerance=tolerance, objective="score"))
    hit_scores = [rows[row][5] for row, _ in pairs(made)]
    for threshold in {row[5] for row in rows}:
        accepted = [row for row in rows if row[5] >= threshold]
        alone = trials(accepted, reference(occurrences, tolerance=tolerance))
        assert sum(score >= threshold for score in hit_scores) == len(pairs(alone))


@pytest.mark.parametrize("objective", ["nist", "score"])
def test_nothing_comes_of_nothing(objective):
    one = (0, 0, 1, 0, 5, 1.0, 1, 1)
    spoken = (0, 0, 1, 0, 5)
    assert pairs(trials([], reference([], objective=objective))) == []
    assert pairs(trials([one], reference([], objective=objective))) == []
    assert pairs(trials([], reference([spoken], objective=objective))) == []
    assert pairs(trials([one], reference([spoken], objective=objective))) == [(0, 0)]
