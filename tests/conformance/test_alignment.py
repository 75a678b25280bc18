"""NIST KWSEval's and STDEval's alignments, pair for pair."""

from __future__ import annotations

import csv
import gzip
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from swsdask.alignment.trials import make_trials
from swsdask.model.ids import document_id
from swsdask.model.ticks import TICKS_PER_SECOND, ticks
from swsdask.model.trials import AlignmentRule, Detections, Reference, ScoreRange


class Place(NamedTuple):
    query: str
    document: str
    channel: int


class Aligned(NamedTuple):
    """A row of an alignment: where, the times of the occurrence and of the detection in ticks, and the score."""

    place: Place
    occurrence: tuple[int, int] | None
    detection: tuple[int, int] | None
    score: float | None


def whole(seconds: str) -> int:
    number, rounded = ticks(seconds)
    assert not rounded
    return number


def official(path: Path) -> list[Aligned]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    rows = []
    for row in csv.DictReader(text.splitlines()):
        found = row["ref_bt"] and (whole(row["ref_bt"]), whole(row["ref_et"]))
        said = row["sys_bt"] and (whole(row["sys_bt"]), whole(row["sys_et"]))
        score = float(row["sys_score"]) if said else None
        rows.append(Aligned(Place(row["termid"], row["file"], int(row["channel"])), found or None, said or None, score))
    return rows


def excerpts(path: Path) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (document_id(e.get("audio_filename", "")), int(e.get("channel", "1"))): (
            whole(e.get("tbeg", "")),
            whole(e.get("tbeg", "")) + whole(e.get("dur", "")),
        )
        for e in ElementTree.parse(path).getroot()
    }


def submitted(path: Path) -> list[tuple[Place, int, int, float, int]]:
    """(place, start, duration, score, decision) of every detection of a system."""
    return [
        (
            Place(query.get("kwid") or query.get("termid") or "", d.get("file", ""), int(d.get("channel", "1"))),
            whole(d.get("tbeg", "")),
            whole(d.get("dur", "")),
            float(d.get("score", "")),
            int(d.get("decision") == "YES"),
        )
        for query in ElementTree.parse(path).getroot()
        for d in query
    ]


def aligned_by_us(ecf: Path, run: Path, expected: list[Aligned], rule: AlignmentRule) -> list[Aligned]:
    """Our alignment of a run with the occurrences that the official alignment names."""
    audio = excerpts(ecf)
    rows = submitted(run)
    places = [row.place for row in expected] + [row[0] for row in rows]
    queries = sorted({place.query for place in places})
    documents = sorted({document for document, _ in audio})
    code = {document: number for number, document in enumerate(documents)}
    occurrences = sorted(
        (queries.index(row.place.query), code[row.place.document], row.place.channel, *row.occurrence)
        for row in expected
        if row.occurrence
    )
    rows.sort(key=lambda row: row[0].query)

    def column(values: list[int], dtype: type) -> np.ndarray:
        return np.array(values, dtype)

    def inside(place: Place, start: int, duration: int) -> bool:
        begin, end = audio.get((place.document, place.channel), (0, -1))
        return begin <= start and start + duration <= end

    words = np.array(occurrences, np.int32).reshape(-1, 5).T
    reference = Reference(
        rule=rule,
        query_ids=tuple(queries),
        document_ids=tuple(documents),
        query=words[0].copy(),
        document=words[1].copy(),
        channel=words[2].astype(np.int8),
        start=words[3].copy(),
        end=words[4].copy(),
        first_word_end=words[4].copy(),
        last_word_start=words[3].copy(),
        segments=None,
        group_of_document=np.zeros(len(documents) + 1, np.int16),
        targets=np.zeros((len(queries), 1), np.int64),
        class_of=np.zeros((len(queries), 1), np.int32),
        n_classes=1,
        conditions=(),
    )
    scores = [row[3] for row in rows]
    detections = Detections(
        query=column([queries.index(row[0].query) for row in rows], np.int32),
        score=np.array(scores),
        document=column([code.get(row[0].document, -1) for row in rows], np.int32),
        channel=column([row[0].channel for row in rows], np.int8),
        start=column([row[1] for row in rows], np.int32),
        duration=column([row[2] for row in rows], np.int32),
        decision=column([row[4] for row in rows], np.int8),
        inside=column([inside(*row[:3]) for row in rows], np.int8),
    )
    trials = make_trials(detections, reference, ScoreRange(None, (min(scores), max(scores))), aligned=True)
    assert trials.hit is not None
    assert trials.occurrence is not None
    occurrence_of = dict(zip(trials.hit.tolist(), trials.occurrence.tolist(), strict=True))
    ours = []
    for trial in range(len(trials)):
        place, start, duration, score, _ = rows[trial if trials.row is None else trials.row[trial]]
        spoken = occurrences[occurrence_of[trial]][3:] if trial in occurrence_of else None
        ours.append(Aligned(place, spoken, (start, start + duration), score))
    for number in set(range(len(occurrences))) - set(occurrence_of.values()):
        query, document, channel, start, end = occurrences[number]
        ours.append(Aligned(Place(queries[query], documents[document], channel), (start, end), None, None))
    return ours


def rule(tolerance_s: float, **others: str) -> AlignmentRule:
    settings = {"objective": "nist", "score_scale": "group", "outside": "drop"} | others
    return AlignmentRule(trials="virtual", tolerance=int(tolerance_s * TICKS_PER_SECOND), **settings)


def test_kwseval(cases: Path) -> None:
    folder = cases / "kwseval/synthetic"
    expected = official(folder / "expected.alignment.csv.gz")
    assert sum(row.occurrence is not None and row.detection is not None for row in expected) == 3723
    ours = aligned_by_us(folder / "ecf.xml", folder / "kwslist.xml", expected, rule(0.5))
    assert Counter(ours) == Counter(expected)


@pytest.mark.parametrize(
    ("tag", "tolerance_s", "outside"),
    [
        ("sws13", 0.5, "false_alarm"),
        ("sws13E", 0.5, "drop"),
        ("sws12", 1, "false_alarm"),
        ("std06", 0.5, "false_alarm"),
        ("sws11orig", 20, "false_alarm"),
        ("sws11in12", 20, "false_alarm"),
    ],
)
def test_stdeval(cases: Path, tag: str, tolerance_s: float, outside: str) -> None:
    folder = cases / "stdeval/occurrences"
    expected = official(folder / f"{tag}.ali.csv")
    ours = aligned_by_us(
        folder / "e.ecf.xml", folder / "s.stdlist.xml", expected, rule(tolerance_s, outside=outside, score_scale="run")
    )
    assert Counter(ours) == Counter(expected)
