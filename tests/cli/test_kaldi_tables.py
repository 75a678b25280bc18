"""Tables of Kaldi's kws-search: times in frames, scores that are costs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import swsdask as sws
from tests.command_line import Outcome
from tests.small_evaluation import Files

Call = Callable[..., Outcome]
ROWS = [("K1", "a", 110, 190, "-0.90"), ("K2", "a", 500, 550, "+0.25"), ("K1", "b", 300_000, 300_050, "1e-3")]
"""Query, document, first and last frame of 10 ms, cost."""

FRAMES = ("--frame-shift", "0.01", "--negate-scores")
HOW = ("--set", "outside=false_alarm", "--measures", "atwv,mtwv,mtwv_threshold,cnxe", "--format", "json")


@pytest.fixture
def kaldi(files: Files) -> Path:
    return files.write("results.txt", "".join(f"{q} {d} {s} {e} {c}\n" for q, d, s, e, c in ROWS))


@pytest.fixture
def plain(files: Files) -> Path:
    """The same in seconds, with scores that rise."""
    lines = [f"{q} {d} {s / 100} {e / 100} {-float(c)!r}\n" for q, d, s, e, c in ROWS]
    return files.write("plain/results.txt", "".join(lines))


def test_frames_and_costs_are_read_as_seconds_and_scores(swsdask: Call, files: Files, kaldi: Path, plain: Path) -> None:
    expected = json.loads(swsdask("score", files.reference, plain, *HOW).out)
    assert json.loads(swsdask("score", files.reference, kaldi, *FRAMES, *HOW).out) == expected
    out = files.folder / "out"
    assert swsdask("score", files.reference, kaldi, *FRAMES, *HOW, "--out", out).code == 0
    run = json.loads((out / "manifest.json").read_text())["runs"]["results"]
    assert run["attributes"] == {"frame_shift": "0.01", "negated_scores": "yes", "without_channels": "true"}
    assert run["rounded"] == 0
    archive = files.folder / "archive"
    assert swsdask("ingest", archive, files.reference, "--run", kaldi, *FRAMES, *HOW[:2]).code == 0
    assert json.loads(swsdask("score", archive, *HOW).out) == expected
    refused = swsdask("score", archive, *FRAMES, *HOW)
    assert refused.code == 2
    assert "an archive is already decoded" in refused.err


@pytest.mark.parametrize("name", ["kws.tsv", "kws.parquet"])
def test_other_tables(swsdask: Call, files: Files, plain: Path, name: str) -> None:
    query, document, start, end, cost = zip(*ROWS, strict=True)
    duration = [e - s for s, e in zip(start, end, strict=True)]
    path = files.folder / name
    if name.endswith(".tsv"):
        rows = zip(query, document, [f" {s}" for s in start], duration, cost, strict=True)
        lines = ["query\tdocument\tstart\tduration\tscore", *("\t".join(map(str, row)) for row in rows)]
        path.write_text("\n".join([*lines, ""]))
    else:
        columns = {"start": start, "duration": duration, "score": [float(c) for c in cost]}
        pq.write_table(pa.table({"query": query, "document": document, **columns}), path)
    of = {
        path.name: sws.score(str(files.reference), ["mtwv", "mtwv_threshold"], runs=path, **how)
        for path, how in ((path, {"frame_shift": 0.01, "negate_scores": True}), (plain, {}))
    }
    first, second = (result.table["value"].to_pylist() for result in of.values())
    assert first == second


def test_convert_and_calibrate_write_seconds_and_scores(
    swsdask: Call, files: Files, kaldi: Path, plain: Path, tmp_path: Path
) -> None:
    assert swsdask("convert", kaldi, tmp_path / "a.tsv", *FRAMES).code == 0
    assert swsdask("convert", plain, tmp_path / "b.tsv").code == 0
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "b.tsv").read_bytes()
    fitted = [
        swsdask(
            "calibrate", run, "--on", files.reference, *HOW[:2], "--method", "pav", *how, "--out", tmp_path / "c.toml"
        )
        for run, how in ((kaldi, FRAMES), (plain, ()))
    ]
    assert [each.code for each in fitted] == [0, 0], fitted[0].err
    assert fitted[0].out == fitted[1].out
    for run, how, out in ((kaldi, FRAMES, "x"), (plain, (), "y")):
        assert swsdask("calibrate", "--apply", tmp_path / "c.toml", run, *how, "--out", tmp_path / out).code == 0
    assert (tmp_path / "x" / "results.txt.tsv").read_bytes() == (tmp_path / "y" / "results.txt.tsv").read_bytes()


def test_what_is_no_frame_and_what_is_no_table(swsdask: Call, files: Files) -> None:
    bad = files.write("bad.txt", "K1 a 1 2 0.5\nK1 a 1 x 0.5\nK1 a 1 2 y\n")
    outcome = swsdask("score", files.reference, bad, *FRAMES)
    assert outcome.code == 2
    assert "bad.txt:2: expected an end in seconds; found 'x'" in outcome.err
    assert "bad.txt:3: expected a score; found '-y'" in outcome.err
    outcome = swsdask("score", files.reference, files.run, *FRAMES)
    assert outcome.code == 2
    assert "expected a table: only tables can have frames for times, negated scores or utterances" in outcome.err
    outcome = swsdask("score", files.reference, files.run, "--frame-shift", "0")
    assert outcome.code == 2
    assert "expected a frame shift in seconds, e.g. 0.01; found 0.0." in outcome.err


SEGMENTS = """a-001 a 0.25 8.0
a-002 a 0000004.5  9.00
a-002 a 4.5 9
b-001 b 2990.125 -1
"""
IN_UTTERANCES = """K1 a-001 85 165 0.105360516
K2 a-002 50 100  0.693147181
K1 a-002 550 600 2.302585093
K1 b-001 1000 1050 0.010050336
"""
"""Start and end are 0.25 + 0.85 = 1.1 and 1.9; 4.5 + 0.5 = 5 and 5.5; 10 and 10.5; 3000.125 and 3000.625."""
PLACED = [("K1", "a", 1.1, 1.9, 0.105360516), ("K2", "a", 5.0, 5.5, 0.693147181), ("K1", "a", 10.0, 10.5, 2.302585093)]
PLACED += [("K1", "b", 3000.125, 3000.625, 0.010050336)]


@pytest.mark.parametrize("form", ["kaldi", "tsv", "parquet", "memory"])
def test_utterances_are_placed_in_recordings(swsdask: Call, files: Files, form: str) -> None:
    """Kaldi's kws_results with its segments: every row as a reader of both files places it."""
    segments = files.write("segments", SEGMENTS)
    plain = files.write("plain/x.txt", "".join(f"{q} {d} {s} {e} {-c}\n" for q, d, s, e, c in PLACED))
    rows = [line.split() for line in IN_UTTERANCES.splitlines()]
    columns = {
        "query": [row[0] for row in rows],
        "document": [row[1] for row in rows],
        "start": [int(row[2]) for row in rows],
        "duration": [int(row[3]) - int(row[2]) for row in rows],
        "score": [float(row[4]) for row in rows],
    }
    run: object = files.write("x.txt", IN_UTTERANCES)
    if form == "tsv":
        lines = ["\t".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        run = files.write("x.tsv", "\n".join(["\t".join(columns), *lines, ""]))
    elif form == "parquet":
        run = files.folder / "x.parquet"
        pq.write_table(pa.table(columns), run)
    elif form == "memory":
        run = {"x": pa.table(columns)}
    evaluation = sws.open(files.reference, settings={"evaluation": {"outside": "false_alarm"}})
    found = sws.score(
        evaluation, ["mtwv", "map"], runs=run, frame_shift=0.01, negate_scores=True, segments=segments, alignment=True
    )
    expected = sws.score(evaluation, ["mtwv", "map"], runs=plain, alignment=True)
    assert found.table.equals(expected.table)
    assert found.to_arrow("alignment").equals(expected.to_arrow("alignment"))
    detected = expected.to_arrow("alignment").to_pylist()
    placed = {
        (row["query"], row["document"], row["start"], row["end"], -row["score"]) for row in detected if row["end"]
    }
    assert placed == set(PLACED)
    if form == "kaldi":
        assert swsdask("convert", run, files.folder / "y.tsv", *FRAMES, "--segments", segments).code == 0
        assert (files.folder / "y.tsv").read_text().splitlines()[1].split("\t")[:3] == ["x", "K1", "a"]
        archive = files.folder / "archive"
        told = swsdask("ingest", archive, files.reference, "--run", run, *FRAMES, "--segments", segments, *HOW[:2])
        assert told.code == 0, told.err
        assert sws.score(str(archive), ["mtwv", "map"]).table.equals(expected.table)


def test_segments_may_be_a_pipe(swsdask: Call, files: Files) -> None:
    segments, run = files.write("segments", SEGMENTS), files.write("x.txt", IN_UTTERANCES)
    expected = swsdask("score", files.reference, run, *FRAMES, *HOW, "--segments", segments)
    end, begin = os.pipe()
    os.write(begin, SEGMENTS.encode())
    os.close(begin)
    found = swsdask("score", files.reference, run, *FRAMES, *HOW, "--segments", f"/dev/fd/{end}")
    os.close(end)
    assert (found.code, found.out) == (0, expected.out), found.err


def test_tables_are_validated_as_they_are_scored(swsdask: Call, files: Files) -> None:
    run = files.write("x.txt", IN_UTTERANCES)
    how = (*FRAMES, "--segments", files.write("segments", SEGMENTS))
    assert swsdask("validate", files.reference, run).code == 2
    told = swsdask("validate", "-q", files.reference, run, *how)
    assert (told.code, told.err) == (0, "")
    assert told.out.splitlines()[-1] == f"{run}: results in Kaldi's form: 4 rows, 1 system, 2 queries, 2 documents"
    assert swsdask("validate", run, *how).out == told.out.splitlines()[-1] + "\n"
    strict = swsdask("validate", files.reference, files.write("x.txt", IN_UTTERANCES + "K2 c-001 1 2 0.5\n"), *how)
    assert "x.txt:5: expected an utterance of the file of segments; found 'c-001'" in strict.err


def test_segments_that_are_none(swsdask: Call, files: Files) -> None:
    run = files.write("x.txt", IN_UTTERANCES + "K2 c-001 1 2 0.5\nK2 c-001 3 4 0.5\n")
    outcome = swsdask("score", files.reference, run, *FRAMES, "--segments", files.write("segments", SEGMENTS))
    assert outcome.code == 2
    assert "x.txt:5: expected an utterance of the file of segments; found 'c-001'" in outcome.err
    assert "x.txt:6: expected an utterance" in outcome.err
    bad = files.write("bad", "a-001 a 0 1\na-002 a x 2\na-003 a\na-001 b 0 1\n")
    outcome = swsdask("score", files.reference, run, *FRAMES, "--segments", bad)
    assert outcome.code == 2
    for line, what in ((2, "an utterance: name"), (3, "an utterance: name"), (4, "each utterance once")):
        assert f"bad:{line}: expected {what}" in outcome.err
    outcome = swsdask("score", files.reference, run, "--segments", files.write("none", "\n"))
    assert "none:1: expected at least one utterance; found none" in outcome.err


def test_the_examples_of_kaldis_documentation(tmp_path: Path) -> None:
    """Of `compute-atwv` and of the file segments; times and scores as `write_kwslist.pl` computes them, which prints
    start * 0.01 + the segment's start, (end - start) * 0.01 and exp(-score)."""
    (tmp_path / "segments").write_text("sw02001-A_000098-001156 sw02001-A 0.98 11.56\n")
    (tmp_path / "kws_results").write_text("KW106-189 sw02001-A_000098-001156 459 560 0.8\n")
    evaluation = sws.open(
        documents=[{"document": "sw02001-A", "duration": 60.0}],
        occurrences=[{"query": "KW106-189", "document": "sw02001-A", "start": 5.6, "duration": 1.0}],
    )
    how = {"frame_shift": 0.01, "negate_scores": True, "segments": tmp_path / "segments"}
    result = sws.score(evaluation, "n_hit", runs=tmp_path / "kws_results", alignment=True, **how)
    (row,) = result.to_arrow("alignment").to_pylist()
    assert (row["document"], row["outcome"]) == ("sw02001-A", "hit")
    assert (round(row["start"], 9), round(row["end"] - row["start"], 9)) == (5.57, 1.01)
    assert round(math.exp(row["score"]), 2) == 0.45


@pytest.mark.parametrize("form", ["txt", "tsv", "parquet"])
def test_a_run_without_channels_is_noted_where_the_reference_has_several(
    swsdask: Call, files: Files, form: str, tmp_path: Path
) -> None:
    columns = ("query", "document", "start", "end", "score")
    rows = [dict(zip(columns, ("K1", "a", 1.1, 1.9, 0.9), strict=True))]
    run = tmp_path / f"run.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), run)
    else:
        head = "" if form == "txt" else "\t".join(columns) + "\n"
        between = " " if form == "txt" else "\t"
        run.write_text(head + between.join(map(str, rows[0].values())) + "\n")
    note = "the run names no channels: its detections count in channel 1; the excerpts lie in channels 1, 2."
    assert note not in swsdask("score", files.reference, run, *HOW[2:4]).out
    (found,) = files.reference.glob("*ecf*")
    ecf = found.read_text().replace("</ecf>", '<excerpt audio_filename="b" channel="2" tbeg="0" dur="9"/></ecf>')
    found.write_text(ecf)
    assert note in swsdask("score", files.reference, run, *HOW[2:4]).out
    converted = tmp_path / "run.kwslist.xml"
    assert swsdask("convert", run, converted).code == 0
    assert note not in swsdask("score", files.reference, converted, *HOW[2:4]).out


def test_convert_reports_what_the_target_does_not_keep(swsdask: Call, files: Files) -> None:
    run = files.write("fine.csv", "query,document,start,duration,score,note\nK1,a,1.123456,0.3333333,2,x\n")
    losses = "  rounded: 2 times finer than 0.1 ms\n  not written: the columns note\n"
    for name in ("fine.kwslist.xml", "fine.parquet"):
        target = files.folder / name
        assert swsdask("convert", run, target).out == f"{target}: 1 detection\n{losses}"
    target = files.folder / "fine.tsv"
    assert swsdask("convert", run, target).out == f"{target}: 1 detection\n"
    assert "1.123456\t0.3333333\t2\tx" in target.read_text()


def test_convert_reports_the_attributes_that_the_target_does_not_have(swsdask: Call, files: Files) -> None:
    run = files.write(
        "timed.stdlist.xml",
        '<stdlist termlist_filename="q.xml" indexing_time="12.5" language="" index_size="1000" system_id="s">\n'
        '<detected_termlist termid="K1" term_search_time="2.5" oov_term_count="NA">\n'
        '<term file="a" channel="1" tbeg="1.0" dur=".5" score="1" decision="YES"/>\n</detected_termlist>\n'
        '<detected_termlist termid="K2" term_search_time="-1" oov_term_count="NA"></detected_termlist></stdlist>\n',
    )
    empty = "  not written: 1 query without detections\n"
    losses = {
        "timed.kwslist.xml": "  not written: the attributes index_size, indexing_time\n",
        "timed.csv": "  not written: the attributes index_size, indexing_time, search_time, termlist_filename\n"
        + empty,
        "again.stdlist.xml": "",
        "timed.parquet": empty,
    }
    for name, lost in losses.items():
        target = files.folder / name
        assert swsdask("convert", run, target).out == f"{target}: 1 detection\n{lost}"
    kept = (files.folder / "again.stdlist.xml").read_text()
    assert 'indexing_time="12.5"' in kept
    assert 'term_search_time="2.5"' in kept


def test_an_unknown_document_of_a_run_without_times_has_a_remedy(swsdask: Call, files: Files) -> None:
    run = files.write("q.csv", "query,document,score\nK1,nowhere,2\nK1,a,1\n")
    how = ("--preset", "quesst2014", "--measures", "mtwv")
    refused = swsdask("score", files.reference, run, *how)
    assert refused.code == 2
    assert "found 'nowhere' in 1 row. Correct the id, or set unknown_documents=outside." in refused.err
    assert swsdask("score", files.reference, run, *how, "--set", "unknown_documents=outside").code == 0
