"""Infinite scores: every measure against that of large finite ones, every form of a run, wherever scores leave."""

from __future__ import annotations

import json
import math
import random
import struct
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import swsdask as sws
from swsdask.cli import main
from swsdask.model.units import INFINITE

Rows = list[dict[str, Any]]

INF, FAR = math.inf, 1e9
"""`FAR` is in place of inf where a run has finite scores only: beyond all others."""

DOCUMENTS = [{"document": name, "duration": 60.0} for name in "abcd"]
COSTS = ("cxe", "cnxe", "cnxe_min", "cnxe_gamma", "cnxe_delta", "calibration_loss")
MEASURES = [
    *("atwv", "mtwv", "otwv", "stwv", "twv@0.5", "p_miss@0.01", "c_norm", "eer", "ap", "map", "r_precision", "gap"),
    *("precision", "recall", "f1", "best_f1", "precision_at_rank@3", "reciprocal_rank", "loss_threshold"),
    *("cnxe_min_pav", "calibration_loss_pav", "cnxe_query_pav", "twv_query_offset", "n_hit", "n_false_alarm"),
    *("mtwv_threshold", "mtwv_rejected_threshold", "best_f1_threshold", "actual_threshold", "impute_score", *COSTS),
]
SCORES = {"mtwv_threshold", "mtwv_rejected_threshold", "best_f1_threshold", "impute_score", "otwv_threshold"}


def world(seed: int) -> tuple[Rows, Rows]:
    """Occurrences, and detections of which some are theirs, with ties and infinities of either sign."""
    chance = random.Random(seed)
    occurrences = [
        {"query": query, "document": document, "start": 10.0 * place, "duration": 0.5}
        for query in ("q1", "q2", "q3")
        for document in "abcd"
        for place in range(1, 6)
        if chance.random() < 0.3
    ]
    scores = [INF, -INF, -2.0, 0.25, 0.25, 1.0, 3.0] if seed % 4 else [INF, -2.0, 0.25, 1.0, 3.0]
    rows = []
    for _ in range(40):
        near = chance.choice(occurrences) if chance.random() < 0.5 else None
        place = near or {"query": chance.choice(("q1", "q2")), "document": chance.choice("abcd"), "start": 4.0}
        score = chance.choice(scores)
        start = place["start"] + chance.choice((0.0, 0.1, 5.0))
        rows.append({**{n: place[n] for n in ("query", "document")}, "start": start, "duration": 0.5, "score": score})
    if seed % 4 == 2:  # infinite on the right side only
        found = {(row["query"], row["document"], row["start"]) for row in occurrences}
        for row in rows:
            hit = any((row["query"], row["document"], round(row["start"] - by, 4)) in found for by in (0.0, 0.1))
            row["score"] = abs(row["score"]) if hit else -abs(row["score"])
    return occurrences, [{**row, "decision": "YES" if row["score"] > 0.3 else "NO"} for row in rows]


def with_far(rows: Sequence[dict[str, Any]]) -> Rows:
    return [{**row, "score": min(max(row["score"], -FAR), FAR)} for row in rows]


def numbers(result: sws.Result) -> dict[tuple[str | None, str], float]:
    return {(row["query"], row["measure"]): row["value"] for row in result.table.to_pylist()}


def bits(result: sws.Result) -> list[tuple[str, str | None, str, bytes]]:
    return [(r["system"], r["query"], r["measure"], struct.pack("<d", r["value"])) for r in result.table.to_pylist()]


def stored(value: float) -> float:
    """What a threshold or a score of `FAR` is where the score is infinite."""
    return math.copysign(INFINITE, value) if abs(value) == FAR else value


