"""How the command behaves towards its user: streams, places that cannot be written, names that are nearly right."""

from __future__ import annotations

import errno
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import click
import pytest

from swsdask.archive.versions import CODECS
from swsdask.cli import COMMANDS, cli
from swsdask.cli.options import Age
from tests.command_line import Outcome
from tests.small_evaluation import RUN, Files

Call = Callable[..., Outcome]


def test_a_command_that_is_nearly_right(swsdask: Call) -> None:
    outcome = swsdask("scroe")
    assert outcome.code == 2
    assert "score" in outcome.err


def test_compressions_of_an_archive() -> None:
    command = cli.get_command(click.Context(cli), "ingest")
    assert command is not None
    (codec,) = (param.type for param in command.params if param.name == "codec")
    assert isinstance(codec, click.Choice)
    assert tuple(codec.choices) == CODECS


@pytest.mark.parametrize(
    "arguments", ["presets", "score {reference} {run} -q --measures atwv,mtwv", "--version", "--help", "score --help"]
)
def test_output_that_nobody_reads_to_the_end(files: Files, arguments: str) -> None:
    """The reader is gone before anything is written."""
    given = arguments.format(reference=files.reference, run=files.run)
    command = f"{sys.executable} -m swsdask {given} | exec 0<&-; echo ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert ended.stdout.endswith("0\n")
    assert ended.stderr == ""


