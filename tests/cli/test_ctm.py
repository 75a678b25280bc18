"""CTM: the reference's words with times, and the detections of a system."""

from __future__ import annotations

import json
from collections.abc import Callable

import swsdask as sws
from tests.cli.conftest import RTTM, Files, Outcome

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
    files.write("reference/x.ctm", WORDS + "b 1 * * <ALT_BEGIN>\nb C 1 1 word\nb 1 1\n")
    found = swsdask("score", files.reference, files.run)
    assert found.code == 2
    for line, what in ((9, "a start in seconds; found '*'"), (10, "found 'C'"), (11, "expected a word: file")):
        assert any(f"x.ctm:{line}: " in each and what in each for each in found.err.splitlines()), found.err
    files.write("reference/x.ctm", WORDS)
    run = files.write("run.ctm", RUN + "a 1 2 0.5 K1\na 1 2 0.5 K1 high\na C 2 0.5 K1 1\n")
    found = swsdask("score", files.reference, run)
    for line, what in ((6, "expected 6 values"), (7, "expected a score"), (8, "a channel")):
        assert any(f"run.ctm:{line}: " in each and what in each for each in found.err.splitlines()), found.err
