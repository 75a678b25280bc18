from dataclasses import replace

import numpy as np
import pytest

from swsdask.kernels.rows import best_detections, pairs_ascend
from swsdask.model.errors import InputError
from swsdask.model.ranked_measures import RankRule
from swsdask.model.trials import AlignmentRule
from swsdask.statistics.alignment import make_trials, ranked_events, trial_columns
from swsdask.statistics.segment_trials import Spans, tile
from tests.alignment import NAMES, detections, pairs, reference, score_range, trials


def spans(*rows):
    columns = np.array(rows, np.int64).T
    return Spans(*(c.astype(t) for c, t in zip(columns, (np.int32, np.int8, np.int32, np.int32), strict=True)))


SEGMENTS = tile(spans((0, 1, 0, 140), (1, 2, 0, 50)), spans((0, 1, 0, 50), (0, 1, 100, 110), (0, 1, 112, 122)))
UNALIGNED = ("query", "document", "channel", "start", "duration", "score", "inside")
SPOKEN = [(0, 0, 1, 0, 10), (0, 0, 1, 10, 20), (0, 0, 1, 117, 122), (1, 0, 1, 105, 117, 110, 112), (1, 1, 2, 5, 9)]


def found(query, document, channel, start, duration, score=0.5, decision=1, inside=1):
    return (query, document, channel, start, duration, score, decision, inside)


def test_the_best_detection_of_a_segment_is_its_trial():
    rows = [
        found(1, 1, 2, 0, 50, 0.1),
        found(1, 0, 1, 100, 20, 0.7),
        found(0, 0, 1, 117, 5, 0.99),
        found(0, 0, 1, 0, 10, 0.912, decision=0),
        found(0, 0, 1, 10, 20, 0.890),
        found(0, 0, 1, 130, 20, 0.8),
    ]
    made = trials(rows, reference(SPOKEN, trials="segment", segments=SEGMENTS))
    assert made.row.tolist() == [1, 0, 3, 2, 5]
    assert made.query.tolist() == [1, 1, 0, 0, 0]
    assert made.score.tolist() == [0.7, 0.1, 0.912, 0.99, 0.8]
    assert made.decision.tolist() == [1, 1, 0, 1, 1]
    assert pairs(made) == [(0, 2), (3, 0), (2, 1)]
    assert made.hit.tolist() == [1, 2, 3]
    assert made.dropped == {}


def test_a_detection_in_no_segment_is_no_trial():
    rows = [found(0, 0, 1, 139, 4, inside=0), found(0, 0, 1, 120, 30, inside=0), found(0, -1, 1, 0, 5, inside=0)]
    rows += [found(0, 0, 2, 0, 5, inside=0), found(0, 0, 1, 0, 5)]
    dropped = trials(rows, reference(SPOKEN, trials="segment", segments=SEGMENTS))
    assert (dropped.row.tolist(), dropped.dropped) == ([4], {"outside": 4})
    kept = trials(rows, reference(SPOKEN, trials="segment", segments=SEGMENTS, outside="false_alarm"))
    assert (kept.row.tolist(), kept.dropped) == ([4, 1], {"no_segment": 3})


