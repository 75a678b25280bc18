import numpy as np
import pytest

from swsdask.model.errors import InputError
from swsdask.model.trials import AlignmentRule, ScoreRange
from swsdask.statistics.alignment import make_trials, trial_columns
from tests.alignment import NAMES, detections, pairs, reference, score_range, trials


def spoken(start, end):
    return (0, 0, 1, start, end)


def found(start, duration, score=0.5, decision=1, query=0, document=0, channel=1, inside=1):
    return (query, document, channel, start, duration, score, decision, inside)


@pytest.mark.parametrize(
    ("start", "duration", "mapped"),
    [
        (50, 0, True),
        (49, 0, False),
        (49, 1, False),
        (49, 2, True),
        (48, 3, False),
        (48, 5, True),
        (250, 0, True),
        (251, 0, False),
        (250, 1, False),
        (249, 2, True),
        (0, 500, True),
        (0, 501, False),
    ],
)
def test_the_edge_of_the_tolerance_is_exact(start, duration, mapped):
    assert bool(pairs(trials([found(start, duration)], reference([spoken(100, 200)], tolerance=50)))) is mapped


def edge_in_doubles(start, duration, occurrence_start, occurrence_end, tolerance, arithmetic):
    """KWSEval's and STDEval's own comparison; STDEval adds ends up."""
    middle, begin, end = start / 10_000 + duration / 10_000 / 2, occurrence_start / 10_000, occurrence_end / 10_000
    if arithmetic == "stdeval":
        end = begin + (occurrence_end - occurrence_start) / 10_000
    return begin - tolerance / 10_000 <= middle <= end + tolerance / 10_000


@pytest.mark.parametrize("arithmetic", ["kwseval", "stdeval"])
def test_the_edge_of_the_tolerance_is_in_doubles_as_the_tools_have_it(arithmetic):
    assert 0.0 + 0.6 / 2 < 0.8 - 0.5
    assert 1.1 + 0.2 / 2 > 0.7 + 0.5
    rng = np.random.default_rng(1)
    differ = 0
    for tolerance in (5000, 2000, 3000):
        ends = np.sort(rng.integers(tolerance, 20_000, (400, 2)), axis=1).tolist()
        for number, (start, end) in enumerate(ends):
            edge = start - tolerance if number % 2 else end + tolerance
            half = int(rng.integers(0, edge + 1))
            row, by = found(edge - half, 2 * half), number % 5 - 2
            for moved in (row, (*row[:3], max(row[3] + by, 0), *row[4:])):
                evaluation = reference([spoken(start, end)], tolerance=tolerance, arithmetic=arithmetic)
                expected = edge_in_doubles(moved[3], moved[4], start, end, tolerance, arithmetic)
                assert bool(pairs(trials([moved], evaluation))) is expected
                differ += bool(pairs(trials([moved], reference([spoken(start, end)], tolerance=tolerance)))) != expected
    assert differ > 100


def test_the_end_of_an_occurrence_is_a_sum_to_stdeval():
    """0.2 + 10.2 lies below 10.4: STDEval leaves a mid-point at 10.65 alone, KWSEval maps it."""
    assert 10.2 + 0.2 + 0.25 < 10.6 + 0.1 / 2 == 10.4 + 0.25
    row, occurrence = found(106_000, 1_000), spoken(102_000, 104_000)
    for arithmetic, n_pairs in (("exact", 1), ("kwseval", 1), ("stdeval", 0)):
        evaluation = reference([occurrence], tolerance=2500, arithmetic=arithmetic)
        assert len(pairs(trials([row], evaluation))) == n_pairs
    # An earlier occurrence that ends as late, but as a sum of doubles later, still reaches so far.
    evaluation = reference([spoken(100_000, 104_000), occurrence], tolerance=2500, arithmetic="stdeval")
    assert len(pairs(trials([row], evaluation))) == 1


def test_detections_at_one_edge_of_which_doubles_take_some_only():
    """All are at 0.3 s; 0.8 - 0.5 lies above 0.3, but not above 0.2 + 0.2 / 2."""
    rows = [found(3000, 0, 0.9), found(2000, 2000, 0.5), found(0, 6000, 0.8), found(1000, 4000, 0.4)]
    occurrences = [spoken(8000, 9000), spoken(8000, 9100)]
    assert [row for row, _ in pairs(trials(rows, reference(occurrences, tolerance=5000)))] == [0, 2]
    evaluation = reference(occurrences, tolerance=5000, arithmetic="kwseval")
    assert [row for row, _ in pairs(trials(rows, evaluation))] == [1, 3]


def test_times_and_a_tolerance_as_long_as_can_be():
    far = 2**31 - 1
    occurrences = [spoken(0, 5), spoken(far - 5, far)]
    rows = [found(far - 1, 1), found(0, 2 * 10**9 + 10), found(1, 2 * 10**9 + 9), found(0, far)]
    evaluation = reference(occurrences, tolerance=10**9)
    assert pairs(trials(rows, evaluation)) == [(0, 1), (1, 0)]
    assert pairs(trials(rows[2:], evaluation)) == []