@pytest.mark.parametrize("trials", ["virtual", "document"])
@pytest.mark.parametrize("seed", range(8))
def test_every_measure_is_that_of_scores_far_beyond_the_others(seed: int, trials: str) -> None:
    occurrences, rows = world(seed)
    where = {"documents": DOCUMENTS, "occurrences": occurrences}
    evaluation = sws.open(
        **where, settings={"evaluation": {"trials": trials, "impute": 0.0 if seed % 2 else "min", "objective": "score"}}
    )
    measures = [name for name in MEASURES if trials == "virtual" or name != "gap"]
    infinite, far = (numbers(sws.score(evaluation, measures, runs=each)) for each in (rows, with_far(rows)))
    wrong = any(abs(value) > FAR / 1e6 for (_, name), value in far.items() if name == "cxe")
    assert infinite.keys() == far.keys()
    for (query, name), value in far.items():
        own = infinite[query, name]
        if name in ("cxe", "cnxe", "calibration_loss_pav"):
            expected = INF if value > FAR / 1e6 else value
        elif name in COSTS and wrong:
            expected = {"cnxe_min": 1.0, "cnxe_gamma": 0.0, "cnxe_delta": 0.0, "calibration_loss": INF}[name]
        elif name in COSTS:
            assert own == pytest.approx(value, rel=1e-6, abs=1e-9, nan_ok=True), name
            continue
        elif name == "impute_score":
            expected = math.copysign(INF, value) if abs(value) == FAR else value
        elif name == "actual_threshold" and abs(value) > FAR / 1e3:
            assert abs(own) > 1e307
            continue
        else:
            expected = stored(value) if name in SCORES else value
        assert own == expected or (math.isnan(own) and math.isnan(expected)), (query, name)


def literal(targets: set[tuple[str, str]], scores: dict[tuple[str, str], float]) -> dict[str, float]:
    """MAP, MTWV, TWV at 0.5 and C_nxe of trials that all have scores, from their definitions."""
    queries = {query for query, _ in targets}
    own = {q: [(score, (q, d) in targets) for (other, d), score in scores.items() if other == q] for q in queries}
    prior = 1 / (1 + BETA)
    log_odds = math.log(prior / (1 - prior))

    def twv(threshold: float) -> float:
        found = 0.0
        for trials in own.values():
            hits, misses = ([t for s, t in trials if (s >= threshold) == accepted] for accepted in (True, False))
            p_fa = hits.count(False) / (hits + misses).count(False)
            found += 1 - misses.count(True) / (hits + misses).count(True) - BETA * p_fa
        return found / len(own)

    def ap(trials: list[tuple[float, bool]]) -> float:
        found = 0.0
        for score in {score for score, _ in trials}:
            above = [target for other, target in trials if other >= score]
            found += [target for other, target in trials if other == score].count(True) * sum(above) / len(above)
        return found / sum(target for _, target in trials)

    def bits_of(error: float) -> float:
        return error if error == INF else 0.0 if error == -INF else math.log2(1 + math.exp(error))

    costs: dict[bool, list[float]] = {True: [], False: []}
    for score, target in (trial for trials in own.values() for trial in trials):
        costs[target].append(bits_of((-1 if target else 1) * (score + log_odds)))
    mean = {target: sum(values) / len(values) for target, values in costs.items()}
    cost_of_prior = -prior * math.log2(prior) - (1 - prior) * math.log2(1 - prior)
    return {
        "map": sum(map(ap, own.values())) / len(own),
        "mtwv": max(0.0, *(twv(score) for score in scores.values())),
        "twv@0.5": twv(0.5),
        "cnxe": (prior * mean[True] + (1 - prior) * mean[False]) / cost_of_prior,
    }


BETA = 999.9


