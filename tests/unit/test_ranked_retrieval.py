"""Measures of ranked retrieval against rankings that are written out, and their names elsewhere."""

from __future__ import annotations

import math
import random

import pytest

import swsdask as sws
from swsdask.measures.names import from_elsewhere, with_points
from swsdask.model.settings import EvaluationSettings
from tests.rankings import Event, scored

RANKS = (1, 2, 4)
PERSISTENCES = (0.5, 0.8)
NAMES = ("recall_at_rank@", "success_at_rank@", "ap_at_rank@", "reciprocal_rank", "rbp@", "gm_map", "n_retrieved")
DOCUMENTS = tuple("abcdefg")


def ranking(events: list[Event], ties: str) -> list[bool]:
    """Whether the trial at each rank is a target; by the worst order where `ties` gives none."""
    found = [event for event in events if event.score is not None]
    if ties in ("best", "worst", "group", "expected"):
        found.sort(key=lambda event: (-(event.score or 0.0), event.relevant != (ties == "best")))
    else:
        sign = -1 if ties == "document-descending" else 1
        found.sort(key=lambda event: (-(event.score or 0.0), sign * ord(event.document)))
    return [event.relevant for event in found]


def literal(flags: list[bool], relevant: int) -> dict[str, float]:
    """The numbers of one ranking."""
    places = [rank for rank, flag in enumerate(flags, 1) if flag]
    numbers = {f"success_at_rank@{cut}": float(any(flags[:cut])) for cut in RANKS}
    for cut in RANKS:
        numbers[f"ap_at_rank@{cut}"] = sum(i / rank for i, rank in enumerate(places, 1) if rank <= cut) / relevant
    numbers["reciprocal_rank"] = 1 / places[0] if places else 0.0
    numbers |= {f"rbp@{p}": (1 - p) * sum(p ** (rank - 1) for rank in places) for p in PERSISTENCES}
    numbers["n_retrieved"] = len(flags)
    return numbers


def expected_recall(events: list[Event], cut: int, relevant: int) -> float:
    """Groups of equal scores count in proportion to how much of them is inside."""
    found, left, hits = [event for event in events if event.score is not None], cut, 0.0
    for score in sorted({event.score for event in found}, reverse=True):
        group = [event.relevant for event in found if event.score == score]
        inside = min(left, len(group))
        hits, left = hits + sum(group) * inside / len(group), left - inside
    return hits / relevant


@pytest.mark.parametrize("ties", ["group", "best", "worst", "expected", "document-descending", "document-ascending"])
def test_rankings_written_out(ties: str) -> None:
    rules = {"ties": ties, "ranks": RANKS, "persistences": PERSISTENCES}
    asked = EvaluationSettings(trials="document", average_precision=rules)
    draw = random.Random(ties)
    for _ in range(25):
        scores = [draw.choice([None, 0.5, 1.0, 2.0]) for _ in DOCUMENTS]
        events = [Event(0, d, score, draw.random() < 0.4) for d, score in zip(DOCUMENTS, scores, strict=True)]
        relevant = sum(event.relevant for event in events)
        found = scored(asked, 1, DOCUMENTS, events, NAMES)
        if not relevant:
            assert math.isnan(found["all", None, "reciprocal_rank"])
            continue
        flags = ranking(events, ties)
        for name, value in literal(flags, relevant).items():
            assert found["all", "q0", name] == pytest.approx(value, abs=1e-12), (ties, name, events)
            assert found["all", None, name] == pytest.approx(value, abs=1e-12)
        for cut in RANKS:
            recall = sum(flags[:cut]) / relevant
            if ties in ("group", "expected"):
                recall = expected_recall(events, cut, relevant)
            assert found["all", "q0", f"recall_at_rank@{cut}"] == pytest.approx(recall, abs=1e-12)


def test_a_geometric_mean_counts_tiny_precision_as_one_in_100_000() -> None:
    asked = EvaluationSettings(trials="document", average_precision={"no_relevant": "zero"})
    events = [Event(0, "a", 1.0, True), Event(1, "a", None, True), Event(2, "a", 1.0, False), Event(2, "b", 0.5, True)]
    found = scored(asked, 4, ("a", "b"), events, ("gm_map", "map_n_averaged"))
    assert found["all", None, "map_n_averaged"] == 4
    assert found["all", None, "gm_map"] == pytest.approx((1.0 * 1e-5 * 0.5 * 1e-5) ** 0.25)


