"""Under the preset trec every measure that trec_eval has too is its number, of each topic and averaged."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

import swsdask as sws

DOCUMENTS = ("a/z", "b/y", "a/y.wav", "y.wav", "y", "c-x", "C", "\u00e9", "\uffee", "\U00010000", "d9", "d10")
"""Names whose order is another one without their directories and endings, or by UTF-16."""

TOPICS = ("q1", "q2", "q3")
SCORES = (1.0, 1.0 + 1e-9, 2.0, -0.5, 0.0, 1e30)
RANKS = (1, 3, 5, 20)
RECALLS = tuple(tenths / 10 for tenths in range(11))
MEASURES = {"map": "map", "r_precision": "Rprec"}
MEASURES |= {f"precision_at_rank@{rank}": f"P_{rank}" for rank in RANKS}
MEASURES |= {f"precision_at_recall@{recall!r}": f"iprec_at_recall_{recall:.2f}" for recall in RECALLS}

Judged = dict[str, dict[str, int]]
Ranked = dict[str, dict[str, float]]

grades = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([-1, 0, 1, 2]), min_size=1).filter(
    lambda own: max(own.values()) >= 0
)
"""A topic has a grade that is not negative: trec_eval gives NaN for what was retrieved if it has none."""

scored = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from(SCORES), min_size=1)
judgments = st.dictionaries(st.sampled_from(TOPICS), grades, min_size=1)
runs = st.dictionaries(st.sampled_from((*TOPICS, "unjudged")), scored, min_size=1)


@given(judged=judgments, ranked=runs, every_topic=st.booleans())
@settings(max_examples=100, deadline=None)
def test_the_numbers_of_trec_eval(judged: Judged, ranked: Ranked, every_topic: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        qrels, run = Path(folder, "q"), Path(folder, "r")
        qrels.write_text("".join(f"{q} 0 {d} {grade}\n" for q, own in judged.items() for d, grade in own.items()))
        run.write_text("".join(f"{q} Q0 {d} 1 {score!r} s\n" for q, own in ranked.items() for d, score in own.items()))
        averaging = {"missing": "zero" if every_topic else "skip", "ranks": RANKS}
        chosen = {"evaluation": {"average_precision": averaging}}
        evaluation = sws.open(qrels=qrels, collection=run, preset="trec", settings=chosen)
        result = sws.score(evaluation, ["map", "map_n_averaged", "r_precision", *list(MEASURES)[2:]], runs=run)
    found = {(row["query"], row["measure"]): row["value"] for row in result.table.to_pylist()}
    asked = {"map", "Rprec", f"P.{','.join(map(str, RANKS))}", "iprec_at_recall"}
    theirs = pytrec_eval.RelevanceEvaluator(judged, asked).evaluate(ranked)
    averaged = len(judged) if every_topic else len(theirs)
    assert found[None, "map_n_averaged"] == averaged
    for ours, name in MEASURES.items():
        mean = math.fsum(own[name] for own in theirs.values()) / averaged if averaged else math.nan
        assert found[None, ours] == pytest.approx(mean, abs=1e-12, nan_ok=True), ours
        for topic, own in theirs.items():
            if (topic, ours) in found:
                assert found[topic, ours] == pytest.approx(own[name], abs=1e-12), (topic, ours)
