from __future__ import annotations

import gzip
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import swsdask as sws
from swsdask.formats import files
from swsdask.formats.runs.parquet import read_arrow_table
from swsdask.formats.runs.read import read_run
from swsdask.formats.runs.write import convert
from swsdask.model.errors import Problem, Problems
from swsdask.model.schemas import RunPiece

HEAD = "query,document,start,duration,score\n"

Read = Callable[..., tuple[list[RunPiece], list[Problem]]]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def read_content(
        content: str | bytes, name: str = "sys.csv", **options: Any
    ) -> tuple[list[RunPiece], list[Problem]]:
        file = tmp_path / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        problems = Problems()
        return list(read_run(str(file), problems, **options)), list(problems)

    return read_content


@pytest.fixture
def read_parquet(tmp_path: Path) -> Read:
    def read_columns(columns: dict[str, Any], **options: Any) -> tuple[list[RunPiece], list[Problem]]:
        file = tmp_path / "sys.parquet"
        pq.write_table(pa.table(columns), file)
        problems = Problems()
        return list(read_run(str(file), problems, **options)), list(problems)

    return read_columns


@pytest.mark.parametrize("delimiter", ["\t", ","])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_table_is_read_as_written(read: Read, delimiter: str, newline: str) -> None:
    lines = [
        "Decision, query ,document,channel,start,duration,score,system,note",
        "YES,q1,a/d1.wav,2,0.5,1,-1.25,s,x",
        'NO,"q 2",d2,1,0.00005,1e1,1e-3,s,y',
        "",
        "NO,q1,d1,1,3,0.25,0.1234567890123456789,s,z",
    ]
    text = newline.join(lines).replace(",", delimiter) + newline
    (piece,), problems = read(text)
    assert not problems
    attributes = {"ignored_columns": "note", "joined": "a/d1.wav and d1"}
    assert (piece.header.system, piece.header.attributes) == ("s", attributes)
    assert (piece.queries, piece.query_lines, piece.listed) == (("q1", "q 2"), (2, 3), ("q1", "q 2"))
    assert (piece.documents, piece.document_lines) == (("d1", "d2"), (2, 3))
    assert piece.query.tolist() == [0, 1, 0]
    assert piece.document.tolist() == [0, 1, 0]
    assert piece.channel.tolist() == [2, 1, 1]
    assert piece.start.tolist() == [5000, 0, 30_000]
    assert piece.duration.tolist() == [10_000, 100_000, 2500]
    assert piece.score.tolist() == [-1.25, 0.001, 0.1234567890123456789]
    assert piece.decision.tolist() == [1, 0, 0]
    assert piece.rounded == 1
    assert [column.dtype for column in (piece.query, piece.document, piece.start, piece.duration)] == [np.int32] * 4
    assert [column.dtype for column in (piece.channel, piece.decision, piece.score)] == [np.int8, np.int8, np.float64]


def test_what_may_be_absent(read: Read) -> None:
    (piece,), problems = read(HEAD + "q1,d1,1,2,3\n", "a.run.csv")
    assert not problems
    assert (piece.header.system, piece.header.attributes) == ("a.run", {"without_channels": "true"})
    assert (piece.channel.tolist(), piece.decision.tolist()) == ([1], [-1])
    (piece,), problems = read(gzip.compress((HEAD + "q1,d1,1,2,3\n").encode()), "b.csv.gz")
    assert (piece.header.system, problems) == ("b", [])
    (piece,), problems = read("decision," + HEAD + ",q1,d1,1,2,3\n")
    assert (piece.decision.tolist(), problems) == ([-1], [])
    (piece,), problems = read(HEAD)
    assert (len(piece), piece.header.system, problems) == (0, "sys", [])


