"""The files that a night takes: whose they are, also if they are refused, withdrawn or renamed."""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import IO

import fsspec
import pytest

import swsdask as sws
from swsdask.archive.cleaning import vacuum
from swsdask.archive.nights import read_history
from swsdask.archive.storage import Storage
from swsdask.archive.verify import verify
from swsdask.formats import files
from swsdask.formats.find import find_runs
from swsdask.model.errors import ArchiveError, InputError, SettingsError
from swsdask.nightly.inbox import look
from swsdask.nightly.settings import NightlyEvaluation, load_nightly
from swsdask.nightly.steps import plan_night, run_night
from swsdask.places import stamps
from swsdask.render.nightly import night_lines
from swsdask.simulate.evaluation import simulate, write
from tests.unit.test_archive_storage import with_one_failure

DAY = date(2020, 1, 1)
FILE = """
[[evaluation]]
name = "{name}"
reference = "files"
archive = "{name}"
out = "board-{name}"
inbox = ["inbox"]
measures = ["atwv", "mtwv"]
"""


@pytest.fixture(scope="module", autouse=True)
def settled_at_once() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stamps, "SETTLED_S", 0.01)
        yield


@pytest.fixture(autouse=True)
def warnings_reach_pytest(monkeypatch: pytest.MonkeyPatch) -> None:
    """An earlier command may have ended that."""
    monkeypatch.setattr(logging.getLogger("swsdask"), "propagate", True)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated")
    write(simulate(1, hours=0.1, n_queries=4), folder / "files")
    return folder


class Inbox:
    """A folder with an evaluation, and runs that come and go."""

    def __init__(self, folder: Path, pattern: str = "") -> None:
        self.folder = folder
        self.inbox = folder / "inbox"
        self.inbox.mkdir()
        self.search(pattern)

    def search(self, pattern: str) -> None:
        """Find systems in paths by a pattern."""
        self.say(f"pattern = '{pattern}'\n" if pattern else "")

    def say(self, more: str) -> None:
        """Give further lines of settings."""
        (self.folder / "nightly.toml").write_text(FILE.format(name="a") + more)

    @property
    def evaluation(self) -> NightlyEvaluation:
        return load_nightly(self.folder / "nightly.toml").evaluation[0]

    def put(self, run: str, name: str = "") -> Path:
        """Copy a run of the simulation into the inbox."""
        path = self.inbox / (name or f"{run}.kwslist.xml")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self.folder / f"files/runs/{run}.kwslist.xml", path)
        return path

    def night(self) -> list[str] | None:
        """The systems that moved; None if nothing was new."""
        record = run_night(self.evaluation, DAY).record
        return None if record is None else sorted(move.system for move in record.moves)

    @property
    def refused(self) -> list[str]:
        """The refused files, by the history and by what is published."""
        found = [Path(url).name for url in read_history(Storage(self.evaluation.archive)).refused]
        latest = json.loads((self.folder / "board-a/latest.json").read_text())
        assert [Path(url).name for url in latest["refused"]] == found
        return found

    def values(self) -> dict[str, float]:
        """The published MTWV of each system."""
        systems = json.loads((self.folder / "board-a/latest.json").read_text())["systems"]
        return {name: each["values"]["all"]["mtwv"] for name, each in systems.items()}


@pytest.fixture
def inbox(tmp_path: Path, simulated: Path) -> Inbox:
    shutil.copytree(simulated / "files", tmp_path / "files")
    return Inbox(tmp_path)


def test_a_run_that_is_still_broken_stays_refused_whatever_else_arrives(inbox: Inbox) -> None:
    """It was uploaded again with the same bytes, which alone is no news."""
    inbox.put("weak")
    broken = inbox.inbox / "broken.kwslist.xml"
    broken.write_text("<a")
    assert (inbox.night(), inbox.refused) == (["weak"], [broken.name])
    os.utime(broken, (1, 1))
    assert (inbox.night(), inbox.refused) == (None, [broken.name])
    inbox.put("middling")
    assert (inbox.night(), inbox.refused) == (["middling"], [broken.name])
    assert (inbox.night(), inbox.refused) == (None, [broken.name])
    shutil.copyfile(inbox.folder / "files/runs/calibrated.kwslist.xml", broken)
    assert (inbox.night(), inbox.refused) == (["broken"], [])


