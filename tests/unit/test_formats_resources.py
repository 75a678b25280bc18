"""Files that tell resources: what is wrong with them and where, and whose they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdask.archive.validate import validate
from swsdask.formats.find import find_resources, find_runs, resources_of_runs
from swsdask.formats.recognise import Format, sniff
from swsdask.formats.runs.resources import MAX_BYTES, read_resources
from swsdask.model.errors import InputError, Problems

GOOD = """# What it took.
query_seconds = [1.5, 2]
[indexing]
wall_hours = 2
cores = 8
peak_memory_gb = [1, 3]

[[hardware]]
brand = "Dell"
cpu = "Xeon"
cores = 8
clock_ghz = 2.2
ram_gb = 64
os = "Debian 12"
"""
RUN = "query\tdocument\tstart\tduration\tscore\nq\td\t0\t1\t0.5\n"


def test_everything_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.resources.toml"
    path.write_text(GOOD)
    problems = Problems()
    told = read_resources(str(path), problems)
    assert not problems
    assert told is not None
    assert told.query_seconds == (1.5, 2.0)
    assert told.indexing.cpu_time == 16
    assert told.indexing.peak_memory == 3
    assert [(node.brand, node.count, node.phase) for node in told.hardware] == [("Dell", 1, "both")]


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        ("[indexing]\nwal_hours = 1\n", "2: expected a key of [indexing]; found 'wal_hours'. Nearest valid key: wall_"),
        ("\nsearchin.cpu_hours = 1\n", "expected a key of the file; found 'searchin'. Nearest valid key: searching."),
        ("[[hardware]]\n[[hardware]]\nclok = 1\n", "3: expected a key of [[hardware]]; found 'clok'. Nearest valid ke"),
        ("[[hardware]]\n", "1: expected brand in [[hardware]]; found none."),
        ("[indexing]\nwall_hours = 1\n", "1: expected one of cpu_hours, cpu_seconds, wall_hours with cores, wall_sec"),
        ("[indexing]\ncores = 1\ncpu_hours = 1\n", "1: expected one of cpu_hours,"),
        (
            "[searching]\ncpu_hours = 1\ncpu_seconds = 1\n",
            "found cpu_hours, cpu_seconds. Keep one of them in [searching].",
        ),
        ("audio_hours = 1\naudio_seconds = 2\n", "expected one of audio_hours and audio_seconds;"),
        ("\naudio_hours = 0\n", "2: expected a number of at least 1e-09 for audio_hours; found '0'."),
        ("audio_hours = 1e16\n", "1: expected a number of at most 1e+15 for audio_hours"),
        ("audio_hours = nan\n", "1: expected a finite number for audio_hours; found 'NaN'."),
        ("audio_hours = true\n", "1: expected a finite number for audio_hours; found 'true'."),
        ("query_seconds = []\n", "1: expected a number or a list of numbers for query_seconds; found '[]'."),
        ("query_seconds = [1,\n-2]\n", "1: expected a number of at least 1e-09 for query_seconds; found '-2'."),
        ("[indexing]\ncpu_hours = '1'\n", "2: expected a finite number for indexing.cpu_hours; found '\"1\"'."),
        ("[indexing]\ncpu_hours = -1\n", "2: expected a number of at least 0 for indexing.cpu_hours; found '-1'."),
        ("[indexing]\nwall_hours = 1\ncores = 1.5\n", "3: expected a whole number for indexing.cores; found '1.5'."),
        ("[[hardware]]\nphase = 'x'\n", "2: expected 'both', 'indexing' or 'searching' for hardware.phase;"),
        ("[[hardware]]\nbrand = ''\n", "2: expected text for hardware.brand;"),
        ("indexing = 3\n", "1: expected a table for indexing; found '3'."),
        ("[hardware]\n", "1: expected an array of tables for hardware;"),
        ("a = 1\na == 2\n", "2: expected a TOML file; found Invalid value."),
        ("a = " + "[" * 20_000, "1: expected a TOML file; found Nested too deeply."),
        ("a = " + "1" * 5_000, "1: expected a TOML file; found An integer of more than 64 bits."),
        ("a = '\xff'\n".encode("latin-1"), "1: expected text in UTF-8; found the byte 0xff."),
        ("", "expected a file with content; found an empty file."),
        ("#\n" * MAX_BYTES, f"expected a description of resources; found more than {MAX_BYTES} bytes."),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(tmp_path: Path, content: str | bytes, wrong: str) -> None:
    path = tmp_path / "resources.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    problems = Problems()
    assert read_resources(str(path), problems) is None
    told = "\n".join(str(problem).removeprefix(str(path)).lstrip(":") for problem in problems)
    assert wrong in told


def test_problems_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "resources.toml"
    path.write_text("[searching]\nx = 1\ncpu_hours = 'a'\n[indexing]\ny = 1\n")
    problems = Problems()
    read_resources(str(path), problems)
    assert [problem.line for problem in problems] == [2, 3, 5]


def test_content_or_name_decides_what_a_file_is(tmp_path: Path) -> None:
    for name, content in (("anything", GOOD), ("resources.toml", "# later\n"), ("b.resources.toml", "x = 1\n")):
        (tmp_path / name).write_text(content)
        assert sniff(str(tmp_path / name)) is Format.RESOURCES
    (tmp_path / "blank").write_text("\n \t\n" * 100_000)
    with pytest.raises(InputError):
        sniff(str(tmp_path / "blank"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.tsv").write_text(RUN)
    return tmp_path


def find(*runs: Path) -> tuple[dict[str, str], list[str]]:
    problems = Problems()
    return find_resources(map(str, runs), problems), [str(problem) for problem in problems]


def test_resources_belong_to_the_run_beside_them(folder: Path) -> None:
    a, b = folder / "a.tsv", folder / "b.tsv.gz"
    assert find(a) == ({}, [])
    own = folder / "a.resources.toml"
    own.write_text(GOOD)
    assert find(a, b) == ({str(a): str(own)}, [])
    common = own.rename(folder / "resources.toml")
    assert find(a) == ({str(a): str(common)}, [])
    assert find_resources([a.as_uri()], Problems()) == {a.as_uri(): common.as_uri()}
    assert find_resources([f"simplecache::{a.as_uri()}"], Problems()) == {}


def test_whose_they_are_must_be_clear(folder: Path) -> None:
    a, own, common = folder / "a.tsv", folder / "a.resources.toml", folder / "resources.toml"
    own.write_text(GOOD)
    common.write_text(GOOD)
    found = f"{common}: expected one run in the folder, and one file for it; found {own}."
    assert find(a)[1] == [f"{found} Name it after its run: NAME.resources.toml."]
    own.unlink()
    (folder / "b.tsv").write_text(RUN)
    assert "found 2 runs." in find(a)[1][0]
    with pytest.raises(InputError, match="found 2 runs"):
        resources_of_runs([str(a)])


def test_every_wrong_file_is_reported(folder: Path) -> None:
    (folder / "b.tsv").write_text(RUN)
    for name in "ab":
        (folder / f"{name}.resources.toml").write_text(f"{name} = 1\n")
    with pytest.raises(InputError) as caught:
        resources_of_runs([str(folder / "a.tsv"), str(folder / "b.tsv")])
    assert [(Path(each.file).name, each.found) for each in caught.value.problems] == [
        ("a.resources.toml", "'a'"),
        ("b.resources.toml", "'b'"),
    ]


def test_a_folder_of_runs_may_hold_their_resources_and_no_others(folder: Path) -> None:
    (folder / "a.resources.toml").write_text(GOOD)
    assert find_runs([str(folder)]) == [str(folder / "a.tsv")]
    (folder / "c.resources.toml").write_text(GOOD)
    with pytest.raises(InputError, match=r"c\.resources\.toml: expected its run in the same folder"):
        find_runs([str(folder)])


def test_resources_are_no_run(folder: Path) -> None:
    path = folder / "a.resources.toml"
    path.write_text(GOOD)
    assert [str(each.format) for each in validate([str(path)]).files] == ["Format.RESOURCES"]
    report = validate([str(folder)])
    assert [(Path(each.file).name, each.format) for each in report.files] == [
        ("a.tsv", Format.TABLE),
        ("a.resources.toml", Format.RESOURCES),
    ]
    assert report.files[1].counts == {"phases": 1, "types of nodes": 1}
    path.write_text("cpu_hours = 1\n")
    assert [problem.line for problem in validate([str(folder)]).problems] == [1]
    assert [problem.line for problem in validate([str(folder / "a.tsv"), str(path)]).problems] == [1]