def test_several_systems_in_one_table(read: Read) -> None:
    rows = "".join(f"{system},q{row % 3},d{row},{row},1,0.5\n" for row in range(6) for system in "ba")
    pieces, problems = read("system," + HEAD + rows)
    assert not problems
    assert [piece.header.system for piece in pieces] == ["b", "a"]
    for place, piece in enumerate(pieces):
        assert piece.start.tolist() == [10_000 * row for row in range(6)]
        assert (piece.queries, piece.query.tolist()) == (("q0", "q1", "q2"), [0, 1, 2, 0, 1, 2])
        assert piece.document_lines == tuple(range(2 + place, 14, 2))
    pieces, _ = read("system," + HEAD + rows, rows_per_piece=1)
    assert [piece.header.system for piece in pieces] == ["b", "a"]


def test_pieces_follow_each_other(read: Read) -> None:
    rows = "".join(f"q{row // 20_000},d{row % 97},{row / 10:.1f},1,{row}\n" for row in range(100_000))
    pieces, problems = read(HEAD + rows, rows_per_piece=30_000)
    assert not problems
    assert len(pieces) > 1
    assert np.concatenate([piece.score for piece in pieces]).tolist() == list(range(100_000))
    assert np.concatenate([piece.start for piece in pieces]).tolist() == [1000 * row for row in range(100_000)]
    assert [piece.queries[code] for piece in pieces for code in piece.query] == [
        f"q{row // 20_000}" for row in range(100_000)
    ]
    for piece in pieces:
        first = int(piece.score[0])
        assert piece.document_lines[0] == first + 2


@pytest.mark.parametrize(
    ("row", "expected", "found"),
    [
        ("q1,d1,1,2,abc", "a score", "'abc'"),
        ("q1,d1,1,2,", "a score", "''"),
        ("q1,d1,1,2,NaN", "a score", "'NaN'"),
        ("q1,d1,1,2,1e999", "a score below 1.797e308", "'1e999'"),
        ("q1,d1,-1,2,3", "a start of 0 or more seconds", "'-1'"),
        ("q1,d1,1,-2,3", "a duration of 0 or more seconds", "'-2'"),
        ("q1,d1,1,1e9,3", "a duration of at most 214748.3647 seconds", "'1e9'"),
        ("q1,d1,200000,20000,3", "start and duration of at most 214748.3647 seconds together", "200000.0 and 20000.0"),
        ("q1,d1,1,2", "5 values", "4 in 'q1,d1,1,2'"),
        ("q1,d1,1,2,3,4", "5 values", "6 in 'q1,d1,1,2,3,4'"),
        (",d1,1,2,3", "a query", "an empty id"),
        ("a/b,d1,1,2,3", "a query", "a path in the id 'a/b'"),
        ("q1,../../x,1,2,3", "a document", "a path that climbs out of its folder, '../../x'"),
    ],
)
def test_faulty_rows(read: Read, row: str, expected: str, found: str) -> None:
    (piece,), (problem,) = read(HEAD + f"q1,d1,1,2,3\n\n{row}\nq1,d1,1,2,4\n")
    assert (problem.line, problem.expected, problem.found) == (4, expected, found)
    assert piece.score.tolist() == [3.0, 4.0]


def test_faults_come_in_the_order_of_lines(read: Read) -> None:
    rows = ["q1,d1,1,2,x,YES", "q1,d1,1,2", "q1,d1,1,2,3,yes", "q1,d1,1,2,3,NO", "q1,d1,1,2,3,", "a/b,d1,x,2,3,NO"]
    _, problems = read("query,document,start,duration,score,decision\n" + "\n".join(rows))
    assert [problem.line for problem in problems] == [2, 3, 4, 6, 7, 7]


def test_decisions_of_each_system_are_all_there_or_none(read: Read) -> None:
    head = "system,query,document,start,duration,score,decision\n"
    _, problems = read(head + "a,q,d,1,1,1,YES\nb,q,d,1,1,1,\na,q,d,1,1,1,NO\nb,q,d,1,1,2,\n")
    assert not problems
    _, (problem,) = read(head + "a,q,d,1,1,1,YES\nb,q,d,1,1,1,\nb,q,d,1,1,1,NO\na,q,d,1,1,1,NO\n")
    assert (problem.line, problem.found) == (4, "a row with a decision")