def test_like_kwseval_a_detection_on_the_boundary_of_two_targets_makes_a_trial_in_both():
    segments = replace(SEGMENTS, order=np.arange(len(SEGMENTS.start)))
    assert (segments.start[:3].tolist(), segments.end[:3].tolist()) == ([0, 50, 100], [50, 100, 110])
    evaluation = reference([(0, 0, 1, 0, 10), (0, 0, 1, 60, 70)], trials="segment", segments=segments)
    rows = [
        found(1, 0, 1, 30, 40, 0.9),
        found(0, 0, 1, 0, 10, 0.5, decision=0),
        found(0, 0, 1, 30, 40, 0.9),
        found(0, 0, 1, 100, 5, 0.1),
    ]
    made = trials(rows, evaluation)
    assert (made.query.tolist(), made.row.tolist()) == ([1, 0, 0, 0], [0, 2, 2, 3])
    assert (made.score.tolist(), made.decision.tolist()) == ([0.9, 0.9, 0.9, 0.1], [1, 1, 1, 1])
    assert pairs(made) == [(2, 0), (2, 1)]
    assert made.dropped == {}
    unaligned = make_trials(detections(rows, UNALIGNED), evaluation, score_range(rows), aligned=False)
    assert unaligned.row.tolist() == made.row.tolist()
    further = replace(evaluation, ranking=RankRule(duplicates="false-positive"))
    events, count = ranked_events(made, further)
    assert (events.row.tolist(), pairs(events), count) == ([0, 1, 2, 2, 3], [(2, 0), (2, 1)], 1)
    better = [*rows[:2], found(0, 0, 1, 30, 40, 0.4), found(0, 0, 1, 100, 5, 0.1)]
    assert pairs(trials(better, evaluation)) == [(1, 0)]


def test_the_best_detection_of_a_document_is_its_trial_on_any_channel_and_at_any_time():
    rows = [
        found(2, 0, 1, 0, 10, 3.0),
        found(0, 2, 1, 0, 10, 1.0),
        found(0, 0, 1, 500, 10, 0.5),
        found(0, 0, 2, 0, 10, 2.5, decision=0),
        found(0, -1, 1, 0, 10, 9.0),
        found(0, 1, 1, 0, 10, 8.0, inside=0),
    ]
    made = trials(rows, reference(SPOKEN, trials="document", groups=[0, 1, 1, 0]))
    assert made.row.tolist() == [0, 3, 1]
    assert made.score.tolist() == [3.0, 2.5, 1.0]
    assert made.decision.tolist() == [1, 0, 1]
    assert made.group.tolist() == [0, 0, 1]
    assert pairs(made) == [(3, 0)]
    assert made.dropped == {"outside": 1, "unknown_document": 1}


@pytest.mark.parametrize(
    "better",
    [
        found(0, 0, 1, 10, 10, 0.6, decision=0),
        found(0, 0, 1, 9, 5, 0.5, decision=0),
        found(0, 0, 2, 10, 11, 0.5, decision=0),
        found(0, 0, 0, 10, 10, 0.5, decision=0),
        found(0, 0, 1, 10, 10, 0.5),
    ],
)
def test_of_equal_scores_the_earlier_the_longer_the_lower_channel_and_yes(better):
    other = found(0, 0, 1, 10, 10, 0.5, decision=0 if better[6] else 1)
    evaluation = reference(SPOKEN, trials="document")
    assert trials([other, better], evaluation).row.tolist() == [1]
    assert trials([better, other], evaluation).row.tolist() == [0]
    assert trials([better, better], evaluation).row.tolist() == [0]


@pytest.mark.parametrize("kind", ["segment", "document"])
def test_unaligned_trials_are_the_same_without_outcomes(kind):
    rng = np.random.default_rng(3)
    rows = [
        found(query, int(document), 1, int(start), 4, float(score), inside=int(inside))
        for query in (2, 0)
        for document, start, score, inside in zip(
            rng.integers(-1, 3, 40), rng.integers(0, 140, 40), rng.random(40), rng.random(40) < 0.9, strict=True
        )
    ]
    evaluation = reference(SPOKEN, trials=kind, segments=SEGMENTS, groups=[0, 1, 0, 1])
    whole = trials(rows, evaluation)
    names = trial_columns(evaluation.rule, evaluation.n_groups, aligned=False)
    made = make_trials(detections(rows, names), evaluation, score_range(rows), aligned=False)
    assert made.hit is made.occurrence is made.decision is None
    for name in ("query", "score", "row", "group"):
        assert np.array_equal(getattr(made, name), getattr(whole, name)), name
    assert made.dropped == whole.dropped


