"""CTM: the reference's words with times, and the detections of a system."""

from __future__ import annotations

import json
from collections.abc import Callable

import swsdask as sws
from tests.command_line import Outcome
from tests.small_evaluation import RTTM, Files

Call = Callable[..., Outcome]
WORDS = """;; words of two files
a 1 1.00 0.50 good 0.99
a A 1.60 0.40 morning
a 1\t5.00 0.50  night 0.5 lex ann

b 1 2.00 0.50 Good NA lex bob
b 1 2.50 0.50 morning 1 lex bob
b 1 7.00 0.50 night 1 fp
"""
RUN = """;; query in place of the word
a A 1.1 0.8 K1 0.9
b 1 20 0.5 K1 0.2
a 1 5.0 0.5 K2 inf
b 1 9.0 0.5 K2 0.6
"""
MEASURES = ("mtwv", "map", "n_target", "cnxe", "cnxe_min")


def rows(reference: str, run: str) -> list[bytes]:
    return [repr(row).encode() for row in sws.score(reference, MEASURES, runs={"run": run}).table.to_pylist()]


def test_a_ctm_is_a_reference_and_a_run(files: Files) -> None:
    run = files.write("run.ctm", RUN)
    lines = ["query\tdocument\tstart\tduration\tscore", "K1\ta\t1.1\t0.8\t0.9", "K1\tb\t20\t0.5\t0.2"]
    table = files.write("run.tsv", "\n".join([*lines, "K2\ta\t5.0\t0.5\tinf", "K2\tb\t9.0\t0.5\t0.6", ""]))
    expected = rows(str(files.reference), str(table))
    assert rows(str(files.reference), str(run)) == expected
    fp = RTTM + "LEXEME b 1 7.00 0.50 night fp bob <NA>\n"
    files.write("reference/x.rttm", fp)
    spoken = rows(str(files.reference), str(table))
    (files.reference / "x.rttm").unlink()
    files.write("reference/x.ctm", WORDS)
    assert rows(str(files.reference), str(run)) == spoken


def test_the_words_are_those_of_an_rttm(swsdask: Call, files: Files) -> None:
    ctm = files.write("words.txt", WORDS)
    files.write("reference/x.rttm", WORDS)  # by its content
    reference = ("--ecf", files.reference / "x.ecf.xml", "--queries", files.reference / "x.kwlist.xml")
    found = swsdask("score", *reference, "--rttm", ctm, files.run, "--measures", "n_target", "--format", "json")
    assert found.code == 0, found.err
    assert json.loads(found.out)[0]["value"] == 3
    assert swsdask("score", files.reference, files.run, "--measures", "n_target", "--format", "json").out == found.out
    assert swsdask("validate", files.reference, files.run).code == 0


def test_what_is_wrong_has_its_line(swsdask: Call, files: Files) -> None:
    (files.reference / "x.rttm").unlink()
    files.write("reference/x.ctm", WORDS + "b 1 * 1 word\nb C 1 1 word\nb 1 1\n")
    found = swsdask("score", files.reference, files.run)
    assert found.code == 2
    for line, what in ((9, "a start in seconds; found '*'"), (10, "found 'C'"), (11, "expected a word: file")):
        assert any(f"x.ctm:{line}: " in each and what in each for each in found.err.splitlines()), found.err
    files.write("reference/x.ctm", f"b 1 * * <ALT_BEGIN>\n{WORDS}b 1 * * <ALT>\nb 1 9 0 <alt_end>\n")
    found = swsdask("score", files.reference, files.run)
    for line, what in ((1, "<ALT_BEGIN>"), (10, "<ALT>"), (11, "<alt_end>")):
        message = f"x.ctm:{line}: expected the words that were spoken; found alternatives, '{what}'. Keep one of them"
        assert any(message in each for each in found.err.splitlines()), found.err
    files.write("reference/x.ctm", WORDS)
    run = files.write("run.ctm", RUN + "a 1 2 0.5 K1\na 1 2 0.5 K1 high\na C 2 0.5 K1 1\n")
    found = swsdask("score", files.reference, run)
    for line, what in ((6, "expected 6 values"), (7, "expected a score"), (8, "a channel")):
        assert any(f"run.ctm:{line}: " in each and what in each for each in found.err.splitlines()), found.err


HYPOTHESIS = """;; what a recogniser understood
a 1 1.10 0.40 Good 0.8
a 1 1.50 0.50 morning 0.9
a A 1.90 0.10 <unk> 0.1
a 1 5.00 0.50 night 0.7
b 1 2.00 0.50 good 0.6
b 1 3.10 0.50 morning 0.9
b 1 9.00 0.20 night 0.3
"""
"""In b the words of K1 are .6 s apart: they are two words, no occurrence."""


def test_a_transcript_is_searched_for_the_texts_of_queries(swsdask: Call, files: Files) -> None:
    ctm = files.write("asr.ctm", HYPOTHESIS)
    evaluation = sws.open(files.reference)
    found = evaluation.search(ctm)
    assert found.to_pylist() == [
        {"query": "K1", "document": "a", "channel": 1, "start": 1.1, "duration": 0.9, "score": 0.8},
        {"query": "K2", "document": "a", "channel": 1, "start": 5.0, "duration": 0.5, "score": 0.7},
        {"query": "K2", "document": "b", "channel": 1, "start": 9.0, "duration": 0.2, "score": 0.3},
    ]
    expected = sws.score(evaluation, MEASURES, runs={"asr": found})
    table = files.folder / "asr.tsv"
    made = swsdask("convert", ctm, table, "--queries", files.reference / "x.kwlist.xml")
    assert (made.code, made.out) == (0, f"{table}: 3 detections\n"), made.err
    assert sws.score(evaluation, MEASURES, runs=table).table.equals(expected.table)
    wider = sws.open(files.reference, settings={"evaluation": {"find_gap_s": 0.6}}).search(ctm)
    assert wider.num_rows == 4
    assert wider["score"].to_pylist() == [0.8, 0.6, 0.7, 0.3]


def test_an_invalid_transcript_is_an_error(swsdask: Call, files: Files) -> None:
    queries = ("--queries", files.reference / "x.kwlist.xml")
    bad = files.write("bad.ctm", HYPOTHESIS + "b 1 10 0.2 night\n")
    found = swsdask("convert", bad, files.folder / "x.tsv", *queries)
    assert found.code == 2
    assert "bad.ctm:9: expected 6 values" in found.err
    found = swsdask("convert", files.run, files.folder / "x.tsv", *queries)
    assert found.code == 2
    assert "words with times (a CTM)" in found.err
    found = swsdask("convert", bad, files.folder / "x.tsv", *queries, "--negate-scores")
    assert "--queries goes with a transcript in seconds" in " ".join(found.err.split())
    assert not (files.folder / "x.tsv").exists()
