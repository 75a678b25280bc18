"""AP and MAP: examples whose values are known, presets, and the tools that the presets are named for."""

from __future__ import annotations

import math
import random
import warnings
from fractions import Fraction

import pytest
import pytrec_eval
from sklearn.metrics import average_precision_score

from swsdask.measures import rankings
from swsdask.model.layers import build_settings, load_preset
from swsdask.model.settings import EvaluationSettings
from tests.rankings import Event, scored, tables_of

PRESETS = ("simplekwseval", "kws-assessment", "trec", "sklearn", "kwseval")
K1_K2 = [
    Event(0, "D1", 1.0, True),
    Event(0, "D2", 0.1, False),
    Event(0, "D3", 0.1, False),
    Event(1, "D1", 0.05, True),
    Event(1, "D2", 0.0, False),
    Event(1, "D3", 0.0, False),
]
"""Table 5.6: AP .75, MAP 1."""

TIES = [
    Event(0, "d1", 3.0, False),
    Event(0, "d2", 2.0, True),
    Event(0, "d3", 2.0, False),
    Event(0, "d4", 2.0, True),
    Event(0, "d5", 1.0, True),
    Event(0, "d6", 1.0, False),
    Event(0, "d7", None, True),
]
"""Six scores that tell the rules for ties apart, R = 4."""


def of_preset(name: str, **evaluation: object) -> EvaluationSettings:
    return build_settings(load_preset(name), explicit={"evaluation": {"trials": "document", **evaluation}}).evaluation


def with_options(**options: object) -> EvaluationSettings:
    return build_settings(explicit={"evaluation": {"trials": "document", "average_precision": options}}).evaluation


def test_who_is_left_out_is_reported() -> None:
    asked = with_options(missing="skip")
    events = [*K1_K2, Event(2, "D1", 0.5, False), Event(3, "D1", None, True)]
    notes = tables_of(asked, 4, ["D1", "D2", "D3"], events, ["map"]).notes
    said = [note.text for note in notes["a"]]
    assert said == ["MAP averages 2 queries; left out: 1 query without targets, 1 query without trials."]
    assert not tables_of(asked, 2, ["D1", "D2", "D3"], K1_K2, ["map"]).notes["a"]


@pytest.mark.parametrize("preset", PRESETS)
def test_table_of_the_thesis(preset: str) -> None:
    found = scored(of_preset(preset), 2, ["D1", "D2", "D3"], K1_K2)
    assert found["all", None, "ap"] == 0.75
    assert found["all", None, "map"] == 1.0
    assert found["all", None, "map_n_averaged"] == 2


def test_table_of_the_thesis_in_trapezoids() -> None:
    found = scored(with_options(interpolation="none", integration="trapezoid"), 2, ["D1", "D2", "D3"], K1_K2)
    assert found["all", None, "ap"] == pytest.approx(0.708333, abs=5e-7)


@pytest.mark.parametrize(
    ("ties", "value"),
    [
        ("group", Fraction(3, 8)),
        ("expected", Fraction(31, 80)),
        ("best", Fraction(53, 120)),
        ("worst", Fraction(1, 3)),
        ("document-ascending", (Fraction(1, 2) + Fraction(2, 4) + Fraction(3, 5)) / 4),
        ("document-descending", (Fraction(1, 2) + Fraction(2, 4) + Fraction(3, 6)) / 4),
    ],
)
def test_rules_for_ties(ties: str, value: Fraction) -> None:
    found = scored(with_options(ties=ties, interpolation="none"), 1, [e.document for e in TIES], TIES)
    assert found["all", "q0", "ap"] == pytest.approx(float(value), abs=1e-12)


def test_single_precision() -> None:
    events = [Event(0, "a", 0.1 + 1e-12, False), Event(0, "b", 0.1, True), Event(0, "c", 1e300, False)]
    events += [Event(0, "d", 2e300, True)]
    found = scored(with_options(interpolation="none"), 1, "abcd", events)
    assert found["all", "q0", "ap"] == (1 / 1 + 2 / 4) / 2
    found = scored(with_options(interpolation="none", score_dtype="float32"), 1, "abcd", events)
    assert found["all", "q0", "ap"] == (1 / 2 + 2 / 4) / 2