def test_the_number_of_pairs_comes_first():
    occurrences = [spoken(100, 110), spoken(118, 128)]
    rows = [found(100, 10, 0.1), found(112, 4, 0.9), found(130, 8, 0.0)]
    assert pairs(trials(rows, reference(occurrences))) == [(0, 0), (1, 1)]


def test_score_congruence_and_time_congruence_trade():
    """1e-6 of score congruence is worth 1e-8 of a hundred times as much time congruence, which a short word gives."""
    near, far = found(100, 0, 0.0), found(104, 0, 1.0)
    assert pairs(trials([near, far], reference([spoken(100, 100)]))) == [(1, 0)]
    assert pairs(trials([near, far, found(0, 1, 3.0)], reference([spoken(100, 100)]))) == [(0, 0)]
    assert pairs(trials([near, far, found(0, 1, 3.0)], reference([spoken(100, 100)], objective="score"))) == [(1, 0)]


@pytest.mark.parametrize("duration", range(30, 150))
def test_of_detections_of_the_same_times_the_better_one_has_the_earlier_occurrence(duration: int) -> None:
    rows = [found(170, duration, 0.445), found(170, duration, 0.722)]
    assert pairs(trials(rows, reference([spoken(160, 250), spoken(165, 300)]), (0.445, 0.722))) == [(0, 1), (1, 0)]


def test_a_detection_worth_less_than_nothing_stays_alone():
    """Far below a declared range, score congruence outweighs the 3 of a pair, as in NIST's tools."""
    row = found(100, 10, -1e3)
    assert pairs(trials([row], reference([spoken(100, 110)]), (0.0, 0.0))) == []
    assert pairs(trials([row], reference([spoken(100, 110), spoken(100, 111)]), (0.0, 0.0))) == []
    assert pairs(trials([row, row], reference([spoken(100, 110), spoken(100, 111)]), (0.0, 0.0))) == []
    assert pairs(trials([row], reference([spoken(100, 110)], objective="score"), (0.0, 0.0))) == [(0, 0)]


@pytest.mark.parametrize("objective", ["nist", "score"])
def test_scores_as_large_as_can_be(objective):
    rows = [found(100 + i, 10, score) for i, score in enumerate((-1.7e308, 0.0, 1.7e308))]
    evaluation = reference([spoken(100, 110), spoken(101, 111)], objective=objective)
    assert [row for row, _ in pairs(trials(rows, evaluation))] == [1, 2]


def test_of_equals_the_earlier_is_mapped_and_to_the_earlier():
    rows = [found(103, 2), found(101, 2), found(101, 2), found(99, 2)]
    assert pairs(trials(rows, reference([spoken(90, 120)]))) == [(3, 0)]
    assert pairs(trials(rows, reference([spoken(90, 120)] * 2))) == [(1, 1), (3, 0)]
    assert pairs(trials([found(103, 2)], reference([spoken(90, 120)] * 2))) == [(0, 0)]
    assert pairs(trials(rows[1:3], reference([spoken(90, 120)]))) == [(0, 0)]
    assert pairs(trials([found(101, 2, decision=0), found(101, 2)], reference([spoken(90, 120)]))) == [(1, 0)]


def test_the_range_of_a_group_is_that_of_all_its_evaluated_detections():
    """A detection far from every occurrence, or outside the excerpts by rule, widens the range only if evaluated."""
    near, later = found(100, 0, 0.0), found(104, 0, 1.0)
    one = [spoken(100, 100)]
    wide = [near, later, found(500, 1, 3.0)]
    outside = [near, later, found(500, 1, 3.0, inside=0)]
    elsewhere = [near, later, found(500, 1, 3.0, channel=2), found(500, 1, 3.0, document=1)]
    assert pairs(trials(wide, reference(one))) == [(0, 0)]
    assert pairs(trials(outside, reference(one))) == [(1, 0)]
    assert pairs(trials(outside, reference(one, outside="false_alarm"))) == [(0, 0)]
    assert pairs(trials(elsewhere, reference(one))) == [(1, 0)]


ROWS = [
    found(100, 10),
    found(300, 10, inside=0),
    found(102, 10, document=-1, inside=0),
    found(100, 10, query=2, document=2, decision=0),
]
OCCURRENCES = [spoken(100, 110), spoken(300, 310), (2, 2, 1, 100, 110)]


def test_detections_outside_are_dropped_and_counted():
    made = trials(ROWS, reference(OCCURRENCES))
    assert made.dropped == {"outside": 2}
    assert made.row.tolist() == [0, 3]
    assert made.query.tolist() == [0, 2]
    assert made.decision.tolist() == [1, 0]
    assert (made.hit.tolist(), made.occurrence.tolist()) == ([0, 1], [0, 2])