def test_persistence_close_to_one_and_deep_ranks() -> None:
    asked = EvaluationSettings(trials="document", average_precision={"persistences": (1e-9, 0.999999)})
    documents = [f"{number:04}" for number in range(2000)]
    events = [Event(0, name, -float(rank), name == "1999") for rank, name in enumerate(documents)]
    found = scored(asked, 1, documents, events, ("rbp@",))
    assert found["all", None, "rbp@1e-09"] == 0.0
    assert found["all", None, "rbp@0.999999"] == pytest.approx(1e-6 * 0.999999**1999, rel=1e-9)


ELSEWHERE = {
    "AP": "map",
    "AP(rel=1)": "map",
    "AP@100": "ap_at_rank@100",
    "map_cut_100": "ap_at_rank@100",
    "P@5": "precision_at_rank@5",
    "P(rel=1)@5": "precision_at_rank@5",
    "P_5": "precision_at_rank@5",
    "R@10": "recall_at_rank@10",
    "recall_10": "recall_at_rank@10",
    "recall": "recall",
    "recall@0.5": "recall@0.5",
    "RR": "reciprocal_rank",
    "recip_rank": "reciprocal_rank",
    "Rprec": "r_precision",
    "IPrec@0.1": "precision_at_recall@0.1",
    "iprec_at_recall_0.10": "precision_at_recall@0.10",
    "11pt_avg": "eleven_point_precision",
    "RBP": "rbp@0.8",
    "RBP(p=0.95)": "rbp@0.95",
    "NumQ": "map_n_averaged",
    "NumRet": "n_retrieved",
    "NumRet(rel=1)": "n_relevant_retrieved",
    "num_rel_ret": "n_relevant_retrieved",
    "SetF": "set_f1",
    "set_P": "set_precision",
    "Success@5": "success_at_rank@5",
    "success_5": "success_at_rank@5",
    "AP(rel=2)": "map(rel=2)",
    "AP(rel=2)@100": "ap_at_rank(rel=2)@100",
    "P(rel=2)@5": "precision_at_rank(rel=2)@5",
    "RR@10": "reciprocal_rank_at_rank@10",
    "RR(rel=2)": "reciprocal_rank(rel=2)",
    "RR(rel=2)@10": "reciprocal_rank_at_rank(rel=2)@10",
    "RBP(p=0.5,rel=2)": "rbp(rel=2)@0.5",
    "RBP(rel=2)": "rbp(rel=2)@0.8",
    "IPrec(rel=2)@0.1": "precision_at_recall(rel=2)@0.1",
    "NumRet(rel=2)": "n_relevant_retrieved(rel=2)",
    "NumRel(rel=2)": "n_relevant(rel=2)",
    "SetP(relative=True)": "set_relative_precision",
    "SetP(rel=2)": "set_precision(rel=2)",
    "SetAP(rel=2)": "set_map(rel=2)",
    "Success(rel=2)@5": "success_at_rank(rel=2)@5",
    "Bpref": "bpref",
    "Bpref(rel=2)": "bpref(rel=2)",
    "infAP": "inferred_ap",
    "nDCG": "ndcg",
    "nDCG@10": "ndcg_at_rank@10",
    "nDCG(dcg='log2')@10": "ndcg_at_rank@10",
    "nDCG(dcg='exp-log2')@10": "exponential_ndcg_at_rank@10",
    "ERR@20": "err_at_rank@20",
    "Judged@10": "judged_at_rank@10",
    "ndcg": "ndcg",
    "ndcg_cut_10": "ndcg_at_rank@10",
    "ndcg_cut.10": "ndcg_at_rank@10",
    "P.5": "precision_at_rank@5",
    "Rndcg": "ndcg_at_levels",
    "Rprec_mult_0.20": "precision_at_relevant@0.20",
    "p_miss@0.001": "p_miss@0.001",
    "twv@-0.5": "twv@-0.5",
}


