"""TREC's runs and judgments, tables of judged documents, and what they are scored as."""

from __future__ import annotations

import random
from pathlib import Path

import pandas as pd
import pytest
import pytrec_eval

import swsdask as sws
from swsdask.formats.recognise import Format
from swsdask.formats.reference.table import read_judgments
from swsdask.formats.runs import lines
from swsdask.formats.runs.read import read_run
from swsdask.model.errors import ArchiveError, InputError, Problems, SettingsError

QRELS = "7 0 D1 1\n7 0 D2 0\n8 0 D1 2\n8 0 D3 -1\n"
RUN = "7 Q0 D2 1 0.5 tag\n7 Q0 D9 2 0.25 tag\n7 Q0 D1 3 0.125 tag\n8 Q0 D1 1 3e-1 tag\n"


def overall(result: sws.Result) -> dict[str, float]:
    rows = result.table.to_pylist()
    return {row["measure"]: row["value"] for row in rows if row["query"] is None}


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def problems_of(file: str, reader: object = None) -> list[tuple[int | None, str, str]]:
    found = Problems()
    if reader is read_judgments:
        read_judgments(file, found)
    else:
        list(read_run(file, found))
    return [(problem.line, problem.expected, problem.found) for problem in found]


def test_a_run(tmp_path: Path) -> None:
    found = Problems()
    (piece,) = read_run(write(tmp_path, "a.trec", RUN), found)
    assert not len(found)
    assert piece.header.system == "tag"
    assert [piece.documents[code] for code in piece.document] == ["D2", "D9", "D1", "D1"]
    assert piece.score.tolist() == [0.5, 0.25, 0.125, 0.3]
    assert set(piece.duration.tolist()) == {0}


def test_judgments(tmp_path: Path) -> None:
    found = Problems()
    judged = read_judgments(write(tmp_path, "q.txt", QRELS), found)
    assert not len(found)
    assert (judged.queries, judged.documents) == (("7", "8"), ("D1", "D2", "D3"))
    assert judged.relevant == [("7", "D1"), ("8", "D1")]
    assert judged.pairs.to_pydict() == {
        "query": ["7", "7", "8", "8"],
        "document": ["D1", "D2", "D1", "D3"],
        "grade": [1, 0, 2, -1],
    }
    table = "Query,note,document,relevance\n7,x,D1,1\n7,x,D2,0\n8,x,D1,2\n8,x,D3,-1\n"
    assert read_judgments(write(tmp_path, "q.csv", table), found) == judged
    assert not len(found)


def test_what_says_nothing_may_be_any_whole_number(tmp_path: Path) -> None:
    """trec_eval reads neither the second value nor the rank."""
    (plain,) = read_run(write(tmp_path, "a.trec", "7 Q0 D2 1 0.5 tag\n7 Q0 D9 2 0.25 tag\n"), Problems())
    found = Problems()
    (other,) = read_run(write(tmp_path, "b.trec", "7 0 D2 1.0 0.5 tag\n7 1 D9 2. 0.25 tag\n"), found)
    assert not len(found)
    assert (other.documents, other.score.tolist()) == (plain.documents, plain.score.tolist())


@pytest.mark.parametrize("tag", ["7", "tag"])
@pytest.mark.parametrize("iteration", ["0", "1"])
def test_a_run_of_numbers_alone_is_not_a_ctm(tmp_path: Path, iteration: str, tag: str) -> None:
    """Its lines are also those of a word: file, channel, start, duration, word, score."""
    qrels = write(tmp_path, "q", "301 0 1001 1\n301 0 1002 0\n")
    text = f"301 {iteration} 1001 1 2.5 {tag}\n301 {iteration} 1002 2 1.5 {tag}\n"
    run = write(tmp_path, "r", text)
    assert overall(sws.score(sws.open(qrels=qrels, preset="trec"), ["map"], runs=run))["map"] == 1.0
    sws.ingest(tmp_path / "archive", qrels=qrels, preset="trec")
    sws.ingest(tmp_path / "archive", runs=run)
    assert overall(sws.score(tmp_path / "archive", ["map"]))["map"] == 1.0
    assert sws.validate(run).files[0].format is lines.TREC
    assert sws.validate(write(tmp_path, "faulty", text.replace("1.5", "high"))).files[0].format is lines.TREC