@pytest.mark.parametrize("seed", range(2))
def test_measures_of_many_systems_are_those_of_their_definitions(seed: int) -> None:
    """200 systems; in half of them only what is right is infinite, so that C_nxe is finite."""
    chance = random.Random(seed)
    pairs = [(query, document) for query in ("q1", "q2", "q3") for document in "abcdef"]
    targets = {("q1", "a"), *(pair for pair in pairs if chance.random() < 0.3 and pair[1] != "f")}
    systems = {}
    for number in range(200):
        scores = {pair: chance.choice([INF, -INF, -1.5, 0.5, 0.5, 2.0, 9.0]) for pair in pairs}
        if number % 2:
            right = {pair: math.copysign(INF, (pair in targets) - 0.5) for pair in pairs}
            scores = {pair: right[pair] if math.isinf(score) else score for pair, score in scores.items()}
        systems[f"s{number}"] = scores
    evaluation = sws.open(
        documents=[{"document": name, "duration": 60.0} for name in "abcdef"],
        occurrences=[{"query": q, "document": d, "start": 1.0, "duration": 0.5} for q, d in sorted(targets)],
        queries=["q1", "q2", "q3"],
        settings={"evaluation": {"trials": "document", "average_precision": {"interpolation": "none"}}},
    )
    rows = [
        {"system": name, "query": query, "document": document, "start": 1.0, "duration": 0.5, "score": score}
        for name, scores in systems.items()
        for (query, document), score in scores.items()
    ]
    board = sws.score(evaluation, ["map", "mtwv", "twv@0.5", "cnxe"], runs=rows).leaderboard()
    for name, scores in systems.items():
        for measure, value in literal(targets, scores).items():
            assert board.loc[name, measure] == pytest.approx(value, rel=1e-9, abs=1e-12), (name, measure)
    assert {True, False} == set(np.isinf(board["cnxe"]))


def test_both_kinds_of_worlds_are_drawn() -> None:
    found = set()
    for seed in range(8):
        occurrences, rows = world(seed)
        evaluation = sws.open(
            documents=DOCUMENTS,
            occurrences=occurrences,
            settings={"evaluation": {"impute": 0.0 if seed % 2 else "min"}},
        )
        found.add(math.isinf(numbers(sws.score(evaluation, ["cnxe"], runs=rows))[None, "cnxe"]))
    assert found == {True, False}


def test_an_infinite_score_elsewhere_does_not_change_what_is_mapped() -> None:
    near = [
        {"query": "q", "document": "a", "start": 10.4, "duration": 0.5, "score": 5.0},
        {"query": "q", "document": "a", "start": 10.0, "duration": 0.5, "score": 1.0},
    ]
    evaluation = sws.open(
        documents=DOCUMENTS, occurrences=[{"query": "q", "document": "a", "start": 10.0, "duration": 0.5}]
    )

    def hits(rows: Rows) -> list[float]:
        found = sws.score(evaluation, ["mtwv"], runs=rows, alignment=True).to_arrow("alignment")
        return [row["score"] for row in found.to_pylist() if row["outcome"] == "hit"]

    for score in (INF, -INF):
        assert hits([*near, {**near[0], "start": 40.0, "score": score}]) == hits(near) == [5.0]
    assert hits([*near, {**near[1], "start": 10.1, "score": INF}]) == [INF]
    assert hits([{**near[0], "score": -INF}, {**near[1], "score": -INF}]) == [-INF]


@pytest.mark.parametrize("finite", [0.0, -1e300, 1e300])
def test_an_infinite_score_is_beyond_a_single_finite_one(finite: float) -> None:
    """The time of the detection that must not be mapped is the better one."""
    spoken = {"query": "q", "document": "a", "start": 10.0, "duration": 0.5}
    evaluation = sws.open(documents=DOCUMENTS, occurrences=[spoken])
    for early, late in ((finite, -INF), (INF, finite), (INF, -INF)):
        rows = [{**spoken, "start": 10.4, "score": early}, {**spoken, "score": late}]
        found = sws.score(evaluation, ["mtwv"], runs=rows, alignment=True).to_arrow("alignment")
        assert [row["score"] for row in found.to_pylist() if row["outcome"] == "hit"] == [early]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reference of `world(1)` in NIST's files."""
    folder = tmp_path_factory.mktemp("reference")
    excerpts = "".join(
        f'<excerpt audio_filename="{name}" channel="1" tbeg="0" dur="60" source_type="x"/>' for name in "abcd"
    )
    (folder / "x.ecf.xml").write_text(f'<ecf source_signal_duration="240" version="1">{excerpts}</ecf>')
    words = (
        f"LEXEME {row['document']} 1 {row['start']} {row['duration']} {row['query']} lex ann <NA>\n"
        for row in world(1)[0]
    )
    (folder / "x.rttm").write_text("".join(words))
    listed = "".join(f'<kw kwid="{name}"><kwtext>{name}</kwtext></kw>' for name in ("q1", "q2", "q3"))
    (folder / "x.kwlist.xml").write_text(f'<kwlist ecf_filename="x" language="x" version="1">{listed}</kwlist>')
    return folder


