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

from swsdask.model.units import document_id, ticks
from swsdask.statistics.segment_trials import Spans, segment_targets, tile
from tests.alignment import pairs, reference, trials


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


def aligned_by_us(ecf: Path, run: Path, expected: list[Aligned], **rule: object) -> list[Aligned]:
    """Our alignment of a run with the occurrences that the official alignment names."""
    audio = excerpts(ecf)
    found = sorted(submitted(run), key=lambda row: row[0].query)
    queries = sorted({row.place.query for row in expected} | {row[0].query for row in found})
    documents = sorted({document for document, _ in audio})
    code = {document: number for number, document in enumerate(documents)}
    occurrences = sorted(
        (queries.index(row.place.query), code[row.place.document], row.place.channel, *row.occurrence)
        for row in expected
        if row.occurrence
    )

    def inside(place: Place, start: int, duration: int) -> bool:
        begin, end = audio.get((place.document, place.channel), (0, -1))
        return begin <= start and start + duration <= end

    made = trials(
        [
            (queries.index(row[0].query), code.get(row[0].document, -1), row[0].channel, *row[1:], inside(*row[:3]))
            for row in found
        ],
        reference(occurrences, n_queries=len(queries), n_documents=len(documents), **rule),
    )
    occurrence_of = dict(pairs(made))
    ours = []
    for row in range(len(found)) if made.row is None else made.row.tolist():
        place, start, duration, score, _ = found[row]
        spoken = occurrences[occurrence_of[row]][3:] if row in occurrence_of else None
        ours.append(Aligned(place, spoken, (start, start + duration), score))
    for number in set(range(len(occurrences))) - set(occurrence_of.values()):
        query, document, channel, start, end = occurrences[number]
        ours.append(Aligned(Place(queries[query], documents[document], channel), (start, end), None, None))
    return ours


def test_kwseval(cases: Path) -> None:
    folder = cases / "kwseval/synthetic"
    expected = official(folder / "expected.alignment.csv.gz")
    assert sum(row.occurrence is not None and row.detection is not None for row in expected) == 3723
    ours = aligned_by_us(folder / "ecf.xml", folder / "kwslist.xml", expected, tolerance=5_000)
    assert Counter(ours) == Counter(expected)


@pytest.mark.parametrize(
    ("tag", "tolerance", "outside"),
    [
        ("sws13", 5_000, "false_alarm"),
        ("sws13E", 5_000, "drop"),
        ("sws12", 10_000, "false_alarm"),
        ("std06", 5_000, "false_alarm"),
        ("sws11orig", 200_000, "false_alarm"),
        ("sws11in12", 200_000, "false_alarm"),
    ],
)
def test_stdeval(cases: Path, tag: str, tolerance: int, outside: str) -> None:
    folder = cases / "stdeval/occurrences"
    expected = official(folder / f"{tag}.ali.csv")
    ours = aligned_by_us(
        folder / "e.ecf.xml",
        folder / "s.stdlist.xml",
        expected,
        tolerance=tolerance,
        outside=outside,
        score_scale="run",
    )
    assert Counter(ours) == Counter(expected)


def test_kwseval_segments(cases: Path) -> None:
    """8 trials; targets, hits and false alarms per query as the block summary report prints them."""
    folder = cases / "kwseval/segments"
    audio = excerpts(folder / "ecf.xml")
    documents = sorted(document for document, _ in audio)
    records = [
        (r[0], r[1], int(r[2]), whole(r[3]), whole(r[3]) + whole(r[4]), r[5])
        for r in map(str.split, (folder / "ref.rttm").read_text().splitlines())
        if r[1] in documents and whole(r[3]) + whole(r[4]) <= audio[r[1], int(r[2])][1]
    ]

    def spans(rows: list[tuple[str, int, int, int]]) -> Spans:
        columns = np.array([(documents.index(row[0]), *row[1:]) for row in rows], np.int32).T
        return Spans(columns[0], columns[1].astype(np.int8), columns[2], columns[3])

    segments = tile(
        spans([(*key, *span) for key, span in audio.items()]), spans([r[1:5] for r in records if r[0] == "SPEAKER"])
    )
    assert len(segments.start) == 8

    words = [r[1:] for r in records if r[0] == "LEXEME"]
    occurrences = [
        (query, documents.index(first[0]), first[1], first[2], last[3], first[3], last[2])
        for query, text in enumerate([["yes"], ["sure"], ["why", "not"]])
        for first, last in zip(words, words[len(text) - 1 :], strict=False)
        if [word[4] for word in words[words.index(first) :][: len(text)]] == text
    ]
    spoken = reference(occurrences, n_documents=len(documents), trials="segment", segments=segments)
    columns = ("query", "document", "channel", "start", "end", "first_word_end", "last_word_start")
    query, _ = segment_targets(segments, **{name: getattr(spoken, name) for name in columns})
    assert np.bincount(query).tolist() == [2, 1, 1]

    found = [
        (int(place.query[-1]) - 1, documents.index(place.document), place.channel, start, duration, score, decision, 1)
        for place, start, duration, score, decision in submitted(folder / "kwslist.xml")
        if (place.document, place.channel) in audio and start + duration <= audio[place.document, place.channel][1]
    ]
    made = trials(found, spoken)
    hits = np.bincount(made.query[made.hit], minlength=3)
    assert hits.tolist() == [2, 1, 1]
    assert (np.bincount(made.query, minlength=3) - hits).tolist() == [0, 2, 1]
