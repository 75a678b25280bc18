from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lxml import etree

import swsdask as sws
from swsdask.model import schemas
from swsdask.model.units import ticks
from swsdask.simulate.evaluation import SimulatedEvaluation, simulate, write
from swsdask.simulate.speech import SYSTEMS

HOURS, QUERIES = 1.0, 60


@pytest.fixture(scope="module")
def small() -> SimulatedEvaluation:
    return simulate(3, hours=HOURS, n_queries=QUERIES)


def canonical(run: pa.Table) -> list[tuple[float, ...]]:
    columns = ("query", "document", "channel", "start", "duration", "score", "decision")
    rows = zip(*(run[name].to_pylist() for name in columns), strict=True)
    return [(q, d, c, s, t, -score, decision) for q, d, c, s, t, score, decision in rows]


def digest(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_same_seed_same_bytes_and_another_seed_others(tmp_path: Path, small: SimulatedEvaluation) -> None:
    write(small, tmp_path / "a")
    write(simulate(3, hours=HOURS, n_queries=QUERIES), tmp_path / "b")
    write(simulate(4, hours=HOURS, n_queries=QUERIES), tmp_path / "c")
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    assert set(digest(tmp_path / "a")) == set(digest(tmp_path / "c"))
    assert not set(digest(tmp_path / "a").values()) & set(digest(tmp_path / "c").values())


def test_a_system_does_not_depend_on_those_after_it(small: SimulatedEvaluation) -> None:
    alone = simulate(3, hours=HOURS, n_queries=QUERIES, systems=SYSTEMS[:1])
    assert alone.runs["calibrated"].equals(small.runs["calibrated"])
    assert alone.words.equals(small.words)


def test_tables_have_their_schemas(small: SimulatedEvaluation) -> None:
    assert small.documents.schema == schemas.DOCUMENTS
    assert small.queries.schema == schemas.QUERIES
    assert small.words.schema == schemas.WORDS
    assert small.segments.schema == schemas.SEGMENTS
    assert small.occurrences.schema == schemas.OCCURRENCES
    assert all(run.schema == schemas.DETECTIONS for run in small.runs.values())


def test_the_audio_is_as_long_as_asked(small: SimulatedEvaluation) -> None:
    spans = {row["document"]: row["end"] - row["start"] for row in small.documents.to_pylist()}
    assert sum(spans.values()) == HOURS * 3600 * 10_000


def test_there_is_variety(small: SimulatedEvaluation) -> None:
    documents = small.documents.to_pylist()
    assert {row["source_type"] for row in documents} == {"bnews", "cts"}
    assert len({row["language"] for row in documents}) == 9
    assert any(row["channel"] == 2 for row in documents)
    attributes = [dict(row["attributes"]) for row in small.queries.to_pylist()]
    assert {a["NGram"] for a in attributes} == {"1-grams", "2-grams", "3-grams"}
    assert {a["oov"] for a in attributes} == {"true", "false"}
    counts = np.bincount(small.occurrences["query"].to_numpy(), minlength=QUERIES)
    assert (counts == 0).any()
    assert counts.max() >= 10
    assert {"lex", "fp", "frag"} == set(small.words["subtype"].to_pylist())


def test_queries_are_distinct(small: SimulatedEvaluation) -> None:
    texts = small.queries["text"].to_pylist()
    assert len(set(texts)) == len(texts) == QUERIES


def test_occurrences_are_those_of_the_words(small: SimulatedEvaluation) -> None:
    said = sorted(small.words.to_pylist(), key=lambda w: (w["document"], w["channel"], w["speaker"], w["start"]))
    starts: dict[str, list[int]] = {}
    for number, word in enumerate(said):
        if word["subtype"] == "lex":
            starts.setdefault(word["word"].lower(), []).append(number)
    expected = []
    for number, query in enumerate(small.queries.to_pylist()):
        texts = query["text"].split()
        for first in starts.get(texts[0], []):
            words = said[first : first + len(texts)]
            same = len({(w["document"], w["channel"], w["speaker"]) for w in words}) == 1
            close = all(after["start"] - before["end"] <= 5000 for before, after in itertools.pairwise(words))
            if [w["word"].lower() for w in words] == texts and same and close:
                place = (words[0]["start"], words[-1]["end"], words[0]["end"], words[-1]["start"])
                expected.append((number, words[0]["document"], words[0]["channel"], *place))
    found = [tuple(row.values()) for row in small.occurrences.to_pylist()]
    assert sorted(found) == sorted(expected)
    assert [row[0] for row in found] == sorted(row[0] for row in found)


def test_words_do_not_overlap_within_a_channel_and_lie_in_their_segment(small: SimulatedEvaluation) -> None:
    ends: dict[tuple[str, int], int] = {}
    segments = {(s["document"], s["channel"], s["start"]): s for s in small.segments.to_pylist()}
    current = None
    for word in small.words.to_pylist():
        track = (word["document"], word["channel"])
        assert ends.get(track, 0) <= word["start"] < word["end"]
        ends[track] = word["end"]
        current = segments.get((*track, word["start"]), current)
        assert current is not None
        assert (current["document"], current["channel"], current["speaker"]) == (*track, word["speaker"])
        assert word["end"] <= current["end"]


def test_runs_are_canonical_and_inside_their_recordings(small: SimulatedEvaluation) -> None:
    end = {(row["document"], row["channel"]): (row["start"], row["end"]) for row in small.documents.to_pylist()}
    ids = list(dict.fromkeys(small.documents["document"].to_pylist()))
    for run in small.runs.values():
        assert run.num_rows > 250
        assert canonical(run) == sorted(canonical(run))
        for row in run.to_pylist():
            low, high = end[ids[row["document"]], row["channel"]]
            assert row["duration"] > 0
            assert row["start"] >= 0
            assert row["start"] + row["duration"] <= high
            assert row["inside"] == (row["start"] >= low)


def near_an_occurrence(small: SimulatedEvaluation, run: pa.Table) -> list[list[int]]:
    """Rows of detections whose mid-point is within half a second, for every occurrence."""
    ids = list(dict.fromkeys(small.documents["document"].to_pylist()))
    groups: dict[tuple[int, str, int], list[tuple[int, int]]] = {}
    for row, d in enumerate(run.to_pylist()):
        key = (d["query"], ids[d["document"]], d["channel"])
        groups.setdefault(key, []).append((row, 2 * d["start"] + d["duration"]))
    return [
        [
            row
            for row, middle in groups.get((o["query"], o["document"], o["channel"]), [])
            if 2 * o["start"] - 10_000 <= middle <= 2 * o["end"] + 10_000
        ]
        for o in small.occurrences.to_pylist()
    ]


def test_systems_differ_as_their_models_say(small: SimulatedEvaluation) -> None:
    found = {}
    for system, run in small.runs.items():
        near = near_an_occurrence(small, run)
        found[system] = sum(bool(rows) for rows in near)
        assert any(len(rows) > 1 for rows in near), "near-duplicates"
        on_target = sorted({row for rows in near for row in rows})
        score = run["score"].to_numpy()
        assert score[on_target].mean() > np.delete(score, on_target).mean() + 0.5
    assert found["calibrated"] > found["middling"] > found["weak"] > 0


def one_threshold_explains(run: pa.Table) -> bool:
    score, decision = run["score"].to_numpy(), run["decision"].to_numpy()
    return bool(score[decision == 1].min() >= score[decision == 0].max())


def test_only_keyword_specific_decisions_need_more_than_one_threshold(small: SimulatedEvaluation) -> None:
    assert {name for name, run in small.runs.items() if not one_threshold_explains(run)} == {"keyword-specific"}


def test_the_calibrated_scores_are_log_likelihood_ratios() -> None:
    evaluation = simulate(5, hours=6.0, n_queries=200, systems=SYSTEMS[:1])
    run = evaluation.runs["calibrated"]
    target = np.zeros(run.num_rows, bool)
    target[[rows[0] for rows in near_an_occurrence(evaluation, run) if rows]] = True
    score = run["score"].to_numpy()
    n_true = evaluation.occurrences.num_rows
    n_nontarget = 200 * 6 * 3600 - n_true
    for low in (3.0, 4.5, 6.0):
        stretch = (score >= low) & (score < low + 1.5)
        ratio = (target[stretch].sum() / n_true) / ((~target)[stretch].sum() / n_nontarget)
        assert np.log(ratio) == pytest.approx(low + 0.75, abs=0.6)


def test_the_calibrated_system_loses_nothing_that_a_map_would_save(tmp_path: Path) -> None:
    write(simulate(2013, hours=2.0, n_queries=60, systems=SYSTEMS[:1]), tmp_path)
    result = sws.score(sws.open(tmp_path, preset="sws2013"), ["cnxe", "cnxe_min"], runs=str(tmp_path / "runs"))
    cnxe, cnxe_min = result.leaderboard().loc["calibrated", ["cnxe", "cnxe_min"]]
    assert cnxe_min <= cnxe < cnxe_min + 0.02


def test_files_say_what_the_tables_say(tmp_path: Path, small: SimulatedEvaluation) -> None:
    write(small, tmp_path)
    excerpts = [
        (
            e.get("audio_filename").removeprefix("audio/").removesuffix(".wav"),
            int(e.get("channel")),
            ticks(e.get("tbeg"))[0],
            ticks(e.get("tbeg"))[0] + ticks(e.get("dur"))[0],
            e.get("source_type"),
        )
        for e in etree.parse(tmp_path / "sim.ecf.xml").getroot()
    ]
    assert excerpts == [tuple(row.values()) for row in small.documents.drop_columns("language").to_pylist()]
    assert not any("language" in e.attrib for e in etree.parse(tmp_path / "sim.ecf.xml").getroot())

    kwlist = etree.parse(tmp_path / "sim.kwlist.xml").getroot()
    assert kwlist.get("compareNormalize") == "lowercase"
    listed = [
        (
            kw.get("kwid"),
            kw.findtext("kwtext"),
            [(attr.findtext("name"), attr.findtext("value")) for attr in kw.find("kwinfo")],
        )
        for kw in kwlist
    ]
    assert listed == [tuple(row.values()) for row in small.queries.to_pylist()]

    words, segments = [], []
    for line in (tmp_path / "sim.rttm").read_text(encoding="utf-8").splitlines():
        kind, document, channel, start, duration, word, subtype, speaker, _ = line.split(" ")
        first = ticks(start)[0]
        place = {"document": document, "channel": int(channel), "start": first, "end": first + ticks(duration)[0]}
        if kind == "SPEAKER":
            segments.append({**place, "speaker": speaker})
        else:
            words.append({**place, "speaker": speaker, "word": word, "subtype": subtype})
    assert (
        words == small.words.select(["document", "channel", "start", "end", "speaker", "word", "subtype"]).to_pylist()
    )
    assert segments == small.segments.to_pylist()

    ids = list(dict.fromkeys(small.documents["document"].to_pylist()))
    for system, run in small.runs.items():
        kwslist = etree.parse(tmp_path / "runs" / f"{system}.kwslist.xml").getroot()
        assert kwslist.get("system_id") == system
        assert [group.get("kwid") for group in kwslist] == small.queries["query"].to_pylist()
        rows = [
            (
                number,
                ids.index(kw.get("file")),
                int(kw.get("channel")),
                ticks(kw.get("tbeg"))[0],
                ticks(kw.get("dur"))[0],
                float(kw.get("score")),
                kw.get("decision"),
            )
            for number, group in enumerate(kwslist)
            for kw in group
        ]
        expected = run.drop_columns("inside").to_pylist()
        assert rows == [(*list(row.values())[:-1], ["NO", "YES"][row["decision"]]) for row in expected]