def test_a_run_that_cannot_be_reached_is_looked_into_again(inbox: Inbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stamp stays as it is: a server that is back gives the same file."""
    inbox.put("weak")
    lost = inbox.put("middling")
    with monkeypatch.context() as patch:

        def stale(path: str, opened: Callable[[str], IO[bytes]] = files.open_local) -> IO[bytes]:
            if path == str(lost):
                raise OSError(errno.ESTALE, "Stale file handle", path)
            return opened(path)

        patch.setattr(files, "open_local", stale)
        assert (inbox.night(), inbox.refused) == (["weak"], [lost.name])
        assert (inbox.night(), inbox.refused) == (None, [lost.name])
    assert (inbox.night(), inbox.refused) == (["middling"], [])
    assert inbox.night() is None


def test_a_newest_version_that_is_lost_is_missed(inbox: Inbox, tmp_path: Path) -> None:
    """A copy that broke off looks whole by its own files; nights name the versions that they were scored from."""
    for run in ("weak", "middling"):
        inbox.put(run)
        assert inbox.night() == [run]
    archive = inbox.evaluation.archive
    shutil.copytree(archive, tmp_path / "copy")
    newest = max(Path(archive).glob("manifest-*"))
    newest.unlink()
    with pytest.raises(ArchiveError, match=rf"{newest.name}: expected the version that the last night was scored from"):
        vacuum(archive)
    assert verify(archive).damaged.keys() == {newest.name}
    assert verify(archive, repair=str(tmp_path / "copy")).repaired == (newest.name,)
    assert not verify(archive).damaged
    assert vacuum(archive) == []


def test_a_run_that_is_whole_again_is_no_longer_refused(inbox: Inbox) -> None:
    """Though the archive has its content: a night fell into the time in which it was copied anew."""
    run = inbox.put("weak")
    assert inbox.night() == ["weak"]
    run.write_text("<broken")
    assert (inbox.night(), inbox.refused) == ([], [run.name])
    inbox.put("weak")
    record = run_night(inbox.evaluation, DAY).record
    assert record is not None
    assert record.notes == (f"Refused before, ingested now: {run}",)
    assert inbox.refused == []
    assert inbox.night() is None


TIMED = "query,document,start,duration,score,decision\n{query},{document},{start},0.5,1.5,YES\n"
UNTIMED = "query,document,score,decision\n{query},{document},1.5,YES\n"
UNFIT = {
    "times": ("", UNTIMED, "times, for virtual trials", 'trials = "document"'),
    "outside": ('outside = "error"', TIMED, "only detections inside evaluated excerpts", 'outside = "drop"'),
    "lists": ('unlisted_queries = "exclude"', TIMED, "a query that is listed", 'unlisted_queries = "count"'),
    "trials": ('trials = "document", impute = "error"', UNTIMED, "a score for every query", 'impute = "min"'),
    "counts": (None, TIMED, "an oov_count of some query", ""),
}
"""Runs that can be ingested and not be scored: the settings, the run, its problem, settings under which it can."""


@pytest.mark.parametrize("kind", UNFIT)
def test_a_run_that_scoring_refuses_is_set_aside(inbox: Inbox, caplog: pytest.LogCaptureFixture, kind: str) -> None:
    """It does not stop the others, in this night or later, and is scored when its file or the settings change."""
    settings, rows, expected, others = UNFIT[kind]
    inbox.say('by = ["oov_count"]' if settings is None else f"settings = {{ {settings} }}")
    evaluation = sws.open(inbox.folder / "files")
    queries, documents = (evaluation.archive.queries["query"], evaluation.archive.documents["document"].unique())
    pairs = [(query, document) for query in queries.to_pylist() for document in documents.to_pylist()]
    text = rows.format(query=pairs[0][0], document=pairs[0][1], start=99_999 if kind == "outside" else 1)
    inbox.put("weak", "good.kwslist.xml")
    if kind == "trials":
        head, row = UNTIMED.splitlines()
        every = [row.format(query=query, document=document) for query, document in pairs]
        (inbox.inbox / "good.kwslist.xml").unlink()
        (inbox.inbox / "good.csv").write_text("\n".join([head, *every, ""]))
    unfit = inbox.inbox / "unfit.csv"
    unfit.write_text(text)
    assert (inbox.night(), inbox.refused) == (["good"], ["unfit.csv"])
    (refused,) = read_history(Storage(inbox.evaluation.archive)).refused.values()
    assert (refused.system, refused.total, len(refused.problems)) == ("unfit", 1, 1)
    assert refused.problems[0].startswith(f"{unfit}: expected {expected}")
    caplog.clear()
    assert (inbox.night(), inbox.refused) == (None, ["unfit.csv"])
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert plan_night(inbox.evaluation) == ["a: nothing is new"]
    os.utime(unfit, (1, 1))
    assert (inbox.night(), inbox.refused) == (None, ["unfit.csv"])
    good = next(inbox.inbox.glob("good.*"))
    shutil.copyfile(good, inbox.inbox / good.name.replace("good", "more"))
    assert (inbox.night(), inbox.refused) == (["more"], ["unfit.csv"])
    inbox.say(f"settings = {{ {others} }}")
    assert (inbox.night(), inbox.refused) == (["good", "more", "unfit"], [])
    assert inbox.night() is None


def test_a_sound_run_that_is_replaced_by_one_that_scoring_refuses(inbox: Inbox) -> None:
    """Its numbers stay; the same file has the baseline of the system, which other systems may be compared with."""
    inbox.say('baseline = "weak"\nsettings = { outside = "error" }')
    inbox.put("weak")
    inbox.put("middling")
    assert inbox.night() == ["middling", "weak"]
    values = inbox.values()
    run = inbox.inbox / "weak.kwslist.xml"
    run.write_text(re.sub(r'tbeg="[0-9.]+"', 'tbeg="99999"', run.read_text()))
    inbox.put("calibrated")
    assert (inbox.night(), inbox.refused) == (["calibrated"], [run.name])
    (move,) = read_history(Storage(inbox.evaluation.archive)).nights[-1].record.moves
    assert move.baseline is None
    run.write_text("<broken")
    assert (inbox.night(), inbox.refused) == ([], [run.name])
    (refused,) = read_history(Storage(inbox.evaluation.archive)).refused.values()
    assert "expected more XML" in refused.problems[0]
    assert (inbox.night(), inbox.refused) == (None, [run.name])
    assert {name: inbox.values()[name] for name in values} == values
    inbox.put("weak")
    assert (inbox.night(), inbox.refused) == ([], [])


def test_a_system_that_is_not_in_the_inbox_and_cannot_be_scored_is_named(
    inbox: Inbox, caplog: pytest.LogCaptureFixture
) -> None:
    inbox.put("weak")
    assert inbox.night() == ["weak"]
    query = sws.open(inbox.folder / "files").archive.queries["query"][0].as_py()
    by_hand = inbox.folder / "by_hand.csv"
    by_hand.write_text(UNTIMED.format(query=query, document="?"))
    tolerant = {"evaluation": {"unknown_documents": "outside"}}
    sws.ingest(inbox.evaluation.archive, runs=by_hand, settings=tolerant, change_settings=True)
    inbox.say('settings = { unknown_documents = "outside" }')
    said = f"by_hand cannot be scored: {by_hand}: expected times, for virtual trials"
    assert inbox.night() == ["weak"]
    assert [note for note in read_history(Storage(inbox.evaluation.archive)).nights[-1].record.notes if said in note]
    caplog.clear()
    assert (inbox.night(), inbox.refused) == (None, [])
    assert [each for each in caplog.messages if said in each]


def test_the_run_before_counts_again_when_a_later_one_is_withdrawn(inbox: Inbox) -> None:
    inbox.search(r"(?P<system>[^/]+)/(?P<date>[0-9-]+)\.kwslist\.xml$")
    first = inbox.put("middling", "team/2026-11-01.kwslist.xml")
    assert inbox.night() == ["team"]
    values = inbox.values()
    later = inbox.put("weak", "team/2026-11-02.kwslist.xml")
    assert inbox.night() == ["team"]
    assert inbox.values() != values
    later.unlink()
    assert plan_night(inbox.evaluation) == [f"a: team: {first} is now the file of this system"]
    assert inbox.night() == ["team"]
    assert inbox.values() == values
    assert inbox.night() is None


def test_another_pattern_gives_systems_their_names_without_a_change_of_files(inbox: Inbox) -> None:
    inbox.put("middling", "team/primary.kwslist.xml")
    inbox.put("weak", "team/contrastive.kwslist.xml")
    assert inbox.night() == ["team"]
    inbox.search(r"(?P<system>[^/]+)/(?P<tag>[^/]+)\.kwslist\.xml$")
    assert inbox.night() == ["team-contrastive", "team-primary"]
    assert inbox.night() is None


def test_names_that_cannot_be_kept_stop_nothing(inbox: Inbox, caplog: pytest.LogCaptureFixture) -> None:
    """A folder from an old archive has its name in another encoding."""
    inbox.put("weak")
    odd = os.fsencode(inbox.inbox) + b"/caf\xe9"
    os.mkdir(odd)
    shutil.copyfile(inbox.put("middling"), odd + b"/run.kwslist.xml")
    with caplog.at_level(logging.WARNING):
        assert inbox.night() == ["middling", "weak"]
    assert r"skipped, its name is not UTF-8: '" in caplog.text
    inbox.put("weak", "a\nb/run.kwslist.xml")
    record = run_night(inbox.evaluation, DAY).record
    assert record is not None
    assert not any("\n" in line for line in night_lines("a", "board-a", record))


def test_a_pattern_may_find_no_system_and_files_however_deep(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("team1/2026/11/run.tsv", "other/run.tsv"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    found = look([str(tmp_path)], r"(?:(?P<system>team\w+)/.*)?run\.tsv$")
    assert [each.system for each in found] == ["team1"]
    assert "the pattern matches but names no system" in caplog.text


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (r"^(?P<system>\w+)\.tsv$", "no file matches the pattern"),
        (None, "nested folders"),
        (r"(?P<system>run)", ""),
    ],
)
def test_an_inbox_in_which_nothing_is_found_is_reported(
    tmp_path: Path, pattern: str | None, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "team/2026").mkdir(parents=True)
    (tmp_path / "team/2026/run.tsv").touch()
    (tmp_path / "README").touch()
    assert bool(look([str(tmp_path)], pattern)) == (not said)
    assert [said in record.getMessage() for record in caplog.records] == ([True] if said else [])


def test_infinite_numbers_are_text_in_what_is_published(inbox: Inbox) -> None:
    """The threshold that accepts nothing, where every detection is a false alarm."""
    place = inbox.folder / "nightly.toml"
    place.write_text(place.read_text().replace('["atwv", "mtwv"]', '["mtwv", "mtwv_threshold"]'))
    run = inbox.put("weak").read_text()
    (inbox.inbox / "weak.kwslist.xml").write_text(run.replace('tbeg="', 'tbeg="9'))
    run_night(inbox.evaluation, DAY)
    content = (inbox.folder / "board-a/latest.json").read_text()

    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    systems = json.loads(content, parse_constant=refuse)["systems"]
    assert systems["weak"]["values"]["all"]["mtwv_threshold"] == "inf"


@pytest.mark.parametrize("other", ["./a", "a/", "b/../a", "{here}/a"])
def test_two_evaluations_need_two_archives_however_they_are_spelt(tmp_path: Path, other: str) -> None:
    place = tmp_path / "nightly.toml"
    second = FILE.format(name="b").replace('archive = "b"', f'archive = "{other.format(here=tmp_path)}"')
    place.write_text(FILE.format(name="a") + second)
    with pytest.raises(SettingsError, match="two evaluations have the archive"):
        load_nightly(place)


@pytest.mark.parametrize(("entry", "systems"), [("", ["a", "of"]), ("/*/*.tsv", ["b"]), ("/**/*.tsv", ["a", "b"])])
def test_a_listing_of_an_inbox_in_a_store_that_fails_is_an_error(
    entry: str, systems: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the runs below would not be missed: the night would find no news, and `score` fewer runs."""
    fsspec.filesystem("memory").pipe({f"{tmp_path}/inbox/a.tsv": b"x", f"{tmp_path}/inbox/of/b.tsv": b"x"})
    inbox = f"memory://{tmp_path}/inbox{entry}"
    assert [each.system for each in look([inbox])] == systems
    for listed in (look, find_runs) if entry else (look,):
        for after in range(2):
            with monkeypatch.context() as patched:
                failed = with_one_failure(patched, "ls", after)
                with pytest.raises(InputError, match="The provided token has expired"):
                    listed([inbox])
                assert failed