def test_a_name_is_given_to_one_system_only(read: Read) -> None:
    (piece,), problems = read("system," + HEAD + "a,q,d,1,1,1\n", system="mine")
    assert (piece.header.system, problems) == ("mine", [])
    _, (problem,) = read("system," + HEAD + "a,q,d,1,1,1\nb,q,d,1,1,1\n", system="mine")
    assert (problem.line, problem.found) == (3, "a row of 'b' too")
    _, (problem,) = read(
        "system," + HEAD + "a,q,d,1,1,1\nb,q,d,1,1,1\na,q,d,1,1,1", system="mine"
    )  # a block of its own
    assert (problem.line, problem.found) == (3, "a row of 'b' too")


@pytest.mark.parametrize("decision", ["YES\0", "NO\0\0", "NO\0", "YES\0\0\0\0x", "YESYESYESYES", "Y", "N", "\0"])
def test_a_decision_is_a_whole_word(read: Read, decision: str) -> None:
    head = "query,document,start,duration,score,decision\n"
    _, (problem,) = read(f"{head}q,d,1,1,1,YES\nq,d,1,1,1,{decision}\nq,d,1,1,1,NO\n")
    assert (problem.line, problem.expected) == (3, "the decision YES or NO")


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("query,document,start,score", "'query, document, start, score', no duration"),
        ("query,document,start,duration,score,Score", "two columns score"),
    ],
)
def test_columns_that_are_wrong(read: Read, head: str, found: str) -> None:
    pieces, (problem,) = read(head + "\nq,d,1,1,1,1\n")
    assert not pieces
    assert (problem.line, problem.found) == (1, found)


def test_bytes_that_are_no_utf8(read: Read) -> None:
    (piece,), (problem,) = read((HEAD + "q1,d1,1,2,3\n").encode() + b"q1,d\xff,1,2,3\n")
    assert len(piece) == 1
    assert (problem.line, problem.found) == (3, "the byte 0xff")


def test_results_in_kaldis_form(read: Read) -> None:
    (piece,), problems = read("q1 d1 0.5 1.5 -3.25\nq2\td1   2 2.00005 7 \n\n q1 d2 0 1 2\n", "kws.txt")
    assert not problems
    assert piece.header.system == "kws"
    assert (piece.queries, piece.query_lines) == (("q1", "q2"), (1, 2))
    assert piece.start.tolist() == [5000, 20_000, 0]
    assert piece.duration.tolist() == [10_000, 0, 10_000]
    assert piece.score.tolist() == [-3.25, 7.0, 2.0]
    assert piece.decision.tolist() == [-1, -1, -1]
    assert piece.rounded == 1
    _, (problem,) = read("q1 d1 0.5 1.5 1\nq1 d1 3 2 1\n", "kws.txt")
    assert (problem.line, problem.found) == (2, "end 2.0 with start 3.0")


def test_a_parquet_table(read_parquet: Read) -> None:
    (piece,), problems = read_parquet(
        {
            "query": pa.array(["q1", "q2", "q1"]).dictionary_encode(),
            "document": pa.array(["d1.wav", "d2", "d1"], pa.large_string()),
            "channel": [1.0, 2.0, 1.0],
            "start": [0.1, 0.00015, 1.1],
            "duration": pa.array([1, 2, 3], pa.int16()),
            "score": pa.array([0.5, 0.1, 3], pa.float32()),
            "decision": [True, False, True],
        }
    )
    assert not problems
    assert piece.header.system == "sys"
    assert (piece.queries, piece.query_lines, piece.listed) == (("q1", "q2"), (None, None), ("q1", "q2"))
    assert piece.documents == ("d1", "d2")
    assert piece.document.tolist() == [0, 1, 0]
    assert piece.channel.tolist() == [1, 2, 1]
    assert piece.start.tolist() == [1000, 2, 11_000]
    assert piece.duration.tolist() == [10_000, 20_000, 30_000]
    assert piece.rounded == 1
    assert piece.score.tolist() == [0.5, float(np.float32(0.1)), 3.0]
    assert piece.decision.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    "times",
    [
        pa.array([0.1, 0.3, 12.3456]),
        pa.array([0.1, 0.3, 12.3456], pa.float32()),
        pa.array(["0.1", "3e-1", "12.3456"]),
        pa.array([Decimal("0.1000"), Decimal("0.3000"), Decimal("12.3456")]),
    ],
)
def test_times_of_any_type(read_parquet: Read, times: pa.Array) -> None:
    ids = ["x"] * 3
    (piece,), problems = read_parquet(
        {"query": ids, "document": ids, "start": times, "duration": times, "score": times}
    )
    assert not problems
    assert piece.start.tolist() == [1000, 3000, 123_456]
    assert piece.rounded == 0