@pytest.mark.parametrize("arguments", [["--preset", ""], ["--measures="], ["--out", ""], [""]])
def test_an_empty_argument_is_no_value(swsdask: Call, files: Files, arguments: list[str]) -> None:
    """It would be taken as an option that is not given, or as the working directory."""
    outcome = swsdask("score", files.reference, files.run, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert "empty. Is a shell variable unset?" in outcome.err


def test_a_name_that_is_not_utf_8_is_refused_before_the_work(swsdask: Call, files: Files) -> None:
    folder = files.folder / "runs"
    folder.mkdir()
    odd = os.fsdecode(os.fsencode(folder / "syst") + b"\xe8me.kwslist.xml")
    Path(odd).write_text(RUN)
    for arguments in (["score", files.reference, odd], ["convert", odd, "x.tsv"], ["convert", files.run, f"{odd}.tsv"]):
        outcome = swsdask(*arguments)
        assert (outcome.code, outcome.out) == (2, "")
        assert "expected UTF-8; found bytes of another encoding. Rename the file." in outcome.err
    outcome = swsdask("score", files.reference, folder)
    assert (outcome.code, outcome.out) == (2, "")
    assert r"syst\udce8me.kwslist.xml: expected a name in UTF-8; found bytes of another encoding." in outcome.err


def test_dotted_names_of_settings_are_those_that_are_listed(swsdask: Call, files: Files) -> None:
    plain = swsdask("score", files.reference, files.run, "-q", "--measures", "atwv")
    set_ = ("--set", "engine.rows_per_task=1000", "--set", "evaluation.trials=virtual")
    assert swsdask("score", files.reference, files.run, "-q", "--measures", "atwv", *set_).out == plain.out
    outcome = swsdask("score", files.reference, files.run, "--set", "engine.fan=2")
    assert (outcome.code, "setting engine.fan: unknown key. Nearest valid key: fan_in" in outcome.err) == (2, True)


def test_names_that_the_encoding_of_the_output_lacks(files: Files) -> None:
    command = [sys.executable, "-m", "swsdask", "score", files.reference, f"система={files.run}", "-q"]
    ended = subprocess.run(command, capture_output=True, env={**os.environ, "PYTHONIOENCODING": "latin-1"}, check=True)
    assert rb"\u0441\u0438\u0441\u0442\u0435\u043c\u0430" in ended.stdout


@pytest.mark.parametrize(("columns", "widest"), [("0", None), ("1", 20), ("40", 40), ("x", None)])
def test_the_width_that_the_environment_says(
    swsdask: Call, files: Files, monkeypatch: pytest.MonkeyPatch, columns: str, widest: int | None
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = swsdask("score", files.reference, files.run, "-q", "--measures", "atwv,mtwv,otwv").out.splitlines()
    assert any("ATWV" in line for line in lines)
    table = [line for line in lines if "─" in line]
    assert table
    assert widest is None or max(map(len, table)) <= widest


def test_standard_output_may_be_closed() -> None:
    ended = subprocess.run(["bash", "-c", f"{sys.executable} -m swsdask presets >&-"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_full_disk_is_no_fault_of_ours(monkeypatch: pytest.MonkeyPatch, swsdask: Call, files: Files) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "out/scores.parquet")

    monkeypatch.setattr("swsdask.write", full)
    outcome = swsdask("score", files.reference, files.run, "--out", files.folder / "out")
    assert outcome.code == 2
    assert "out/scores.parquet: No space left on device" in outcome.err


ENDED_AT = """
import os, runpy, signal, sys

class Ends:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{number})

signal.signal(signal.{number}, signal.{handler})
sys.meta_path.insert(0, Ends())
sys.argv = ["swsdask", "presets"]
runpy.run_module("swsdask", run_name="__main__")
"""
"""A command that is sent a signal while it imports a module."""


@pytest.mark.parametrize(
    ("number", "handler", "code", "line"),
    [
        ("SIGINT", "default_int_handler", 130, "swsdask: interrupted"),
        ("SIGTERM", "SIG_DFL", 143, "swsdask: terminated"),
        ("SIGHUP", "SIG_DFL", 129, "swsdask: the terminal is gone"),
    ],
)
@pytest.mark.parametrize("module", ["swsdask.cli", "swsdask.cli.catalogue"])
def test_a_signal_while_modules_are_loaded(module: str, number: str, handler: str, code: int, line: str) -> None:
    script = ENDED_AT.format(module=module, number=number, handler=handler)
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr.strip()) == (code, line)


def test_an_ignored_signal_stays_ignored() -> None:
    script = ENDED_AT.format(module="click", number="SIGHUP", handler="SIG_IGN")
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "sws2013" in ended.stdout


def test_memory_that_is_not_enough(monkeypatch: pytest.MonkeyPatch, swsdask: Call, files: Files) -> None:
    def short(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr("swsdask.write", short)
    outcome = swsdask("score", files.reference, files.run, "--out", files.folder / "out")
    assert outcome.code == 2
    assert "out of memory. Give the process more memory" in outcome.err.splitlines()[-1]


@pytest.mark.parametrize(("out", "part"), [("https://host/x", "https://host/x"), ("first.kwslist.xml/x", "is a file")])
def test_results_that_cannot_be_written_are_refused_before_the_work(
    swsdask: Call, files: Files, monkeypatch: pytest.MonkeyPatch, out: str, part: str
) -> None:
    monkeypatch.chdir(files.folder)
    before = sorted(files.folder.iterdir())
    for command in (["score", files.reference, "nothing there"], ["demo"]):
        outcome = swsdask(*command, "--out", out)
        assert outcome.code == 2
        assert part in outcome.err
    assert sorted(files.folder.iterdir()) == before


def test_measures_as_people_write_them(swsdask: Call, files: Files) -> None:
    outcome = swsdask("score", files.reference, files.run, "--measures", "ATWV, mtwv,")
    assert outcome.code == 0, outcome.err
    assert "ATWV" in outcome.out
    assert "MTWV" in outcome.out


def test_a_readme_among_runs_is_passed_over(swsdask: Call, files: Files) -> None:
    files.write("runs/README", "about these runs\n")
    files.write("runs/notes.md", "# more\n")
    files.write("runs/a.kwslist.xml", RUN)
    assert swsdask("score", files.reference, files.folder / "runs").code == 0
    files.write("runs/readme_of_old.tsv", "nonsense\n")
    assert swsdask("score", files.reference, files.folder / "runs").code == 2


def test_a_file_whose_name_looks_like_a_glob(swsdask: Call, files: Files) -> None:
    assert swsdask("score", files.reference, files.write("run [1].kwslist.xml", RUN)).code == 0


def test_missing_columns_are_reported_beside_those_that_came(swsdask: Call, files: Files) -> None:
    table = files.write("t.tsv", "kw\tdocument\tstart\tduration\tscore\nK1\ta\t1\t1\t1\n")
    outcome = swsdask("score", files.reference, table)
    assert "t.tsv:1: expected the columns query, document, start, duration, score; found 'kw, document" in outcome.err


def test_an_archive_names_its_systems(swsdask: Call, files: Files) -> None:
    archive = files.folder / "archive"
    assert swsdask("ingest", archive, files.reference, "--run", files.run).code == 0
    outcome = swsdask("score", archive, "frist")
    assert outcome.code == 2
    assert "frist is neither a file nor a system of the archive: first" in outcome.err
    outcome = swsdask("score", archive, "first", files.run)
    assert outcome.code == 2
    assert "first is a system of the archive" in outcome.err
    outcome = swsdask("validate", archive)
    assert outcome.code == 2
    assert f"swsdask show {archive}" in outcome.err


def test_a_cluster_that_is_waited_for_is_named(swsdask: Call, files: Files) -> None:
    place = files.write("place.toml", 'kind = "address"\naddress = "tcp://127.0.0.1:9"\ntimeout_s = 1\n')
    outcome = swsdask("score", files.reference, files.run, "--cluster", place)
    assert outcome.code == 4
    assert "swsdask: connecting to the scheduler at tcp://127.0.0.1:9, 1 second at most\n" in outcome.err
    place = files.write("file.toml", 'kind = "scheduler_file"\npath = "nowhere.json"\ntimeout_s = 0.2\n')
    outcome = swsdask("score", files.reference, files.run, "--cluster", place)
    assert outcome.code == 4
    assert "swsdask: waiting for a scheduler to write nowhere.json, 0.2 seconds at most\n" in outcome.err


def test_a_cluster_that_is_not_there_is_reported_before_the_work(swsdask: Call, files: Files) -> None:
    place = files.write("keys.toml", f'kind = "address"\naddress = "tcp://127.0.0.1:9"\ntls_key = "{files.run}"\n')
    for cluster, message in (
        ("nosuch", "'nosuch' is neither"),
        ("tls://10.0.0.1:8786", "a scheduler with TLS needs keys"),
        (str(place), "this address is without TLS"),
    ):
        outcome = swsdask("score", files.reference, files.run, "--cluster", cluster, "--dry-run")
        assert outcome.code == 2
        assert message in outcome.err
        assert outcome.out == ""


def test_a_run_can_be_renamed_when_two_have_one_name(swsdask: Call, files: Files) -> None:
    other = files.write("other.kwslist.xml", RUN)
    outcome = swsdask("score", files.reference, files.run, other)
    assert outcome.code == 2
    assert "give each as NAME=FILE" in outcome.err
    named = swsdask("score", files.reference, f"one={files.run}", f"other={other}", "--measures", "atwv")
    assert named.code == 0, named.err
    assert [line.split()[0] for line in named.out.splitlines() if "-7.7237" in line] == ["one", "other"]
    assert swsdask("convert", other, files.folder / "second.tsv", "--system", "second").code == 0
    assert swsdask("score", files.reference, files.run, files.folder / "second.tsv").code == 0


def test_a_file_whose_name_looks_like_a_name_and_a_file(
    swsdask: Call, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files.folder)
    files.write("alpha=1.kwslist.xml", RUN)
    for given, system in (
        ("alpha=1.kwslist.xml", "first"),
        ("alpha=*.xml", "first"),
        ("beta=alpha=1.kwslist.xml", "beta"),
        ("./alpha=1.kwslist.xml", "first"),
    ):
        outcome = swsdask("score", files.reference, given, "--dry-run")
        assert f"{system}: 4 detections" in outcome.out, outcome.err
    assert "first.xml: expected a file" in swsdask("score", files.reference, "alpha=first.xml").err
    assert "expected a file; found a folder" in swsdask("score", files.reference, "alpha=reference").err


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        (["one=first.kwslist.xml", "first.kwslist.xml"], "all RUNs as NAME=FILE, as one=first.kwslist.xml, or none"),
        (["one=first.kwslist.xml", "one=other.xml"], "one names two RUNs: first.kwslist.xml and other.xml"),
    ],
)
def test_runs_are_named_all_or_none(
    swsdask: Call, files: Files, monkeypatch: pytest.MonkeyPatch, given: list[str], reported: str
) -> None:
    monkeypatch.chdir(files.folder)
    outcome = swsdask("score", files.reference, *given)
    assert outcome.code == 2
    assert reported in outcome.err
    runs = [word for run in given for word in ("--run", run)]
    assert reported in swsdask("ingest", files.folder / "archive", files.reference, *runs).err


def test_a_system_of_an_archive_may_be_named_like_a_file_with_its_name(swsdask: Call, files: Files) -> None:
    runs = [files.folder / f"{number}.tsv" for number in (1, 2)]
    for number, run in enumerate(runs, 1):
        assert swsdask("convert", files.run, run, "--system", f"lr=0.0{number}").code == 0
    archive = files.folder / "archive"
    assert swsdask("ingest", archive, files.reference, *runs, files.run).code == 0
    scored = swsdask("score", archive, "lr=0.01", "--measures", "atwv")
    assert (scored.code, "lr=0.01" in scored.out, "lr=0.02" in scored.out) == (0, True, False), scored.err
    assert swsdask("errors", archive, "lr=0.01").code == 0
    for other in ("lr=0.02", "first"):
        compared = swsdask("compare", archive, "lr=0.01", other, "--measures", "stwv", "--replicates", "20")
        assert compared.code == 0, compared.err


def test_a_run_is_ingested_under_the_name_it_is_given(swsdask: Call, files: Files) -> None:
    outcome = swsdask("ingest", files.folder / "archive", files.reference, "--run", f"mine={files.run}")
    assert "  mine: 4 detections\n" in outcome.out, outcome.err


@pytest.mark.parametrize(("target", "part"), [("x.docx", ".kwslist.xml"), ("nowhere/x.tsv", "no folder")])
def test_convert_names_its_target(swsdask: Call, files: Files, target: str, part: str) -> None:
    outcome = swsdask("convert", files.run, files.folder / target)
    assert outcome.code == 2
    assert f"{target}: expected" in outcome.err
    assert part in outcome.err


def test_the_demo_replaces_an_earlier_one(swsdask: Call, tmp_path: Path) -> None:
    def files_of(out: str, seed: str) -> dict[Path, bytes | None]:
        outcome = swsdask("demo", "--hours", "0.1", "--queries", "3", "--out", tmp_path / out, "--seed", seed)
        assert outcome.code == 0, outcome.err
        folder = tmp_path / out / "files"
        return {path.relative_to(folder): content for path, content in contents(folder).items()}

    first, second, alone = files_of("demo", "1"), files_of("demo", "2"), files_of("other", "2")
    assert second == alone
    assert second != first


SMALL = ("demo", "--hours", "0.1", "--queries", "3", "--out")


def contents(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("option", ["--hours=0", "--hours=nan", "--hours=inf", "--hours=1e300", "--seed=-1"])
def test_the_demo_checks_its_options_before_it_removes_anything(swsdask: Call, tmp_path: Path, option: str) -> None:
    assert swsdask(*SMALL, tmp_path).code == 0
    before = contents(tmp_path)
    outcome = swsdask("demo", option, "--out", tmp_path)
    assert outcome.code == 2, outcome.err
    assert option.partition("=")[0] in outcome.err
    assert contents(tmp_path) == before


def error_beside(mine: Path, swsdask: Call, out: Path) -> str:
    """The message of a demo that finds a file in its folder, and leaves it and all others."""
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    before = contents(out)
    outcome = swsdask(*SMALL, out, "--nightly")
    assert outcome.code == 2
    assert contents(out) == before
    return outcome.err


@pytest.mark.parametrize("name", ["archive/x", "inbox/notes.txt", "board/mine.txt", "nightly.toml", "demo.txt"])
def test_the_demo_leaves_a_folder_that_no_demo_made(swsdask: Call, tmp_path: Path, name: str) -> None:
    said = error_beside(tmp_path / name, swsdask, tmp_path)
    assert f"{tmp_path / name.partition('/')[0]}: expected nothing, or what an earlier demo made" in said


def test_the_demo_leaves_what_was_added_to_an_earlier_one(swsdask: Call, tmp_path: Path) -> None:
    assert swsdask(*SMALL, tmp_path, "--nightly").code == 0
    assert swsdask(*SMALL, tmp_path, "--nightly").code == 0
    for name in ("archive/x", "inbox/notes.txt", "inbox/mine/run.kwslist.xml", "board/mine.txt"):
        said = error_beside(tmp_path / name, swsdask, tmp_path)
        assert f"{tmp_path / name}: expected only what an earlier demo made" in said
        (tmp_path / name).unlink()
    (tmp_path / "inbox/mine").rmdir()
    assert swsdask(*SMALL, tmp_path).code == 0


def test_the_demo_leaves_an_archive_with_runs_of_others(swsdask: Call, tmp_path: Path) -> None:
    assert swsdask(*SMALL, tmp_path).code == 0
    mine = f"mine={tmp_path / 'files' / 'runs' / 'weak.kwslist.xml'}"
    assert swsdask("ingest", tmp_path / "archive", "--run", mine).code == 0
    outcome = swsdask(*SMALL, tmp_path)
    assert outcome.code == 2
    assert f"{tmp_path / 'archive'}, run 'mine': expected only what an earlier demo made" in outcome.err
    assert swsdask("show", tmp_path / "archive").out.count("mine")


def test_the_command_that_the_demo_prints_is_quoted(swsdask: Call, tmp_path: Path) -> None:
    folder = tmp_path / "b c" / "ä ö"
    printed = swsdask(*SMALL, folder).out
    (by_hand,) = (line for line in printed.splitlines() if line.startswith("  swsdask score"))
    assert shlex.split(by_hand)[2:4] == [str(folder / "files"), str(folder / "files" / "runs")]
    assert f"swsdask nightly '{folder / 'nightly.toml'}'" in swsdask(*SMALL, folder, "--nightly").out


def test_a_corpus_is_written_whole_or_not_at_all(swsdask: Call, tmp_path: Path) -> None:
    outcome = swsdask("simulate", "discovery", "--phones", "1", "--out", tmp_path)
    assert outcome.code == 2
    assert "increase --phones" in outcome.err
    assert contents(tmp_path) == {}


def options() -> list[tuple[str, str]]:
    """Every option that takes a number that need not be whole."""
    found = []
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        for each in command.commands.values() if isinstance(command, click.Group) else [command]:
            called = name if each is command else f"{name} {each.name}"
            found += [(called, param.opts[0]) for param in each.params if isinstance(param.type, click.FloatRange)]
    return found


@pytest.mark.parametrize(
    ("unit", "value", "seconds"),
    [("h", "24h", 86_400), ("h", "2d", 172_800), ("h", "1.5", 5400), ("d", "1", 86_400), ("d", "36h", 129_600)],
)
def test_an_age_has_a_unit(unit: Literal["h", "d"], value: str, seconds: float) -> None:
    assert Age(unit).convert(value, None, None) == seconds


@pytest.mark.parametrize("value", ["", "h", "7w", "1e999", "inf", "nan", "-1d"])
def test_what_is_no_age(value: str) -> None:
    with pytest.raises(click.BadParameter, match="as 36h or 7d"):
        Age("h").convert(value, None, None)


def test_there_are_such_options() -> None:
    assert ("vacuum", "--older-than") in options()


@pytest.mark.parametrize(("command", "option"), options())
@pytest.mark.parametrize("number", ["nan", "-1"])
def test_no_option_takes_nan_or_a_negative_number(swsdask: Call, command: str, option: str, number: str) -> None:
    outcome = swsdask(*command.split(), f"{option}={number}")
    assert outcome.code == 2
    assert f"Invalid value for '{option}'" in outcome.err


def test_a_stream_that_is_not_there(monkeypatch: pytest.MonkeyPatch, swsdask: Call) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert swsdask("presets").code == 0


def test_an_alignment_needs_a_place(swsdask: Call, files: Files) -> None:
    outcome = swsdask("score", files.reference, files.run, "--alignment")
    assert outcome.code == 2
    assert "--alignment goes with --out" in outcome.err


def test_a_plan_has_no_json(swsdask: Call, files: Files) -> None:
    outcome = swsdask("score", files.reference, files.run, "--dry-run", "--format", "json")
    assert (outcome.code, outcome.out) == (2, "")
    assert "--dry-run prints the plan in words" in outcome.err


def test_replacing_is_reported_as_it_is_requested(swsdask: Call, files: Files) -> None:
    archive = files.folder / "archive"
    assert swsdask("ingest", archive, files.reference, "--run", files.run).code == 0
    files.write("first.kwslist.xml", RUN.replace("0.9", "0.8"))
    outcome = swsdask("ingest", archive, "--run", files.run)
    assert outcome.code == 2
    assert "(--replace)" in outcome.err
    assert swsdask("ingest", archive, "--run", files.run, "--replace").code == 0


def test_a_table_of_two_systems_is_reported_by_its_own_name(swsdask: Call, files: Files) -> None:
    columns = "system\tquery\tdocument\tstart\tduration\tscore\n"
    table = files.write("two.tsv", columns + "one\tK1\ta\t1\t1\t1\ntwo\tK1\ta\t1\t1\t1\n")
    outcome = swsdask("convert", table, files.folder / "out.kwslist.xml")
    assert outcome.code == 2
    assert f"swsdask: {table}: expected rows of one system; found rows of 'one' and 'two'" in outcome.err


def test_what_is_so_for_all_systems_is_said_once(swsdask: Call, files: Files) -> None:
    undecided = files.write("other.kaldi.txt", "K1 a 1.1 1.9 0.9\n")
    outcome = swsdask("score", files.reference, f"one={files.run}", f"two={undecided}")
    assert outcome.out.count("MAP averages") == 1
    assert "Note: both systems: MAP averages 2 queries; left out: 1 query without targets.\n" in outcome.out
    assert "Note: two: 1 of 1 trial without" in outcome.out


def test_pipes_are_read_as_files_are(swsdask: Call, files: Files) -> None:
    expected = swsdask("score", files.reference, files.run, "--measures", "atwv", "--format", "json")
    reference = " ".join(
        f"{option} <(cat {files.reference}/x.{name})"
        for option, name in (("--ecf", "ecf.xml"), ("--rttm", "rttm"), ("--queries", "kwlist.xml"))
    )
    command = f"{sys.executable} -m swsdask score {reference} /dev/stdin --measures atwv --format json"
    with open(files.run, "rb") as run:
        cat = subprocess.Popen(["cat"], stdin=run, stdout=subprocess.PIPE)
        found = subprocess.run(["bash", "-c", command], stdin=cat.stdout, capture_output=True, text=True, check=False)
        cat.wait()
        assert cat.stdout
        cat.stdout.close()
    assert (found.returncode, found.stdout) == (0, expected.out), found.stderr


def test_quiet_and_verbose(swsdask: Call, files: Files) -> None:
    asked = ("score", files.reference, files.run, "--measures", "mtwv")
    plain, quiet, verbose = swsdask(*asked), swsdask(*asked, "-q"), swsdask(*asked, "-v")
    assert plain.out == quiet.out == verbose.out
    assert quiet.err == ""
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00 swsdask: "
    assert all(re.match(stamp, line) for line in (*plain.err.splitlines(), *verbose.err.splitlines()))
    begun = [re.sub(stamp, "", line) for line in plain.err.splitlines()]
    assert begun == ["systems: 4 rows"]
    ended = [re.sub(stamp, "", line) for line in verbose.err.splitlines()][1::2]
    assert [line.rpartition(": ")[0] for line in ended] == ["systems"]
    assert all(re.fullmatch(r"\d+\.\d s", line.rpartition(": ")[2]) for line in ended)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_takes_them(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    for each in command.commands.values() if isinstance(command, click.Group) else (command,):
        opts = [opt for param in each.params for opt in param.opts]
        assert sorted(opt for opt in opts if opt in ("-q", "-v")) == ["-q", "-v"]


def test_a_link_without_target_and_a_pipe_in_a_folder_are_not_skipped(swsdask: Call, files: Files) -> None:
    runs = files.folder / "submitted"
    runs.mkdir()
    (runs / "first.stdlist.xml").symlink_to(files.run)
    (runs / ".hidden").symlink_to("nowhere")
    assert swsdask("score", files.reference, runs, "--measures", "atwv").code == 0
    (runs / "second.xml").symlink_to("nowhere")
    for found in ("a link whose target is missing", "a pipe, a socket or a device"):
        for command in (["score", files.reference, runs], ["validate", runs], ["ingest", files.folder / "new", runs]):
            refused = swsdask(*command)
            assert refused.code == 2
            assert f"{runs}/second.xml: expected a file; found {found}. Remove it from the folder" in refused.err
        (runs / "second.xml").unlink()
        os.mkfifo(runs / "second.xml")


def test_every_missing_run_is_named(files: Files, swsdask: Call) -> None:
    named = ("a=nothing.tsv", f"b={files.run}", "c=nowhere.tsv")
    for runs in (named, tuple(run.partition("=")[2] for run in named)):
        refused = swsdask("score", files.reference, *runs)
        assert refused.code == 2
        for name in ("nothing.tsv", "nowhere.tsv"):
            assert f"{name}: expected a file or folder; found nothing there" in refused.err
