"""Nights: what is new is found, scored, compared and published; what is wrong is said and loses nothing."""

from __future__ import annotations

import dataclasses
import errno
import json
import logging
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import pytest
from fsspec.implementations.local import LocalFileSystem
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import swsdask as sws
from swsdask.archive import ingest as write_archive
from swsdask.archive import local
from swsdask.archive.nights import History, read_history
from swsdask.archive.storage import Storage
from swsdask.archive.store import open_archive
from swsdask.cli import main
from swsdask.ending import Ended
from swsdask.execution.executor import ThreadExecutor
from swsdask.model.comparison import Resampling
from swsdask.model.errors import ArchiveError, InputError, SettingsError
from swsdask.model.leaderboard import NEW, REPLACED, SETTINGS, Move, Record, Refused
from swsdask.model.safe_text import visible
from swsdask.nightly import intake, lease, steps, verdict
from swsdask.nightly.board import board_page, publish
from swsdask.nightly.inbox import look
from swsdask.nightly.lease import HOLDS_S, BusyError, Holder, night_lease
from swsdask.nightly.overview import link, publish_overview
from swsdask.nightly.settings import NightlyEvaluation, NightlySettings, example, load_nightly
from swsdask.nightly.steps import notify, plan_night, run_night
from swsdask.places import stamps
from swsdask.render import nightly as render_nightly
from swsdask.render.nightly import atom_feed, index, metrics, text_plot
from swsdask.simulate.evaluation import NIGHTLY_SETTINGS as FILE
from swsdask.simulate.evaluation import nights, simulate, write
from tests.faults.nights import timeless

DAY = date(2020, 1, 1)


CHANGED = stamps._changed


@pytest.fixture(scope="module", autouse=True)
def as_if_not_copied() -> Iterator[None]:
    """The times at which the state of files changed are not looked at: a copy has others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stamps, "_changed", lambda info: [info["mtime"]])
        patch.setattr(stamps, "SETTLED_S", 0.1)
        yield


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The nights of `swsdask demo --nightly`, by the command; their exit codes are in `codes`."""
    folder = tmp_path_factory.mktemp("nights")
    write(simulate(1, hours=0.3, n_queries=8), folder / "files")
    (folder / "nightly.toml").write_text(FILE.replace(" with p < .05", ""))
    codes = []
    for _, happen in nights(folder / "files" / "runs", folder / "inbox"):
        happen()
        codes.append(code_of([str(folder / "nightly.toml"), "-q"]))
    (folder / "codes").write_text(json.dumps(codes))
    return Path(shutil.copytree(folder, folder.with_name("pristine")))


@pytest.fixture
def three_nights(pristine: Path) -> Path:
    """The same at the place where it was made: files of an inbox are known by their paths."""
    folder = next(pristine.parent.glob("nights*"))
    shutil.rmtree(folder)
    return Path(shutil.copytree(pristine, folder))


def code_of(arguments: Sequence[str]) -> int:
    try:
        main(["nightly", *arguments])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def board_of(folder: Path) -> dict[str, bytes]:
    """Its files, but for how long the night took."""
    files = files_of(folder / "board")
    metrics = str(folder / "board/metrics.prom")
    return {**files, metrics: timeless(files[metrics])}


def test_three_nights(three_nights: Path) -> None:
    assert json.loads((three_nights / "codes").read_text()) == [0, 0, 3]
    first, second, third = (night.record for night in read_history(Storage(str(three_nights / "archive"))).nights)
    assert [(move.system, move.reason, move.baseline) for move in first.moves] == [
        (system, NEW, None) for system in ("middling", "overconfident", "weak")
    ]
    assert {(move.system, move.reason, move.baseline) for move in second.moves} == {
        ("keyword-specific", NEW, None),
        ("weak", REPLACED, "weak (night 1)"),
    }
    (worse,) = third.moves
    assert (worse.reason, worse.value < worse.was, 0 <= worse.p <= 1) == (REPLACED, True, True)
    assert len(third.gates) == 1
    assert [(each.system, each.total) for each in third.refused] == [("calibrated", 1)]
    assert "cut off" in third.refused[0].problems[0]


def test_numbers_of_the_history_are_those_of_scoring(three_nights: Path) -> None:
    frame = sws.history(three_nights / "archive")
    now = frame[frame["night"] == frame.groupby("system")["night"].transform("max")]
    scored = sws.score(three_nights / "archive", list(now["measure"].unique()), cache=False).scores
    overall = scored[scored["query"].isna()].set_index(["system", "measure"])["value"].sort_index()
    assert now.set_index(["system", "measure"])["value"].sort_index().equals(overall)
    row = now[now["system"] == "weak"].iloc[0]
    measures = ["atwv", "mtwv", "otwv", "stwv", "cnxe", "cnxe_min", "map"]
    alone = sws.score(three_nights / "archive", measures, runs="weak")
    assert alone.manifest["signature"] == row["signature"]
    earlier = sws.score(sws.open(three_nights / "archive", version=1), "atwv", runs="weak").scores["value"].iloc[0]
    was = frame[(frame["night"] == 1) & (frame["system"] == "weak") & (frame["measure"] == "atwv")]["value"].iloc[0]
    assert was == earlier


def test_board(three_nights: Path) -> None:
    board = three_nights / "board"
    page = (board / "index.html").read_text()
    assert "Refused runs" in page
    assert "1 gate failed" in page
    latest = json.loads((board / "latest.json").read_text())
    assert (latest["night"], list(latest["systems"])) == (3, list(latest["systems"]))
    value = latest["systems"]["weak"]["values"]["all"]["atwv"]
    assert f"{value:.4f}" in page
    assert (board / "nights/00000002.html").stat().st_size > 10_000
    assert 'viewBox="0 0 160 28"' in page
    assert {*re.findall(r'<circle cx="([\d.]+)"', page)} == {"158.0"}
    past = read_history(Storage(str(three_nights / "archive")))
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    second = index(board_page(asked, History(past.nights[:2])))
    assert re.findall(r'([\w-]+)<span class="new">', second) == ["keyword-specific"]
    assert '<span class="new">' not in page


NAMES = ("demo", 'a "name"\\of <two>\nlines & é')
ACTS = "\x1b[31m\u202e"


@pytest.mark.parametrize("name", NAMES)
def test_metrics_are_open_metrics(three_nights: Path, name: str) -> None:
    """As the parser of Prometheus's client reads them, whatever the evaluation is called."""
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    page = board_page(asked.model_copy(update={"name": name}), read_history(Storage(asked.archive)))
    families = {each.name: each for each in text_string_to_metric_families(metrics(page, 12.5))}
    assert {each.type for each in families.values()} == {"gauge"}
    assert all(each.documentation for each in families.values())
    expected = {
        "duration_seconds": 12.5,
        "night": 3,
        "rows": page.nights[-1].rows,
        "systems": 4,
        "systems_scored": 1,
        "runs_new": 1,
    }
    for metric, number in {**expected, "runs_refused": 1, "gates_failed": 1}.items():
        (found,) = families[f"swsdask_{metric}"].samples
        assert (metric, found.labels, found.value) == (metric, {"evaluation": name}, number)
    told = {
        (of["system"], of["measure"]): value
        for _, of, value, *_ in families["swsdask_value"].samples
        if of["condition"] == "all" and of["evaluation"] == name
    }
    latest = json.loads((three_nights / "board/latest.json").read_text())["systems"]
    assert told == {
        (system, measure): value
        for system, said in latest.items()
        for measure, value in said["values"]["all"].items()
        if value is not None
    }
    if name == "demo":
        written = (three_nights / "board/metrics.prom").read_bytes()
        assert timeless(written) == timeless(metrics(page, 12.5).encode()) != written
        (took,) = re.findall(r'(?m)^swsdask_duration_seconds{evaluation="demo"} ([\d.]+)$', written.decode())
        assert float(took) > 0


@pytest.mark.parametrize("name", [*NAMES, ACTS])
def test_the_feed_has_what_atom_requires(three_nights: Path, name: str) -> None:
    """RFC 4287, 4.1: ids are IRIs, all different; each entry has one title, time and author, and links to its page."""
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    files = Storage(asked.out).files(below=True)
    page = board_page(asked.model_copy(update={"name": name}), read_history(Storage(asked.archive)), files)
    atom = "{http://www.w3.org/2005/Atom}"
    root = ElementTree.fromstring(atom_feed(page))
    entries = root.findall(f"{atom}entry")
    assert (root.tag, root.findtext(f"{atom}title"), len(entries)) == (f"{atom}feed", visible(name), 3)
    for each in (root, *entries):
        assert [len(each.findall(f"{atom}{one}")) for one in ("id", "title", "updated")] == [1, 1, 1]
        assert datetime.fromisoformat(each.findtext(f"{atom}updated", "")).tzinfo is not None
    ids = [each.findtext(f"{atom}id", "") for each in (root, *entries)]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"urn:swsdask:[A-Za-z0-9%._~-]+(:[0-9]+)?", each) for each in ids)
    assert ids[0] == f"urn:swsdask:{quote(name, safe='')}"
    for entry in entries:
        assert entry.findtext(f"{atom}author/{atom}name")
        (link,) = entry.findall(f"{atom}link")
        assert (three_nights / "board" / link.attrib["href"]).is_file()
    nights = tuple(dataclasses.replace(night, date="<script/>") for night in page.nights)
    hostile = ElementTree.fromstring(atom_feed(dataclasses.replace(page, nights=nights)))
    assert [each.text for each in hostile.iter(f"{atom}updated")] == ["<script/>T00:00:00Z"] * 4