def test_faulty_rows_of_parquet_are_reported_by_number(read_parquet: Read) -> None:
    (piece,), problems = read_parquet(
        {
            "query": ["q1", None, "q2", "q3", "q4"],
            "document": ["d1", "d1", "d1", "d1", "d1"],
            "start": [0.1, 1.0, float("nan"), -0.1, 1e9],
            "duration": [1, 2, 3, None, 5],
            "score": [0.5, 0.1, 1.7976931348623157e308, 1.0, None],
            "decision": ["YES", "no", "NO", "NO", None],
        }
    )
    assert len(piece) == 1
    assert [(problem.line, problem.found) for problem in problems] == [
        (None, "a row without query in row 2"),
        (None, "'no' in row 2"),
        (None, "'nan' in row 3"),
        (None, "'1.7976931348623157e+308' in row 3"),
        (None, "'-0.1' in row 4"),
        (None, "a row without duration in row 4"),
        (None, "'1000000000.0' in row 5"),
        (None, "a row without score in row 5"),
    ]


def test_parquet_that_is_none(read: Read, read_parquet: Read) -> None:
    _, (problem,) = read(b"PAR1" + bytes(100), "a.parquet")
    assert problem.expected == "whole Parquet data"
    _, (problem,) = read_parquet({"query": ["q"], "document": ["d"], "start": [[1]], "duration": [1], "score": [1]})
    assert problem.expected == "text or numbers in column start"
    _, (problem,) = read_parquet({"query": ["q"], "document": ["d"], "start": [1], "score": [1]})
    assert problem.found == "'query, document, start, score', no duration"


