"""What workers must have is looked for by one function, and what one lacks is an error with a remedy."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

import swsdask as sws
from swsdask.execution.checks import check_answers, looking
from swsdask.execution.dask import DaskExecutor, _FutureWatch, sent_options
from swsdask.execution.executor import SerialExecutor
from swsdask.model.errors import ClusterError
from swsdask.places import store_options
from swsdask.places.store_options import options, set_options, unset_options

OWN = looking((), {})()
CASE = Path(__file__).resolve().parents[1] / "cases" / "trec_eval" / "ids"


def test_a_worker_like_this_process_lacks_nothing(tmp_path: Path) -> None:
    file = tmp_path / "here"
    file.touch()
    answer = looking([str(file), file.as_uri()], {})()
    assert set(answer) == {"version", "code"}
    check_answers({"tcp://a": answer, "tcp://b": OWN})


def test_a_worker_that_is_lost_meanwhile_is_no_fault() -> None:
    check_answers({"tcp://a": OSError("closed"), "tcp://b": OWN})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"import": "No module named 'swsdask'"}, r"cannot import swsdask: No module.* Install swsdask \S+ on all"),
        ({**OWN, "version": "0.0.9"}, r"has swsdask 0\.0\.9; this process has .*\. Install the same on all workers"),
        ({**OWN, "code": "0"}, r"has other code of swsdask .* its hash is 0, here [0-9a-f]{16}\. Install the same"),
        ({**OWN, "temporary": "[Errno 30]"}, r"cannot write temporary files: \[Errno 30\]\. Set TMPDIR"),
        ({**OWN, "unseen": ("runs/a.xml", "it is missing")}, r"does not see runs/a\.xml: .* absolute path or a URL"),
        ({**OWN, "unseen": ("/data/a", "it is missing")}, r"does not see /data/a: .* under the same path, or into"),
        (
            {**OWN, "unseen": (f"{tempfile.gettempdir()}/a", "it is missing")},
            r"does not see .*: .* under the same path",
        ),
        ({**OWN, "unseen": ("s3://b/a", "no credentials")}, r"does not see s3://b/a: no credentials\. Give its host"),
        (
            {**OWN, "unseen": (f"{tempfile.gettempdir()}/swsdask-tmp-x/lease", "it is missing")},
            r"does not see .* set TMPDIR here to a folder that all workers share",
        ),
        (
            TypeError("code() argument 13"),
            r"cannot be checked: TypeError: code\(\).* Install the same Python",
        ),
    ],
)
def test_what_a_worker_lacks_is_an_error_with_a_remedy(answer: Any, said: str) -> None:
    with pytest.raises(ClusterError, match=f"^worker tcp://b {said}") as raised:
        check_answers({"tcp://a": OWN, "tcp://b": answer})
    assert raised.value.exit_code == 4


def test_the_first_place_that_is_not_seen_is_named(tmp_path: Path) -> None:
    missing = [str(tmp_path / name) for name in ("one", "two")]
    assert looking(missing, {})()["unseen"] == (missing[0], "no such file or folder")


def test_a_folder_of_temporary_files_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert "Read-only" in looking((), {})()["temporary"]


def test_a_process_without_swsdask_can_be_asked() -> None:
    program = (
        "import pickle, sys; sys.modules['swsdask'] = None; print(pickle.load(sys.stdin.buffer)()['import'], end='')"
    )
    environment = {**os.environ, "PYTHONPATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", program], input=cloudpickle.dumps(looking((), {})), capture_output=True, env=environment
    )
    assert done.stdout.startswith(b"import of swsdask halted"), done.stderr


class Workers(SerialExecutor):
    """An executor that notes what its workers must see."""

    shares_memory = False

    def __init__(self) -> None:
        self.places: list[str] = []

    def check(self, places: Sequence[str]) -> None:
        assert all(Path(place).is_file() for place in places)
        self.places.extend(places)


def test_workers_must_see_the_archive_the_runs_and_the_folder_of_temporary_files(tmp_path: Path) -> None:
    qrels, run = str(CASE / "judgments.qrels"), str(CASE / "run.trec")
    archive = tmp_path / "archive"
    writing, scoring, beside = Workers(), Workers(), Workers()
    settings = {"evaluation": {"unknown_queries": "drop"}}
    sws.ingest(archive, qrels=qrels, runs=run, settings=settings, executor=writing)
    assert writing.places[0].startswith(f"{archive}/temporary/")
    assert writing.places[1:] == [run]
    sws.score(str(archive), "map", executor=scoring)
    assert scoring.places == [f"{archive}/manifest-00000001.json"]
    evaluation = sws.open(qrels=qrels, collection=run, settings=settings)
    sws.score(evaluation, "map", runs=run, executor=beside)
    lease, read, manifest = beside.places
    assert lease.startswith(tempfile.gettempdir())
    assert manifest.startswith(tempfile.gettempdir())
    assert read == run


class Broken:
    """A client whose scheduler's machine has just gone."""

    status = "running"

    def reset(self, *_: object, **__: object) -> None:
        raise ConnectionResetError(104, "Connection reset by peer")

    run = register_plugin = nthreads = result = reset

    def add_done_callback(self, call: Callable[[object], None]) -> None:
        call(self)

    def cancelled(self) -> bool:
        return False


def test_a_connection_that_is_reset_is_a_fault_of_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fsspec.config.conf", {"s3": {"anon": True}})
    broken: Any = Broken()
    executor = DaskExecutor(broken)
    calls = (
        lambda: executor.check(["/"]),
        lambda: executor.workers,
        lambda: executor._result(_FutureWatch(broken, 1.0), broken, "cell 1"),
        lambda: sent_options(broken, shared=True).__enter__(),
    )
    for call in calls:
        with pytest.raises(ClusterError, match=r"scheduler (broke|does not answer).*run the command again"):
            call()


def test_options_of_stores_are_those_of_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user's keys, or another store's address, would be used by the next command on the same workers."""
    own = {"s3": {"anon": False}, "gs": {"project": "ours"}}
    monkeypatch.setattr("fsspec.config.conf", {name: dict(each) for name, each in own.items()})
    store_options._own_options.cache_clear()
    try:
        set_options({"s3": {"key": "alice"}, "az": {"account": "hers"}})
        assert options() == {"s3": {"anon": False, "key": "alice"}, "gs": own["gs"], "az": {"account": "hers"}}
        set_options({"s3": {"endpoint_url": "http://there"}})
        assert options() == {"s3": {"anon": False, "endpoint_url": "http://there"}, "gs": own["gs"], "az": {}}
        unset_options({"s3": {"key": "alice"}})  # an earlier command ends later: the other's stay
        assert options()["s3"] == {"anon": False, "endpoint_url": "http://there"}
        unset_options({"s3": {"endpoint_url": "http://there"}})
        assert options() == {**own, "az": {}}
    finally:
        store_options._own_options.cache_clear()