def test_values_after_the_tag_are_ignored(tmp_path: Path) -> None:
    """As trec_eval ignores them, which the header says; but not if the first line has none."""
    first, second, *others = RUN.splitlines()
    for number, row in enumerate((second, f"{second}\tmore")):
        for system in (None, "named"):
            text = "\n".join(["# a run", "", f"{first}  more  of it", row, *others])
            file, found = write(tmp_path, f"{number}", text), Problems()
            (piece,) = read_run(file, found, system=system)
            assert (len(found), piece.header.system) == (0, system or "tag")
            assert piece.header.attributes["ignored_columns"] == "after the tag"
            assert (piece.documents, piece.score.tolist()) == (("D2", "D9", "D1"), [0.5, 0.25, 0.125, 0.3])
    assert [line for line, *_ in problems_of(write(tmp_path, "later", f"{first}\n{second} more\n"))] == [2]
    wrong = write(tmp_path, "wrong", "\n".join([f"{first} more", "7 Q0 D9", f"{others[0]} x"]))
    assert [line for line, *_ in problems_of(wrong)] == [2]


@pytest.mark.parametrize(
    ("first", "expected", "found"),
    [
        ("7 Q0 D2 1 0.5", "6 values, query Q0 document rank score tag", "5 in '7 Q0 D2 1 0.5'"),
        ("7 Q0 D2 1.5 0.5 tag", "a whole number or - as rank", "'1.5'"),
        ("7 Q0 D2 1 high tag", "a score", "'high'"),
    ],
)
@pytest.mark.parametrize("place", ["runs/r", "runs"])
def test_the_first_line_of_a_run_of_judged_documents_is_one_of_trecs(
    tmp_path: Path, first: str, expected: str, found: str, place: str
) -> None:
    (tmp_path / "runs").mkdir()
    run, qrels = write(tmp_path / "runs", "r", f"{first}\n{RUN}"), write(tmp_path, "q", QRELS)
    with pytest.raises(InputError) as caught:
        sws.score(sws.open(qrels=qrels), runs=tmp_path / place)
    problem, *_ = caught.value.problems
    assert (problem.file, problem.line, problem.expected, problem.found) == (run, 1, expected, found)


def test_the_iteration_of_a_run_of_judged_documents_may_be_anything(tmp_path: Path) -> None:
    qrels, (_, plain_run) = write(tmp_path, "q", QRELS), plain(tmp_path)
    evaluation = sws.open(qrels=qrels, preset="trec")
    other = write(tmp_path, "r", RUN.replace("Q0", "ITER"))
    assert overall(sws.score(evaluation, runs=other)) == overall(sws.score(evaluation, runs=plain_run))


@pytest.mark.parametrize("content", [b"\x93NUMPY", b"[[1, 2]]"])
def test_a_run_of_judged_documents_in_a_foreign_format_has_a_remedy(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "r").write_bytes(content)
    with pytest.raises(InputError, match="Write the table as Parquet"):
        sws.score(sws.open(qrels=write(tmp_path, "q", QRELS)), runs=tmp_path / "r")


@pytest.mark.parametrize("blank", ["\u3000", "\u00a0", "\u0085", "\u2028"])
def test_only_blanks_of_ascii_separate_values(tmp_path: Path, blank: str) -> None:
    """As in trec_eval, on the first line too."""
    for number, text in enumerate((f"7 Q0 {blank}D{blank}2 1 0.5 tag\n", f"{RUN}9 Q0 {blank}D{blank}2 1 0.5 tag\n")):
        (piece,) = read_run(write(tmp_path, str(number), text), found := Problems())
        assert (len(found), piece.documents[-1]) == (0, f"{blank}D{blank}2")
    judged = read_judgments(write(tmp_path, "q", f"7 0 D{blank}2 1\n"), found)
    assert (len(found), judged.documents) == (0, (f"D{blank}2",))


def test_a_grade_may_have_a_plus(tmp_path: Path) -> None:
    judged = read_judgments(write(tmp_path, "q", "7 0 D1 +1\n7 0 D2 -1\n7 0 D3 +0\n"), found := Problems())
    assert (len(found), judged.pairs["grade"].to_pylist()) == (0, [1, -1, 0])


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl"])
def test_judgments_in_any_table(tmp_path: Path, form: str) -> None:
    table = pd.DataFrame({"query": ["7", "7"], "Document": ["D1", "D2"], "note": ["", "x"], "relevance": [1, 0]})
    path = tmp_path / f"q.{form}"
    writers = {"csv": table.to_csv, "parquet": table.to_parquet, "jsonl": table.to_json}
    writers[form](path, **({"orient": "records", "lines": True} if form == "jsonl" else {"index": False}))
    found = Problems()
    judged = read_judgments(str(path), found)
    assert not len(found)
    assert judged.pairs.to_pydict() == {"query": ["7", "7"], "document": ["D1", "D2"], "grade": [1, 0]}
    (file,) = sws.validate(path).files
    assert (file.format, file.counts["relevant pairs"]) == (Format.QRELS, 1)


