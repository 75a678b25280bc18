"""Under the preset trec every measure that trec_eval has too is its number, of each topic and averaged."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

import swsdask as sws
from tests.conftest import examples

DOCUMENTS = ("a/z", "b/y", "a/y.wav", "y.wav", "y", "c-x", "C", "\u00e9", "\uffee", "\U00010000", "d9", "d10")
"""Names whose order is another one without their directories and endings, or by UTF-16."""

TOPICS = ("q1", "q2", "q3")
SCORES = (1.0, 1.0 + 1e-9, 2.0, -0.5, 0.0, 1e30)
RANKS = (1, 3, 5, 20)
RECALLS = tuple(tenths / 10 for tenths in range(11))
MEASURES = {"map": "map", "r_precision": "Rprec"}
MEASURES |= {f"precision_at_rank@{rank}": f"P_{rank}" for rank in RANKS}
MEASURES |= {f"precision_at_recall@{recall!r}": f"iprec_at_recall_{recall:.2f}" for recall in RECALLS}
MEASURES |= {f"recall_at_rank@{rank}": f"recall_{rank}" for rank in RANKS}
MEASURES |= {f"success_at_rank@{rank}": f"success_{rank}" for rank in RANKS}
MEASURES |= {f"ap_at_rank@{rank}": f"map_cut_{rank}" for rank in RANKS}
MEASURES |= {"reciprocal_rank": "recip_rank", "eleven_point_precision": "11pt_avg", "set_map": "set_map"}
MEASURES |= {"set_precision": "set_P", "set_recall": "set_recall", "set_f1": "set_F"}
MULTIPLES = (0.2, 0.7, 1.0, 2.0)
MEASURES |= {f"ndcg_at_rank@{rank}": f"ndcg_cut_{rank}" for rank in RANKS}
MEASURES |= {f"relative_precision_at_rank@{rank}": f"relative_P_{rank}" for rank in RANKS}
MEASURES |= {f"precision_at_relevant@{multiple!r}": f"Rprec_mult_{multiple:.2f}" for multiple in MULTIPLES}
MEASURES |= {"ndcg": "ndcg", "ndcg_at_levels": "Rndcg", "ndcg_of_relevant": "ndcg_rel", "normalised_gain": "G"}
MEASURES |= {"binary_gain": "binG", "bpref": "bpref", "inferred_ap": "infAP", "utility": "utility"}
MEASURES |= {"set_relative_precision": "set_relative_P"}
SUMS = {
    "n_nonrelevant_judged": "num_nonrel_judged_ret",
    "n_retrieved": "num_ret",
    "n_relevant": "num_rel",
    "n_relevant_retrieved": "num_rel_ret",
}
CUT = ",".join(map(str, RANKS))
ASKED = {"map", "gm_map", "Rprec", f"P.{CUT}", "iprec_at_recall", f"recall.{CUT}", f"success.{CUT}", f"map_cut.{CUT}"}
ASKED |= {f"ndcg_cut.{CUT}", f"relative_P.{CUT}", f"Rprec_mult.{','.join(map(str, MULTIPLES))}", "gm_bpref"}
ASKED |= {"ndcg", "Rndcg", "ndcg_rel", "G", "binG", "bpref", "infAP", "utility", "set_relative_P"}
ASKED |= {"recip_rank", "11pt_avg", "set_map", "set_P", "set_recall", "set_F", *SUMS.values()}

Judged = dict[str, dict[str, int]]
Ranked = dict[str, dict[str, float]]

grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([-1, 0, 1, 2]), min_size=1).filter(
    lambda own: max(own.values()) >= 0
)
"""A topic has a grade that is not negative: trec_eval gives NaN for what was retrieved if it has none."""

scored = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from(SCORES), min_size=1)
judgments = st.dictionaries(st.sampled_from(TOPICS), grades, min_size=1)
runs = st.dictionaries(st.sampled_from((*TOPICS, "unjudged")), scored, min_size=1)


def same_as_trec_eval(
    judged: Judged, ranked: Ranked, found: Mapping[tuple[str | None, str], float], averaged: int
) -> None:
    """Every topic's numbers of one run, and those over all topics, of which so many are averaged."""
    theirs = pytrec_eval.RelevanceEvaluator(judged, ASKED).evaluate(ranked)
    for ours, name in (MEASURES | SUMS).items():
        total = math.fsum(own[name] for own in theirs.values())
        if ours in SUMS:
            # Topics that are not in the run count only where averages do.
            missing = (
                0 if averaged == len(theirs) or ours != "n_relevant" else relevant(judged, set(judged) - set(theirs))
            )
            assert found[None, ours] == total + missing, ours
        else:
            mean = total / averaged if averaged else math.nan
            assert found[None, ours] == pytest.approx(mean, abs=1e-12, nan_ok=True), ours
        for topic, own in theirs.items():
            if (topic, ours) in found:
                assert found[topic, ours] == pytest.approx(own[name], abs=1e-12), (topic, ours)
    for name in ("gm_map", "gm_bpref") if averaged else ():
        logarithms = [own[name] for own in theirs.values()] + [math.log(1e-5)] * (averaged - len(theirs))
        assert found[None, name] == pytest.approx(math.exp(math.fsum(logarithms) / averaged), rel=1e-12)