ROWS = world(1)[1]


def as_kaldi(rows: Rows) -> str:
    return "".join(
        f"{row['query']} {row['document']} {row['start']!r} {row['start'] + row['duration']!r} {row['score']}\n"
        for row in rows
    )


def as_xml(rows: Rows) -> str:
    lists = "".join(
        f'<detected_kwlist kwid="{row["query"]}"><kw file="{row["document"]}" channel="1" tbeg="{row["start"]}" '
        f'dur="{row["duration"]}" score="{row["score"]}" decision="{row["decision"]}"/></detected_kwlist>\n'
        for row in rows
    )
    return f'<kwslist kwlist_filename="x" language="x" system_id="run">\n{lists}</kwslist>\n'


FORMS: dict[str, Callable[[Rows], str]] = {
    "run.tsv": lambda rows: pd.DataFrame(rows).to_csv(sep="\t", index=False).replace("\tinf", "\tInfinity"),
    "run.csv": lambda rows: pd.DataFrame(rows).to_csv(index=False).replace(",-inf", ",-INF"),
    "run.jsonl": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
    "run.kwslist.xml": as_xml,
}


def test_every_form_and_way_has_the_same_bits(reference: Path, tmp_path: Path) -> None:
    measures = ["atwv", "mtwv", "map", "cnxe", "cnxe_min", "cnxe_min_pav", "impute_score", "eer"]
    evaluation = sws.open(reference, settings={"evaluation": {"score_scale": "run"}})
    expected = bits(sws.score(evaluation, measures, runs={"run": ROWS}))
    for name, written in FORMS.items():
        (tmp_path / name).write_text(written(ROWS))
        assert bits(sws.score(evaluation, measures, runs=str(tmp_path / name))) == expected, name
    (tmp_path / "kaldi").write_text(as_kaldi(ROWS))
    undecided = [{key: value for key, value in row.items() if key != "decision"} for row in ROWS]
    of_kaldi, plain = (
        sws.score(evaluation, ["map", "cnxe"], runs=runs).table["value"].to_pylist()
        for runs in (str(tmp_path / "kaldi"), undecided)
    )
    assert of_kaldi == plain
    sws.ingest(
        tmp_path / "archive", reference, runs={"run": ROWS}, settings={"evaluation": {"score_scale": "run"}}, buckets=3
    )
    for _ in range(2):  # the second time from cached statistics
        assert bits(sws.score(tmp_path / "archive", measures)) == expected
    assert bits(sws.score(tmp_path / "archive", measures, cache=False)) == expected
    scorer = sws.Scorer(evaluation, measures)
    for begin in range(0, len(ROWS), 9):
        scorer.update([{"system": "run", **row} for row in ROWS[begin : begin + 9]])
    assert bits(scorer.result()) == expected
    told = sws.open(tmp_path / "archive").table("detections").to_pandas()
    assert sorted(told.score) == sorted(row["score"] for row in ROWS)