def test_metadata_of_parquet_are_the_header(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    table = pa.table({name: ["1"] for name in ("query", "document", "start", "duration", "score")})
    pq.write_table(
        table.replace_schema_metadata({"system_id": "s", "min_score": "-2", "max_score": "2", "a": "b"}), file
    )
    (piece,) = read_run(str(file), Problems())
    assert piece.header.system == "s"
    assert piece.header.declared_scores == (-2.0, 2.0)
    assert piece.header.attributes == {"a": "b", "without_channels": "true"}


def test_many_equal_rows_in_a_small_file_are_left_unread(read_parquet: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    same = {name: pa.array(["a"] * 100) for name in ("query", "document")}
    numbers = {name: pa.array(np.zeros(100)) for name in ("start", "duration", "score")}
    monkeypatch.setattr(files, "EXPANDED_AT_EASE", 1000)
    monkeypatch.setenv("SWSDASK_MAX_EXPANSION", "0.1")
    pieces, (problem,) = read_parquet({**same, **numbers})
    assert not pieces
    assert problem.found.endswith(" bytes that expand to 4,000 or more")


@pytest.mark.parametrize(
    "decisions",
    [
        pa.array([1.0, 0.0]),
        pa.array([1, 0]),
        pa.array([1.0, 0.0]).dictionary_encode(),
    ],
    ids=["floats", "integers", "dictionary of floats"],
)
def test_decisions_that_are_numbers_are_problems(read_parquet: Read, decisions: pa.Array) -> None:
    """Found by `python -m tests.faults.formats`, case 1273."""
    columns = {"query": ["q", "q"], "document": ["d", "d"], "start": [1, 2], "duration": [1, 2], "score": [1, 2]}
    _, problems = read_parquet({**columns, "decision": decisions})
    assert (problems[0].expected, problems[0].found) == ("the decision YES or NO", "'1' in row 1")


def test_a_carriage_return_or_an_endless_name_in_the_first_line(read: Read) -> None:
    """Found by `python -m tests.faults.formats`, case 5237."""
    for head in (HEAD.replace("score", "sc\rore"), HEAD.replace("score", f'"{"x" * 200_000}"')):
        _, (problem,) = read(head + "q,d,1,1,1\n")
        assert (problem.line, "no score" in problem.found) == (1, True)


def test_a_null_in_a_dictionary_is_a_missing_value() -> None:
    problems = Problems()
    columns = {name: pa.array(["1", "2"]) for name in ("query", "document", "start", "duration", "score")}
    decision = pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array([None, "YES"]))
    list(read_arrow_table(pa.table({**columns, "decision": decision}), "table", problems, 10, None))
    (problem,) = problems
    assert "a row without one" in problem.found


@pytest.mark.parametrize("name", ["query", "document", "channel", "start", "score"])
def test_a_column_without_any_value_misses_it_in_every_row(read_parquet: Read, name: str) -> None:
    columns: dict[str, Any] = {
        "query": ["q", "q"],
        "document": ["d", "e"],
        "channel": [1, 1],
        "start": [1, 2],
        "duration": [1, 1],
        "score": [0.5, 0.25],
    }
    pieces, problems = read_parquet({**columns, name: pa.nulls(2)})
    assert sum(len(piece) for piece in pieces) == 0
    assert [problem.found for problem in problems] == [f"a row without {name} in row {row}" for row in (1, 2)]


def without_times(tmp_path: Path, trials: str, content: str, *measures: str) -> sws.Result:
    run = tmp_path / "sys.csv"
    run.write_text(content)
    documents = [{"document": "d1", "start": 5.0, "end": 9.0}, {"document": "d2", "start": 0.0, "end": 9.0}]
    spoken = [{"query": "q", "document": "d1", "start": 6.0, "end": 7.0}]
    chosen = {"evaluation": {"trials": trials}}
    evaluation = sws.open(documents=documents, occurrences=spoken, settings=chosen)
    return sws.score(evaluation, ["map", "n_detections", *measures], runs=run)


def test_documents_without_times_have_no_gap(tmp_path: Path) -> None:
    """A place to start listening is a time; a run that has some is not touched."""
    content = "query,document,start,duration,score\nq,d2,1,1,2.5\nq,d1,5.5,1,1.5\n"
    timed = without_times(tmp_path, "document", content, "mgap")
    assert 0 < timed.leaderboard()["mgap"].iloc[0] < 1
    assert not any("no mgap" in note for note in timed.notes)
    result = without_times(tmp_path, "document", "query,document,score\nq,d2,2.5\nq,d1,1.5\n", "mgap")
    assert "mgap" not in set(result.scores["measure"])
    assert "sys: no mgap: there are no times in the run." in result.notes
    documents = [{"document": "d1", "duration": 9.0}, {"document": "d2", "duration": 9.0}]
    spoken = [{"query": "q", "document": "d1", "start": 6.0, "end": 7.0}]
    evaluation = sws.open(documents=documents, occurrences=spoken, settings={"evaluation": {"trials": "document"}})
    aligned = sws.score(evaluation, "map", runs=tmp_path / "sys.csv", alignment=True).alignment
    assert aligned["start"].isna().all()
    assert aligned["outcome"].tolist() != []
    judged = sws.open(qrels={"q": {"d1": 1}})
    assert {"map"} == set(sws.score(judged, ["map", "mgap"], runs=tmp_path / "sys.csv").scores["measure"])


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet", "kwslist.xml"])
def test_a_run_without_times_is_written_as_one(tmp_path: Path, ending: str) -> None:
    """And its documents are named in full."""
    run, target = tmp_path / "a.trec", tmp_path / f"a.{ending}"
    run.write_text(
        "q Q0 talks/a.wav 1 9 z\nq Q0 b 2 8 z\nr Q0 b 1 8 y\n" if ending != "kwslist.xml" else "q Q0 b 1 9 z\n"
    )
    convert(str(run), str(target))
    pieces = [*read_run(str(target), Problems())]
    assert {piece.header.attributes["without_times"] for piece in pieces} == {"true"}
    if ending != "kwslist.xml":
        assert {name for piece in pieces for name in piece.documents} == {"talks/a.wav", "b"}
        assert [piece.header.system for piece in pieces] == ["z", "y"]
    if ending == "csv":
        assert target.read_text().startswith("system,query,document,score,decision\nz,q,talks/a.wav,9,\n")


def test_documents_without_times(tmp_path: Path) -> None:
    result = without_times(tmp_path, "document", "query,document,score\nq,d2,2.5\nq,d1,1.5\n")
    assert result.leaderboard().iloc[0].to_dict() == {"n_detections": 2.0, "map": 0.5}
    assert not any("outside" in note for note in result.notes)


@pytest.mark.parametrize("trials", ["virtual", "segment"])
def test_documents_without_times_are_no_virtual_or_segment_trials(tmp_path: Path, trials: str) -> None:
    with pytest.raises(sws.InputError, match=f"expected times, for {trials} trials; found documents without times"):
        without_times(tmp_path, trials, "query,document,score\nq,d2,2.5\n")


def test_one_time_alone_is_missing_the_other(read: Read) -> None:
    _, problems = read("query,document,start,score\nq,d,1,2\n")
    assert "no duration" in problems[0].found


JSON_LINES = """{"query": "q1", "document": "d1", "start": 0.5, "duration": 1, "score": -1.25, "n": 1, "decision": true}
{"score": 0.12345678901234567, "query": "q 2", "document": "d2", "start": 2e0, "duration": 0.5, "decision": "NO"}

{"query": "q1", "document": "d1", "start": 3, "duration": 0.25, "score": 7, "decision": false, "extra": null}
"""


def test_json_lines(read: Read) -> None:
    (piece,), problems = read(JSON_LINES, "sys.jsonl")
    assert not problems
    assert piece.header.system == "sys"
    assert piece.header.attributes == {"ignored_columns": "n", "without_channels": "true"}
    assert (piece.queries, piece.query_lines) == (("q1", "q 2"), (1, 2))
    assert (piece.documents, piece.document_lines) == (("d1", "d2"), (1, 2))
    assert piece.start.tolist() == [5000, 20_000, 30_000]
    assert piece.duration.tolist() == [10_000, 5000, 2500]
    assert piece.score.tolist() == [-1.25, 0.12345678901234567, 7.0]
    assert piece.decision.tolist() == [1, 0, 0]


def test_json_lines_are_recognised_by_content_and_may_have_no_times(read: Read) -> None:
    (piece,), problems = read('{"query": "q", "document": "d", "score": 1}\n', "sys.txt", system="s")
    assert not problems
    assert piece.header.attributes == {"without_times": "true"}
    assert len(piece) == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{", "an object in JSON"),
        ("[1, 2]", "an object of texts and numbers"),
        ('{"query": {"id": 1}}', "an object of texts and numbers"),
        ('{"query": "q", "document": "d", "start": 1, "duration": 1, "score": NaN}', "a score"),
        ('{"query": "q", "document": "d", "start": 1, "duration": 1}', "score"),
        ('{"query": null, "document": "d", "start": 1, "duration": 1, "score": 1}', "query"),
        (r'{"query": "\ud800", "document": "d", "start": 1, "duration": 1, "score": 1}', "an object in JSON"),
        ('{"query": "q", "document": "d", "start": 1, "duration": 1, "score": 1, "score": 2}', "each key once"),
        (
            '{"query": "q", "document": "d", "start": 1, "duration": 1, "score": 1, "Decision": "YES"}',
            "the keys of the first line",
        ),
    ],
)
def test_lines_that_are_no_detections(read: Read, line: str, expected: str) -> None:
    good = '{"query": "q", "document": "d", "start": 1, "duration": 1, "score": 1}'
    _, problems = read(f"{good}\n{line}\n{good}\n")
    (problem,) = problems
    assert problem.line == 2
    assert expected in problem.expected


def test_the_first_line_of_json_says_the_columns(read: Read) -> None:
    _, problems = read('{"query": "q", "score": 1}\n')
    assert "no document" in problems[0].found
    assert problems[0].line == 1
