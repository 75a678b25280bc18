"""Measures of graded judgments against rankings written out and pytrec_eval; where grades are kept."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
import pytrec_eval

import swsdask as sws
from swsdask.api.opening import Evaluation
from swsdask.measures.names import from_elsewhere
from swsdask.model.measures import at_level
from tests.engines import plain

DOCUMENTS = tuple("abcdefgh")
GRADES = (-1, 0, 0, 1, 2, 3, 7)
CUTS = (1, 3, 20)
LITERAL = ("err_at_rank@", "exponential_ndcg_at_rank@", "judged_at_rank@", "reciprocal_rank_at_rank@")

Judged = dict[str, dict[str, int]]


def drawn(seed: int, topics: tuple[str, ...] = ("p", "q")) -> tuple[Judged, dict[str, dict[str, float]]]:
    draw = random.Random(seed)
    judged = {t: {d: draw.choice(GRADES) for d in draw.sample(DOCUMENTS, draw.randint(1, 8))} for t in topics}
    for own in judged.values():
        own.setdefault(DOCUMENTS[0], 0)
    ranked = {t: {d: draw.choice([0.5, 1.0, 2.0]) for d in draw.sample(DOCUMENTS, draw.randint(1, 8))} for t in topics}
    return judged, ranked


def rows(ranked: dict[str, dict[str, float]]) -> list[dict[str, object]]:
    return [{"query": q, "document": d, "score": s} for q, own in ranked.items() for d, s in own.items()]


def opened(judged: Judged, ranked: dict[str, dict[str, float]], **rules: object) -> Evaluation:
    chosen = {"evaluation": {"average_precision": {"ranks": CUTS, **rules}}}
    return sws.open(qrels=judged, collection=rows(ranked), preset="trec", settings=chosen)


def numbers(result: sws.Result) -> dict[tuple[str | None, str], float]:
    return {(row["query"], row["measure"]): row["value"] for row in result.table.to_pylist()}


def literal(own: dict[str, int], order: list[str], cut: int) -> dict[str, float]:
    grades = [min(max(own.get(document, 0), 0), 4) for document in order]
    ideal = sorted((min(max(grade, 0), 4) for grade in own.values()), reverse=True)
    left = 1.0
    err = 0.0
    for rank, grade in enumerate(grades[:cut], 1):
        satisfied = (2**grade - 1) / 16
        err += left * satisfied / rank
        left *= 1 - satisfied
    dcg, best = (sum((2**g - 1) / math.log2(i + 2) for i, g in enumerate(each[:cut])) for each in (grades, ideal))
    first = next((rank for rank, grade in enumerate(grades, 1) if grade > 0), math.inf)
    return {
        "err_at_rank": err,
        "exponential_ndcg_at_rank": dcg / best if best else 0.0,
        "judged_at_rank": sum(document in own for document in order[:cut]) / min(cut, len(order)),
        "reciprocal_rank_at_rank": 1 / first if first <= cut else 0.0,
    }


@pytest.mark.parametrize("seed", range(20))
def test_rankings_written_out(seed: int) -> None:
    judged, ranked = drawn(seed)
    found = numbers(sws.score(opened(judged, ranked), LITERAL, runs=rows(ranked)))
    means: dict[str, list[float]] = {}
    for topic, own in ranked.items():
        order = sorted(own, key=lambda each, own=own: (own[each], each), reverse=True)
        for cut in CUTS:
            for name, value in literal(judged[topic], order, cut).items():
                assert found[topic, f"{name}@{cut}"] == pytest.approx(value, abs=1e-12), (topic, name, cut)
                means.setdefault(f"{name}@{cut}", []).append(value)
    for name, values in means.items():
        assert found[None, name] == pytest.approx(math.fsum(values) / len(values), abs=1e-12)


LEVELLED = {"AP": "map", "Rprec": "Rprec", "Bpref": "bpref", "infAP": "infAP", "RR": "recip_rank", "NumRel": "num_rel"}
LEVELLED |= {"P@3": "P_3", "R@3": "recall_3", "AP@3": "map_cut_3", "Success@3": "success_3", "SetP": "set_P"}
LEVELLED |= {"SetF": "set_F", "SetAP": "set_map", "NumRet(rel=1)": "num_rel_ret", "IPrec@0.5": "iprec_at_recall_0.50"}


def at(name: str, level: int) -> str:
    """As ir_measures writes it."""
    head, _, cut = name.replace("(rel=1)", "").partition("@")
    return f"{head}(rel={level}){'@' + cut if cut else ''}"


@pytest.mark.parametrize("seed", range(10))
def test_measures_from_a_grade_on_are_those_of_trec_eval(seed: int) -> None:
    judged, ranked = drawn(seed)
    asked = {"map", "Rprec", "bpref", "infAP", "recip_rank", "num_rel", "P.3", "recall.3", "map_cut.3", "success.3"}
    asked |= {"set_P", "set_F", "set_map", "num_rel_ret", "iprec_at_recall"}
    names = [at(name, level) for name in LEVELLED for level in (2, 3)]
    found = numbers(sws.score(opened(judged, ranked), ["P@3", *names], runs=rows(ranked)))
    assert {name for _, name in found} == {"precision_at_rank@3", *map(from_elsewhere, names)}
    for level in (2, 3):
        theirs = pytrec_eval.RelevanceEvaluator(judged, asked, relevance_level=level).evaluate(ranked)
        for ours, name in LEVELLED.items():
            values = [own[name] for own in theirs.values()]
            total = math.fsum(values) / (1 if ours.startswith("Num") else len(values))
            assert found[None, from_elsewhere(at(ours, level))] == pytest.approx(total, abs=1e-12), (ours, level)


OF_TOPICS = {"Rprec": "r_precision", "bpref": "bpref", "infAP": "inferred_ap", "recip_rank": "reciprocal_rank"}
OF_TOPICS |= {"set_P": "set_precision", "set_F": "set_f1", "set_map": "set_map", "set_recall": "set_recall"}
OF_TOPICS |= {"11pt_avg": "eleven_point_precision", "binG": "binary_gain", "ndcg": "ndcg", "utility": "utility"}
OF_TOPICS |= {"ndcg_rel": "ndcg_of_relevant", "Rndcg": "ndcg_at_levels", "G": "normalised_gain", "map": "ap"}
CUT = {"P": "precision_at_rank", "recall": "recall_at_rank", "map_cut": "ap_at_rank", "ndcg_cut": "ndcg_at_rank"}


@pytest.mark.parametrize("seed", range(12))
def test_numbers_of_topics_have_the_bits_of_trec_eval(seed: int) -> None:
    """A last bit may decide a digit that it prints."""
    draw = random.Random(seed)
    documents = [f"d{number}" for number in range(80)]
    judged = {f"t{n}": {d: draw.choice(GRADES) for d in draw.sample(documents, draw.randint(3, 60))} for n in range(6)}
    ranked = {t: {d: draw.randint(0, 40) / 4 for d in draw.sample(documents, draw.randint(3, 70))} for t in judged}
    for own in judged.values():
        own["d0"] = 1
    theirs = pytrec_eval.RelevanceEvaluator(judged, {*OF_TOPICS, *CUT}).evaluate(ranked)
    names = OF_TOPICS | {f"{name}_{cut}": f"{ours}@{cut}" for name, ours in CUT.items() for cut in (5, 100)}
    evaluation = opened(judged, ranked, ranks=(5, 100))
    found = numbers(sws.score(evaluation, [*names.values(), "map"], runs=rows(ranked)))
    ours = {(topic, name): found[topic, names[name]] for topic in theirs for name in names}
    assert ours == {(topic, name): theirs[topic][name] for topic, name in ours}


@pytest.mark.parametrize("ties", ["group", "best", "worst", "expected", "document-ascending"])
def test_a_level_is_the_grade_from_which_judgments_would_be_relevant(ties: str) -> None:
    names = ["map", "r_precision", "precision_at_rank@3", "gm_map", "set_f1", "bpref", "inferred_ap", "utility"]
    for seed in range(6):
        judged, ranked = drawn(seed)
        graded = opened(judged, ranked, ties=ties, levels=(2,))
        lower = {q: {d: min(g, 1) - 1 if 0 < g < 2 else min(g, 1) for d, g in own.items()} for q, own in judged.items()}
        found = numbers(sws.score(graded, [at_level(name, 2) for name in names], runs=rows(ranked)))
        plainly = numbers(sws.score(opened(lower, ranked, ties=ties), names, runs=rows(ranked)))
        for name in names:
            assert found[None, at_level(name, 2)] == pytest.approx(plainly[None, name], abs=1e-15), (ties, seed, name)


def test_an_archive_keeps_grades(tmp_path: Path) -> None:
    judged, ranked = drawn(3)
    qrels, run = tmp_path / "q.qrels", tmp_path / "r.trec"
    qrels.write_text("".join(f"{q} 0 {d} {g}\n" for q, own in judged.items() for d, g in own.items()))
    run.write_text("".join(f"{q} Q0 {d} -1 {s} sys\n" for q, own in ranked.items() for d, s in own.items()))
    kept = sws.ingest(tmp_path / "archive", qrels=qrels, runs=run, preset="trec")
    assert [each.system for each in kept.runs] == ["sys"]
    names = ["ndcg", "nDCG@3", "bpref", "ERR@3", "P(rel=2)@3"]
    of_files = sws.score(sws.open(qrels=qrels, collection=run, preset="trec"), names, runs=run)
    for _ in range(2):
        of_archive = sws.score(tmp_path / "archive", names)
        assert plain(of_archive.table) == plain(of_files.table)
    judgments = sws.open(tmp_path / "archive").table("judgments")
    assert set(map(tuple, (row.values() for row in judgments.to_pylist()))) == {
        (query, document, grade) for query, own in judged.items() for document, grade in own.items()
    }
    of_tables = sws.score(sws.open(qrels=judgments, collection=run, preset="trec"), names, runs=run)
    assert plain(of_tables.table) == plain(of_files.table)
    assert not sws.verify(tmp_path / "archive").damaged


def test_any_cells_and_conditions_give_the_same_bits() -> None:
    topics = tuple(f"t{number}" for number in range(12))
    judged, ranked = drawn(5, topics)
    names = ["ndcg", "bpref", "inferred_ap", "ERR@3", "map(rel=2)", "ndcg_at_levels", "normalised_gain"]
    by = ["query_pattern:t[1-5]", "document_pattern:[a-d]"]
    whole = sws.score(opened(judged, ranked), names, runs=rows(ranked), by=by)
    parts = sws.score(opened(judged, ranked), names, runs=rows(ranked), by=by, buckets=5)
    assert plain(whole.table) == plain(parts.table)
    few = {q: {d: g for d, g in own.items() if d <= "d"} for q, own in judged.items()}
    shorter = {q: {d: s for d, s in own.items() if d <= "d"} for q, own in ranked.items()}
    alone = opened({q: own for q, own in few.items() if own}, {q: own for q, own in shorter.items() if own})
    within = {
        (row["query"], row["measure"]): row["value"]
        for row in whole.table.to_pylist()
        if row["condition"] == "document~[a-d]"
    }
    for (query, name), value in numbers(sws.score(alone, names, runs=rows(shorter))).items():
        if query is not None:
            assert within[query, name] == pytest.approx(value, abs=1e-15, nan_ok=True)


def occurrence(query: str, document: str, grade: int | None, start: float = 1.0) -> dict[str, object]:
    return {"query": query, "document": document, "start": start, "duration": 1.0, "grade": grade}


def test_occurrences_with_grades() -> None:
    documents = [{"document": each, "duration": 60.0} for each in "abcd"]
    spoken = [occurrence("q", "a", 1), occurrence("q", "a", 3, 5.0), occurrence("q", "b", 0), occurrence("q", "c", 2)]
    found = [
        {"query": "q", "document": each, "start": 1.0, "duration": 1.0, "score": score}
        for each, score in (("b", 3.0), ("c", 2.0), ("d", 1.5), ("a", 1.0))
    ]
    chosen = {"evaluation": {"trials": "document"}}
    evaluation = sws.open(documents=documents, occurrences=spoken, settings=chosen)
    result = sws.score(evaluation, ["ndcg", "bpref", "n_target", "map(rel=3)"], runs=found)
    assert result.leaderboard().iloc[0].to_dict() == pytest.approx(
        {
            "n_target": 2.0,
            "map(rel=3)": 0.25,
            "ndcg": (2 / math.log2(3) + 3 / math.log2(5)) / (3 + 2 / math.log2(3)),
            "bpref": 0.0,
        }
    )
    signed = [{**each, "grade": f"{each['grade']:+}"} for each in spoken]
    with_signs = sws.open(documents=documents, occurrences=signed, settings=chosen)
    assert with_signs.table("judgments").to_pylist() == evaluation.table("judgments").to_pylist()
    spoken[0]["grade"] = 1.5
    with pytest.raises(sws.InputError, match="occurrences:1: expected a whole number as grade"):
        sws.open(documents=documents, occurrences=spoken, settings=chosen)


def test_without_grades() -> None:
    documents = [{"document": "a", "duration": 60.0}]
    spoken = [{"query": "q", "document": "a", "start": 1.0, "duration": 1.0}]
    run = [{"query": "q", "document": "a", "start": 1.0, "duration": 1.0, "score": 1.0}]
    evaluation = sws.open(documents=documents, occurrences=spoken)
    assert "ndcg" not in set(sws.score(evaluation, runs=run).table["measure"].to_pylist())
    with pytest.raises(sws.SettingsError, match="need graded judgments"):
        sws.score(evaluation, "AP(rel=2)", runs=run)