def relevant(judged: Judged, topics: Iterable[str]) -> int:
    return sum(grade > 0 for topic in topics for grade in judged[topic].values())


@given(judged=judgments, ranked=runs, every_topic=st.booleans())
@examples(100)
def test_the_numbers_of_trec_eval(judged: Judged, ranked: Ranked, every_topic: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        qrels, run = Path(folder, "q"), Path(folder, "r")
        qrels.write_text("".join(f"{q} 0 {d} {grade}\n" for q, own in judged.items() for d, grade in own.items()))
        run.write_text("".join(f"{q} Q0 {d} 1 {score!r} s\n" for q, own in ranked.items() for d, score in own.items()))
        averaging = {"missing": "zero" if every_topic else "skip", "ranks": RANKS, "multiples": MULTIPLES}
        chosen = {"evaluation": {"average_precision": averaging}}
        evaluation = sws.open(qrels=qrels, collection=run, preset="trec", settings=chosen)
        measures = ["map", "map_n_averaged", "gm_map", "gm_bpref", *SUMS, *list(MEASURES)[1:]]
        result = sws.score(evaluation, measures, runs=run)
    found = {(row["query"], row["measure"]): row["value"] for row in result.table.to_pylist()}
    averaged = len(judged) if every_topic else len(judged.keys() & ranked.keys())
    assert found[None, "map_n_averaged"] == averaged
    if not every_topic:
        assert {topic for topic, measure in found if topic and measure == "ndcg"} == judged.keys() & ranked.keys()
    same_as_trec_eval(judged, ranked, found, averaged)


def test_three_hundred_runs_with_ties_negative_and_graded_judgments() -> None:
    draw = random.Random(7)
    documents = [f"d{number}" for number in range(60)]
    judged = {
        topic: {each: draw.choice([-1, 0, 0, 1, 2, 3]) for each in draw.sample(documents, 30)} for topic in TOPICS
    }
    systems: dict[str, Ranked] = {
        f"s{number}": {
            topic: {
                each: draw.choice([-1.5, 0.0, 0.25, 2.0, 7.5]) for each in draw.sample(documents, draw.randint(1, 40))
            }
            for topic in draw.sample((*TOPICS, "unjudged"), draw.randint(1, 4))
        }
        for number in range(300)
    }
    rows = [
        {"system": system, "query": topic, "document": document, "score": score}
        for system, ranked in systems.items()
        for topic, own in ranked.items()
        for document, score in own.items()
    ]
    chosen = {"evaluation": {"average_precision": {"ranks": RANKS, "multiples": MULTIPLES}}}
    evaluation = sws.open(qrels=judged, collection=rows, preset="trec", settings=chosen)
    result = sws.score(evaluation, ["map", "gm_map", "gm_bpref", *SUMS, *list(MEASURES)[1:]], runs=rows)
    found: dict[str, dict[tuple[str | None, str], float]] = {system: {} for system in systems}
    for row in result.table.to_pylist():
        found[row["system"]][row["query"], row["measure"]] = row["value"]
    for system, ranked in systems.items():
        same_as_trec_eval(judged, ranked, found[system], len(judged.keys() & ranked.keys()))