def call(*arguments: object) -> int:
    try:
        main([str(each) for each in arguments])
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def test_wherever_scores_leave_they_are_infinite(
    reference: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, rows in (("one", ROWS), ("two", ROWS[:30])):
        (tmp_path / f"{name}.tsv").write_text(FORMS["run.tsv"](rows))
    runs, out = [tmp_path / "one.tsv", tmp_path / "two.tsv"], tmp_path / "out"
    assert call("score", reference, *runs, "--alignment", "--out", out) == 0
    assert "C_nxe is infinite if a target is at -inf" in capfd.readouterr().out
    for name in ("scores.json", "manifest.json"):
        json.loads((out / name).read_text(), parse_constant=no_constant)
    aligned = {score for score in pq.read_table(out / "alignment.parquet")["score"].to_pylist() if score is not None}
    assert {score for score in aligned if abs(score) > FAR} == {INF, -INF}
    assert json.loads((out / "manifest.json").read_text())["runs"]["one"]["scores"]["run"] == ["-inf", "inf"]
    result = sws.score(str(reference), runs=[str(each) for each in runs])
    assert result.plot_ece().axes
    assert result.plot_det().axes
    capfd.readouterr()
    assert call("errors", reference, runs[0], "--format", "json") == 0
    found = json.loads(capfd.readouterr().out, parse_constant=no_constant)
    assert "inf" in {event["score"] for event in found["events"]}
    measures = ("--measures", "atwv,cnxe,cnxe_min,map", "--replicates", "20")
    assert call("compare", reference, *runs, *measures, "--format", "json") == 0
    compared = json.loads(capfd.readouterr().out, parse_constant=no_constant)
    assert {row["value"] for row in compared["intervals"] if row["measure"] == "cnxe"} == {"inf"}
    assert call("validate", reference, *runs) == 0
    assert call("ingest", tmp_path / "archive", reference, "--run", runs[0]) == 0
    capfd.readouterr()
    assert call("show", tmp_path / "archive") == 0
    assert "-inf .. inf" in capfd.readouterr().out


def test_runs_are_converted_and_calibrated(reference: Path, tmp_path: Path) -> None:
    source = tmp_path / "run.tsv"
    source.write_text(FORMS["run.tsv"](ROWS))
    for name in ("a.kwslist.xml", "b.csv", "c.parquet", "d.tsv.gz"):
        assert call("convert", source, tmp_path / name) == 0
    assert sorted(pd.read_parquet(tmp_path / "c.parquet").score) == sorted(row["score"] for row in ROWS)
    assert (tmp_path / "a.kwslist.xml").read_text().count('score="inf"') == sum(row["score"] == INF for row in ROWS)
    fitted = sws.calibrate(str(reference), str(source), "pav")
    fitted.write(tmp_path / "pav.toml")
    assert tomllib.loads((tmp_path / "pav.toml").read_text())["fitted_on"]["cnxe"] == INF
    assert sws.Calibration.read(tmp_path / "pav.toml") == fitted
    assert call("calibrate", "--apply", tmp_path / "pav.toml", source, "--out", tmp_path / "mapped") == 0
    scores = fitted(np.array([row["score"] for row in ROWS]))
    mapped = pd.read_csv(tmp_path / "mapped/run.tsv", sep="\t", dtype=str)
    assert sorted(map(float, mapped.score)) == sorted(scores)
    with pytest.raises(sws.InputError, match=r"a target of score -inf or a non-target of inf"):
        sws.calibrate(str(reference), str(source), "affine")


def test_what_is_not_a_score() -> None:
    evaluation = sws.open(documents=DOCUMENTS, occurrences=world(0)[0])
    row = {"query": "q1", "document": "a", "start": 1.0, "duration": 0.5}
    for score in ("nan", "-NaN", "infin", "1e309", repr(INFINITE), repr(-INFINITE), "17976931348623157" + "0" * 292):
        with pytest.raises(sws.InputError, match="expected a score"):
            sws.score(evaluation, ["map"], runs=[{**row, "score": score}])
    for number in (INFINITE, -INFINITE):
        with pytest.raises(sws.InputError, match=r"expected a score below 1\.797e308"):
            sws.score(evaluation, ["map"], runs=pd.DataFrame([{**row, "score": number}]))
    sws.score(evaluation, ["map"], runs=pd.DataFrame([{**row, "score": np.nextafter(INFINITE, 0)}]))
