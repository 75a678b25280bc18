"""Official files in, numbers out: the product against the literal scorer, on random small evaluations."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import swsdask as sws
from swsdask.measures.rates import DetectionCost, ErrorRates, OccurrenceWeightedValue, Totals
from swsdask.measures.twv import ActualTwv, ApplicationParameters, MaximumTwv, OptimumTwv, SupremumTwv, ThresholdTwv
from tests import literal
from tests.conftest import examples
from tests.literal import Detection, Evaluation, Excerpt, Occurrence, Query, Rules, Turn, Word

UNIT = 2500
"""Most times are whole numbers of quarter seconds, so that edges meet."""

SCORES = [-1.0, -0.0, 0.0, 0.1, 0.25, 0.3, 0.5, 0.501, 0.504, 0.7, 0.75, 1.0, 2.5]
TEXTS = ["a", "a", "b", "b", "A", "É"]
QUERY_TEXTS = ["a", "b", "a b", "A", "b a b", "a a", "B a", "é", "z"]
EXACT = ("n_", "mtwv_threshold", "mtwv_rejected_threshold", "otwv_threshold", "actual_threshold")
COMPARED = (
    Totals,
    ErrorRates,
    ActualTwv,
    MaximumTwv,
    OptimumTwv,
    SupremumTwv,
    DetectionCost,
    ApplicationParameters,
    ThresholdTwv,
    OccurrenceWeightedValue,
)
"""The families that the literal scorer knows; others have oracles of their own."""

NAMES = tuple(name for family in COMPARED for name in family.names)


@dataclass(frozen=True)
class Case:
    evaluation: Evaluation
    rules: Rules
    settings: Mapping[str, Any]
    compat: str
    element: str


@st.composite
def excerpts(draw: st.DrawFn) -> list[Excerpt]:
    made = []
    for number in range(draw(st.integers(1, 3))):
        kinds = draw(st.sampled_from([["bnews"], ["cts"], ["splitcts"], ["splitcts", "cts"]]))
        for _ in range(draw(st.integers(1, 3))):
            kind = draw(st.sampled_from(kinds))
            start = draw(st.sampled_from([0, 0, 4, 8, 9])) * UNIT
            end = start + draw(st.sampled_from([200, 60, 20, 8, 1, 400])) * UNIT + draw(st.sampled_from([0, 0, 1]))
            made.append(Excerpt(f"d{number}", draw(st.sampled_from([1, 1, 2])), start, end, kind))
    return made


@st.composite
def lines_of_words(draw: st.DrawFn, places: list[tuple[str, int]], edges: list[int], find_gap: int) -> list[Word]:
    made: list[Word] = []
    for _ in range(draw(st.integers(1, 5))):
        document, channel = draw(st.sampled_from(places))
        speaker = draw(st.sampled_from(["s1", "s2"]))
        at = (draw(st.integers(0, 16)) + draw(st.sampled_from([0, 8]))) * UNIT
        if draw(st.integers(0, 5)) == 0:
            at = max(0, draw(st.sampled_from(edges)) - draw(st.sampled_from([0, UNIT])) + draw(st.integers(-1, 1)))
        for _ in range(draw(st.integers(1, 4))):
            text = draw(st.sampled_from(TEXTS))
            end = at + draw(st.sampled_from([1, 2, 3, 3, 0])) * UNIT
            subtype = draw(st.sampled_from(["lex", "lex", "lex", "lex", "lex", "lex", "frag", "fp"]))
            word = Word(document, channel, speaker, at, end, text, subtype)
            if word not in made:
                made.append(word)
            at = max(0, end + draw(st.sampled_from([-UNIT, 0, find_gap - 1, find_gap, find_gap + 1])))
    return made


@st.composite
def detections(
    draw: st.DrawFn, reference: Evaluation, spoken: list[Occurrence], names: list[str], tolerance: int
) -> list[Detection]:
    made = []
    for _ in range(draw(st.integers(0, 12))):
        query = draw(st.sampled_from(names))
        score = draw(st.sampled_from(SCORES))
        decision = draw(st.booleans()) if draw(st.integers(0, 2)) == 0 else score >= 0.5
        length = draw(st.sampled_from([0, 1, 2, 4])) * UNIT
        near = [o for o in spoken if o.query == query]
        if near and draw(st.integers(0, 5)) > 0:
            o = draw(st.sampled_from(near))
            document, channel = o.document, o.channel
            middle = draw(st.sampled_from([o.start - tolerance, o.end + tolerance, o.start, o.end, o.start + UNIT]))
            start = middle - length // 2 + draw(st.sampled_from([-1, 0, 0, 1]))
            length += draw(st.sampled_from([0, 0, 1]))
        else:
            stretches: list[Excerpt | Turn] = [*reference.excerpts, *reference.turns]
            stretch = draw(st.sampled_from(stretches))
            document, channel = stretch.document, stretch.channel
            start = draw(st.sampled_from([stretch.start, stretch.end])) - draw(
                st.sampled_from([0, length // 2, length])
            )
            start += draw(st.sampled_from([-1, 0, 0, 1, 2 * UNIT]))
        made.append(Detection(query, document, channel, max(0, start), max(0, start) + length, score, decision))
        another = draw(st.integers(0, 9))
        if another == 0:
            made.append(replace(made[-1], decision=draw(st.booleans())))
        elif another < 4:
            made.append(
                replace(made[-1], end=made[-1].end + UNIT, score=score + draw(st.sampled_from([-0.004, 0.004])))
            )
    return made


@st.composite
def cases(draw: st.DrawFn) -> Case:
    chosen = draw(excerpts())
    compat = draw(st.sampled_from(["none", "none", "kwseval", "stdeval"]))
    trials = draw(st.sampled_from(["virtual", "virtual", "virtual", "segment", "document"]))
    tolerance, find_gap = (
        draw(st.sampled_from([5000, 0, 2500, 10000, 200_000])),
        draw(st.sampled_from([5000, 0, 10000])),
    )
    places = sorted({(e.document, e.channel) for e in chosen})
    if draw(st.booleans()):
        places += [("x", 1), (places[0][0], 3 - places[0][1])]
    words = draw(lines_of_words(places, [edge for e in chosen for edge in (e.start, e.end)], find_gap))
    turns = [
        Turn(document, channel, start * UNIT, (start + length) * UNIT)
        for (document, channel), start, length in draw(
            st.lists(st.tuples(st.sampled_from(places), st.integers(0, 24), st.integers(1, 8)), max_size=6, unique=True)
        )
    ]
    texts = draw(st.lists(st.sampled_from(QUERY_TEXTS), min_size=1, max_size=4, unique=True))
    queries = [
        Query(f"q{number}", text, {"NGram": str(len(text.split()))} if draw(st.integers(0, 4)) else {})
        for number, text in enumerate(texts)
    ]
    names = [query.name for query in queries] + (["u"] if draw(st.integers(0, 5)) == 0 else [])
    declared = draw(st.sampled_from([None, None, (-2.0, 3.0), (0.0, 1.0)]))
    element = draw(st.sampled_from(["kw", "kw", "term", "table"]))
    lowercase = draw(st.booleans())
    implied = {"kwseval": ("drop", "group"), "stdeval": ("false_alarm", "run"), "none": ("drop", "group")}[compat]
    asked: dict[str, Any] = {"trials": trials, "unknown_documents": "outside", "unknown_queries": "drop"}
    asked |= {"tolerance_s": tolerance / 10_000, "find_gap_s": find_gap / 10_000}
    outside = draw(st.sampled_from([None, "drop", "false_alarm"]))
    score_scale = draw(st.sampled_from([None, "group", "run"]))
    if outside:
        asked["outside"] = outside
    if score_scale:
        asked["score_scale"] = score_scale
    asked["objective"] = draw(st.sampled_from(["nist", "nist", "score"]))
    asked["no_targets"] = draw(st.sampled_from(["exclude", "false_alarms_only"]))
    per_second = draw(st.sampled_from([1, 1, 0.3, 10]))
    asked["trials_per_second"] = per_second
    asked["thresholds"] = draw(st.sampled_from([[], [0.5], [0.5, 0.31]]))
    point, costs = draw(st.sampled_from(OPERATING_POINTS))
    asked["operating_point"] = point
    one_kind = len({(e.document, e.source_type) for e in chosen}) == len({e.document for e in chosen})
    keys = [("NGram",)] * any(query.attributes for query in queries)
    if one_kind:
        keys += [("source_type",), *((*key, "source_type") for key in keys)]
    by = draw(st.lists(st.sampled_from(keys), max_size=2, unique=True)) if keys else []
    rules = Rules(
        trials=trials,
        trials_per_second=Fraction(str(per_second)),
        tolerance=tolerance,
        find_gap=find_gap,
        compat=compat,
        outside=outside or implied[0],
        no_targets=asked["no_targets"],
        score_scale=score_scale or implied[1],
        objective=asked["objective"],
        costs=costs,
        alpha=Fraction(point.get("alpha", 1)),
        thresholds=tuple(asked["thresholds"]),
        by=tuple(by),
    )
    reference = Evaluation(chosen, words, turns, queries, lowercase, [], True)
    spoken = literal.occurrences(reference, rules)
    evaluation = replace(
        reference,
        detections=draw(detections(reference, spoken, names, tolerance)),
        has_decisions=element != "table",
        declared=declared if element != "table" else None,
    )
    return Case(evaluation, rules, asked, compat, element)


def _costs(p_target: str, c_miss: str, c_fa: str) -> tuple[Fraction, Fraction, Fraction]:
    return Fraction(p_target), Fraction(c_miss), Fraction(c_fa)


OPERATING_POINTS: list[tuple[dict[str, Any], tuple[Fraction, Fraction, Fraction] | None]] = [
    ({}, _costs("0.0001", "1", "0.1")),
    ({"p_target": 0.00015, "c_miss": 100, "c_fa": 1}, _costs("0.00015", "100", "1")),
    ({"p_target": 0.5, "c_miss": 1, "c_fa": 3}, _costs("0.5", "1", "3")),
    ({"p_target": 0.9}, _costs("0.9", "1", "0.1")),
    ({"beta": 20}, _costs("0.5", "1", "20")),
    ({"effective_prior": 0.1}, _costs("0.1", "1", "1")),
    ({"from_data": "sws2012"}, None),
    ({"from_data": "sws2012", "alpha": 3}, None),
]


def seconds(ticks: int) -> str:
    return f"{ticks // 10_000}.{ticks % 10_000:04d}"


def write_files(case: Case, folder: Path) -> None:
    evaluation = case.evaluation
    rows = [
        f'<excerpt audio_filename="audio/{e.document}.wav" channel="{e.channel}" tbeg="{seconds(e.start)}" '
        f'dur="{seconds(e.end - e.start)}" language="x" source_type="{e.source_type}"/>'
        for e in evaluation.excerpts
    ]
    (folder / "e.ecf.xml").write_text(_xml('ecf source_signal_duration="1.0" version="1"', rows), encoding="utf-8")
    spoken = [
        f"LEXEME {w.document} {w.channel} {seconds(w.start)} {seconds(w.end - w.start)} "
        f"{w.text} {w.subtype} {w.speaker} <NA>"
        for w in evaluation.words
    ]
    turns = [
        f"SPEAKER {t.document} {t.channel} {seconds(t.start)} {seconds(t.end - t.start)} <NA> <NA> s1 <NA>"
        for t in evaluation.turns
    ]
    (folder / "e.rttm").write_text(
        ";; what was spoken\n" + "".join(f"{row}\n" for row in [*turns, *spoken]), encoding="utf-8"
    )
    fold = "lowercase" if evaluation.lowercase else ""
    rows = [
        f'<kw kwid="{q.name}"><kwtext>{q.text}</kwtext><kwinfo>'
        + "".join(f"<attr><name>{name}</name><value>{value}</value></attr>" for name, value in q.attributes.items())
        + "</kwinfo></kw>"
        for q in evaluation.queries
    ]
    head = f'kwlist ecf_filename="e" version="1" language="x" encoding="UTF-8" compareNormalize="{fold}"'
    (folder / "e.kwlist.xml").write_text(_xml(head, rows), encoding="utf-8")
    if case.element == "table":
        (folder / "run.tsv").write_text(_table(evaluation), encoding="utf-8")
    else:
        (folder / "run.xml").write_text(_run(evaluation, case.element), encoding="utf-8")


def _xml(head: str, rows: list[str]) -> str:
    return f"<{head}>\n" + "".join(f"{row}\n" for row in rows) + f"</{head.split()[0]}>\n"


def _table(evaluation: Evaluation) -> str:
    rows = [
        "\t".join([d.query, d.document, str(d.channel), seconds(d.start), seconds(d.end - d.start), repr(d.score)])
        for d in evaluation.detections
    ]
    return "\n".join(["query\tdocument\tchannel\tstart\tduration\tscore", *rows, ""])


def _run(evaluation: Evaluation, element: str) -> str:
    lists = []
    for name in sorted({d.query for d in evaluation.detections}):
        rows = [
            f'<{element} file="{d.document}" channel="{d.channel}" tbeg="{seconds(d.start)}" '
            f'dur="{seconds(d.end - d.start)}" score={quoteattr(repr(d.score))} '
            f'decision="{"YES" if d.decision else "NO"}"/>'
            for d in evaluation.detections
            if d.query == name
        ]
        if element == "kw":
            lists.append(_xml(f'detected_kwlist kwid="{name}" search_time="1" oov_count="0"', rows))
        else:
            lists.append(_xml(f'detected_termlist termid="{name}" term_search_time="1" oov_term_count="0"', rows))
    said = "" if evaluation.declared is None else ' min_score="{}" max_score="{}"'.format(*evaluation.declared)
    if element == "kw":
        return _xml(f'kwslist kwlist_filename="e" language="x" system_id="s"{said}', lists)
    head = f'stdlist termlist_filename="e" indexing_time="1" language="x" index_size="1" system_id="s"{said}'
    return _xml(head, lists)


def product_numbers(case: Case) -> dict[tuple[str, str | None, str], float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(case, folder)
        evaluation = sws.open(
            ecf=str(folder / "e.ecf.xml"),
            rttm=str(folder / "e.rttm"),
            queries=str(folder / "e.kwlist.xml"),
            compat=case.compat,
            settings={"evaluation": case.settings, "engine": {"executor": "serial"}},
        )
        run = folder / ("run.tsv" if case.element == "table" else "run.xml")
        table = sws.score(evaluation, runs=str(run), by=[",".join(keys) for keys in case.rules.by]).table
    return {(row["condition"], row["query"], row["measure"]): row["value"] for row in table.to_pylist()}


def same(measure: str, found: float, expected: float) -> bool:
    if math.isnan(found) or math.isnan(expected):
        return math.isnan(found) and math.isnan(expected)
    if measure.startswith(EXACT) or math.isinf(expected):
        return found == expected
    return math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12)


def is_compared(measure: str) -> bool:
    family, at, _ = measure.partition("@")
    return family + at in NAMES


def differences(case: Case) -> list[str]:
    expected = literal.score(case.evaluation, case.rules)
    found = {key: value for key, value in product_numbers(case).items() if is_compared(key[2])}
    wrong = [f"{key}: missing" for key in expected if key not in found]
    wrong += [f"{key}: not expected, {found[key]}" for key in found if key not in expected]
    return wrong + [
        f"{key}: {found[key]!r}, expected {value!r}"
        for key, value in expected.items()
        if key in found and not same(key[2], found[key], value)
    ]


@settings(examples(150), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(cases())
def test_every_number_is_the_literal_one(case: Case) -> None:
    if case.rules.costs is None:
        n_true = sum(literal.align(case.evaluation, case.rules).targets.values())
        whole = next(literal.conditions(case.evaluation, case.rules))
        assume(0 < n_true < whole.n_trials)
    assert differences(case) == []
