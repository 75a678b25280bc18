"""Every kind of bad input ends with exit code 2 and one message: file and line, what was expected, what came."""

from __future__ import annotations

import gzip
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import Outcome
from tests.small_evaluation import ECF, QUERIES, RTTM, RUN, Files

Call = Callable[..., Outcome]


def refused(outcome: Outcome, *parts: str) -> None:
    assert outcome.code == 2, outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    for part in parts:
        assert part in outcome.err, outcome.err


BOMB = """<?xml version="1.0"?>
<!DOCTYPE kwslist [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;">]>
<kwslist kwlist_filename="x" language="english" system_id="first"><detected_kwlist kwid="K1">
<kw file="&c;" channel="1" tbeg="1" dur="1" score="1" decision="YES"/></detected_kwlist></kwslist>
"""

RUNS = {
    "truncated": (RUN[:-60], "first.kwslist.xml:"),
    "unknown query": (RUN.replace('kwid="K2"', 'kwid="K9"'), "first.kwslist.xml:6", "K9"),
    "unknown document": (RUN.replace('file="b"', 'file="zz"', 1), "first.kwslist.xml:4", "zz"),
    "nan": (RUN.replace('score="0.2"', 'score="NaN"'), "first.kwslist.xml:4", "NaN"),
    "largest": (RUN.replace('score="0.2"', 'score="-1.7976931348623157e308"'), "first.kwslist.xml:4", "-inf"),
    "no number": (RUN.replace('score="0.2"', 'score="abc"'), "first.kwslist.xml:4", "abc"),
    "no score": (RUN.replace('score="0.2" ', ""), "first.kwslist.xml:4", "score"),
    "negative duration": (RUN.replace('dur="0.8"', 'dur="-0.8"'), "first.kwslist.xml:3", "-0.8"),
    "lower-case decision": (RUN.replace("NO", "no"), "first.kwslist.xml:4", "YES"),
    "entity bomb": (BOMB, "first.kwslist.xml:2"),
    "encoding": (RUN.encode().replace(b'file="a"', b'file="\xff\xfe"'), "first.kwslist.xml:3"),
    "climbing document": (RUN.replace('file="a"', 'file="../../x"', 1), "first.kwslist.xml:3", "../../x"),
    "climbing query": (RUN.replace('kwid="K1"', 'kwid="../../x"', 1), "first.kwslist.xml:2", "../../x"),
    "climbing system": (RUN.replace('"first"', '"../../x"', 1), "first.kwslist.xml:1", "../../x"),
    "empty": ("", "first.kwslist.xml"),
    "a reference": (RTTM, "first.kwslist.xml"),
}


@pytest.mark.parametrize("kind", RUNS)
def test_bad_runs(swsdask: Call, files: Files, kind: str) -> None:
    content, *parts = RUNS[kind]
    run = files.write("first.kwslist.xml", content)
    refused(swsdask("score", files.reference, run), *parts)
    if kind != "a reference":
        refused(swsdask("validate", run, "--reference", files.reference), *parts)


def test_for_programs_problems_are_records_on_stdout(swsdask: Call, files: Files) -> None:
    run = files.write("first.kwslist.xml", RUN.replace('score="0.2"', 'score="NaN"').replace('"0.7"', '"abc"'))
    outcome = swsdask("validate", "-q", run, "--format", "json")
    assert (outcome.code, outcome.err) == (2, "swsdask: 2 problems\n")
    assert [(record["file"], record["line"]) for record in json.loads(outcome.out)] == [(str(run), 4), (str(run), 7)]
    good = files.write("good.kwslist.xml", RUN)
    outcome = swsdask("validate", "-q", good, "--format", "json")
    assert (outcome.code, outcome.out) == (0, "[]\n")


def test_truncated_gzip(swsdask: Call, files: Files) -> None:
    whole = gzip.compress(RUN.encode() * 50)
    refused(swsdask("score", files.reference, files.write("r.kwslist.xml.gz", whole[:-30])), "r.kwslist.xml.gz")


def test_a_line_that_never_ends(swsdask: Call, files: Files) -> None:
    endless = gzip.compress(b'<kwslist system_id="s"><detected_kwlist kwid="K1"><kw file="' + b"a" * 200_000_000)
    refused(swsdask("score", files.reference, files.write("r.kwslist.xml.gz", endless)), "r.kwslist.xml.gz:1")


