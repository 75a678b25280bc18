"""Secrets of URLs and of options of stores are struck out of errors, results, archives and what commands print."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import swsdask as sws
from swsdask.archive.storage import Storage
from swsdask.cli import main
from swsdask.model import safe_text
from swsdask.model.errors import Problem
from swsdask.model.leaderboard import Record
from swsdask.model.safe_text import remember, without_secrets
from swsdask.nightly.settings import NightlyEvaluation
from swsdask.nightly.steps import plan_night, run_night
from tests.small_evaluation import Files

SIGNATURE = "0f5cab77e1"
QUERY = f"?X-Amz-Signature={SIGNATURE}&versionId=3"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:hush@host/a.xml: no answer", "https://me:***@host/a.xml: no answer"),
        (f"https://host/a.xml{QUERY}", "https://host/a.xml?X-Amz-Signature=***&versionId=3"),
        ("az://c/a?sv=1&sig=ab%2Fcd: gone", "az://c/a?sv=1&sig=***"),
        (
            "https://host/a.xml:3: expected <kw>; found 'key=value'",
            "https://host/a.xml:3: expected <kw>; found 'key=value'",
        ),
        ("a/me:hush@host?sig=3", "a/me:hush@host?sig=3"),
        ("https://me:hu@sh/hu?sh#hush@host/a.xml", "https://me:***@host/a.xml"),
        ("https://hushhush@host/a.xml", "https://***@host/a.xml"),
        ("abfs://container@account.dfs/a.xml", "abfs://container@account.dfs/a.xml"),
        ("http://localhost:9000/b/a@1.xml", "http://localhost:9000/b/a@1.xml"),
        ("http://store.example:9000/b/a@1.xml", "http://store.example:9000/b/a@1.xml"),
        ("http://[::1]:9000/b/a@1.xml", "http://[::1]:9000/b/a@1.xml"),
        ("filecache::https://me:hush@host/a.xml::s3://b/c", "filecache::https://me:***@host/a.xml::s3://b/c"),
        ("https://host/a?code=hush&jwt=hush&x=1", "https://host/a?code=***&jwt=***&x=1"),
        ("https://host/a?codec=opus", "https://host/a?codec=opus"),
        ("https://host/#access_token=hush&expires=3", "https://host/#access_token=***&expires=3"),
        ("https://host/a?%53ignature=hu'sh<hu>sh#hush: gone", "https://host/a?%53ignature=***: gone"),
        ("https://host/?url=https://other/a?sig=hush&b=1", "https://host/?url=https://other/a?sig=***&b=1"),
        ("found 'https://host/a?sig=hush'. Do", "found 'https://host/a?sig=***'. Do"),
    ],
)
def test_urls_in_text(text: str, shown: str) -> None:
    assert without_secrets(text).startswith(shown)


@given(st.text(st.characters(exclude_categories=("Z", "C")), min_size=1))
def test_no_part_of_a_password_is_shown_whatever_signs_it_has(secret: str) -> None:
    assume("\N{SNOWMAN}" not in secret)
    url = f"https://me:\N{SNOWMAN}{secret}\N{SNOWMAN}@host/a.xml: no answer"
    assert without_secrets(url) == "https://me:***@host/a.xml: no answer"


def test_long_text_is_searched_once() -> None:
    """A search that began again at every letter would take minutes."""
    assert without_secrets("a" * 1_000_000 + " https://me:hush@host").endswith("a https://me:***@host")
    assert without_secrets("https://host/" + "?a=" * 300_000 + "&sig=hush").endswith("&sig=***")


def test_options_of_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(safe_text, "_known", set())
    remember(
        {"s3": {"secret": "correct horse", "key": "AKIA0123456789", "anon": "a word of no weight"}, "token": "anon"}
    )
    assert without_secrets("denied: correct horse of AKIA0123456789, anon") == "denied: *** of AKIA0123456789, anon"


def test_errors_and_places() -> None:
    url = f"https://me:hush-hush@host/a.xml{QUERY}"
    for error in (
        sws.ArchiveError(f"{url}: cannot be opened"),
        sws.SettingsError(url),
        sws.InputError([Problem(url, 3, "expected", f"found {url}", "remedy")]),
        Storage(url),
    ):
        assert "hush" not in f"{error} {error!r}"
        assert SIGNATURE not in f"{error} {error!r}"


@pytest.fixture
def address(files: Files) -> Iterator[str]:
    """A web server of the files of a small evaluation, whatever the query string."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            """Nothing."""

        def translate_path(self, path: str) -> str:
            return super().translate_path(urlsplit(path).path)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(files.folder)))
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_a_presigned_url(address: str, files: Files, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    url = f"{address}/{files.run.name}{QUERY}"
    result = sws.score(str(files.reference), "atwv", runs=url)
    (system,) = result.manifest["runs"]
    assert SIGNATURE not in json.dumps(result.manifest)
    sws.write(result, tmp_path / "results")
    for path in (tmp_path / "results").iterdir():
        assert SIGNATURE.encode() not in path.read_bytes(), path
    archive = sws.ingest(str(tmp_path / "archive"), str(files.reference), runs={system: url})
    assert SIGNATURE not in repr(archive)
    for path in (tmp_path / "archive").rglob("*"):
        assert path.is_dir() or SIGNATURE.encode() not in path.read_bytes(), path
    with pytest.raises(SystemExit) as ended:
        main(["score", str(files.reference), f"{address}/missing.xml{QUERY}"])
    said = "".join(capfd.readouterr())
    assert ended.value.code == 2
    assert "missing.xml" in said
    assert SIGNATURE not in said


def test_a_presigned_url_in_an_inbox(address: str, files: Files, tmp_path: Path) -> None:
    """Of a run, and of a file that is refused; and in a history of an earlier release."""
    secret = address.replace("//", "//me:hushhush@") + "/{}" + QUERY
    for name in ("good", "bad"):
        (files.folder / f"{name}.xml").write_text(files.run.read_text() if name == "good" else "<kwslist>")
    inbox = [secret.format(f"{name}.xml") for name in ("good", "bad")]
    job = NightlyEvaluation(
        name="n", archive=str(tmp_path / "a"), reference=str(files.reference), inbox=inbox, out=str(tmp_path / "b")
    )
    record = run_night(job, date(2020, 1, 1)).record
    assert record is not None
    assert [each.system for each in record.refused] == ["bad"]
    for path in (*(tmp_path / "a").rglob("*"), *(tmp_path / "b").rglob("*")):
        text = b"" if path.is_dir() else path.read_bytes()
        assert SIGNATURE.encode() not in text, path
        assert b"hushhush" not in text, path
    assert run_night(job, date(2020, 1, 1)).record is None
    assert not [line for line in plan_night(job) if SIGNATURE in line or "hushhush" in line]
    (files.folder / "bad.xml").write_text(files.run.read_text().replace('"first"', '"bad"'))
    assert (again := run_night(job, date(2020, 1, 1)).record) is not None
    assert (again.refused, [move.system for move in again.moves]) == ((), ["bad"])
    said = record.to_json().replace("me:***@", "me:hushhush@").replace("Signature=***", f"Signature={SIGNATURE}")
    assert "hushhush" in said
    earlier = Record.from_json(said)
    assert (earlier.stamps, earlier.sources) == (record.stamps, record.sources)
    assert [each.url for each in earlier.refused] == [each.url for each in record.refused]


def test_names_are_without_the_query_of_a_url(address: str, files: Files, tmp_path: Path) -> None:
    (files.folder / "my.classes").write_text("Class 1\nf 0 1\nf 2 3\n\n")
    for name, labels in (("x.phn", "abc"), ("x.wrd", "w")):
        rows = [f"f {number} {number + 1} {label}" for number, label in enumerate(labels)]
        (files.folder / name).write_text("\n".join(rows) + "\n")
    places = [f"{address}/{name}{QUERY}" for name in ("my.classes", "x.phn", "x.wrd")]
    result = sws.discover(places[0], phones=places[1], words=places[2])
    assert [*result.manifest["runs"]] == ["my"]
    run = f"{address}/{files.run.name}{QUERY}"
    sws.calibrate(str(files.reference), run, method="pav").write(tmp_path / "map.toml")
    (applied,) = sws.apply_calibration(tmp_path / "map.toml", run, tmp_path / "applied")
    assert Path(applied.target).name == files.run.name
