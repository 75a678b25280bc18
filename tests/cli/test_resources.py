"""Resources beside a run, from the file to the report, straight from files and through an archive."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_line import Outcome, long_form
from tests.small_evaluation import RUN, Files

Call = Callable[..., Outcome]

RESOURCES = """query_seconds = [20, 16]

[indexing]
wall_seconds = 60
cores = 2
peak_memory_gb = 3

[searching]
cpu_hours = 0.0005
peak_memory_gb = [1, 4]

[[hardware]]
count = 7
brand = "Lenovo <b>"
cpu = "EPYC"
cores = 32
clock_ghz = 2.8
ram_gb = 256
os = "Debian 12"
phase = "searching"
"""
LOAD = {"isf": 2.0, "ssf": 3.0, "pmu_index": 3.0, "pmu_search": 4.0, "pl": 0.1 * 2 * 3 + 0.9 * 3 * 4}
"""60 s of audio, 36 s of queries: 120 / 60 and .0005 h / (.01 h * 1/60 h)."""


@pytest.fixture
def told(files: Files) -> Files:
    files.write("first.resources.toml", RESOURCES)
    files.write("second.kwslist.xml", RUN.replace("first", "second"))
    return files


def scored(swsdask: Call, *arguments: str | Path) -> dict[str, dict[str, object]]:
    """measure -> value, by system."""
    outcome = swsdask("score", *arguments, "--format", "json")
    assert outcome.code == 0, outcome.err
    rows = json.loads(outcome.out)
    return {name: long_form([r for r in rows if r["system"] == name]) for name in ("first", "second")}


@pytest.mark.parametrize("how", [(), ("--executor", "threads", "--workers", "2"), ("--buckets", "2")])
def test_only_a_run_with_resources_has_a_load(swsdask: Call, told: Files, how: tuple[str, ...]) -> None:
    runs = (told.run, told.folder / "second.kwslist.xml")
    found = scored(swsdask, told.reference, *runs, *how)
    assert {name: found["first"][name] for name in LOAD} == LOAD
    assert {name: found["second"][name] for name in found["second"]} == {
        name: value for name, value in found["first"].items() if name not in LOAD
    }
    assert scored(swsdask, told.reference, *runs, "--measures", "pl,ssf", *how) == {
        "first": {name: LOAD[name] for name in ("ssf", "pl")},
        "second": {},
    }


def test_the_load_is_of_the_whole_evaluation(swsdask: Call, told: Files) -> None:
    outcome = swsdask("score", told.reference, told.run, "--by", "source_type", "--format", "json")
    loads = [row for row in json.loads(outcome.out) if row["measure"] in LOAD]
    assert [(row["condition"], row["query"], row["measure"]) for row in loads] == [("all", None, m) for m in LOAD]


def test_nothing_is_said_where_nothing_is_reported(swsdask: Call, files: Files, tmp_path: Path) -> None:
    outcome = swsdask("score", files.reference, files.run, "--out", tmp_path / "out")
    assert "isf" not in outcome.out
    assert "Processing load" not in (tmp_path / "out" / "report.html").read_text()
    assert "resources.toml" not in outcome.out


def test_a_load_that_is_requested_and_not_given_is_noted(swsdask: Call, told: Files) -> None:
    note = "no isf, pl: there is no resources.toml"
    asked = ("--measures", "mtwv,isf,pl")
    assert note not in swsdask("score", told.reference, told.run, *asked).out
    told.run.with_name("resources.toml").unlink(missing_ok=True)
    for beside in told.run.parent.glob("*.resources.toml"):
        beside.unlink()
    assert note in swsdask("score", told.reference, told.run, *asked).out


def test_text_and_report(swsdask: Call, told: Files, tmp_path: Path) -> None:
    out = tmp_path / "out"
    outcome = swsdask("score", told.reference, told.run, "--out", out)
    as_well = next(line for line in outcome.out.splitlines() if line.startswith("Also scored"))
    assert as_well.endswith(", isf, ssf, pmu_index, pmu_search, pl")
    page = (out / "report.html").read_text()
    swsdask("report", out, out / "again.html")
    assert (out / "again.html").read_text() == page
    section = page.partition('<section id="load">')[2].partition("</section>")[0]
    for text in (
        "Processing load",
        ">11.4<",
        "Lenovo &lt;b&gt;",
        "EPYC",
        ">256<",
        ">2.8<",
        ">7<",
        ">searching<",
    ):
        assert text in section
    assert json.loads((out / "manifest.json").read_text())["runs"]["first"]["resources"]["hardware"][0]["count"] == 7


def test_an_archive_keeps_them(swsdask: Call, told: Files, tmp_path: Path) -> None:
    archive, second = tmp_path / "archive", told.folder / "second.kwslist.xml"
    ingest = ("ingest", archive, told.reference, "--run", told.run, "--run", second)
    assert "version 1, 2 runs" in swsdask(*ingest).out
    assert "version 1, 2 runs" in swsdask(*ingest).out
    assert "Resources are reported of 1 of 2 runs: first" in swsdask("show", archive).out
    straight = scored(swsdask, told.reference, told.run, second)
    assert scored(swsdask, archive) == straight
    told.write("first.resources.toml", "# The same in another shape.\n" + RESOURCES.replace("= 3\n", "= [3.0]\n"))
    assert "version 1, 2 runs" in swsdask(*ingest).out
    told.write("second.resources.toml", RESOURCES)
    refused = swsdask(*ingest)
    assert (refused.code, "a run of 'second' with other content is there" in refused.err) == (2, True)
    assert "version 2, 2 runs" in swsdask(*ingest, "--replace").out
    assert scored(swsdask, archive)["second"]["pl"] == pytest.approx(LOAD["pl"])
    assert "reported of 2 of 2 runs" in swsdask("show", archive).out


def test_the_signature_knows_them(swsdask: Call, told: Files) -> None:
    def signature() -> str:
        text = swsdask("score", told.reference, told.run, "--measures", "pl").out
        return next(line for line in text.splitlines() if line.startswith("Signature"))

    first = signature()
    assert signature() == first
    told.write("first.resources.toml", RESOURCES.replace("cores = 2\n", "cores = 4\n"))
    assert signature() != first


def test_bad_resources(swsdask: Call, told: Files, tmp_path: Path) -> None:
    path = told.write("first.resources.toml", RESOURCES.replace("wall_seconds", "wall_secnds"))
    for command in (
        ("score", told.reference, told.run),
        ("score", told.reference, told.run, "--dry-run"),
        ("ingest", tmp_path / "archive", told.reference, "--run", told.run),
        ("validate", told.run),
        ("validate", path),
    ):
        outcome = swsdask(*command)
        assert outcome.code == 2
        assert f"{path}:4: expected a key of [indexing]; found 'wall_secnds'." in outcome.err
        assert "Traceback" not in outcome.err
    assert not (tmp_path / "archive").exists()


def test_several_systems_in_one_file(swsdask: Call, files: Files) -> None:
    rows = "".join(f"{system}\tK1\ta\t1\t1.1\t0.8\t0.9\tYES\n" for system in ("x", "y"))
    run = files.write("both.tsv", f"system\tquery\tdocument\tchannel\tstart\tduration\tscore\tdecision\n{rows}")
    assert swsdask("score", files.reference, run).code == 0
    files.write("both.resources.toml", RESOURCES)
    outcome = swsdask("score", files.reference, run)
    assert outcome.code == 2
    assert f"{run}: expected one system in a run with resources; found 'y' beside 'x'." in outcome.err


def test_the_example_in_the_documentation(swsdask: Call, files: Files) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/formats.md").read_text(encoding="utf-8")
    path = files.write(
        "first.resources.toml", page.partition(".resources.toml`")[2].partition("```toml\n")[2].partition("```")[0]
    )
    assert swsdask("validate", path).out == f"{path}: a description of resources: 2 phases, 1 type of nodes\n"


def test_a_list_that_gives_times(swsdask: Call, told: Files) -> None:
    (told.folder / "first.resources.toml").unlink()
    timed = RUN.replace('system_id="first"', 'system_id="first" indexing_time="30"')
    told.run.write_text(timed)
    asked = (told.reference, told.run, "--measures", "isf,ssf,pl", "--set", "processing_load.query_seconds=36")
    outcome = swsdask("score", *asked, "--format", "json")
    assert long_form(json.loads(outcome.out)) == {"isf": 0.5, "ssf": 2 / 3600 / (0.01 / 60)}
    assert "no pl: there is no resources.toml" in swsdask("score", *asked).out
    archive = told.folder / "archive"
    assert swsdask("ingest", archive, told.reference, "--run", told.run).code == 0
    kept = [swsdask("score", archive, *asked[2:], "--format", "json").out for _ in range(2)]
    assert kept == [outcome.out] * 2
