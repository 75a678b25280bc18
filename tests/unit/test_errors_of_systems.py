"""The errors of systems: equal to a literal sort of the alignment, and as files to listen by."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import fields
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import swsdask as sws
from swsdask.model.worst_queries import EVENTS, WORST_QUERIES
from swsdask.render.worst_queries import audacity_labels, textgrid, write_errors
from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.speech import SYSTEMS
from swsdask.statistics.worst_queries import KEPT, HighestFalseAlarms

K = 3
PLACE = ("document", "channel", "start", "end")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("errors")
    write(simulate(21, hours=0.4, n_queries=15, systems=SYSTEMS[:2]), folder)
    return folder


@pytest.mark.parametrize("trials", ["virtual", "segment", "document"])
def test_they_are_a_literal_sort_of_the_alignment(files: Path, trials: str) -> None:
    evaluation = sws.open(files, settings={"evaluation": {"operating_point": {"beta": 20.0}, "trials": trials}})
    result = sws.score(evaluation, ["n_target", "p_miss", "p_fa"], runs=str(files / "runs"), alignment=True)
    assert result.alignment_table is not None
    rows = result.alignment_table.to_pylist()
    rate: Counter[tuple[str, str, str]] = Counter()
    for row in result.table.to_pylist():
        if row["query"] is not None and not math.isnan(row["value"]):
            rate[row["system"], row["query"], row["measure"]] = row["value"]
    found = sws.errors(evaluation, runs=str(files / "runs"), top=100, false_alarms=K)
    assert found.query_table.schema.equals(WORST_QUERIES)
    assert found.event_table.schema.equals(EVENTS)
    events = found.event_table.to_pylist()
    assert len(found.query_table) == len({(system, query) for system, query, measure in rate if measure == "n_target"})
    for row in found.query_table.to_pylist():
        key = row["system"], row["query"]
        of_query = [each for each in rows if (each["system"], each["query"]) == key]
        wrong = [each for each in of_query if each["outcome"] == "false_alarm"]
        missed = [each for each in of_query if each["outcome"] == "miss"]
        assert (row["n_false_alarm"], row["n_miss"], row["n_target"]) == (
            len(wrong),
            len(missed),
            rate[(*key, "n_target")],
        )
        assert row["cost"] == pytest.approx(rate[(*key, "p_miss")] + 20 * rate[(*key, "p_fa")], abs=1e-12)
        highest = sorted(wrong, key=lambda each: -each["score"])[:K]  # stable: equal scores stay in order of place
        own = [event for event in events if (event["system"], event["query"]) == key]
        listed = [event for event in own if event["event"] == "false_alarm"]
        assert [each["score"] for each in listed] == [each["score"] for each in highest]
        assert [[each[name] for name in PLACE] for each in listed] == [
            [each[name] for name in PLACE] for each in highest
        ]
        places = [(each["document"], each["start"], each["end"]) for each in own if each["event"] == "miss"]
        expected = [(each["document"], each["reference_start"], each["reference_end"]) for each in missed]
        assert sorted(places, key=str) == sorted(expected, key=str)
    costs = [(row["system"], -row["cost"], row["query"]) for row in found.query_table.to_pylist()]
    assert costs == sorted(costs)


def test_a_condition_lists_what_lies_in_it(files: Path) -> None:
    result = sws.score(files, ["n_target"], runs=str(files / "runs"), alignment=True)
    assert result.alignment_table is not None
    documents = sorted({row["document"] for row in result.alignment_table.to_pylist()})
    key = f"document_pattern:{documents[0]}|{documents[-1]}"
    found = sws.errors(files, runs=str(files / "runs"), by=["oov", key], top=100, false_alarms=K)
    whole = sws.errors(files, runs=str(files / "runs"), top=100, false_alarms=K)
    for table, alone in ((found.query_table, whole.query_table), (found.event_table, whole.event_table)):
        assert [row for row in table.to_pylist() if row["condition"] == "all"] == alone.to_pylist()
    oov = [row for row in found.query_table.to_pylist() if row["condition"] == "oov=true"]
    of_oov = {row["query"] for row in oov}
    of_all = [row for row in whole.query_table.to_pylist() if row["query"] in of_oov]
    assert [(row["query"], row["cost"]) for row in oov] == [(row["query"], row["cost"]) for row in of_all]
    inside = [row for row in result.alignment_table.to_pylist() if row["document"] in (documents[0], documents[-1])]
    condition = key.replace("_pattern:", "~")
    for row in found.query_table.to_pylist():
        if row["condition"] != condition:
            continue
        of_query = [each for each in inside if (each["system"], each["query"]) == (row["system"], row["query"])]
        outcomes = Counter(each["outcome"] for each in of_query)
        assert (row["n_false_alarm"], row["n_miss"]) == (outcomes["false_alarm"], outcomes["miss"])
        highest = sorted((each["score"] for each in of_query if each["outcome"] == "false_alarm"), reverse=True)[:K]
        events = [each for each in found.event_table.to_pylist() if each["condition"] == condition]
        own = [each for each in events if (each["system"], each["query"]) == (row["system"], row["query"])]
        assert [each["score"] for each in own if each["event"] == "false_alarm"] == highest
        assert {each["document"] for each in own} <= {documents[0], documents[-1]}


def test_missed_targets_of_a_condition_of_occurrences() -> None:
    documents = [{"document": "d", "duration": 60.0}]
    occurrences = [
        {"query": "a", "document": "d", "start": 1.0, "duration": 0.2},
        {"query": "a", "document": "d", "start": 20.0, "duration": 1.5},
        {"query": "b", "document": "d", "start": 30.0, "duration": 0.2},
    ]
    run = [{"query": "a", "document": "d", "start": 1.0, "duration": 0.2, "score": 1.0, "decision": True}]
    evaluation = sws.open(documents=documents, occurrences=occurrences)
    found = sws.errors(evaluation, runs={"mine": run}, by="duration:0.1/1")
    missed = [(event["condition"], event["query"], event["start"]) for event in found.event_table.to_pylist()]
    assert missed == [
        ("all", "b", 30.0),
        ("all", "a", 20.0),
        ("duration=0.1-1", "b", 30.0),
        ("duration=1+", "a", 20.0),
    ]


def test_confused_queries_occur_under_false_alarms() -> None:
    documents = [{"document": "d", "duration": 60.0}]
    occurrences = [
        {"query": "a", "document": "d", "start": 1.0, "duration": 1.0},
        {"query": "b", "document": "d", "start": 10.0, "duration": 1.0},
        {"query": "c", "document": "d", "start": 30.0, "duration": 1.0},
    ]
    run = [
        {"query": "a", "document": "d", "start": 10.5, "duration": 1.0, "score": 2.0},
        {"query": "a", "document": "d", "start": 11.0, "duration": 1.0, "score": 1.0},
        {"query": "c", "document": "d", "start": 30.1, "duration": 1.0, "score": 1.0},
    ]
    evaluation = sws.open(documents=documents, occurrences=occurrences)
    found = sws.errors(evaluation, runs={"mine": run})
    first, second, third = found.query_table.to_pylist()
    assert (first["query"], first["confused_with"], first["n_miss"]) == ("a", ["b"], 1)
    assert (second["query"], second["n_miss"], second["n_false_alarm"]) == ("b", 1, 0)
    assert (third["query"], third["cost"]) == ("c", 0.0)
    assert found.events["confused_with"].map(list).tolist() == [["b"], [], [], []]
    assert found.notes[-1] == "mine: trials without a decision count as accepted."
    assert len(found.notes) == 2


def test_what_was_dropped_is_noted_by_every_command() -> None:
    documents = [{"document": "d", "duration": 60.0}]
    occurrences = [{"query": query, "document": "d", "start": 1.0, "duration": 1.0} for query in "ab"]
    run = [{"query": query, "document": "d", "start": 1.0, "duration": 1.0, "score": 2.0} for query in "abz"]
    drop = {"evaluation": {"unknown_queries": "drop"}}
    evaluation = sws.open(documents=documents, occurrences=occurrences, settings=drop)
    dropped = "both systems: dropped: 1 detection of unknown queries: z (1)."
    runs = {"mine": run, "other": run}
    compared = sws.compare(evaluation, measures=["stwv"], runs=runs, replicates=100)
    for found in (sws.score(evaluation, "stwv", runs=runs), sws.errors(evaluation, runs=runs), compared):
        assert dropped in found.notes
        assert found.notes.count(dropped) == 1


def test_any_executor_and_fewer_cells_give_the_same(files: Path) -> None:
    evaluation = sws.open(files)
    tables = []
    for name in ("serial", "threads"):
        with sws.cluster(name) as executor:
            found = sws.errors(evaluation, runs=str(files / "runs"), executor=executor)
        tables.append((found.query_table, found.event_table))
    assert tables[0][0].equals(tables[1][0])
    assert tables[0][1].equals(tables[1][1])


def test_the_highest_of_parts_merged_in_any_order_are_those_of_the_whole() -> None:
    rng = np.random.default_rng(3)
    whole = [
        np.sort(rng.integers(0, 3, 1000)).astype(np.int32),
        np.zeros(1000, np.int16),
        rng.integers(0, 60, 1000) / 4,
        rng.integers(-1, 5, 1000).astype(np.int32),
        rng.integers(1, 3, 1000).astype(np.int8),
        *(rng.integers(0, 9, 1000) for _ in range(2)),
    ]
    rows = sorted(zip(*(column.tolist() for column in whole), strict=True), key=lambda row: (row[0], -row[2], *row[3:]))
    expected = [row for query in range(3) for row in [each for each in rows if each[0] == query][:KEPT]]
    for _ in range(5):
        part = rng.integers(0, 7, 1000)
        parts = [HighestFalseAlarms(*(column[part == number] for column in whole)) for number in rng.permutation(7)]
        nothing = HighestFalseAlarms(*(column[:0] for column in whole))
        merged = reduce(HighestFalseAlarms.merge, parts, nothing)
        columns = (getattr(merged, field.name).tolist() for field in fields(HighestFalseAlarms))
        assert list(zip(*columns, strict=True)) == expected


def test_files_to_listen_by(files: Path, tmp_path: Path) -> None:
    found = sws.errors(files, runs=str(files / "runs"), top=4)
    for again in ("a", "b"):
        write_errors(found, tmp_path / again)
    written = {path.relative_to(tmp_path / "a"): path.read_bytes() for path in (tmp_path / "a").rglob("*.*")}
    assert written == {path.relative_to(tmp_path / "b"): path.read_bytes() for path in (tmp_path / "b").rglob("*.*")}
    assert pq.read_table(tmp_path / "a" / "events.parquet").equals(found.event_table)
    events = found.event_table.to_pylist()
    for system in {event["system"] for event in events}:
        lines = (tmp_path / "a" / f"{system}.ctm").read_text().splitlines()
        assert len(lines) == len([event for event in events if event["system"] == system])
        labels = [path.read_text().splitlines() for path in (tmp_path / "a" / system).glob("*.txt")]
        assert sum(map(len, labels)) == len(lines)


def event(kind: str, start: float, end: float, query: str = "q", score: float | None = 1.0) -> dict[str, Any]:
    confused = ["other"] if kind == "false_alarm" else []
    return {"event": kind, "query": query, "start": start, "end": end, "score": score, "confused_with": confused}


def test_labels_and_textgrid() -> None:
    events = [
        event("false_alarm", 0.5, 1.5),
        event("false_alarm", 1.0, 2.0, 'a"b'),
        event("miss", 3.0, 4.0, score=None),
    ]
    assert audacity_labels(events).splitlines() == [
        "0.5000\t1.5000\tFA q 1 (other)",
        '1.0000\t2.0000\tFA a"b 1 (other)',
        "3.0000\t4.0000\tMISS q",
    ]
    text = textgrid(events)
    assert text.startswith('File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = 4.0000\n')
    assert 'name = "FA 1"' in text
    assert 'name = "FA 2"' in text
    assert 'text = "FA a""b 1 (other)"' in text
    bounds: list[list[float]] = []
    for line in text.splitlines():
        if line.startswith("            xm"):
            bounds.append([float(line.split("=")[1])])
    edges = [begin_end for each in bounds for begin_end in each]
    assert edges[0] == 0.0
    assert all(a <= b for a, b in zip(edges[::2], edges[1::2], strict=True))


@pytest.mark.parametrize(("options", "message"), [({"top": 0}, "top is 0"), ({"false_alarms": 101}, "from 0 to 100")])
def test_bad_arguments(files: Path, options: dict[str, int], message: str) -> None:
    with pytest.raises(sws.SettingsError, match=message):
        sws.errors(files, runs=str(files / "runs"), **options)
