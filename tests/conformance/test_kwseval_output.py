"""`--kwseval-output`: the files that KWSEval wrote, byte for byte.

Up to the order of the alignment's rows, which is that of a hash.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import fsspec
import pytest

import swsdask as sws
from swsdask.cli import main
from swsdask.execution.executor import ThreadExecutor
from swsdask.model.errors import SettingsError
from swsdask.render.kwseval_output import NEEDED
from tests.conformance.test_kwseval_cases import CASES
from tests.official_output import in_order, write_kwseval

ALL = ["otwv", "stwv", "map"]
BOTH = ("sum.txt", "bsum.txt")


@pytest.mark.parametrize("case", CASES)
def test_files_of_own_cases(own_cases: Path, tmp_path: Path, case: str) -> None:
    folder = own_cases / "kwseval" / case
    with_inc = "no_targets" in CASES[case]
    write_kwseval(folder, CASES[case], tmp_path, [name for name in ALL if not (with_inc and name == "otwv")])
    for ending in BOTH:
        expected = folder / f"expected.{'plain.' if with_inc else ''}{ending}"
        assert (tmp_path / f"x.{ending}").read_bytes() == expected.read_bytes()
    aligned, expected = tmp_path / "x.alignment.csv", folder / "expected.alignment.csv"
    assert in_order(aligned.read_text()) == in_order(expected.read_text())


WITH_INC = {"no_targets": "false_alarms_only"}
CONDITIONS = {
    "sources": ["source_type"],
    "attributes": ["L"],
    "patterns": ["query_pattern:^K[13-9]$", "query_pattern:^K[02]$"],
}


@pytest.mark.parametrize("kind", CONDITIONS)
@pytest.mark.parametrize("settings", [{}, WITH_INC], ids=["targets", "inc"])
def test_files_of_conditions(own_cases: Path, tmp_path: Path, kind: str, settings: dict[str, Any]) -> None:
    """Sources differ in duration; r, a value of L, has queries without targets only."""
    folder = own_cases / "kwseval/conditions"
    write_kwseval(folder, settings, tmp_path, by=CONDITIONS[kind])
    for ending in ("cond.sum.txt", "cond.sum.csv", "cond.bsum.txt", "cond.bsum.csv"):
        expected = folder / f"expected.{kind}.{'inc.' if settings else ''}{ending}"
        assert (tmp_path / f"x.{ending}").read_bytes() == expected.read_bytes()


def test_some_values_of_an_attribute(own_cases: Path, tmp_path: Path) -> None:
    """What the tool selects by -q with a regular expression."""
    folder = own_cases / "kwseval/conditions"
    write_kwseval(folder, {}, tmp_path, by=["L:q", "L:r"])
    for ending in ("cond.sum.txt", "cond.bsum.txt"):
        assert (tmp_path / f"x.{ending}").read_bytes() == (folder / f"expected.regex.{ending}").read_bytes()


@pytest.mark.parametrize("with_inc", [{}, WITH_INC], ids=["targets", "inc"])
def test_only_the_queries_that_a_run_lists(own_cases: Path, tmp_path: Path, with_inc: dict[str, Any]) -> None:
    """-j: K2 and K4 are not listed; L-q, which only they have, is no condition."""
    folder = own_cases / "kwseval/unlisted"
    write_kwseval(folder, {"unlisted_queries": "exclude", **with_inc}, tmp_path, by=["L"])
    for ending in ("sum.txt", "bsum.txt", "cond.sum.txt", "cond.bsum.txt"):
        expected = folder / f"expected.{'inc.' if with_inc else ''}{ending}"
        assert (tmp_path / f"x.{ending}").read_bytes() == expected.read_bytes()
    aligned, expected = tmp_path / "x.alignment.csv", folder / "expected.alignment.csv"
    assert in_order(aligned.read_text()) == in_order(expected.read_text())


def test_conditions_that_the_tool_does_not_have(own_cases: Path, tmp_path: Path) -> None:
    """They are left out; those of several attributes have its title of a joint set."""
    folder = own_cases / "kwseval/conditions"
    write_kwseval(folder, {}, tmp_path / "none", by=["n_words", "L,source_type", "oov_count"])
    assert not list((tmp_path / "none").glob("*.cond.*"))
    write_kwseval(folder, {}, tmp_path / "some", by=["n_words", "L,L", "source_type:cts+splitcts"])
    lines = (tmp_path / "some/x.cond.sum.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in lines[1:]] == ['"L-p X L-p"', '"L-q X L-q"', '"L-r X L-r"', '"cts+splitcts"']


def test_tables_as_csv(own_cases: Path, tmp_path: Path) -> None:
    """Without measures that were requested there are no columns of theirs."""
    folder = own_cases / "kwseval/optimum"
    write_kwseval(folder, {}, tmp_path)
    for ending in ("sum.csv", "bsum.csv"):
        assert (tmp_path / f"x.{ending}").read_bytes() == (folder / f"expected.plain.{ending}").read_bytes()


def test_files_of_the_synthetic_case(cases: Path, tmp_path: Path) -> None:
    """The text of every number is that of the input: a program wrote all of a column alike."""
    folder = cases / "kwseval/synthetic"
    write_kwseval(folder, {}, tmp_path, ALL)
    for ending in BOTH:
        assert (tmp_path / f"x.{ending}").read_bytes() == (folder / f"expected.{ending}").read_bytes()
    with gzip.open(folder / "expected.alignment.csv.gz", "rt", encoding="utf-8") as file:
        assert in_order((tmp_path / "x.alignment.csv").read_text()) == in_order(file.read())


@pytest.mark.parametrize(("case", "settings"), [("short", {}), ("segments", {"trials": "segment"})])
def test_reports_that_the_tool_printed(cases: Path, tmp_path: Path, case: str, settings: dict[str, Any]) -> None:
    folder = cases / "kwseval" / case
    write_kwseval(folder, settings, tmp_path)
    printed = (folder / "expected.txt").read_text()
    for ending in BOTH:
        assert f"Summary Report: -\n{(tmp_path / f'x.{ending}').read_text()}" in printed


EDGES: dict[str, dict[str, Any]] = {
    **{case: {} for case in ("r1", "r1b", "r2", "r2b", "r7")},
    **{case: {"trials": "segment"} for case in ("r3", "r4", "r5", "r6")},
    "r8": {"no_targets": "false_alarms_only"},
    "r9": {"text_filters": ["charsplit", "notascii", "deletehyphens"]},
}


@pytest.mark.parametrize("case", EDGES)
def test_files_of_edges(cases: Path, tmp_path: Path, case: str) -> None:
    folder = cases / "kwseval/edges" / case
    write_kwseval(folder, EDGES[case], tmp_path)
    assert (tmp_path / "x.sum.txt").read_bytes() == (folder / "expected.sum.txt").read_bytes()
    aligned, expected = tmp_path / "x.alignment.csv", folder / "expected.alignment.csv"
    assert in_order(aligned.read_text()) == in_order(expected.read_text())


def test_the_same_bytes_over_executors_and_at_urls(own_cases: Path, tmp_path: Path) -> None:
    folder = own_cases / "kwseval/optimum"
    names = [name for name in write_kwseval(folder, {}, tmp_path / "one") if name.startswith("x.")]
    assert names == [
        f"x.{ending}" for ending in ("sum.txt", "sum.csv", "bsum.txt", "bsum.csv", "det.dat", "alignment.csv")
    ]
    write_kwseval(folder, {}, (tmp_path / "two").as_uri(), buckets=3, executor=ThreadExecutor(2))
    write_kwseval(folder, {}, "memory://kwseval-output")
    for name in names:
        expected = (tmp_path / "one" / name).read_bytes()
        assert (tmp_path / "two" / name).read_bytes() == expected
        assert fsspec.filesystem("memory").cat(f"/kwseval-output/{name}") == expected


def test_the_option(own_cases: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each system has its files; without --alignment none of the alignment."""
    folder = own_cases / "kwseval/words"
    files = ["--ecf", folder / "ecf.xml", "--rttm", folder / "ref.rttm", "--queries", folder / "kwlist.xml"]
    runs = [f"{name}={folder / 'kwslist.xml'}" for name in ("one", "two")]
    options = ["--preset", "openkws13", "--compat", "kwseval", "--measures", ",".join(ALL), "--kwseval-output"]
    main([*map(str, ["score", *files, *runs, *options, "--out", tmp_path])])
    assert "one.sum.txt, one.sum.csv, one.bsum.txt, one.bsum.csv, two.sum.txt" in " ".join(
        capfd.readouterr().out.split()
    )
    assert (tmp_path / "two.bsum.txt").read_bytes() == (folder / "expected.bsum.txt").read_bytes()
    assert not list(tmp_path.glob("*.alignment.csv"))
    with pytest.raises(SystemExit):
        main([*map(str, ["score", *files, *runs, *options])])
    assert "--kwseval-output goes with --out" in " ".join(capfd.readouterr().err.split())
    with pytest.raises(SystemExit):
        main([*map(str, ["score", *files, *runs, *options, "--trec-output", "--out", tmp_path])])
    assert "give one of them" in " ".join(capfd.readouterr().err.split())