@pytest.mark.parametrize(
    "outside", [[0], [3999], [0, 1, 3998, 3999], [3, 500], range(5), range(0, 4000, 3), range(4000)]
)
def test_few_or_many_detections_outside_leave_the_same_rows(outside):
    rows = [
        found(2 * n, 10, score=n / 7, decision=n % 2, query=n // 1600, inside=n not in outside) for n in range(4000)
    ]
    inside = [n for n in range(4000) if n not in outside]
    for aligned in (True, False):
        made = make_trials(detections(rows), reference(OCCURRENCES), score_range(rows), aligned=aligned)
        assert made.row.tolist() == inside
        assert made.query.tolist() == [n // 1600 for n in inside]
        assert made.score.tolist() == [n / 7 for n in inside]
        assert made.decision is None or made.decision.tolist() == [n % 2 for n in inside]
        assert (made.decision is not None) == aligned
        assert made.dropped == {"outside": len(outside)}


def test_detections_outside_are_false_alarms_or_hits_like_others():
    made = trials(ROWS, reference(OCCURRENCES, outside="false_alarm"))
    assert made.dropped == {}
    assert made.row is None
    assert (made.hit.tolist(), made.occurrence.tolist()) == ([0, 1, 3], [0, 1, 2])


def test_detections_outside_are_refused():
    evaluation = reference(OCCURRENCES, outside="error")
    with pytest.raises(InputError) as caught:
        make_trials(detections(ROWS), evaluation, score_range(ROWS), aligned=True, source="run.xml")
    first, second = caught.value.problems
    assert str(first).startswith("run.xml: ")
    assert "query q0 in d0 at 0.03 - 0.031 s" in first.found
    assert "a document without excerpts" in second.found
    assert caught.value.total == 2
    inside = [ROWS[0], ROWS[3]]
    assert pairs(trials(inside, evaluation)) == [(0, 0), (1, 2)]


def test_nothing_is_copied_where_all_is_inside():
    columns = detections([ROWS[0], ROWS[3]])
    made = make_trials(columns, reference(OCCURRENCES), score_range(ROWS), aligned=True)
    assert made.row is None
    assert made.query is columns.query
    assert made.score is columns.score


def test_the_group_of_documents():
    evaluation = reference(OCCURRENCES, groups=[0, 1, 1, 2], outside="false_alarm")
    assert trials(ROWS, evaluation).group.tolist() == [0, 0, 2, 1]
    assert trials(ROWS, reference(OCCURRENCES)).group is None


@pytest.mark.parametrize("outside", ["drop", "false_alarm"])
@pytest.mark.parametrize("groups", [None, [0, 1, 1, 2]])
def test_unaligned_trials_are_the_same_without_outcomes(outside, groups):
    evaluation = reference(OCCURRENCES, groups=groups, outside=outside)
    whole = trials(ROWS, evaluation)
    names = trial_columns(evaluation.rule, evaluation.n_groups, aligned=False)
    made = make_trials(detections(ROWS, names), evaluation, score_range(ROWS), aligned=False)
    assert made.hit is made.occurrence is made.decision is None
    for name in ("query", "score", "row", "group"):
        assert np.array_equal(getattr(made, name), getattr(whole, name)), name
    assert made.dropped == whole.dropped


def test_trial_columns_of_each_rule():
    def columns(outside, n_groups, aligned):
        return trial_columns(AlignmentRule("virtual", 5, "nist", "group", outside), n_groups, aligned)

    assert columns("drop", 1, True) == NAMES
    assert columns("false_alarm", 1, True) == NAMES[:-1]
    assert columns("drop", 1, False) == ("query", "score", "inside")
    assert columns("error", 2, False) == ("query", "document", "score", "inside")
    assert columns("false_alarm", 1, False) == ("query", "score")


def test_a_run_without_decisions_and_read_only_columns():
    columns = detections([ROWS[0], ROWS[3]], [name for name in NAMES if name != "decision"])
    for name in NAMES:
        if name != "decision":
            getattr(columns, name).flags.writeable = False
    made = make_trials(columns, reference(OCCURRENCES), ScoreRange(None, (0.0, 1.0)), aligned=True)
    assert made.decision is None
    assert made.hit.tolist() == [0, 1]


def test_documents_and_channels_are_kept_apart():
    occurrences = [(0, 0, 2, 100, 110), (0, 1, 1, 100, 110), (0, 1, 3, 100, 110)]
    rows = [found(100, 10, document=d, channel=c) for d in (-1, 0, 1, 2) for c in (1, 2, 3)]
    assert pairs(trials(rows, reference(occurrences))) == [(4, 0), (6, 1), (8, 2)]


def test_many_occurrences_of_different_lengths_in_a_group():
    """The nearest start is not enough: a long occurrence reaches over the short ones that start after it."""
    occurrences = [spoken(0, 1000), *(spoken(start, start) for start in range(100, 900, 50))]
    assert pairs(trials([found(975, 0)], reference(occurrences))) == [(0, 0)]
    assert pairs(trials([found(1006, 0)], reference(occurrences))) == []
