"""Gates: the grammar, its errors, and what fails."""

from __future__ import annotations

import math

import pytest

import swsdask as sws
from swsdask.api import comparing
from swsdask.comparison.gates import Gate, failures, parse_gate
from swsdask.measures.names import name_in_gate
from swsdask.model.errors import SettingsError
from swsdask.model.measures import TABLE, better
from swsdask.nightly.settings import NightlyEvaluation


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("atwv drops .005", ("atwv", 0.005, "all", None)),
        ("atwv drops 5e-3 with p < .05", ("atwv", 0.005, "all", 0.05)),
        ("ATWV  drops", ("atwv", 0.0, "all", None)),
        ("  mtwv drops with p<.05 ", ("mtwv", 0.0, "all", 0.05)),
        ("cnxe rises 1. in language=en us", ("cnxe", 1.0, "language=en us", None)),
        ("cnxe rises in with p < .5 with p < 1", ("cnxe", 0.0, "with p < .5", 1.0)),
        ("twv@0.5 drops .1 in oov=yes with p < .01", ("twv@0.5", 0.1, "oov=yes", 0.01)),
        ("twv@-1.5 drops .1", ("twv@-1.5", 0.1, "all", None)),
    ],
)
def test_grammar(text: str, gate: tuple[str, float, str, float | None]) -> None:
    assert parse_gate(text) == Gate(text.strip(), *gate)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("atvw drops .005", "gate 'atvw drops .005': measure 'atvw' is unknown. Nearest: atwv."),
        ("atwv@1 drops .005", "measure 'atwv@1' is unknown"),
        ("twv@ drops .1", "expected a point after the @, such as twv@0.5"),
        ("atwv rises .005", "atwv gets worse as it gets lower. Write 'atwv drops ...'."),
        ("cnxe drops .005", "cnxe gets worse as it gets higher. Write 'cnxe rises ...'."),
        ("beta drops .005", "neither more nor less of beta is better"),
        ("atwv drops -.005", "expected a number from 0 after drops; found -.005"),
        ("atwv drops 1e999", "expected a number from 0 after drops; found 1e999"),
        ("atwv drops .1 with p < 0", "expected a number above 0, at most 1, after p <; found 0"),
        ("atwv falls .1", "expected MEASURE drops|rises [NUMBER] [in CONDITION] [with p < NUMBER]"),
        ("atwv drops 2 %", "expected MEASURE"),
        ("", "expected MEASURE"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_gate(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("measure", [row.name for row in TABLE if row.better])
def test_every_measure_with_an_order_of_merit_gets_worse_one_way(measure: str) -> None:
    name = measure + "0.5" * measure.endswith("@")
    verb = "drops" if better(name) > 0 else "rises"
    gate = parse_gate(f"{name} {verb} .25")
    worse = -better(name)
    assert [gate.fails(worse * by) for by in (0.26, 0.25, 0.0, -0.26)] == [True, False, False, False]


def test_a_loss_that_differs_from_the_number_by_rounding_is_equal_to_it() -> None:
    assert 0.5 - 0.495 > 0.005
    assert not parse_gate("atwv drops .005").fails(0.495 - 0.5)
    assert not parse_gate("atwv drops").fails(0.3 - (0.1 + 0.2))


def test_p_must_be_below() -> None:
    gate = parse_gate("atwv drops .1 with p < .05")
    assert [gate.fails(-0.2, p) for p in (0.04, 0.05, math.nan)] == [True, False, False]


VALUES = {("all", "atwv"): {"new": 0.4, "old": 0.5}, ("oov", "atwv"): {"old": 0.5}}
PAIR = [("new", "old")]


def test_failures_name_systems_measure_and_numbers() -> None:
    differences = {("all", "atwv"): {("new", "old"): (-0.08, 0.03)}}
    gates = [parse_gate("atwv drops .01 with p < .05"), parse_gate("atwv drops .09")]
    (found,) = failures(gates, PAIR, VALUES, differences)
    assert (found.system, found.baseline, found.measure, found.difference, found.p) == (*PAIR[0], "atwv", -0.08, 0.03)
    assert str(found) == (
        "gate 'atwv drops .01 with p < .05' failed: atwv of new is 0.4000, of old 0.5000: 0.0800 lower, p = 0.0300."
    )


def test_without_a_difference_the_values_are_compared() -> None:
    (found,) = failures([parse_gate("atwv drops .09")], PAIR, VALUES, {})
    assert found.difference == 0.4 - 0.5
    assert math.isnan(found.p)
    assert failures([parse_gate("atwv drops")], [("old", "new")], VALUES, {}) == []


def test_a_system_that_lost_the_measure_fails() -> None:
    (found,) = failures([parse_gate("atwv drops .9 in oov")], PAIR, VALUES, {})
    assert str(found).endswith("failed: atwv of new in oov is -, of old 0.5000: it has none.")
    assert failures([parse_gate("atwv drops in oov")], [("old", "new")], VALUES, {}) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("atwv drops in iov", "condition 'iov' is unknown. Nearest: oov."),
        ("mtwv drops", "no system has mtwv in the condition all."),
    ],
)
def test_what_has_no_values_is_an_error(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        failures([parse_gate(text)], PAIR, VALUES, {})


@pytest.mark.parametrize(
    ("written", "measure"),
    [
        ("AP", "map"),
        ("ap", "ap"),
        ("ATWV", "atwv"),
        ("MRR", "reciprocal_rank"),
        ("P@10", "precision_at_rank@10"),
        ("Recall@5", "recall_at_rank@5"),
        ("twv@1", "twv@1.0"),
        ("map(rel=2)", "map(rel=2)"),
    ],
)
def test_measures_are_named_as_they_are_requested(written: str, measure: str) -> None:
    assert parse_gate(f"{written} drops .1", name_in_gate).measure == measure


def test_a_comparison_and_a_night_name_measures_of_gates_as_they_are_requested() -> None:
    place = {"name": "a", "archive": "a", "out": "o", "inbox": ("i",), "reference": "r"}
    night = NightlyEvaluation.model_validate({**place, "measures": ("AP",), "gates": ("AP drops .1",)})
    assert (night.scored, [gate.measure for gate in night.parsed_gates]) == (["map"], ["map"])
    assert [gate.measure for gate in comparing._gates("AP drops .1", ("a", "b"), None)] == ["map"]


def test_a_gate_on_a_difference_that_is_not_defined_is_noted() -> None:
    """Two systems that share no query have values of their own, but no difference."""
    queries = [f"q{number}" for number in range(8)]
    qrels = {query: {"d": 1, "e": 0} for query in queries}
    runs = {
        "first": {query: {"d": 1.0, "e": 2.0} for query in queries[:4]},
        "last": {query: {"d": 2.0, "e": 1.0} for query in queries[4:]},
    }
    evaluation = sws.open(qrels=qrels, preset="trec")
    for gate in ("map drops", "map drops with p < .05"):
        found = sws.compare(evaluation, "map", runs=runs, baseline="last", fail_if=gate, replicates=99)
        assert not found.failures
        said = f"gate {gate!r}: not judged, because the difference is not defined, and so passed: first."
        assert said in found.notes
