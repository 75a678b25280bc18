"""Choosing measures by name, and the sentences beside the numbers."""

from __future__ import annotations

import pytest

from swsdask.measures import MEASURES, interpretation, select, system_notes, with_points
from swsdask.measures.measure import Scored
from swsdask.model.errors import SettingsError
from swsdask.model.settings import requested_thresholds, weights
from swsdask.statistics.counts import Counts
from tests.worlds import make_reference, make_trials, settings, statistics

REFERENCE = make_reference(
    [[3], [0], [9], [100]], {"all": ([True, False, True, True], [True], 100), "few": ([1, 0, 0, 0], [True], 100)}
)


def test_names_are_unique() -> None:
    names = [name for family in MEASURES for name in family.names]
    assert len(names) == len(set(names))
    assert select(None) == list(MEASURES)


def test_families_come_in_canonical_order() -> None:
    families = select(["mtwv_p_fa", "n_hit", "atwv", "mtwv"])
    assert [family.names[0] for family in families] == ["n_queries", "atwv", "mtwv"]


def test_unknown_names() -> None:
    with pytest.raises(SettingsError, match=r"'mtvw' is unknown. Nearest: mtwv\."):
        select(["atwv", "mtvw"])
    with pytest.raises(SettingsError, match=r"'MTWV' is unknown. Nearest: mtwv\."):
        select(["MTWV"])
    with pytest.raises(SettingsError, match="'atwv@1' is unknown"):
        select(["atwv@1"])


def test_a_name_with_a_point_adds_it_to_the_settings() -> None:
    names, asked = with_points(["twv@.5", "atwv", "p_miss@1e-3", "twv@1", "twv@0.5"], settings(thresholds=[2.0, 1.0]))
    assert names == ["twv@0.5", "atwv", "p_miss@0.001", "twv@1.0", "twv@0.5"]
    assert asked == settings(thresholds=[2.0, 1.0, 0.5], p_fa_points=[0.001])
    assert [family.names[-1] for family in select(names)] == ["actual_threshold", "twv@", "p_miss@"]
    names, asked = with_points(["precision_at_rank@7", "f1@1"], settings())
    assert names == ["precision_at_rank@7", "f1@1.0"]
    assert (asked.average_precision.ranks, asked.thresholds) == ((5, 10, 7), (1.0,))
    assert with_points(None, settings()) == (None, settings())
    assert with_points(["twv@"], settings(thresholds=[2.0]))[0] == ["twv@"]


@pytest.mark.parametrize(
    ("name", "reported"),
    [
        ("twv@", r"no point is set. Request twv@0.5, or set thresholds=\[0.5\]"),
        ("p_miss@", r"Request p_miss@0.001, or set p_fa_points=\[0.001\]"),
        ("twv@high", "'twv@high': expected a number after the @; found 'high'. Write twv@0.5"),
        ("p_miss@nan", "Write p_miss@0.001"),
        (
            "precision_at_rank@2.5",
            "a whole number from 1 to 1000000000 after the @; found '2.5'. Write",
        ),
        ("precision_at_rank@0", "expected a whole number from 1"),
        ("precision_at_rank@99999999999999999999", "expected a whole number from 1"),
        ("p_miss@2", "expected a number from 0 to 1 after the @; found '2'. Write p_miss@0.001"),
        ("precision_at_recall@1.5", "expected a number from 0 to 1 after the @"),
    ],
)
def test_what_is_no_point(name: str, reported: str) -> None:
    with pytest.raises(SettingsError, match=reported):
        with_points(["atwv", name], settings())


def test_the_operating_point_comes_from_the_whole() -> None:
    from_data = settings(operating_point={"from_data": "sws2012"})
    reference = make_reference([[3], [9]], {"all": ([1, 1], [1], 60), "few": ([1, 0], [1], 30)})
    assert weights(reference, from_data).beta == pytest.approx((60 - 12) / 12)
    with pytest.raises(SettingsError, match="N_true = 112"):
        weights(REFERENCE, from_data)


def test_requested_thresholds_hold_the_imputed_score_and_no_operating_point() -> None:
    for beta in (1.0, 20.0):
        asked = settings(operating_point={"beta": beta}, thresholds=[2.0, -1.0, 2.0, -0.0], impute=-7)
        assert requested_thresholds(asked) == (-7.0, -1.0, 0.0, 2.0)


def test_costs_in_plain_words() -> None:
    reference = make_reference([[3], [9]], {"all": ([True, True], [True], 600)})
    notes = interpretation(reference, settings(operating_point={"p_target": 0.01, "c_miss": 100.0, "c_fa": 1.0}))
    assert "where P_target = 0.01 is how frequent targets are, one miss weighs as much as 100 false alarms" in notes[0]
    assert "one miss weighs as much as 100 false alarms (Eq. 15)" in notes[1]
    assert "empirical prior of targets is 0.01 (Eq. 12)" in notes[1]
    assert "Bayes threshold -logit(P_tar) = -0.0100503 (Eq. 31)" in notes[2]
    """|Q| alpha = 2 (1 - .01) / (1 - .02) (Eq. 20)."""
    notes = interpretation(reference, settings(operating_point={"from_data": "sws2012"}))
    assert "|Q| alpha = 2.02041 false alarms (Eq. 19-20)" in notes[0]
    notes = interpretation(reference, settings(operating_point={"from_data": "sws2012", "alpha": 2.0}))
    assert "4.04082 false alarms, |Q| alpha of Eq. 19-20 times operating_point.alpha = 2:" in notes[0]
    notes = interpretation(reference, settings(operating_point={"beta": 99.0}))
    assert "one miss weighs as much as 1 false alarm (Eq. 15)" in notes[0]
    assert "Eq. 16" not in " ".join(notes)


def test_notes_name_queries_left_out() -> None:
    notes = " ".join(interpretation(REFERENCE, settings()))
    assert "Left out of all averages: 1 query without target trials (q1)." in notes
    assert "Left out of the average P_fa: 1 query without non-target trials, and so without P_fa (q3)." in notes
    notes = " ".join(interpretation(REFERENCE, settings(average_precision={"no_relevant": "zero-if-retrieved"})))
    assert "Only averages of rankings count 1 query without target trials (q1), and only if retrieved" in notes
    notes = " ".join(interpretation(REFERENCE, settings(no_targets="false_alarms_only")))
    assert "Left out of the average P_miss: 1 query" in notes
    many = make_reference([[1]] + [[0]] * 30, {"all": ([True] + [False] * 30, [True], 9)})
    assert "q20 and 10 more)." in " ".join(interpretation(many, settings()))


def test_absent_decisions_are_reported() -> None:
    found = statistics([[(0, 0, 1.0, 1, True), (0, 0, 1.0, -1, False)]], REFERENCE)
    assert "1 of 2 trials without a YES/NO decision" in system_notes(Scored(found, REFERENCE, settings()))[0].text
    nothing = {Counts: Counts.from_trials(make_trials([]), REFERENCE, None)}
    assert system_notes(Scored(nothing, REFERENCE, settings())) == ()
    assert system_notes(Scored({}, REFERENCE, settings())) == ()
