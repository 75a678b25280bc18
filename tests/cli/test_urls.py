"""Every place may be a URL: read, written as one, refused before the work where it cannot be written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import fsspec
import fsspec.config
import pytest

from swsdask.model.errors import SettingsError
from swsdask.places import store_options
from swsdask.places.store_options import options, set_option, set_options
from tests.command_line import Outcome
from tests.small_evaluation import Files
from tests.whole_flow import content, flow, names, put

Call = Callable[..., Outcome]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[str]:
    yield f"memory://{tmp_path}"
    fsspec.filesystem("memory").store.clear()


def test_the_same_here_and_there(swsdask: Call, files: Files, root: str) -> None:
    flow(swsdask, files, root)


def test_discovery(swsdask: Call, tmp_path: Path, root: str) -> None:
    swsdask("simulate", "discovery", "--out", tmp_path / "d", "--phones", "400")
    put(tmp_path / "d", f"{root}/d")
    outcomes = []
    for there in (str(tmp_path / "d"), f"{root}/d"):
        corpus = ["--phones", f"{there}/sim.phn", "--words", f"{there}/sim.wrd"]
        ended = swsdask("discover", f"{there}/dense.classes", *corpus, "--tde-output", "--out", f"{there}/out")
        assert ended.code == 0, ended.err
        outcomes.append({name: content(f"{there}/out/{name}") for name in ("scores.parquet", "curves.parquet")})
        assert "tde/nlp" in names(f"{there}/out")
    assert outcomes[0] == outcomes[1]


def test_a_web_address_is_no_folder(swsdask: Call, files: Files) -> None:
    handler = partial(SimpleHTTPRequestHandler, directory=str(files.folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        ended = swsdask("score", f"{address}/reference", files.run)
        globbed = swsdask("score", files.reference, f"{address}/*.kwslist.xml", "--measures", "n_target")
        server.shutdown()
    assert ended.code == 2
    assert "expected a folder; found a web address, which has no folders. Name the files themselves" in ended.err
    assert globbed.code == 0, globbed.err


def test_a_result_there_is_replaced_as_one(swsdask: Call, files: Files, root: str) -> None:
    out = f"{root}/out"
    for more in (["--alignment"], []):
        assert swsdask("score", files.reference, files.run, "--out", out, *more).code == 0
        assert ("alignment.parquet" in names(out)) == bool(more)
    filesystem, path = fsspec.core.url_to_fs(out)
    filesystem.pipe_file(f"{path}/scores.parquet", b"another's")
    ended = swsdask("report", out)
    assert ended.code == 2
    assert "found a file that is not the one manifest.json lists" in ended.err
    filesystem.rm_file(f"{path}/manifest.json")
    ended = swsdask("correlate", out)
    assert ended.code == 2
    assert "found no such file" in ended.err


def test_the_manifest_is_gone_while_files_are_sent_and_comes_last(
    swsdask: Call, files: Files, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = f"{root}/out"
    assert swsdask("score", files.reference, files.run, "--out", out).code == 0
    filesystem, path = fsspec.core.url_to_fs(out)
    sent: list[str] = []

    def fail_at_last(_: object, place: str, **more: object) -> None:
        sent.append(place.removeprefix(f"{path}/"))
        assert not filesystem.exists(f"{path}/manifest.json")
        if sent[-1] == "manifest.json":
            raise OSError("the line broke")

    monkeypatch.setattr(type(filesystem), "put_file", lambda self, *given, **more: fail_at_last(*given, **more))
    ended = swsdask("score", files.reference, files.run, "--out", out)
    assert ended.code == 2
    assert f"{out}: expected a store that can be written; found OSError: the line broke." in ended.err
    assert sorted(sent[:-1]) == [
        "curves.parquet",
        "query_texts.parquet",
        "report.html",
        "scores.json",
        "scores.parquet",
    ]


@pytest.mark.parametrize("place", ["https://host/x", "s3://no-such-bucket-at-all/x", "nosuchprotocol://x"])
@pytest.mark.parametrize("command", ["score", "correlate", "discover", "compare"])
def test_what_cannot_be_written_is_refused_before_the_work(
    swsdask: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(fsspec.config.conf, "s3", {"endpoint_url": "http://127.0.0.1:9", "key": "x", "secret": "y"})
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    ended = swsdask(command, "nothing", "--out", place)
    assert ended.code == 2
    assert f"{place}: expected a" in ended.err
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_into_a_folder_that_is_called_like_a_url(
    swsdask: Call, files: Files, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    monkeypatch.chdir(files.folder)
    before = sorted(files.folder.rglob("*"))
    fitted = ["calibrate", files.run, "--on", files.reference, "--method", "pav"]
    assert swsdask(*fitted, "--out", "https://host/calibration.toml").code == 2
    assert swsdask("convert", files.run, "https://host/run.tsv").code == 2
    assert swsdask(*fitted, "--out", f"{root}/calibration.toml").code == 0
    assert sorted(files.folder.rglob("*")) == before
    assert names(root) == ["calibration.toml"]


def test_file_urls_are_paths(swsdask: Call, files: Files) -> None:
    out = f"file://{files.folder}/out"
    assert swsdask("score", f"file://{files.reference}", f"file://{files.run}", "--out", out).code == 0
    assert json.loads((files.folder / "out" / "manifest.json").read_bytes())["files"].keys() >= {"scores.parquet"}
    assert not list(files.folder.rglob(".swsdask*"))


@pytest.fixture
def no_options(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, dict[str, object]]]:
    held: dict[str, dict[str, object]] = {}
    monkeypatch.setattr(fsspec.config, "conf", held)
    store_options._own_options.cache_clear()
    yield held
    store_options._own_options.cache_clear()


def test_an_unknown_option_of_a_store_is_named(
    swsdask: Call, files: Files, no_options: dict[str, dict[str, object]]
) -> None:
    for arguments in (("score", "s3://b/x"), ("score", files.reference, "s3://b/run.tsv"), ("show", "s3://b/x")):
        ended = swsdask(*arguments, "--storage-option", "s3.nonsense=1")
        assert ended.code == 2
        assert "nonsense" in ended.err
        assert "Check the options of the store" in ended.err


def test_options_of_stores(swsdask: Call, no_options: dict[str, dict[str, object]]) -> None:
    given = ["endpoint_url=http://h:1", "s3.anon=true", "s3.key=123", "gs.client_kwargs.n=1"]
    assert swsdask("presets", *(word for each in given for word in ("--storage-option", each))).code == 0
    everywhere = {"endpoint_url": "http://h:1"}
    assert no_options == {
        "s3": {**everywhere, "anon": True, "key": "123"},
        "gs": {**everywhere, "client_kwargs": {"n": 1}},
        "abfs": everywhere,
    }
    ended = swsdask("score", "x", "--storage-option", "endpoint_url")
    assert ended.code == 2
    assert "expected KEY=VALUE" in ended.err


def test_a_value_in_place_of_further_keys_is_an_error(no_options: dict[str, dict[str, object]]) -> None:
    set_option("s3.client_kwargs", "x")
    with pytest.raises(SettingsError, match="client_kwargs holds a value, not further keys"):
        set_option("s3.client_kwargs.region_name", "eu")
    assert no_options == {"s3": {"client_kwargs": "x"}}


def test_options_are_set_in_another_process_as_they_are_here(no_options: dict[str, dict[str, object]]) -> None:
    set_option("s3.key", "k")
    sent = options()
    assert sent == {"s3": {"key": "k"}}
    no_options.clear()
    no_options["s3"] = {"anon": False}
    set_options(sent)
    assert no_options == {"s3": {"anon": False, "key": "k"}}


def test_files_in_the_memory_of_the_command_are_noted_as_lost(files: Files) -> None:
    command = [sys.executable, "-m", "swsdask", "convert", str(files.run), "memory://run.tsv", "-q"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "memory:// ends with the command: 1 file lost. Give a path, or the URL of a store.\n" in ended.stderr
    assert (
        "memory://"
        not in subprocess.run([*command[:5], f"{files.folder}/run.tsv", "-q"], capture_output=True, text=True).stderr
    )