SPELLINGS = {
    "map": ("AP", "MAP", "AP(rel=1)", "MAP(rel=1, judged_only=False)", "AP( rel = 1 )"),
    "map(rel=2)": ("AP(rel=2)", "MAP(judged_only=False,rel=2)"),
    "ap_at_rank@5": ("AP@5", "MAP @ 5", "AP(rel=1)@5"),
    "bpref(rel=3)": ("Bpref(rel=3)", "BPref(rel=3)"),
    "precision_at_recall@0.5": ("IPrec@0.5", "IPrec(rel=1, judged_only=False)@0.5"),
    "map_n_averaged": ("NumQ",),
    "n_retrieved": ("NumRet",),
    "n_relevant_retrieved": ("NumRelRet", "NumRelRet(rel=1)", "NumRet(rel=1)"),
    "n_relevant_retrieved(rel=2)": ("NumRelRet(rel=2)", "NumRet(rel=2)"),
    "precision_at_rank(rel=2)@5": ("P(rel=2)@5", "Precision(rel=2, judged_only=False)@5"),
    "recall_at_rank@10": ("R@10", "Recall@10", "Recall(rel=1)@10"),
    "rbp@0.8": ("RBP", "RBP(p=0.8)", "RBP(rel=1)"),
    "rbp(rel=2)@0.95": ("RBP(p=0.95, rel=2)", "RBP(rel=2,p=0.95)"),
    "reciprocal_rank_at_rank@10": ("RR@10", "MRR@10", "MRR(rel=1, judged_only=False)@10"),
    "r_precision": ("Rprec", "RPrec", "RPrec(judged_only=False)"),
    "set_f1": ("SetF", "SetF(beta=1.0)", "SetF(rel=1, beta=1.0, judged_only=False)"),
    "set_precision": ("SetP", "SetP(relative=False)", "SetRelP(relative=False)"),
    "set_relative_precision(rel=2)": ("SetRelP(rel=2)", "SetP(relative=True, rel=2)"),
    "success_at_rank@5": ("Success@5", "Success(rel=1, judged_only=False)@5"),
    "ndcg": ("nDCG", "NDCG", "nDCG(dcg='log2', judged_only=False)"),
    "exponential_ndcg_at_rank@5": ("nDCG(dcg='exp-log2')@5", 'NDCG(dcg="exp-log2")@5'),
}
"""Equal measures in the registry of ir_measures 0.4.3, which has nine aliases and leaves out what is the default."""

NOT_HERE = {
    "P": "P@10",
    "P(judged_only=True)@5": "P@5",
    "Precision(judged_only=True)@5": "P@5",
    "nDCG(judged_only=True)@10": "nDCG@10",
    "nDCG(gains={1:3})@5": "nDCG@5",
    "alpha_nDCG@10": "nDCG@10",
    "ERR": "ERR@10",
    "ERR_IA@20": "ERR@20",
    "AP_IA": "AP",
    "AP(judged_only=True)": "AP",
    "SetF(beta=2.0)": "SetF",
    "Success": "Success@10",
}
"""With the nearest that is computed."""

OF_INTENTS_AND_USERS = "nERR_IA@20 NRBP nNRBP(alpha=0.5) P_IA@5 StRecall@10 Accuracy@20 BPM(T=1,max_rel=3)@10 "
OF_INTENTS_AND_USERS += "Compat(p=0.8) INST(max_rel=3) INSQ(max_rel=3) SDCG(max_rel=3)@10 NERR8(max_rel=3)@10 NERR9 "
OF_INTENTS_AND_USERS += "NERR10 NERR11(T=1.0,max_rel=3) alpha_DCG \u03b1_DCG(alpha=0.5)@10"


def test_names_of_other_tools() -> None:
    assert {name: from_elsewhere(name) for name in ELSEWHERE} == ELSEWHERE
    for ours, names in SPELLINGS.items():
        assert {from_elsewhere(name) for name in names} == {ours}
    for name, nearest in NOT_HERE.items():
        with pytest.raises(sws.SettingsError, match=rf"of ir_measures is not computed here. Nearest: {nearest}\.$"):
            from_elsewhere(name)
    for name in OF_INTENTS_AND_USERS.split():
        with pytest.raises(sws.SettingsError, match=r"not computed here. Nearest: "):
            from_elsewhere(name)
    assert [from_elsewhere(name) for name in ("Recall", "Precision", "AP(1)", "P(")] == [
        "Recall",
        "Precision",
        "AP(1)",
        "P(",
    ]
    with pytest.raises(sws.SettingsError, match="does not depend on the grade"):
        with_points(["ndcg(rel=2)"], EvaluationSettings())


def test_a_score_by_names_of_other_tools() -> None:
    run = [{"query": "q", "document": each, "score": score} for each, score in (("a", 2.0), ("b", 1.0))]
    evaluation = sws.open(qrels={"q": {"b": 1, "c": 2}}, collection=run, preset="trec")
    result = sws.score(evaluation, ["RR", "R@2", "P_1", "RBP(p=0.5)", "num_rel"], runs=run)
    assert result.leaderboard().iloc[0].to_dict() == {
        "reciprocal_rank": 0.5,
        "recall_at_rank@2": 0.5,
        "precision_at_rank@1": 0.0,
        "rbp@0.5": 0.25,
        "n_relevant": 2.0,
    }