def test_what_cannot_be_written(own_cases: Path, tmp_path: Path) -> None:
    folder = own_cases / "kwseval/words"
    files: dict[str, Any] = {
        "ecf": folder / "ecf.xml",
        "rttm": folder / "ref.rttm",
        "queries": folder / "kwlist.xml",
    }
    evaluation = sws.open(**files, preset="openkws13")
    result = sws.score(evaluation, "atwv", runs=str(folder / "kwslist.xml"))
    with pytest.raises(SettingsError, match="need measures that were not requested: actual_threshold, mtwv"):
        sws.write(result, tmp_path, tool="kwseval", evaluation=evaluation)
    for name, missing in (("map", "ap"), ("stwv", "stwv_p_miss"), ("otwv", "otwv_p_fa, otwv_p_miss, otwv_threshold")):
        of_group = sws.score(evaluation, [*NEEDED, name], runs=str(folder / "kwslist.xml"))
        with pytest.raises(SettingsError, match=f"need measures that were not requested: {missing}"):
            sws.write(of_group, tmp_path, tool="kwseval", evaluation=evaluation)
    with pytest.raises(SettingsError, match="need the evaluation that was scored"):
        sws.write(result, tmp_path, tool="kwseval")
    with pytest.raises(SettingsError, match="no tool 'stdeva': there are kwseval, mediaeval"):
        sws.write(result, tmp_path, tool="stdeva")
    documents = sws.open(**files, settings={"evaluation": {"trials": "document"}})
    with pytest.raises(SettingsError, match="occurrences or segments"):
        sws.write(result, tmp_path, tool="kwseval", evaluation=documents)