@pytest.mark.parametrize("ties", ["group", "expected", "document-descending"])
def test_scores_below_the_floor_are_equal_to_it(ties: str) -> None:
    scores = [0.5, 0.25, 0.0, -0.5, -1.0, 0.1]
    events = [Event(0, name, score, name in "bcd") for name, score in zip("abcdef", scores, strict=True)]
    raised = [Event(0, name, max(score, 0.1), name in "bcd") for name, score in zip("abcdef", scores, strict=True)]
    found = scored(with_options(ties=ties, score_floor=0.1), 1, "abcdef", events)
    assert found["all", "q0", "ap"] == scored(with_options(ties=ties), 1, "abcdef", raised)["all", "q0", "ap"]
    assert found["all", "q0", "ap"] != scored(with_options(ties=ties), 1, "abcdef", events)["all", "q0", "ap"]


@pytest.mark.parametrize("interpolation", ["none", "max"])
@pytest.mark.parametrize("integration", ["step", "trapezoid"])
def test_long_ties_are_taken_in_blocks(monkeypatch: pytest.MonkeyPatch, interpolation: str, integration: str) -> None:
    asked = with_options(ties="expected", interpolation=interpolation, integration=integration)
    documents = [f"D{n}" for n in range(30)]
    whole = [scored(asked, 4, documents, random_run(seed)) for seed in range(5)]
    monkeypatch.setattr(rankings, "_BLOCK", 7)
    for seed, values in enumerate(whole):
        for key, value in scored(asked, 4, documents, random_run(seed)).items():
            assert value == pytest.approx(values[key], abs=1e-14, nan_ok=True)


def random_run(seed: int) -> list[Event]:
    chance = random.Random(seed)
    levels = [round(chance.uniform(-2, 2), 3) for _ in range(chance.randint(2, 9))]
    events = []
    for query in range(4):
        share = chance.choice([0.0, 0.2, 0.6])
        for document in range(30):
            if chance.random() < 0.8:
                events.append(Event(query, f"D{document}", chance.choice(levels), chance.random() < share))
    return events


@pytest.mark.parametrize("seed", range(30))
def test_like_scikit_learn(seed: int) -> None:
    events = random_run(seed)
    found = scored(of_preset("sklearn"), 4, [f"D{n}" for n in range(30)], events)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        own = [
            average_precision_score(
                [e.relevant for e in events if e.query == q], [e.score for e in events if e.query == q]
            )
            for q in range(4)
        ]
        pooled = average_precision_score([e.relevant for e in events], [e.score for e in events])
    for query, value in enumerate(own):
        assert found["all", f"q{query}", "ap"] == pytest.approx(value, abs=1e-12)
    assert found["all", None, "map"] == pytest.approx(math.fsum(own) / 4, abs=1e-12)
    if any(e.relevant for e in events):
        assert found["all", None, "ap"] == pytest.approx(pooled, abs=1e-12)


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


@pytest.mark.parametrize("seed", range(30))
def test_like_trec_eval(seed: int) -> None:
    events = random_run(seed)
    events = [e._replace(score=None if e.query == 3 and seed % 3 == 0 else e.score) for e in events]
    judged: dict[str, dict[str, int]] = {f"q{q}": {} for q in range(4)}
    run: dict[str, dict[str, float]] = {}
    for event in events:
        judged[f"q{event.query}"][event.document] = int(event.relevant)
        if event.score is not None:
            run.setdefault(f"q{event.query}", {})[event.document] = event.score
    recalls = [tenths / 10 for tenths in range(11)]
    names = {"ap": "map", "r_precision": "Rprec", "precision_at_rank@5": "P_5", "precision_at_rank@10": "P_10"}
    names |= {f"precision_at_recall@{recall!r}": f"iprec_at_recall_{recall:.2f}" for recall in recalls}
    asked = ["map", "map_n_averaged", *names]
    found = scored(of_preset("trec"), 4, [f"D{n}" for n in range(30)], events, asked)
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"map", "Rprec", "P", "iprec_at_recall"}).evaluate(run)
    assert found["all", None, "map_n_averaged"] == len(theirs)
    assert found["all", None, "map"] == pytest.approx(mean([values["map"] for values in theirs.values()]), abs=1e-12)
    for ours, name in names.items():
        for query, values in theirs.items():
            relevant = sum(judged[query].values())
            if name.startswith("iprec") and int(float(name[-4:]) * relevant + 0.9) != math.ceil(
                Fraction(name[-4:]) * relevant
            ):
                continue
            assert found["all", query, ours] == pytest.approx(values[name], abs=1e-12), name