REFERENCES = {
    "x.ecf.xml": {
        "truncated": (ECF[:-20], ":"),
        "negative duration": (ECF.replace('dur="30"', 'dur="-30"', 1), ":2"),
        "empty": ("", ""),
        "climbing": (ECF.replace("audio/a.wav", "../../x.wav"), ":2"),
    },
    "x.rttm": {
        "fields": (RTTM + "LEXEME a 1 3.0\n", ":7"),
        "negative duration": (RTTM.replace("0.40", "-0.40"), ":3"),
        "no number": (RTTM.replace("1.60", "soon"), ":3"),
        "encoding": (RTTM.encode().replace(b"night", b"n\xe4cht"), ":4"),
        "empty": ("", ""),
    },
    "x.kwlist.xml": {
        "duplicate id": (QUERIES.replace("K2", "K1"), ":3"),
        "climbing id": (QUERIES.replace("K2", "../../x"), ":3"),
        "truncated": (QUERIES[:-12], ":"),
    },
}


@pytest.mark.parametrize(("name", "kind"), [(name, kind) for name, kinds in REFERENCES.items() for kind in kinds])
def test_bad_references(swsdask: Call, files: Files, name: str, kind: str) -> None:
    content, line = REFERENCES[name][kind]
    files.write(f"reference/{name}", content)
    refused(swsdask("score", files.reference, files.run), f"{name}{line}")


def test_two_ecfs(swsdask: Call, files: Files) -> None:
    files.write("reference/y.ecf.xml", ECF)
    refused(swsdask("score", files.reference, files.run), "x.ecf.xml", "y.ecf.xml")


def test_nothing_there(swsdask: Call, files: Files, tmp_path: Path) -> None:
    refused(swsdask("score", files.reference, tmp_path / "none.xml"), "none.xml")
    refused(swsdask("score", tmp_path / "nowhere", files.run), "nowhere")
    refused(swsdask("score", files.reference), "No runs to score")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--preset", "sws213"), "sws2013"),
        (("--set", "tolerence_s=1"), "tolerance_s"),
        (("--set", "tolerance_s"), "KEY=VALUE"),
        (("--compat", "perl"), "kwseval"),
        (("--measures", "atvw"), "atwv"),
        (("--by", "no_such_attribute"), "no_such_attribute"),
        (("--executor", "serial", "--cluster", "tcp://127.0.0.1:1"), "exclude"),
        (("--executor", "quick"), "quick"),
        (("--set", f"tolerance_s={'9' * 5000}"), "tolerance_s"),
    ],
)
def test_bad_settings(swsdask: Call, files: Files, arguments: tuple[str, ...], part: str) -> None:
    refused(swsdask("score", files.reference, files.run, *arguments), part)


def test_every_problem_is_reported_not_only_the_first(swsdask: Call, files: Files) -> None:
    bad = RUN.replace('score="0.2"', 'score="x"').replace('score="0.6"', 'score="y"')
    refused(swsdask("score", files.reference, files.write("first.kwslist.xml", bad)), ":4:", ":8:")


def test_wrong_keys_of_a_settings_file_name_the_file(swsdask: Call, files: Files) -> None:
    wrong = files.write("wrong.toml", '[evaluation]\ntolerance_s = "a"\nc_miss = 3\n')
    outcome = swsdask("score", files.reference, files.run, "--settings", wrong, "--set", "trials=segment")
    refused(outcome, f"{wrong}: setting evaluation.tolerance_s: Input should be a valid number")
    assert f"{wrong}: setting evaluation.c_miss: unknown key. Write c_miss below [evaluation.operating_point]" in (
        outcome.err
    )
    point = files.write("point.toml", "[evaluation.operating_point]\nc_miss = 3\n")
    assert swsdask("score", files.reference, files.run, "--settings", point).code == 0