@pytest.mark.parametrize("kind", ["segment", "document"])
def test_no_detections_and_no_occurrences(kind):
    made = trials([], reference([], trials=kind, segments=SEGMENTS))
    assert (len(made), made.hit.tolist(), made.occurrence.tolist(), made.dropped) == (0, [], [], {})
    made = trials([found(0, 0, 1, 0, 5)], reference([], trials=kind, segments=SEGMENTS))
    assert (len(made), made.hit.tolist()) == (1, [])


@pytest.mark.parametrize("kind", ["segment", "document"])
def test_detections_outside_are_refused(kind):
    with pytest.raises(InputError, match="inside the evaluated excerpts"):
        trials([found(0, 0, 1, 0, 5, inside=0)], reference([], trials=kind, segments=SEGMENTS, outside="error"))


def test_a_query_that_comes_back_is_refused():
    rows = [found(query, 0, 1, 0, 5) for query in (0, 1, 0)]
    with pytest.raises(ValueError, match="not clustered by query"):
        trials(rows, reference([], trials="document"))


def test_trial_columns_of_each_rule():
    def columns(kind, outside, aligned):
        return trial_columns(AlignmentRule(kind, 5, "nist", "group", outside), 1, aligned)

    assert columns("segment", "drop", True) == columns("document", "drop", True) == NAMES
    assert columns("segment", "drop", False) == tuple(name for name in NAMES if name != "decision")
    assert columns("document", "drop", False) == ("query", "document", "score", "inside")
    assert columns("document", "false_alarm", False) == ("query", "document", "score")


def test_best_rows_against_a_dictionary():
    rng = np.random.default_rng(5)
    n = 2000
    query = np.sort(rng.integers(0, 9, n)).astype(np.int32)
    place = rng.integers(-1, 12, n)
    score = rng.integers(0, 4, n).astype(np.float64)
    start, duration = (rng.integers(0, 3, n).astype(np.int32) for _ in range(2))
    channel, decision = (rng.integers(0, 2, n).astype(np.int8) for _ in range(2))
    best = {}
    for row in range(n):
        key = (-score[row], start[row], -duration[row], channel[row], -decision[row], row)
        if place[row] >= 0:
            best[query[row], place[row]] = min(best.get((query[row], place[row]), key), key)
    rows = best_detections(query, place, score, start, duration, channel, decision, 9, 12)
    assert rows.tolist() == [best[trial][-1] for trial in sorted(best)]


def test_rows_that_are_a_trial_each_make_the_same_trials_as_in_any_order():
    rng = np.random.default_rng(11)
    spoken = [(q, d, 1, 0, 10) for q in range(3) for d in range(4) if rng.random() < 0.5]
    evaluated = reference(spoken, trials="document", n_documents=4, groups=[0, 1, 0, 1, 1])
    for _ in range(30):
        kept = [(q, d) for q in range(3) for d in range(4) if rng.random() < 0.7]
        rows = [found(q, d, 1, 0, 10, rng.random(), int(rng.integers(2))) for q, d in kept]
        alone, shuffled = trials(rows, evaluated), trials(sorted(rows, key=lambda row: (row[0], -row[1])), evaluated)
        assert alone.row is None
        assert shuffled.row is not None or not rows
        for name in ("query", "score", "decision", "group", "hit", "occurrence"):
            one, other = getattr(alone, name), getattr(shuffled, name)
            assert (one.dtype, one.tolist()) == (other.dtype, other.tolist())
        assert alone.dropped == shuffled.dropped == {}


@pytest.mark.parametrize("at", [0, 1, 1023, 1024, 1025, 2048, 2999])
def test_pairs_that_do_not_ascend_are_seen_wherever_they_are(at):
    query, place = (column.astype(np.int32) for column in np.divmod(np.arange(3000), 700))
    assert pairs_ascend(query, place, 700)
    assert not pairs_ascend(query, place, int(place[at]))
    below = place.copy()
    below[at] = -1
    assert not pairs_ascend(query, below, 700)
    if at:
        twice = place.copy(), query.copy()
        twice[0][at], twice[1][at] = place[at - 1], query[at - 1]
        assert not pairs_ascend(twice[1], twice[0], 700)