def test_a_night_without_news_changes_nothing(three_nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    run_night(asked, DAY)
    before = files_of(three_nights)
    assert code_of([str(three_nights / "nightly.toml"), "-q"]) == 0
    assert "demo: nothing is new" in capsys.readouterr().out
    assert files_of(three_nights) == before


def test_a_board_that_is_gone_is_published_again(three_nights: Path) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    shutil.rmtree(three_nights / "archive/history")
    shutil.rmtree(three_nights / "board")
    run_night(asked, DAY)
    before = board_of(three_nights)
    shutil.rmtree(three_nights / "board")
    assert plan_night(asked) == ["demo: night 1: will be published again"]
    assert run_night(asked, date(2021, 1, 1)).record is not None
    assert board_of(three_nights) == before
    for name in ("index.html", "feed.xml", "metrics.prom", "latest.json"):
        (three_nights / "board" / name).unlink()
        assert run_night(asked, date(2021, 1, 1)).record is not None
        assert board_of(three_nights) == before
    for damaged in ("[]", "null", "["):
        (three_nights / "board/latest.json").write_text(damaged)
        assert run_night(asked, date(2021, 1, 1)).record is not None
        assert board_of(three_nights) == before
    shutil.rmtree(three_nights / "board")
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    first, second = plan_night(asked)
    assert first == "demo: night 1: will be published again"
    assert second.startswith("demo: another: ")


def test_a_night_that_was_not_published_is_published_by_the_next_with_news(
    three_nights: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*given: object) -> bytes:
        raise ArchiveError("cannot be written")

    file, board = str(three_nights / "nightly.toml"), three_nights / "board"
    (three_nights / "inbox/calibrated/run.kwslist.xml").unlink()
    assert code_of([file, "-q"]) == 0
    monkeypatch.setattr(steps, "publish", full)
    run = re.sub(r"<kw .*/>\n?", "", (three_nights / "files/runs/weak.kwslist.xml").read_text())
    (three_nights / "inbox/overconfident/run.kwslist.xml").write_text(run)
    assert code_of([file, "-q"]) == 2
    assert len(read_history(Storage(str(three_nights / "archive"))).nights) == 5
    monkeypatch.setattr(steps, "publish", publish)
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    capsys.readouterr()
    assert code_of([file, "-q"]) == 3
    said = capsys.readouterr().out
    assert re.findall("(?m)^demo: night ([0-9]+)", said) == ["5", "6"]
    links = re.findall('href="(nights/[^"]*)"', (board / "index.html").read_text())
    assert "nights/00000005.html" in links
    assert [link for link in links if not (board / link).is_file()] == []


@pytest.mark.parametrize("change", ["the run", "the baseline", "the settings"])
def test_a_night_that_is_published_late_has_the_report_of_its_own_runs_and_settings(
    three_nights: Path, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    place, report = three_nights / "nightly.toml", three_nights / "board/nights/00000003.html"
    before = report.read_bytes()
    shutil.rmtree(three_nights / "board")
    (move,) = read_history(Storage(str(three_nights / "archive"))).nights[2].record.moves
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    if change == "the run":
        shutil.copy(three_nights / "files/runs/calibrated.kwslist.xml", three_nights / f"inbox/{move.system}/new.xml")
    elif change == "the baseline":
        place.write_text(place.read_text().replace('"previous"', '"best"'))
    else:
        place.write_text(place.read_text().replace('"sws2013"', '"std2006"'))
    (asked,) = load_nightly(place).evaluation
    record = run_night(asked, DAY).record
    assert record is not None
    assert record.number == 4
    late = "night 3: published without a new report, because settings, swsdask or the archive have changed since"
    assert (late in caplog.messages) == (change == "the settings")
    assert (report.read_bytes() if report.exists() else None) == (None if change == "the settings" else before)


@pytest.mark.parametrize("baseline", ["best", "a"])
def test_a_run_without_the_leading_measure_is_not_the_best(three_nights: Path, baseline: str) -> None:
    """It is ranked by MTWV among ATWV of the others. Where it is the baseline, a note says which gates do not apply."""
    place, inbox, runs = three_nights / "nightly.toml", three_nights / "inbox", three_nights / "files/runs"
    place.write_text(
        place.read_text().replace('"previous"', f'"{baseline}"').replace("atwv drops .02", "atwv drops .01")
    )
    (asked,) = load_nightly(place).evaluation
    for system in ("a", "worse"):
        (inbox / system).mkdir()
    undecided = re.sub(r' decision="[A-Z]+"', "", (runs / "keyword-specific.kwslist.xml").read_text())
    (inbox / "a/run.kwslist.xml").write_text(undecided)
    assert run_night(asked, DAY).record is not None
    assert read_history(Storage(asked.archive)).leaderboard(asked.scored).systems[0] == "a"
    shutil.copy(runs / "weak.kwslist.xml", inbox / "worse/run.kwslist.xml")
    record = run_night(asked, DAY).record
    assert record is not None
    (move,) = record.moves
    said = "gate 'atwv drops .01': not applied to worse, whose baseline has no atwv in the condition all."
    assert (said in record.notes) == (baseline == "a")
    assert len(record.gates) == (baseline == "best")
    assert (move.baseline == "a") == (baseline == "a")


def test_what_a_removed_version_held_is_taken_in_again(three_nights: Path) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    (three_nights / "inbox/calibrated/run.kwslist.xml").unlink()
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    (three_nights / "inbox/overconfident/run.kwslist.xml").write_bytes(
        (three_nights / "files/runs/middling.kwslist.xml").read_bytes()
    )
    assert run_night(asked, DAY).record is not None
    before = sws.score(asked.archive, "atwv").leaderboard()
    max((three_nights / "archive").glob("manifest-*.json")).unlink()
    run_night(asked, DAY)
    assert sws.score(asked.archive, "atwv").leaderboard().equals(before)
    assert run_night(asked, DAY).record is None


def test_a_board_of_another_archive_or_name_is_published_again(three_nights: Path) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    shutil.rmtree(three_nights / "archive/history")
    assert run_night(asked, DAY).record is not None
    assert run_night(asked, DAY).record is None
    renamed = asked.model_copy(update={"name": "renamed"})
    assert plan_night(renamed) == ["renamed: night 1: will be published again"]
    assert run_night(renamed, DAY).record is not None
    board = shutil.copytree(three_nights / "board", three_nights / "kept")
    shutil.rmtree(three_nights / "archive")
    (three_nights / "inbox/calibrated/run.kwslist.xml").unlink()
    shutil.move(three_nights / "board", three_nights / "elsewhere")
    assert run_night(renamed, DAY).record is not None
    right = board_of(three_nights)
    shutil.rmtree(three_nights / "board")
    shutil.move(board, three_nights / "board")
    assert run_night(renamed, DAY).record is not None
    assert board_of(three_nights).items() >= right.items()


def test_dry_run_writes_nothing_and_names_what_is_new(three_nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    before = files_of(three_nights)
    assert code_of([str(three_nights / "nightly.toml"), "--dry-run"]) == 0
    assert "another" in capsys.readouterr().out
    assert files_of(three_nights) == before


def test_other_settings_score_everything_again_from_what_is_kept(three_nights: Path) -> None:
    place = three_nights / "nightly.toml"
    place.write_text(place.read_text() + "settings = { operating_point = { beta = 20.0 } }\n")
    (asked,) = load_nightly(place).evaluation
    record = run_night(asked, DAY).record
    assert record is not None
    assert {move.reason for move in record.moves} == {SETTINGS}
    assert record.gates == ()


def test_a_clock_that_jumps_back_is_noted(three_nights: Path) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    last = read_history(Storage(asked.archive)).last
    assert last is not None
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    record = run_night(asked, date(1999, 1, 1)).record
    assert record is not None
    assert record.date == last.date
    assert "The clock says 1999-01-01" in record.notes[0]


def test_a_night_has_one_executor_on_a_cluster_and_none_without_news(
    three_nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    asked = asked.model_copy(update={"cluster": "threads"})
    opened: list[int] = []
    inner = ThreadExecutor.__init__
    monkeypatch.setattr(ThreadExecutor, "__init__", lambda self, n: (opened.append(n), inner(self, n))[1])
    assert run_night(asked, DAY).record is None
    assert opened == []
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    record = run_night(asked, DAY).record
    assert record is not None
    assert [move.system for move in record.moves] == ["another"]
    assert len(opened) == 1


def test_a_cluster_that_is_not_there_ends_with_4_and_the_next_night_goes_on(
    three_nights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    place = three_nights / "nightly.toml"
    local_settings = place.read_text()
    place.write_text(f'{local_settings}cluster = "there.json"\n')
    before = {name: held for name, held in files_of(three_nights).items() if name != str(place)}
    assert code_of([str(place)]) == 4
    assert "there.json" in capsys.readouterr().err
    assert {name: held for name, held in files_of(three_nights).items() if name != str(place)} == before
    place.write_text(local_settings)
    assert code_of([str(place), "-q"]) == 0
    assert "another" in read_history(Storage(str(three_nights / "archive"))).standings


@pytest.mark.parametrize("operation", [0, 2, 5, 9, 14])
def test_a_full_disk_is_reported_and_the_next_night_ends_as_if_it_had_been_free(
    three_nights: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], operation: int
) -> None:
    """From some write on the disk is full."""
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    file = str(three_nights / "nightly.toml")
    before = files_of(three_nights / "archive/history")
    writes: list[str] = []
    for name in ("write_whole", "link_new", "replace"):
        inner = getattr(local, name)

        def full(path: str, content: bytes, inner: Any = inner) -> Any:
            writes.append(path)
            if len(writes) > operation:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            return inner(path, content)

        monkeypatch.setattr(local, name, full)
    code = code_of([file, "-q"])
    said = capsys.readouterr().err
    assert (code, said.count("No space left on device"), said.count("\n")) == (2, 1, 1), said
    assert "cannot be written" in said
    assert files_of(three_nights / "archive/history").items() >= before.items()
    monkeypatch.undo()
    assert code_of([file, "-q"]) in (0, 5)
    past = read_history(Storage(str(three_nights / "archive")))
    assert "another" in past.standings
    assert json.loads((three_nights / "board/latest.json").read_text())["night"] == len(past.nights) == 4


def test_a_refused_run_stays_refused_until_it_changes(three_nights: Path) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    run_night(asked, DAY)
    assert list(read_history(Storage(asked.archive)).refused)
    shutil.copyfile(
        three_nights / "files/runs/calibrated.kwslist.xml", three_nights / "inbox/calibrated/run.kwslist.xml"
    )
    record = run_night(asked, DAY).record
    assert record is not None
    assert [move.system for move in record.moves] == ["calibrated"]
    assert read_history(Storage(asked.archive)).refused == {}
    (three_nights / "inbox/late").mkdir()
    (three_nights / "inbox/late/run.kwslist.xml").write_text("<kwslist")
    assert code_of([str(three_nights / "nightly.toml"), "-q"]) == 5


def test_a_refused_run_that_is_gone_goes_from_the_board_and_is_refused_again_when_it_is_back(
    three_nights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    broken = three_nights / "inbox/calibrated/run.kwslist.xml"
    run_night(asked, DAY)
    assert broken.name in (three_nights / "board/index.html").read_text()
    broken.rename(three_nights / "aside")
    assert plan_night(asked) == [f"demo: {broken}, which was refused, is gone"]
    assert code_of([str(three_nights / "nightly.toml"), "-q"]) == 0
    assert f"1 refused run gone\n  gone {broken}" in capsys.readouterr().out
    assert broken.name not in (three_nights / "board/index.html").read_text()
    assert json.loads((three_nights / "board/latest.json").read_text())["refused"] == []
    assert run_night(asked, DAY).record is None
    (three_nights / "aside").rename(broken)
    assert plan_night(asked) == [f"demo: calibrated: {broken} is new"]
    record = run_night(asked, DAY).record
    assert record is not None
    assert [each.url for each in record.refused] == [str(broken)]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("ending", [".ecf.xml", ".rttm", ".kwlist.xml"])
def test_a_file_of_the_reference_that_is_gone_is_reported_and_changes_nothing(
    three_nights: Path, ending: str, named: bool
) -> None:
    place = three_nights / "nightly.toml"
    if named:
        files = {key: next((three_nights / "files").glob(f"*{end}")) for key, end in ENDINGS.items()}
        said = "\n".join(f'{key} = "{file}"' for key, file in files.items())
        place.write_text(place.read_text().replace('reference = "files"', said))
    (asked,) = load_nightly(place).evaluation
    run_night(asked, DAY)
    before = files_of(three_nights / "archive/history"), board_of(three_nights)
    next((three_nights / "files").glob(f"*{ending}")).rename(three_nights / "aside")
    told = rf"{ending}: .* nothing there" if named else "files: .* in the folder; found none"
    with pytest.raises(InputError, match=told):
        plan_night(asked)
    with pytest.raises(InputError, match=told):
        run_night(asked, DAY)
    assert (files_of(three_nights / "archive/history"), board_of(three_nights)) == before


ENDINGS = {"ecf": ".ecf.xml", "rttm": ".rttm", "queries": ".kwlist.xml"}


def test_a_baseline_that_is_no_system_is_noted(three_nights: Path) -> None:
    place = three_nights / "nightly.toml"
    place.write_text(place.read_text().replace('"previous"', '"weka"'))
    (asked,) = load_nightly(place).evaluation
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    record = run_night(asked, DAY).record
    assert record is not None
    assert "'weka' is in no version of the archive: nothing was compared with it." in record.notes


@pytest.mark.parametrize("keep", [3, 1])
def test_runs_are_compared_though_the_version_of_their_baseline_has_expired(three_nights: Path, keep: int) -> None:
    """Three versions hold the run of the first night, of which the first has expired; or none does."""
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    for system in ("a", "b"):
        shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox" / system)
        run_night(asked, DAY)
    broken = three_nights / "inbox/overconfident/run.kwslist.xml"
    shutil.copyfile(three_nights / "files/runs/weak.kwslist.xml", broken)
    if keep == 1:
        sws.ingest(asked.archive, runs={"overconfident": str(broken)}, preset="sws2013", replace=True)
    sws.expire(asked.archive, keep=keep)
    record = run_night(asked, DAY).record
    assert record is not None
    (move,) = record.moves
    assert move.was > move.value
    assert move.baseline == ("overconfident (night 1)" if keep == 3 else None)
    told = "'overconfident (night 1)' is in no version of the archive: nothing was compared with it."
    assert (told in record.notes) == (keep == 1)
    shutil.rmtree(three_nights / "board")
    assert (again := run_night(asked, DAY).record) is not None
    assert again.number == record.number


def test_each_earlier_version_is_opened_once(three_nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    for system in "abc":
        shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox" / system)
    run_night(asked, DAY)
    for system in "abc":
        run = three_nights / f"inbox/{system}/run.kwslist.xml"
        run.write_text(run.read_text().replace('score="', 'score="1', 1))
    opened: list[int | None] = []

    def counting(url: str, version: int | None = None) -> Any:
        opened.append(version)
        return open_archive(url, version)

    monkeypatch.setattr(verdict, "open_archive", counting)
    record = run_night(asked, DAY).record
    assert record is not None
    assert sorted(move.baseline or "" for move in record.moves) == [f"{system} (night 4)" for system in "abc"]
    assert opened == [4, 4]  # to judge, and for the report


def test_another_reference_stops_the_night_and_loses_nothing(three_nights: Path) -> None:
    before = files_of(three_nights / "archive/history")
    rttm = next((three_nights / "files").glob("*.rttm"))
    rttm.write_text(rttm.read_text().replace("LEXEME", "LEXEME", 1) + rttm.read_text().splitlines()[-1] + "\n")
    lines = rttm.read_text().splitlines(keepends=True)
    rttm.write_text("".join(line for number, line in enumerate(lines) if number != 40))
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    with pytest.raises(ArchiveError, match="differs in rttm"):
        run_night(asked, DAY)
    assert files_of(three_nights / "archive/history") == before


def test_the_reference_is_read_again_only_when_its_files_changed(
    three_nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    run_night(asked, DAY)
    read: list[str] = []
    inner = write_archive.read_reference
    monkeypatch.setattr(
        write_archive, "read_reference", lambda *given, **more: (read.append("once"), inner(*given, **more))[1]
    )
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    assert run_night(asked, DAY).record is not None
    assert read == []
    rttm = next((three_nights / "files").glob("*.rttm"))
    os.utime(rttm, (1, 1))
    assert run_night(asked, DAY).record is None
    assert read == ["once"]
    rttm.write_text(rttm.read_text().replace(" 1 ", " 2 ", 1))
    with pytest.raises(ArchiveError, match="differs in"):
        run_night(asked, DAY)


WORDS = "query,document,start,duration\nk1,a,1,0.5\nk1,a,5,0.5\nk2,a,9,0.5\n"
FOUND = "query,document,start,duration,score,decision\nk1,a,1,0.5,0.9,YES\nk2,a,9,0.5,0.2,NO\n"


def test_a_reference_may_be_in_tables_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "durations.csv").write_text("document,duration\na,60\n")
    (tmp_path / "words.csv").write_text(WORDS)
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox/mine.csv").write_text(FOUND)
    for file in tmp_path.rglob("*.csv"):
        os.utime(file, (1, 1))
    named = 'documents = "durations.csv"\noccurrences = "words.csv"'
    (tmp_path / "nightly.toml").write_text(FILE.replace('reference = "files"', named))
    (asked,) = load_nightly(tmp_path / "nightly.toml").evaluation
    record = run_night(asked, DAY).record
    assert record is not None
    assert [move.system for move in record.moves] == ["mine"]
    assert sws.open(tmp_path / "archive").systems == ("mine",)
    monkeypatch.setattr(write_archive, "read_reference", None)
    assert run_night(asked, DAY).record is None
    monkeypatch.undo()
    (tmp_path / "words.csv").unlink()
    with pytest.raises(InputError, match=r"words\.csv"):
        run_night(asked, DAY)


def test_judgments_are_a_reference_whose_collection_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def arrive(name: str, *lines: str) -> None:
        file = tmp_path / f"inbox/{name}.txt"
        file.write_text("".join(f"{line} {name}\n" for line in lines))
        os.utime(file, (1, 1))

    (tmp_path / "inbox").mkdir()
    (tmp_path / "judged.qrels").write_text("1 0 d1 1\n1 0 d2 0\n2 0 d3 1\n")
    os.utime(tmp_path / "judged.qrels", (1, 1))
    arrive("first", "1 Q0 d2 1 0.9", "1 Q0 d1 2 0.8")
    own = FILE.replace('reference = "files"', 'qrels = "judged.qrels"').replace('preset = "sws2013"', 'preset = "trec"')
    (tmp_path / "nightly.toml").write_text(own.replace('gates = ["atwv', 'gates = ["map'))
    (asked,) = load_nightly(tmp_path / "nightly.toml").evaluation
    (line,) = plan_night(asked)[1:]
    assert line.endswith("first.txt is new")
    judgments = (tmp_path / "judged.qrels").read_text()
    (tmp_path / "judged.qrels").write_text("1 0 d1 high\n")
    with pytest.raises(InputError, match=r"judged\.qrels:1"):
        run_night(asked, DAY)
    assert "refused" not in caplog.text  # no run is blamed for it
    (tmp_path / "judged.qrels").write_text(judgments)
    os.utime(tmp_path / "judged.qrels", (1, 1))
    assert run_night(asked, DAY).record is not None

    monkeypatch.setattr(write_archive, "read_reference", None)  # it is not read again
    arrive("second", "1 Q0 d1 1 0.9", "2 Q0 elsewhere 1 0.8", "2 Q0 d3 2 0.7")
    arrive("broken", "1 Q0 d1 1 high")
    record = run_night(asked, DAY).record
    assert record is not None
    assert {move.system: move.reason for move in record.moves} == {"first": SETTINGS, "second": NEW}
    assert [(each.system, each.total) for each in record.refused] == [("broken", 1)]
    assert run_night(asked, DAY).record is None
    monkeypatch.undo()

    archive = tmp_path / "archive"
    sws.ingest(tmp_path / "once", qrels=tmp_path / "judged.qrels", runs=tmp_path / "inbox/[fs]*.txt", preset="trec")
    assert sws.score(archive).scores.equals(sws.score(tmp_path / "once").scores)
    assert sws.open(archive).archive.documents["document"].to_pylist() == ["d1", "d2", "d3", "elsewhere"]
    (tmp_path / "judged.qrels").write_text("1 0 d1 1\n1 0 d2 1\n2 0 d3 1\n")
    with pytest.raises(ArchiveError, match="differs in"):
        run_night(asked, DAY)


def test_a_run_that_lacks_a_topic_is_compared_over_the_others(tmp_path: Path) -> None:
    (tmp_path / "inbox").mkdir()
    (tmp_path / "judged.qrels").write_text("".join(f"{topic} 0 d 1\n" for topic in range(4)))
    (tmp_path / "nightly.toml").write_text(
        '[[evaluation]]\nname = "n"\nqrels = "judged.qrels"\narchive = "archive"\nout = "board"\ninbox = ["inbox"]\n'
        'preset = "trec"\nmeasures = ["map"]\nbaseline = "best"\n'
    )
    (asked,) = load_nightly(tmp_path / "nightly.toml").evaluation
    for system, n_topics in (("whole", 4), ("partial", 3)):
        lines = "".join(f"{topic} Q0 d 1 0.9 {system}\n" for topic in range(n_topics))
        (tmp_path / f"inbox/{system}.txt").write_text(lines)
        record = run_night(asked, DAY).record
    assert record is not None
    (move,) = record.moves
    assert (move.system, move.baseline, move.p) == ("partial", "whole (night 1)", 1.0)


def test_a_lexicon_belongs_to_the_reference(three_nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lexicon = three_nights / "lexicon.txt"
    lexicon.write_text("word W ER D\n")
    os.utime(lexicon, (1, 1))
    place = three_nights / "lexicon.toml"
    place.write_text(FILE.replace('out = "board"', 'out = "other"\nlexicon = "lexicon.txt"\nby = ["oov"]'))
    (asked,) = load_nightly(place).evaluation
    with pytest.raises(ArchiveError, match="differs in queries"):
        run_night(asked, DAY)
    shutil.rmtree(three_nights / "archive")
    assert run_night(asked, DAY).record is not None
    assert {"oov=true"} == set(sws.history(three_nights / "archive")["condition"]) - {"all"}
    monkeypatch.setattr(write_archive, "read_reference", None)
    assert run_night(asked, DAY).record is None


def test_each_faulty_run_is_refused_alone_whatever_files_are_called(three_nights: Path) -> None:
    """In the first night: files whose names begin alike, and one whose problems hide those of the next."""
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    shutil.rmtree(three_nights / "archive")
    good = (three_nights / "inbox/weak/run.kwslist.xml").read_text()
    faulty = re.sub(r'score="[^"]*"', 'score="high"', good)
    rows = {"a": good, "a1": faulty, "a1.b": good, "b": faulty, "b1": good, "c": good.replace("</kwslist>", "")}
    for system, text in rows.items():
        (three_nights / f"inbox/{system}.kwslist.xml").write_text(text)
    (three_nights / "inbox/d.kwslist.xml").write_text(good)
    (three_nights / "inbox/d.resources.toml").write_text("nothing = 1\n")
    record = run_night(asked, DAY).record
    assert record is not None
    assert [each.system for each in record.refused] == ["a1", "b", "c", "calibrated", "d"]
    assert all(each.system in each.problems[0] for each in record.refused)
    assert record.refused[0].total == good.count("score=")
    assert {move.system for move in record.moves} >= {"a", "a1.b", "b1"}


@pytest.mark.parametrize("n_faulty", [1, 2])
def test_of_many_new_runs_those_that_the_error_names_are_validated(
    three_nights: Path, monkeypatch: pytest.MonkeyPatch, n_faulty: int
) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    shutil.rmtree(three_nights / "archive")
    good = (three_nights / "inbox/weak/run.kwslist.xml").read_text()
    shutil.rmtree(three_nights / "inbox")
    (three_nights / "inbox").mkdir()
    for number in range(5):
        text = good.replace('score="', 'score="x') if number < n_faulty else good
        (three_nights / f"inbox/s{number}.kwslist.xml").write_text(text)
    validated = []
    refusals = intake._refusals

    def counting(night: Any, news: Sequence[Any]) -> list[Any]:
        validated.append(len(news))
        return refusals(night, news)

    monkeypatch.setattr(intake, "_refusals", counting)
    record = run_night(asked, DAY).record
    assert record is not None
    assert [each.system for each in record.refused] == [f"s{number}" for number in range(n_faulty)]
    assert {move.system for move in record.moves} == {f"s{number}" for number in range(n_faulty, 5)}
    assert validated == [0, n_faulty]


def test_p_values_are_adjusted_for_all_pairs_of_a_night(three_nights: Path) -> None:
    place = three_nights / "nightly.toml"
    place.write_text(place.read_text().replace('"previous"', '"overconfident"').replace(".02", ".02 with p < .05"))
    (asked,) = load_nightly(place).evaluation
    shutil.rmtree(three_nights / "archive")
    (three_nights / "inbox/calibrated/run.kwslist.xml").unlink()
    first = run_night(asked, DAY).record
    assert first is not None
    p = {move.system: move.p for move in first.moves}
    assert math.isnan(p.pop("overconfident"))
    found = sws.compare(three_nights / "archive", "atwv", baseline="overconfident").differences
    pairs = found.set_index("a")
    assert p == pairs["p_adjusted"].to_dict()
    assert p != pairs["p_bootstrap"].to_dict()


def without_decisions(run: Path, to: Path) -> None:
    to.parent.mkdir(exist_ok=True)
    to.write_text(re.sub(' decision="[A-Z]*"', "", run.read_text()))


@pytest.mark.parametrize("gate", ["atwv drops .02", "atwv drops .02 with p < .05"])
def test_a_replaced_run_without_the_leading_measure_is_not_tested(three_nights: Path, gate: str) -> None:
    place, runs = three_nights / "nightly.toml", three_nights / "files/runs"
    place.write_text(place.read_text().replace("atwv drops .02", gate))
    (asked,) = load_nightly(place).evaluation
    run = three_nights / "inbox/undecided/run.kwslist.xml"
    without_decisions(runs / "weak.kwslist.xml", run)
    run_night(asked, DAY)
    without_decisions(runs / "middling.kwslist.xml", run)
    record = run_night(asked, DAY).record
    assert record is not None
    (move,) = record.moves
    assert (move.system, move.reason, move.measure, move.baseline) == (
        "undecided",
        REPLACED,
        "atwv",
        "undecided (night 4)",
    )
    assert [math.isnan(number) for number in (move.value, move.p)] == [True, True]
    assert record.gates == ()
    told = f"gate {gate!r}: not tested, and so passed, because no compared system has atwv in the condition all."
    assert (told in record.notes) == ("p <" in gate)


def test_a_gate_with_p_on_a_condition_that_is_not_scored_is_reported_in_the_first_night(three_nights: Path) -> None:
    place = three_nights / "nightly.toml"
    place.write_text(place.read_text().replace("atwv drops .02", "atwv drops .02 in oov=1 with p < .05"))
    (asked,) = load_nightly(place).evaluation
    shutil.rmtree(three_nights / "archive")
    with pytest.raises(SettingsError, match="condition 'oov=1' is unknown"):
        run_night(asked, DAY)


@pytest.mark.parametrize(
    ("line", "said"),
    [('by = ["oof"]', "oof"), ('gates = ["atwv drops .02 in oov=1"]', "condition 'oov=1' is unknown")],
)
def test_a_plan_names_conditions_that_are_not_there(three_nights: Path, line: str, said: str) -> None:
    place = three_nights / "nightly.toml"
    place.write_text(re.sub("(?m)^gates = .*$", line, place.read_text()))
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    (asked,) = load_nightly(place).evaluation
    with pytest.raises(SettingsError, match=said):
        plan_night(asked)


def test_a_board_elsewhere_links_to_the_reports_that_it_has(three_nights: Path) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    moved = asked.model_copy(update={"out": str(three_nights / "elsewhere")})
    assert run_night(moved, DAY).record is not None
    reports = [path.name for path in (three_nights / "elsewhere/nights").iterdir()]
    assert reports == ["00000003.html"]
    for page in ("index.html", "feed.xml"):
        links = re.findall(r"nights/(\d+\.html)", (three_nights / "elsewhere" / page).read_text())
        assert set(links) == {*reports}
    in_place = re.findall(r"nights/(\d+\.html)", (three_nights / "board/index.html").read_text())
    assert len(set(in_place)) == 3


@pytest.mark.parametrize(("named", "measure"), [("MRR", "reciprocal_rank"), ("twv@1", "twv@1.0"), ("AP", "map")])
def test_measures_may_be_named_as_for_score(three_nights: Path, named: str, measure: str) -> None:
    place = three_nights / "nightly.toml"
    own = re.sub("(?m)^(measures|gates) = .*\n", "", place.read_text()).replace('"previous"', '"best"')
    place.write_text(f"{own}measures = ['{named}']\n")
    (asked,) = load_nightly(place).evaluation
    shutil.rmtree(three_nights / "archive")
    assert run_night(asked, DAY).record is not None
    past = read_history(Storage(asked.archive))
    page = board_page(asked, past)
    numbers = {row["system"]: row["value"] for row in past.rows_of(measure)}
    best = max(numbers, key=numbers.__getitem__)
    assert (page.leading, page.measures, page.numbers.systems[0]) == (measure, (measure,), best)
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    record = run_night(asked, DAY).record
    assert record is not None
    assert [(move.measure, move.baseline) for move in record.moves] == [(measure, f"{best} (night 1)")]


def test_a_gate_with_p_fails_however_many_runs_arrive(
    three_nights: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten pairs of 99 replicates have an adjusted p of .1 at least by Holm's adjustment, by max-t of .01."""
    gates = ["atwv drops .005 with p < .1", "atwv drops .005 with p < .01"]
    place = three_nights / "nightly.toml"
    place.write_text(re.sub("(?m)^gates = .*$", f"gates = {json.dumps(gates)}", place.read_text()))
    (asked,) = load_nightly(place).evaluation
    monkeypatch.setattr(verdict, "Resampling", lambda: Resampling(replicates=99))
    run = (three_nights / "files/runs/calibrated.kwslist.xml").read_text()
    for content in (run, re.sub(r"<kw .*/>\n?", "", run)):
        for system in "abcdefghij":
            (three_nights / f"inbox/{system}.kwslist.xml").write_text(content)
        record = run_night(asked, DAY).record
        assert record is not None
    assert all(move.p < 0.1 for move in record.moves)
    assert [text.split(":")[0] for text in record.gates] == [f"gate {gates[0]!r} failed"] * 10
    told = f"gate {gates[1]!r}: cannot fail, because the least p of 99 replicates and 10 pairs is 0.01."
    assert told in record.notes
    assert told in caplog.text
    assert any(
        note.endswith("queries; intervals and tests based on fewer than 30 queries are unreliable.")
        for note in record.notes
    )
    assert not any("best is" in note for note in record.notes)


def test_a_gate_with_p_of_few_queries_fails_however_many_runs_arrive(three_nights: Path) -> None:
    """With 8 queries the least p is .0078: Holm's adjustment for 8 pairs would make it .06."""
    place, run = three_nights / "nightly.toml", (three_nights / "files/runs/calibrated.kwslist.xml").read_text()
    settled = place.read_text().replace('"previous"', '"weak"').replace("atwv drops .02", "mtwv drops 0")
    place.write_text(settled.replace("mtwv drops 0", "atwv drops .02 with p < .05"))
    (asked,) = load_nightly(place).evaluation
    for system in "abcdefgh":
        (three_nights / f"inbox/{system}.kwslist.xml").write_text(run.replace('"NO"', '"YES"'))
    record = run_night(asked, DAY).record
    assert record is not None

    assert len(record.gates) == 8
    assert any(note.startswith("p values are adjusted by max-t") for note in record.notes)
    assert not any("--" in note for note in record.notes)


def with_another_score(run: Path) -> None:
    """Write another run of the same size, with the time of the last change of the one that was there."""
    there, text = run.stat(), run.read_text()
    run.write_text(re.sub(r'score="(.)', lambda score: f'score="{(int(score[1]) + 1) % 10}', text, count=1))
    os.utime(run, ns=(there.st_atime_ns, there.st_mtime_ns))
    assert (run.stat().st_size, run.stat().st_mtime_ns) == (there.st_size, there.st_mtime_ns)
    assert run.read_text() != text


@pytest.mark.parametrize("age_s", [0, 10_000])
def test_a_run_that_is_rewritten_while_a_night_works_is_taken_by_the_next(
    three_nights: Path, monkeypatch: pytest.MonkeyPatch, age_s: int
) -> None:
    """Of the same size, and with the same time of the last change; an `age_s` of 0 is within the tick of the clock."""
    monkeypatch.setattr(stamps, "_changed", CHANGED)
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    run = three_nights / "inbox/another/run.kwslist.xml"
    shutil.copytree(three_nights / "inbox/weak", run.parent)
    at = time.time() - age_s
    os.utime(run, (at, at))
    inner = steps.ingest_or_refuse

    def then_rewritten(*given: Any, **named: Any) -> Any:
        taken = inner(*given, **named)
        with_another_score(run)
        return taken

    monkeypatch.setattr(steps, "ingest_or_refuse", then_rewritten)
    first = run_night(asked, DAY).record
    monkeypatch.setattr(steps, "ingest_or_refuse", inner)
    second = run_night(asked, DAY).record
    assert first is not None
    assert second is not None
    assert [(move.system, move.reason) for move in first.moves] == [("another", NEW)]
    assert [(move.system, move.reason) for move in second.moves] == [("another", REPLACED)]
    before = files_of(three_nights)
    assert run_night(asked, DAY).record is None
    assert files_of(three_nights) == before


def test_stamps_of_an_inbox_are_repeated_however_young_its_files_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for one whose time is yet to come, which is looked at without waiting."""
    monkeypatch.setattr(stamps, "_changed", CHANGED)
    (tmp_path / "young.tsv").write_text("")
    assert look([str(tmp_path)]) == look([str(tmp_path)])
    late = time.time() + 10_000
    os.utime(tmp_path / "young.tsv", (late, late))
    assert look([str(tmp_path)]) != look([str(tmp_path)])


def test_files_that_were_only_touched_are_known_from_the_night_on_that_read_them(
    three_nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any other news nothing is committed, so the history has other stamps for good."""
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    for run in (three_nights / "inbox").rglob("*.xml"):
        os.utime(run, (1, 1))
    assert {line.split()[1].rstrip(":") for line in plan_night(asked)} >= {"weak", "calibrated"}
    assert run_night(asked, DAY).record is None
    assert plan_night(asked) == ["demo: nothing is new"]
    before = files_of(three_nights)
    monkeypatch.setattr(intake, "_ingest", None)
    monkeypatch.setattr(intake, "with_runs", None)  # calibrated is refused, and not read again either
    assert run_night(asked, DAY).record is None
    assert files_of(three_nights) == before


@pytest.mark.parametrize("changed", ["file", "settings", "record"])
def test_a_refused_run_that_was_touched_is_read_again_when_anything_changed(
    three_nights: Path, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    place = three_nights / "nightly.toml"
    (asked,) = load_nightly(place).evaluation
    run = three_nights / "inbox/calibrated/run.kwslist.xml"
    os.utime(run, (1, 1))
    assert run_night(asked, DAY).record is None
    if changed == "file":
        run.write_text((three_nights / "inbox/weak/run.kwslist.xml").read_text())
    elif changed == "settings":
        place.write_text(
            place.read_text().replace("[[evaluation]]", '[[evaluation]]\nsettings = {outside = "error"}', 1)
        )
        (asked,) = load_nightly(place).evaluation
    else:
        records = three_nights / "archive/kept/sources.json"
        records.write_bytes(records.read_bytes().replace(b"refused", b"Refused", 1))
    read: list[str] = []
    inner = intake.with_runs
    monkeypatch.setattr(intake, "with_runs", lambda *given, **more: (read.append("once"), inner(*given, **more))[1])
    record = run_night(asked, DAY).record
    assert read == ["once"]
    if changed == "file":
        assert record is not None
        assert record.refused == ()


@pytest.mark.parametrize("entry", ["inbox", "inbox/*/*.xml"])
def test_an_inbox_that_is_not_there(three_nights: Path, entry: str) -> None:
    shutil.rmtree(three_nights / "inbox")
    place = three_nights / "nightly.toml"
    place.write_text(place.read_text().replace('["inbox"]', f'["{entry}"]'))
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    with pytest.raises(InputError, match="found nothing there"):
        run_night(asked, DAY)


def test_what_a_killed_night_left_of_its_commit_is_removed(three_nights: Path) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    left = three_nights / "archive/history/00000004.parquet.0123456789abcdef.part"
    left.write_bytes(b"half")
    assert run_night(asked, DAY).record is None
    assert not left.exists()


@pytest.mark.parametrize("entry", ["inbox", "inbox/*", "inbox/*/*.xml"])
def test_a_folder_without_permission_is_no_empty_one(
    tmp_path: Path, entry: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inbox/weak").mkdir(parents=True)
    inner = LocalFileSystem.ls

    def refusing(self: LocalFileSystem, path: str, *more: Any, **named: Any) -> Any:
        if str(path).rstrip("/").endswith("inbox"):
            raise PermissionError(13, "Permission denied")
        return inner(self, path, *more, **named)

    monkeypatch.setattr(LocalFileSystem, "ls", refusing)
    with pytest.raises(InputError, match="expected a folder or glob that can be listed; found PermissionError"):
        look([f"{tmp_path}/{entry}"])


@pytest.mark.parametrize("entry", ["inbox", "inbox/*/*.tsv"])
def test_a_folder_in_an_inbox_without_permission_is_passed_over_with_a_warning(
    tmp_path: Path, entry: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for system in ("good", "locked"):
        (tmp_path / "inbox" / system).mkdir(parents=True)
        (tmp_path / "inbox" / system / f"{system}.tsv").write_text("")
    inner = LocalFileSystem.ls

    def refusing(self: LocalFileSystem, path: str, *more: Any, **named: Any) -> Any:
        if str(path).rstrip("/").endswith("locked"):
            raise PermissionError(13, "Permission denied")
        return inner(self, path, *more, **named)

    monkeypatch.setattr(LocalFileSystem, "ls", refusing)
    monkeypatch.setattr(logging.getLogger("swsdask"), "propagate", True)
    assert [arrived.system for arrived in look([f"{tmp_path}/{entry}"])] == ["good"]
    (warning,) = {*caplog.messages}
    assert re.fullmatch(r"skipped, a folder that cannot be listed \(Permission denied\): .*/inbox/locked/?", warning)


@pytest.mark.parametrize(
    "other",
    [{"number": "1"}, {"stamps": {"run": 7}}, {"notes": "one"}, {"refused": [{"url": "run"}]}, {"moves": 3}, {"x": 1}],
)
def test_a_record_of_other_types_is_no_record(other: dict[str, object]) -> None:
    record = Record(1, "2026-01-01", 1, "0.3.0", {"run": "7"}, (Refused("run", "a", ("no", "rows"), 2),))
    assert Record.from_json(record.to_json()) == record
    with pytest.raises(ValueError, match=next(iter(other))):
        Record.from_json(json.dumps(json.loads(record.to_json()) | other))


def test_a_damaged_or_missing_night_is_named(three_nights: Path) -> None:
    file = three_nights / "archive/history/00000002.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    with pytest.raises(ArchiveError, match=r"history/00000002\.parquet: expected a night"):
        sws.history(three_nights / "archive")
    name = "history/00000002.parquet"
    assert [*sws.verify(three_nights / "archive").damaged] == [name]
    file.unlink()
    with pytest.raises(ArchiveError, match="expected a night of the history"):
        sws.history(three_nights / "archive")
    assert sws.verify(three_nights / "archive").damaged == {name: "no such file"}
    copy = three_nights / "copy"
    shutil.copytree(three_nights / "archive", copy)
    (copy / name).write_bytes(whole)
    assert sws.verify(three_nights / "archive", repair=copy).repaired == (name,)
    assert file.read_bytes() == whole


@pytest.mark.parametrize("what", ["history", "history/00000002.parquet"])
def test_a_history_without_permission_is_no_empty_one(
    three_nights: Path, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = str(three_nights / "archive" / what)

    def refusing(inner: Callable[..., Any]) -> Callable[..., Any]:
        def opened(path: Any, *more: Any, **named: Any) -> Any:
            if isinstance(path, str | Path) and there.endswith(str(path)):
                raise PermissionError(13, "Permission denied", str(path))
            return inner(path, *more, **named)

        return opened

    for name in ("open", "scandir"):
        monkeypatch.setattr(os, name, refusing(getattr(os, name)))
    with pytest.raises(ArchiveError, match=r"[Pp]ermission"):
        sws.history(three_nights / "archive")


def test_logs_as_json_and_only_and_notify(three_nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(three_nights / "inbox/weak", three_nights / "inbox/another")
    run = three_nights / "inbox/another/run.kwslist.xml"
    run.write_text(run.read_text().replace('score="', 'score="1', 1))
    place = three_nights / "nightly.toml"
    place.write_text(f'notify = ["tee", "{three_nights}/notified.json"]\n' + place.read_text())
    handlers = logging.getLogger("swsdask").handlers[:]
    assert code_of([str(place), "--only", "demo", "--log-format", "json", "-v"]) == 0
    assert logging.getLogger("swsdask").handlers == handlers
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {"time", "level", "message"} <= set.intersection(*map(set, said))
    rows = {run.system: run.rows for run in open_archive(str(three_nights / "archive")).runs}
    ingested = [(each["system"], each["rows"]) for each in said if each.get("phase") == "ingest"]
    assert ingested == [("another", rows["another"])]
    phases = [each["phase"] for each in said if "seconds" in each]
    assert {"reading runs", "systems"} <= set(phases)
    assert not [phase for phase in phases if "another" in phase], "names of systems are no part of a phase's name"
    (three_nights / "inbox/link.tsv").symlink_to(run)
    place.write_text(place.read_text().replace('"tee", ', '"false", '))

    waits: list[float] = []

    def warning(storage: Storage, wait_s: float) -> Any:
        warnings.warn("a library warns", stacklevel=1)
        waits.append(wait_s)
        return night_lease(storage, wait_s)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("always")
        patch.setattr(steps, "night_lease", warning)
        shutil.rmtree(three_nights / "board")
        code_of([str(place), "--log-format", "json", "--wait", "0.5"])
    assert waits == [30.0]
    warned = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    for part in ("a library warns", "skipped, links are not followed", "false ended with exit code 1"):
        assert [each["evaluation"] for each in warned if part in each["message"]] == ["demo"], part
    place.write_text(place.read_text().replace('"false", ', '"tee", '))
    assert [each for each in said if each.get("rows") and "seconds" in each and each["evaluation"] == "demo"]
    assert (three_nights / "notified.json").read_bytes() == (three_nights / "board/latest.json").read_bytes()
    assert code_of([str(place), "--only", "other"]) == 2
    assert "There are: demo." in capsys.readouterr().err
    assert not notify(["false"], b"")
    assert not notify([str(three_nights / "nowhere")], b"")


def test_a_command_that_is_notified_is_not_waited_for_beyond_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(steps, "PATIENCE_S", 2.0)
    assert notify(["sh", "-c", "sleep 8 & exit 0"], b"")
    monkeypatch.setattr(logging.getLogger("swsdask"), "propagate", True)
    caplog.clear()
    assert not notify(["sh", "-c", "sleep 8", "a secret"], b"")
    assert [each.getMessage() for each in caplog.records] == ["notify: sh did not end within 2 seconds"]


def test_settings_that_only_the_archive_keeps_are_reported(
    three_nights: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = three_nights / "nightly.toml"
    said = "settings that the archive keeps and the file does not give: "
    (asked,) = load_nightly(place).evaluation
    run_night(asked, DAY)
    assert said not in caplog.text
    place.write_text(place.read_text().replace('preset = "sws2013"\n', ""))
    (asked,) = load_nightly(place).evaluation
    run_night(asked, DAY)
    assert f"{said}outside=false_alarm, operating_point.p_target=" in caplog.text


def test_changed_settings_are_kept_by_the_archive_even_if_no_run_arrives(three_nights: Path) -> None:
    place = three_nights / "nightly.toml"
    (asked,) = load_nightly(place).evaluation
    own = sws.score(asked.archive, "atwv").scores.query("query.isna() and measure == 'atwv'")["value"].tolist()
    for change, back in ((('"sws2013"', '"openkws13"'), False), (('"openkws13"', '"sws2013"'), True)):
        place.write_text(place.read_text().replace(*change))
        (asked,) = load_nightly(place).evaluation
        outcome = run_night(asked, DAY)
        assert outcome.record is not None
        assert {move.reason for move in outcome.record.moves} == {"other settings, measures or collection"}
        numbers = {name: of["values"]["all"]["atwv"] for name, of in json.loads(outcome.latest)["systems"].items()}
        kept = sws.score(asked.archive, "atwv").scores.query("query.isna() and measure == 'atwv'")
        assert dict(zip(kept["system"], kept["value"], strict=True)) == numbers
        assert (kept["value"].tolist() == own) == back
        version = open_archive(asked.archive).version
        assert run_night(asked, DAY).record is None
        assert open_archive(asked.archive).version == version


def test_a_live_lease_is_respected_and_a_dead_one_taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage(str(tmp_path))
    with night_lease(storage) as held:
        with pytest.raises(BusyError, match="is working on this night"), night_lease(storage):
            pass
        held.check()
        late = time.time() + 2 * HOLDS_S
        monkeypatch.setattr(time, "time", lambda: late)
        with night_lease(storage) as later:
            later.check()
            with pytest.raises(BusyError, match="taken it over"):
                held.check()
    assert list((tmp_path / "nightly").iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setattr(lease, "POLL_S", 0.01)
    with night_lease(storage) as held:
        with pytest.raises(BusyError, match="is working on this night"), night_lease(storage, wait_s=0.05):
            pass
        release = threading.Timer(0.1, storage.remove, [f"nightly/lease-{held.number:08d}.json"])
        release.start()
        with night_lease(storage, wait_s=60.0) as later:
            later.check()
        release.join()
    monkeypatch.undo()
    dying = f"held = night_lease(Storage({str(tmp_path)!r})); held.__enter__(); os._exit(0)"
    imports = "import os; from swsdask.archive.storage import Storage; from swsdask.nightly.lease import night_lease"
    subprocess.run([sys.executable, "-c", f"{imports}; {dying}"], check=True)
    assert len(list((tmp_path / "nightly").iterdir())) == 1
    with night_lease(storage) as held:
        held.check()


@pytest.mark.parametrize(
    ("error", "dead"), [(ProcessLookupError, True), (OverflowError, True), (PermissionError, False), (None, False)]
)
def test_a_process_of_another_user_is_alive(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception] | None, dead: bool
) -> None:
    def kill(process: int, number: int) -> None:
        assert (process, number) == (1, 0)
        if error is not None:
            raise error

    monkeypatch.setattr(os, "kill", kill)
    assert dataclasses.replace(Holder.me(), process=1).is_dead == dead


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("[[evaluation]]", 'inbox = ["x"]\n[[evaluation]]'),
            r"toml: inbox: unknown key. Write it below \[\[eval",
        ),
        (
            ("inbox = [", 'by = "oov"\ninbox = ['),
            r"'demo', by: Input should be a list, as \[\"a\", \"b\"\]; f",
        ),
        (("inbox =", "inbx ="), r"evaluation 'demo', inbx: unknown key. Nearest valid key: inbox"),
        (('out = "board"', ""), r"evaluation 'demo', out: expected a value; found none"),
        (("atwv drops", "atvw drops"), r"gates, gate 'atvw drops .*Nearest: atwv"),
        (('reference = "files"', ""), r"all three of ecf, rttm and queries, documents and occurrences, or qrels"),
        (('reference = "files"', 'documents = "d.csv"'), r"expected reference, all three of ecf, rttm and"),
        (("reference", 'documents = "d.csv"\noccurrences = "o.csv"\nreference'), r"expected reference, all three of"),
        (('reference = "files"', 'documents = "d"\noccurrences = "o"\nlexicon = "l"'), r"lexicon and vocabulary go"),
        (("reference", 'qrels = "q"\nreference'), r"documents and occurrences, or qrels alone"),
        (('reference = "files"', 'qrels = "q"\nvocabulary = "v"'), r"lexicon and vocabulary go"),
        (('inbox = ["inbox"]', 'inbox = ["board"]'), r"out '.*board' lies in the inbox '.*board'; give each its own"),
        (('out = "board"', 'out = "inbox/board"'), r"out '.*inbox/board' lies in the inbox '.*inbox'; give each its"),
        (('out = "board"', 'out = "archive"'), r"archive and out are both '.*archive'"),
        (('inbox = ["inbox"]', 'inbox = "inbox"'), r"inbox: .*found 'inbox'"),
        (("baseline", 'pattern = "(?P<who>.*)"\nbaseline'), r"pattern, expected the group"),
        (("[[evaluation]]", "[evaluation]"), r"evaluation"),
        (("name", "name ="), r"not a TOML file"),
        (("name", "x = " + 9999 * "[" + "\nname"), r"not a TOML file"),
        (
            ('measures = ["atwv", "mtwv", "otwv", "stwv", "cnxe", "cnxe_min", "map"]', "measures = []"),
            r"measures: .*at least 1",
        ),
    ],
)
def test_bad_settings(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    place = tmp_path / "nightly.toml"
    place.write_text(FILE.replace(*change, 1))
    with pytest.raises(SettingsError, match=message):
        load_nightly(place)


def test_bad_settings_are_reported_once_and_a_file_that_is_missing_plainly(tmp_path: Path) -> None:
    place = tmp_path / "nightly.toml"
    with pytest.raises(SettingsError, match=r"expected a file with the settings of nights; found none\. `swsdask"):
        load_nightly(place)
    place.write_text(FILE.replace("inbox =", "inbx ="))
    with pytest.raises(SettingsError) as caught:
        load_nightly(place)
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == [
        "evaluation 'demo', inbox",
        "evaluation 'demo', inbx",
    ]


def test_two_evaluations_need_their_own_places(tmp_path: Path) -> None:
    place = tmp_path / "nightly.toml"
    place.write_text(FILE + FILE)
    with pytest.raises(SettingsError, match="each needs its own"):
        load_nightly(place)


def test_an_error_of_a_library_stops_one_evaluation(
    three_nights: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = three_nights / "nightly.toml"
    other = FILE.replace('"demo"', '"other"').replace('"archive"', '"archive2"').replace('"board"', '"board2"')
    place.write_text(f"{other}{place.read_text()}")

    def broken(storage: Storage) -> History:
        if storage.url.endswith("archive2"):
            raise RuntimeError("the library broke")
        return read_history(storage)

    monkeypatch.setattr(steps, "read_history", broken)
    assert code_of([str(place), "--log-format", "json"]) == 1
    said = capsys.readouterr()
    assert "demo: nothing is new" in said.out
    (fault,) = [line for line in map(json.loads, said.err.splitlines()) if line["level"] == "error"]
    assert fault["evaluation"] == "other"
    assert fault["message"].startswith("RuntimeError: the library broke\nThis is a fault of swsdask.")


def test_the_page_of_all_evaluations(three_nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place, page = three_nights / "nightly.toml", three_nights / "all" / "index.html"
    other = (
        FILE.replace('"demo"', '"<other>"').replace('"archive"', '"archive2"').replace('"board"', '"all/two boards"')
    )
    late = FILE.replace('"demo"', '"late"').replace('"archive"', '"archive3"').replace('"board"', '"memory://late"')
    place.write_text(f'out = "all"\n{place.read_text()}{other}{late}')
    code_of([str(place), "--only", "demo"])
    assert f"all evaluations: {page}" in capsys.readouterr().out
    assert "none yet" in page.read_text()
    code_of([str(place), "--only", "<other>"])
    said, written = capsys.readouterr().out, page.read_text()
    assert f"all evaluations: {page}" in said
    assert '<a href="../board/index.html">demo</a>' in written
    assert '<a href="two%20boards/index.html">&lt;other&gt;</a>' in written
    assert "late<br>memory://late" in written
    latest = json.loads((three_nights / "board/latest.json").read_text())
    atwv = {system: own["values"]["all"]["atwv"] for system, own in latest["systems"].items()}
    best = max(atwv, key=atwv.__getitem__)
    assert latest["leading"] == "atwv"
    row = written[written.index(">demo<") :].split("</tr>")[0]
    assert re.findall("<td.*?>(.*?)</td>", row) == [
        latest["date"], str(latest["night"]), best, "ATWV", f"{atwv[best]:.4f}", str(len(atwv)),
        str(len(latest["new"])), str(len(latest["refused"])), str(len(latest["gates"])),
    ]  # fmt: skip
    before = page.stat().st_mtime_ns
    code_of([str(place), "--only", "demo"])
    code_of([str(place), "--dry-run"])
    assert "all evaluations" not in capsys.readouterr().out
    assert page.stat().st_mtime_ns == before
    for damaged in (b"", b"[", b"[]", b'{"night": 1, "systems": []}', b'{"night": 1, "systems": {"a": 1}}'):
        (three_nights / "all/two boards/latest.json").write_bytes(damaged)
        assert publish_overview(load_nightly(place)) in (str(page), None)
        assert page.read_text().count("none yet") == 2


@pytest.mark.parametrize(
    ("page", "board", "way"),
    [
        ("/a/all", "/a/all/one", "one/index.html"),
        ("/a/all", "/a/b c", "../b%20c/index.html"),
        ("s3://team/all/", "s3://team/one", "../one/index.html"),
        ("s3://team", "s3://team/one", "one/index.html"),
        ("s3://team/all", "s3://other/one", None),
        ("s3://team/all", "gs://team/one", None),
        ("/a/all", "s3://team/one", None),
    ],
)
def test_the_way_to_a_board(page: str, board: str, way: str | None) -> None:
    assert link(page, board) == way


def test_the_page_of_all_needs_its_own_place(tmp_path: Path) -> None:
    place = tmp_path / "nightly.toml"
    place.write_text(f'out = "./board/"\n{FILE}')
    with pytest.raises(SettingsError, match=r"page and evaluation 'demo' have the same out .*; give each its own"):
        load_nightly(place)


def test_the_example_has_every_key() -> None:
    keys = {*NightlyEvaluation.model_fields, *NightlySettings.model_fields} - {"evaluation"}
    assert {key for key in keys if not re.search(rf"(?m)^(# )?{key} = ", example())} == set()


def test_the_example_is_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of(["--example"]) == 0
    place = tmp_path / "nightly.toml"
    place.write_text(capsys.readouterr().out)
    assert place.read_text() == example()
    (asked,) = load_nightly(place).evaluation
    assert asked.archive == str(tmp_path / "archive")
    for said, meant in (("threads", "threads"), ("c.toml", f"{tmp_path}/c.toml"), ("tcp://h:1", "tcp://h:1")):
        place.write_text(f'{example()}cluster = "{said}"\n')
        assert load_nightly(place).evaluation[0].cluster == meant


def test_whose_a_file_is(tmp_path: Path) -> None:
    runs = ("a/one.xml", "a/two.xml", "b.kwslist.xml", "c/2020-01-02-x.tsv", "c/2020-01-01-x.tsv")
    for name in (*runs, "README.md", ".hidden/run.xml", ".hidden.parquet/part.0.parquet", ".hidden.xml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "b.resources.toml").write_text("x")

    def found(*inbox: str, **more: Any) -> dict[str, str]:
        return {each.system: each.url.removeprefix(f"{tmp_path}/") for each in look(inbox, **more)}

    assert found(str(tmp_path)) == {"a": "a/two.xml", "b": "b.kwslist.xml", "c": "c/2020-01-02-x.tsv"}
    assert found(f"{tmp_path}/*/*.xml") == {"one": "a/one.xml", "two": "a/two.xml"}
    pattern = r"(?P<system>\w+)/(?P<date>[\d-]{10})-(?P<tag>\w+)\.tsv"
    assert found(str(tmp_path), pattern=pattern) == {"c-x": "c/2020-01-02-x.tsv"}
    (before,) = (each.stamp for each in look([str(tmp_path)]) if each.system == "b")
    (tmp_path / "b.resources.toml").write_text("other")
    assert before not in {each.stamp for each in look([str(tmp_path)])}


def test_files_of_one_system_in_several_folders_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of dates that differ the later counts without a word."""
    for name in ("a/2020-01-01/run.xml", "b/2020-01-02/run.xml"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr(logging.getLogger("swsdask"), "propagate", True)
    assert len(look([f"{tmp_path}/*/*/*.xml"], r"(?P<date>[\d-]{10})/(?P<system>\w+)")) == 1
    assert caplog.messages == []
    (taken,) = look([f"{tmp_path}/*/*/*.xml"])
    assert taken.url == f"{tmp_path}/b/2020-01-02/run.xml"
    told = f"skipped, a later file belongs to the same system, run: {tmp_path}/a/2020-01-01/run.xml"
    assert {*caplog.messages} == {told}


def test_links_and_pipes_in_an_inbox_are_passed_over_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("swsdask"), "propagate", True)  # an earlier command may have ended that
    inbox, outside = tmp_path / "inbox", tmp_path / "outside.tsv"
    (inbox / "folder").mkdir(parents=True)
    outside.write_text("secret")
    (inbox / "regular.tsv").write_text("")
    (inbox / "link.tsv").symlink_to(outside)
    (inbox / "folder" / "broken.tsv").symlink_to(tmp_path / "nothing")
    os.mkfifo(inbox / "pipe.tsv")
    for entry in (str(inbox), f"{inbox}/*.tsv"):
        caplog.clear()
        assert [each.system for each in look([entry])] == ["regular"]
        found = sorted({record.getMessage() for record in caplog.records})
        links = ["folder/broken.tsv", "link.tsv"] if entry == str(inbox) else ["link.tsv"]
        assert found == [
            *(f"skipped, links are not followed: {inbox}/{name}" for name in links),
            f"skipped, not a regular file: {inbox}/pipe.tsv",
        ]


def test_a_run_whose_resources_are_a_link_is_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("swsdask"), "propagate", True)
    (tmp_path / "secret").write_text('password = "a secret"')
    for folder, name in (("a", "run.resources.toml"), ("b", "resources.toml"), ("c", "other.toml")):
        (tmp_path / "inbox" / folder).mkdir(parents=True)
        (tmp_path / "inbox" / folder / "run.tsv").write_text("")
        (tmp_path / "inbox" / folder / name).symlink_to(tmp_path / "secret")
    for entry in (str(tmp_path / "inbox"), f"{tmp_path}/inbox/*/*.tsv"):
        caplog.clear()
        assert [each.url for each in look([entry], "/(?P<system>[abc])/")] == [f"{tmp_path}/inbox/c/run.tsv"]
        said = {record.getMessage() for record in caplog.records}
        expected = "skipped, links are not followed, and its resources are one"
        assert {f"{expected}: {tmp_path}/inbox/{folder}/run.tsv" for folder in "ab"} <= said


def test_history_for_programs(three_nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = sws.history(three_nights / "archive")
    expected = frame[(frame["measure"] == "mtwv") & (frame["condition"] == "all") & (frame["system"] == "weak")]
    main(["history", str(three_nights / "archive"), "weak", "--measure", "mtwv", "--format", "json"])
    records = json.loads(capsys.readouterr().out)
    assert [record["night"] for record in records] == expected["night"].to_list()
    assert [record["value"] for record in records] == expected["value"].to_list()


def test_errors_of_settings_are_logged_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_of([str(tmp_path / "none.toml"), "--log-format", "json"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    said = json.loads(line)
    assert (said["level"], "expected a file with the settings of nights" in said["message"]) == ("error", True)


def test_a_history_without_scores_says_so(
    three_nights: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (asked,) = load_nightly(three_nights / "nightly.toml").evaluation
    shutil.rmtree(three_nights / "archive")
    for system in ("middling", "overconfident", "weak", "keyword-specific"):
        shutil.rmtree(three_nights / "inbox" / system)
    assert run_night(asked, DAY).record is not None
    with pytest.raises(SystemExit):
        main(["history", asked.archive])
    assert "no night has scored a system yet" in capsys.readouterr().err


def test_history_in_the_terminal(three_nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["history", str(three_nights / "archive")])
    assert "weak" in capsys.readouterr().out
    main(["history", str(three_nights / "archive"), "weak", "--measure", "MTWV"])
    assert "•" in capsys.readouterr().out
    for arguments in (["nobody"], ["--measure", "nothing"]):
        with pytest.raises(SystemExit):
            main(["history", str(three_nights / "archive"), *arguments])
    assert "Systems: " in (said := capsys.readouterr().err)
    assert "no night has 'nothing'" in said
    lines = text_plot([0.0, 0.5, float("nan"), 1.0], "atwv")
    assert lines[0] == "1.0000 ┤   •"


def test_history_is_of_the_measure_that_ranks(three_nights: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = three_nights / "nightly.toml"
    place.write_text(
        place.read_text().replace('["atwv", "mtwv"', '["stwv", "atwv", "mtwv"').replace('"stwv", "cn', '"cn')
    )
    (asked,) = load_nightly(place).evaluation
    assert run_night(asked, DAY).record is not None
    main(["history", str(three_nights / "archive"), "--format", "json"])
    assert {record["measure"] for record in json.loads(capsys.readouterr().out)} == {"stwv"}


def test_nights_that_are_killed_and_nights_of_two_hosts() -> None:
    """A few of those of `make nights`; each is a whole night, so this takes longer than other tests."""
    command = [sys.executable, "-m", "tests.faults.nights", "2", "1", "--seed", "1"]
    ended = subprocess.run(command, cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("value", "difference", "kind"),
    [(0.49999, "0.0000", ""), (0.50001, "0.0000", ""), (0.4, "-0.1000", "worse"), (0.6, "+0.1000", "better")],
)
def test_a_difference_that_rounds_to_zero_has_no_sign_and_is_no_loss(
    value: float, difference: str, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = render_nightly._move(Move("a", REPLACED, "b", "atwv", value, 0.5, math.nan))
    assert (shown["difference"], shown["kind"]) == (difference, kind)
    row = {"system": "a", "date": "2026-11-01", "version": 1, "content": "0" * 16, "signature": "s"}
    past = [{**row, "night": 1, "value": 0.5}, {**row, "night": 2, "value": value}]
    render_nightly.print_system(past, "atwv", 2)
    assert f" {difference} " in capsys.readouterr().out


@pytest.mark.parametrize("entry", ["inbox", "inbox/a", "inbox/*/*.xml"])
def test_the_missing_folder_of_an_inbox_is_named(tmp_path: Path, entry: str) -> None:
    with pytest.raises(InputError, match=re.escape(f"nothing there: there is no folder {tmp_path / 'inbox'}.")):
        look([str(tmp_path / entry)])


@pytest.mark.parametrize("quiet", [[], ["-q"]])
def test_a_signal_is_a_line_of_the_log(
    three_nights: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, quiet: list[str]
) -> None:
    def terminated(*_: object) -> None:
        raise Ended(signal.SIGTERM)

    monkeypatch.setattr(steps, "run_night", terminated)
    monkeypatch.setattr("swsdask.cli.has_arrived", lambda _: None)
    place = str(three_nights / "nightly.toml")
    assert code_of([place, "--log-format", "json", *quiet]) == 143
    (line,) = map(json.loads, capsys.readouterr().err.splitlines())
    assert (line["level"], line["evaluation"], line["message"]) == ("error", "demo", "terminated")
    assert code_of([place, *quiet]) == 143
    assert capsys.readouterr().err.endswith("swsdask: demo: terminated\n")