@pytest.mark.parametrize("content", [f"tolerance_s = {'9' * 5000}", f"x = {'[' * 5000}"], ids=["digits", "depth"])
def test_settings_files_without_end(swsdask: Call, files: Files, content: str) -> None:
    bad = files.write("bad.toml", f"[evaluation]\n{content}\n")
    refused(swsdask("score", files.reference, files.run, "--settings", bad), "bad.toml: not a TOML file")
    refused(swsdask("calibrate", "--apply", bad, files.run, "--out", files.folder / "out"), "bad.toml: expected")
    ended = swsdask("score", files.reference, files.run, "--cluster", bad)
    refused(ended, "bad.toml: not a TOML file")
    assert "set_int_max_str_digits" not in ended.err


def test_names_with_newlines_are_reported_in_one_line(swsdask: Call, files: Files) -> None:
    ended = swsdask("show", "no\nsuch")
    refused(ended, r"swsdask: no\nsuch: expected an archive")
    assert len(ended.err.splitlines()) == 1
    written = swsdask("score", files.reference, files.run, "--out", files.folder / "a\nb")
    assert rf"Written to {files.folder / 'a'}\nb: scores.parquet" in written.out
    assert rf"Written: {files.folder / 'a'}\nb" in swsdask("report", files.folder / "a\nb").out


def test_settings_are_read_from_a_small_file_or_a_pipe_only(swsdask: Call, files: Files) -> None:
    large = files.write("large.toml", f"# {'x' * (1 << 20)}\n")
    for endless in (large, "/dev/zero"):
        for arguments in (("score", files.reference, files.run, "--settings"), ("nightly",)):
            refused(swsdask(*arguments, endless), f"{endless}: expected a file of at most 1,048,576 bytes")
        calibrate = ("calibrate", "--apply", endless, files.run, "--out", files.folder / "out")
        refused(swsdask(*calibrate), f"{endless}: expected a file of at most 1,048,576 bytes")
    refused(swsdask("score", files.reference, files.run, "--cluster", large), "large.toml: expected a file of at most")
    pipe = files.folder / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("[evaluation]\ntolerance_s = 0.25\n",))
    writer.start()
    outcome = swsdask("score", files.reference, files.run, "--settings", pipe)
    writer.join()
    assert (outcome.code, "tolerance_s=0.25" in outcome.out) == (0, True)


def test_what_is_no_regular_file_is_not_read_in_results(swsdask: Call, files: Files) -> None:
    out = files.folder / "out"
    assert swsdask("score", files.reference, files.run, "--out", out).code == 0
    for name in ("manifest.json", "scores.parquet"):
        kept = (out / name).read_bytes()
        (out / name).unlink()
        os.mkfifo(out / name)
        refused(swsdask("report", out), f"{name}: expected a regular file; found a device or a pipe")
        (out / name).unlink()
        (out / name).symlink_to("/dev/zero")
        refused(swsdask("report", out), f"{name}: expected a regular file; found a device or a pipe")
        (out / name).unlink()
        (out / name).write_bytes(kept)


def test_an_archive_is_no_folder_of_runs(swsdask: Call, files: Files, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    assert swsdask("ingest", archive, files.reference, files.run).code == 0
    for command in (
        ("score", files.reference, archive),
        ("ingest", tmp_path / "other", files.reference, archive),
        ("calibrate", archive, "--on", files.reference),
    ):
        refused(swsdask(*command), f"{archive}: expected a folder of files; found an archive (manifest-00000001.json)")


def test_results_are_named_where_a_reference_is_expected(swsdask: Call, files: Files, tmp_path: Path) -> None:
    results = tmp_path / "results"
    assert swsdask("score", files.reference, files.run, "--out", results, "--outputs", "report").code == 0
    found = f"swsdask: {results}: expected a reference or an archive; found results of swsdask. Name the reference"
    for command in (("score", results), ("errors", results), ("ingest", tmp_path / "archive", results)):
        refused(swsdask(*command), found)


def test_no_file_is_written_under_the_name_that_means_stdout(
    swsdask: Call, files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert swsdask("score", files.reference, files.run, "--out", tmp_path / "results").code == 0
    monkeypatch.chdir(tmp_path)
    for command in (
        ("report", "results", "-"),
        ("score", files.reference, files.run, "--out", "-"),
        ("calibrate", files.run, "--on", files.reference, "--out", "-"),
    ):
        refused(swsdask(*command), "expected a name; found -. Files are written, nothing to stdout: name one.")
    assert not (tmp_path / "-").exists()