@pytest.mark.parametrize(("case", "settings"), [("optimum", {}), ("conditions", WITH_INC)])
def test_lines_of_the_error_tradeoff(own_cases: Path, tmp_path: Path, case: str, settings: dict[str, Any]) -> None:
    """Up to the text of scores and the last of 15 digits (the tool adds up queries in the order of a hash)."""
    folder = own_cases / "kwseval" / case
    write_kwseval(folder, settings, tmp_path)
    wanted = folder / f"expected.{'inc.' if settings else ''}det.dat"
    found, expected = ((path).read_text() for path in (tmp_path / "x.det.dat", wanted))
    head, other = (re.split(r"\n(?=[\d.])", text, maxsplit=1)[0] for text in (found, expected))
    assert sorted(head.replace("( ", "(").split()) == sorted(other.split())
    lines, others = ([line.split() for line in text.splitlines() if line[0] != "#"] for text in (found, expected))
    pairs = [pair for line, wanted in zip(lines, others, strict=True) for pair in zip(line, wanted, strict=True)]
    for one, wanted in pairs:
        assert one == wanted or float(one) == pytest.approx(float(wanted), rel=1e-12, abs=1e-15)
    assert sum(one == other for one, other in pairs) >= 0.8 * len(pairs) > 50


@pytest.mark.parametrize("case", ["inc", "inc-one", "inc-none"])
def test_lines_of_the_error_tradeoff_with_few_targets(own_cases: Path, tmp_path: Path, case: str) -> None:
    """With -inc, two queries of three have targets, one of three, and none: every byte of the lines."""
    folder = own_cases / "kwseval" / case
    write_kwseval(folder, WITH_INC, tmp_path)
    found, expected = (path.read_text().splitlines() for path in (tmp_path / "x.det.dat", folder / "expected.det.dat"))
    assert len(found) == len(expected)
    assert [line for line in found if line[0] != "#"] == [line for line in expected if line[0] != "#"]


def test_a_single_query_with_infinite_scores(own_cases: Path, tmp_path: Path) -> None:
    """A single query has no standard errors, for which the tool prints eight columns instead of ten."""
    folder = own_cases / "kwseval/one-query"
    write_kwseval(folder, {}, tmp_path)
    for ending in (*BOTH, "det.dat"):
        assert (tmp_path / f"x.{ending}").read_bytes() == (folder / f"expected.{ending}").read_bytes()
    assert ",-INF,NO," in (tmp_path / "x.alignment.csv").read_text()


def test_a_query_is_in_every_segment(own_cases: Path, tmp_path: Path) -> None:
    """It has no non-target. OTWV depends on the order of a hash in the tool."""
    folder = own_cases / "kwseval/every-segment"
    write_kwseval(folder, {"trials": "segment"}, tmp_path, ["stwv", "map"])
    for ending in (*BOTH, "det.dat"):
        assert (tmp_path / f"x.{ending}").read_bytes() == (folder / f"expected.{ending}").read_bytes()


def test_no_query_has_targets(own_cases: Path, tmp_path: Path) -> None:
    """The tool writes no lines of the error tradeoff, and stops where MAP is requested."""
    folder = own_cases / "kwseval/no-targets"
    write_kwseval(folder, {}, tmp_path)
    for ending in BOTH:
        assert (tmp_path / f"x.{ending}").read_bytes() == (folder / f"expected.{ending}").read_bytes()
    assert {line[0] for line in (tmp_path / "x.det.dat").read_text().splitlines()} == {"#"}