def test_judgments_of_a_type_without_text(tmp_path: Path) -> None:
    pd.DataFrame({"query": [["7"]], "document": ["D1"], "relevance": [1]}).to_parquet(tmp_path / "q.parquet")
    with pytest.raises(InputError, match=r"q\.parquet: expected text or numbers in column 'query'; found the type"):
        sws.open(qrels=tmp_path / "q.parquet")


@pytest.mark.parametrize(
    ("line", "expected", "found"),
    [
        ("7 Q0 D3 4 nan tag", "a score", "'nan'"),
        ("7 Q0 D3 x 0.5 tag", "a whole number or - as rank", "'x'"),
        ("7 Q0 D3 4 0.5", "6 values, query Q0 document rank score tag", "5 in '7 Q0 D3 4 0.5'"),
        ("7 Q0 D2 4 0.5 tag", "a document once for a query", "query '7' and document 'D2' again"),
        ("7 Q0 ../D2 4 0.5 tag", "a document", "a path that climbs out of its folder, '../D2'"),
    ],
)
def test_a_faulty_run(tmp_path: Path, line: str, expected: str, found: str) -> None:
    assert problems_of(write(tmp_path, "a.trec", f"{RUN}{line}\n{RUN[:0]}")) == [(5, expected, found)]


@pytest.mark.parametrize("most", [1, 4, 2**63 - 1])
def test_a_pair_that_comes_again_is_found_whatever_the_number_of_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Pairs are numbered where their numbers fit, which is quicker to look through."""
    monkeypatch.setattr(lines, "_MOST", most)
    text = "7 Q0 D1 1 3 a\n8 Q0 D1 1 3 a\n7 Q0 D1 1 3 b\n7 Q0 D2 2 2 a\n8 Q0 D2 2 2 a\n"
    assert problems_of(write(tmp_path, "a.trec", text)) == []
    again = "a document once for a query", "query '8' and document 'D1' again"
    assert problems_of(write(tmp_path, "b.trec", f"{text}8 Q0 D1 3 1 a\n")) == [(6, *again)]


@pytest.mark.parametrize(
    ("line", "expected", "found"),
    [
        ("7 0 D3 yes", "a whole number as relevance", "'yes'"),
        ("7 0 D3", "4 values, query iteration document relevance", "3 in '7 0 D3'"),
        ("7 0 D1 0", "a judgment once", "query '7' and document 'D1' again"),
    ],
)
def test_faulty_judgments(tmp_path: Path, line: str, expected: str, found: str) -> None:
    assert problems_of(write(tmp_path, "q", f"{QRELS}{line}\n"), read_judgments) == [(5, expected, found)]


def test_lines_that_begin_with_a_hash_are_comments(tmp_path: Path) -> None:
    """As in trec_eval 10, wherever they are; also where one looks like a row. They count as lines."""
    first, *others = QRELS.splitlines()
    qrels = write(tmp_path, "q", "\n".join(["# judged by nobody", "#7 0 D4 1", first, "#", *others, "# end"]))
    judged = read_judgments(qrels, found := Problems())
    assert (len(found), judged.documents, judged.pairs.num_rows) == (0, ("D1", "D2", "D3"), 4)
    first, *others = RUN.splitlines()
    run = write(tmp_path, "r", "\n".join(["# a run", first, "#7 Q0 D4 4 0.1 tag", *others]))
    values = [overall(sws.score(sws.open(qrels=q, collection=r), runs=r)) for q, r in ((qrels, run), plain(tmp_path))]
    assert repr(values[0]) == repr(values[1])
    assert problems_of(write(tmp_path, "f", f"# a run\n{RUN} \t# a comment\n#7 Q0\n7 Q0 no #comment\n"))[0][0] == 8
    assert problems_of(write(tmp_path, "g", f"{QRELS} # no comment\n"), read_judgments)[0][0] == 5


def plain(folder: Path) -> tuple[str, str]:
    return write(folder, "plain.q", QRELS), write(folder, "plain.r", RUN)


def test_all_of_a_name_is_the_id(tmp_path: Path) -> None:
    judged = read_judgments(write(tmp_path, "q", "7 0 en/D1 1\n7 0 fr/D1 0\n7 0 D1.wav 0\n"), Problems())
    assert judged.documents == ("D1.wav", "en/D1", "fr/D1")
    run = write(tmp_path, "a.trec", "7 Q0 fr/D1 - 2 tag\n7 Q0 en/D1 -1 1 tag\n")
    (piece,) = read_run(run, found := Problems())
    assert (piece.documents, len(found)) == (("fr/D1", "en/D1"), 0)
    table = write(tmp_path, "t.csv", "query,document,relevance,score\n7,en/D1.wav,1,2\n")
    (piece,) = read_run(table, found)
    assert (piece.documents, len(found)) == (("en/D1.wav",), 0)


@pytest.mark.parametrize(("judged", "named"), [("a/D1.wav", "a/D1.wav"), ("D1", "D1.wav"), ("D1.wav", "D1")])
def test_a_run_of_audio_files_may_name_judged_documents_with_or_without_an_ending(
    tmp_path: Path, judged: str, named: str
) -> None:
    qrels = write(tmp_path, "q", f"7 0 {judged} 1\n7 0 b/D2.wav 0\n7 0 D2.wav 0\n")
    lines = ["query,document,start,duration,score", f"7,{named},0,0,2", "7,other,0,0,1", "7,D2,0,0,1", ""]
    run = write(tmp_path, "r.csv", "\n".join(lines))
    assert overall(sws.score(sws.open(qrels=qrels, collection=run), ["map"], runs=run))["map"] == 1.0


def test_judgments_with_a_fraction_are_judgments(tmp_path: Path) -> None:
    qrels = write(tmp_path, "q", "7 0 D1 0.5\n")
    with pytest.raises(InputError) as caught:
        sws.open(qrels=qrels)
    (problem,) = caught.value.problems
    assert (problem.line, problem.expected, problem.found) == (1, "a whole number as relevance", "'0.5'")


def test_who_is_averaged_is_said(tmp_path: Path) -> None:
    """8 and 9 have nothing relevant, 9 has no rows either; 10 is not judged."""
    qrels = write(tmp_path, "q", "7 0 D1 1\n8 0 D2 0\n9 0 D2 0\n")
    run = write(tmp_path, "r", "7 Q0 D1 1 2 tag\n8 Q0 D2 1 2 tag\n10 Q0 D1 1 2 tag\n")
    for missing, value, left_out in (("skip", 1 / 2, True), ("zero", 1 / 3, False)):
        changed = {"evaluation": {"average_precision": {"missing": missing}}}
        result = sws.score(sws.open(qrels=qrels, collection=run, preset="trec", settings=changed), ["map"], runs=run)
        assert overall(result)["map"] == value
        assert ("tag: MAP averages 2 queries; left out: 1 query without trials." in result.notes) == left_out
        assert "tag: dropped: 1 detection of unknown queries: 10 (1)." in result.notes
        assert not any(note.startswith("Left out") and "without target" in note for note in result.notes)


def test_what_is_judged_is_scored(tmp_path: Path) -> None:
    qrels, run = write(tmp_path, "q", QRELS), write(tmp_path, "r", RUN)
    values = overall(sws.score(sws.open(qrels=qrels, collection=run), runs=run))
    assert values["map"] == (1 / 3 + 1) / 2
    assert (values["n_queries"], values["n_target"], values["n_detections"]) == (2, 2, 4)
    with pytest.raises(InputError, match=r"D9.*give these runs there too"):
        sws.Scorer(sws.open(qrels=qrels)).update(run)
    with pytest.raises(SettingsError, match="trials = 'virtual'"):
        sws.open(qrels=qrels, preset="sws2013")
    with pytest.raises(SettingsError, match="complete reference"):
        sws.open(qrels=qrels, ecf=run)


def test_one_table_is_both(tmp_path: Path) -> None:
    """Table 5.6 of the thesis."""
    rows = ["D1 K1 1 1", "D2 K1 0 0.1", "D3 K1 0 0.1", "D1 K2 1 0.05", "D2 K2 0 0", "D3 K2 0 0"]
    table = write(tmp_path, "t.tsv", "\n".join(["document query relevance score", *rows, ""]).replace(" ", "\t"))
    values = overall(sws.score(sws.open(qrels=table), runs=table))
    assert (values["ap"], values["map"]) == (0.75, 1.0)


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_documents_that_were_not_judged_are_retrieved_and_not_relevant(tmp_path: Path, executor: str) -> None:
    """Of runs that an evaluation did not know, and beside an archive, as trec_eval counts them."""
    qrels, run = write(tmp_path, "q", QRELS), write(tmp_path, "r", RUN)
    other = write(tmp_path, "o", "7 Q0 new 1 9 other\n7 Q0 D1 2 1 other\n8 Q0 new 1 9 other\n8 Q0 D1 2 0.5 other\n")
    sws.ingest(tmp_path / "archive", qrels=qrels, runs=run)
    known = sws.open(qrels=qrels, collection=[run, other], preset="trec")
    expected = overall(sws.score(known, runs=other))
    assert expected["map"] == 0.5
    for evaluation in (sws.open(qrels=qrels, preset="trec"), sws.open(tmp_path / "archive", preset="trec")):
        found = overall(sws.score(evaluation, runs=other, executor=executor))
        assert repr(found) == repr(expected)


def test_the_same_from_an_archive(tmp_path: Path) -> None:
    qrels, run = write(tmp_path, "q", QRELS), write(tmp_path, "r", RUN)
    sws.ingest(tmp_path / "archive", qrels=qrels, runs=run)
    stored = sws.score(sws.open(tmp_path / "archive", preset="trec"))
    direct = sws.score(sws.open(qrels=qrels, collection=run, preset="trec"), runs=run)
    assert repr(stored.table.to_pylist()) == repr(direct.table.to_pylist())


def test_the_order_of_the_run_where_it_counts(tmp_path: Path) -> None:
    """Of four equal scores the relevant one stands first in one run, last in the other."""
    qrels = write(tmp_path, "q", "7 0 b 1\n")
    lines = [f"7 Q0 {document} 1 0.5 tag\n" for document in "bdca"]
    in_order = {"evaluation": {"average_precision": {"ties": "input"}}}
    for name, rows, value in (("first", lines, 1.0), ("last", lines[::-1], 0.25)):
        run = write(tmp_path, name, "".join(rows))
        direct = sws.open(qrels=qrels, collection=run, settings=in_order)
        assert overall(sws.score(direct, ["map", "ap"], runs=run)) == {"map": value, "ap": value}
        sws.ingest(tmp_path / f"{name}.archive", qrels=qrels, runs=run, settings=in_order)
        stored = {"evaluation": {"trials": "document", **in_order["evaluation"]}}
        assert overall(sws.score(sws.open(tmp_path / f"{name}.archive", settings=stored), ["map"])) == {"map": value}
    sws.ingest(tmp_path / "without", qrels=qrels, runs=run)
    with pytest.raises(ArchiveError, match=r"--set average_precision\.ties=input --change-settings --replace"):
        sws.score(sws.open(tmp_path / "without", settings=stored), ["map"])


@pytest.mark.parametrize("seed", range(4))
def test_files_are_scored_as_by_trec_eval(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    judged: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for query in (f"q{n}" for n in range(6)):
        judged[query] = {f"d{n}": chance.choice([-1, 0, 0, 1, 2]) for n in chance.sample(range(60), 25)}
        run[query] = {f"d{n}": chance.choice([0.1, 0.2, 0.7, -1.5]) for n in chance.sample(range(60), 40)}
    qrels = write(
        tmp_path, "q", "".join(f"{q} 0 {d} {grade}\n" for q, own in judged.items() for d, grade in own.items())
    )
    rows = [f"{q}\tQ0\t{d}  1 {score} tag\n" for q, own in run.items() for d, score in own.items()]
    file = write(tmp_path, "r", "".join(chance.sample(rows, len(rows))))
    values = overall(sws.score(sws.open(qrels=qrels, collection=file, preset="trec"), runs=file))
    theirs = pytrec_eval.RelevanceEvaluator(judged, {"map", "P", "Rprec"}).evaluate(run)
    for ours, name in {"map": "map", "precision_at_rank@5": "P_5", "r_precision": "Rprec"}.items():
        mean = sum(own[name] for own in theirs.values()) / len(theirs)
        assert values[ours] == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize(
    ("content", "line", "expected"),
    [
        ("q1 0 d1\nq1 0 d2 1\n", 1, "4 values, query iteration document relevance"),
        ("q1 0 d1 yes\nq1 0 d2 1\n", 1, "a whole number as relevance"),
        ("q1 0 d1 1\nq1 0 d2\n", 2, "4 values, query iteration document relevance"),
        ("q1 0 d1 0.5\n", 1, "a whole number as relevance"),
    ],
)
def test_a_wrong_line_is_one_of_judgments(tmp_path: Path, content: str, line: int, expected: str) -> None:
    found = Problems()
    read_judgments(write(tmp_path, "q.txt", content), found)
    (problem,) = found
    assert (problem.line, problem.expected) == (line, expected)
