"""What a process lacks: memory, threads, open files. The command ends with one line that says what to do."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import swsdask as sws
from swsdask.archive.storage import Storage
from swsdask.archive.stored_tables import unreadable
from swsdask.kernels import compilation
from swsdask.model import limits
from swsdask.model.errors import ResourceError
from swsdask.model.limits import shortage
from swsdask.places.reading import storage_fault
from tests.command_line import Outcome
from tests.small_evaluation import Files

Call = Callable[..., Outcome]


def _caused(by: Exception) -> OSError:
    error = OSError("Could not find/load shared object file 'libllvmlite.so'")
    error.__cause__ = by
    return error


MEMORY = [
    MemoryError(),
    MemoryError("Unable to allocate 3.00 GiB for an array"),
    pa.ArrowMemoryError("malloc of size 64 failed"),
    OSError(errno.ENOMEM, "Cannot allocate memory"),
    ImportError("libarrow.so: failed to map segment from shared object"),
    _caused(OSError("libllvmlite.so: failed to map segment from shared object")),
]
THREADS = [
    RuntimeError("can't start new thread"),
    BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"),
    pa.ArrowException("Unknown error: Failed to launch worker thread: Resource temporarily unavailable"),
]
FILES = [
    OSError(errno.EMFILE, "Too many open files", "a.txt"),
    OSError(errno.ENFILE, "Too many open files in system"),
    ImportError("libarrow.so: cannot open shared object file: Too many open files"),
]
LACKING = [
    *((error, "out of memory") for error in MEMORY),
    *((error, "no further thread or process can be started") for error in THREADS),
    *((error, "too many open files") for error in FILES),
]


@pytest.mark.parametrize(("error", "said"), LACKING)
def test_whatever_the_system_lacks_is_one_line(
    monkeypatch: pytest.MonkeyPatch, swsdask: Call, files: Files, error: Exception, said: str
) -> None:
    def lacking(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("swsdask.write", lacking)
    outcome = swsdask("score", files.reference, files.run, "--out", files.folder / "out")
    assert outcome.code == 2
    assert outcome.err.splitlines()[-1].startswith(f"swsdask: {said}")
    assert "fewer workers" in outcome.err


@pytest.mark.parametrize(("error", "said"), LACKING)
def test_no_file_is_called_damaged_for_it(tmp_path: Path, error: Exception, said: str) -> None:
    """A night would refuse a run, and `verify` report a file, that are whole."""
    for fault in (storage_fault("a.txt", error), unreadable(Storage(str(tmp_path)), "a.parquet", error)):
        assert isinstance(fault, ResourceError)
        assert said in str(fault)


@pytest.mark.parametrize(
    "error",
    [
        ImportError("libarrow.so: failed to map segment from shared object: Operation not permitted"),
        OSError(errno.ENOSPC, "No space left on device"),
        ValueError(),
    ],
)
def test_other_failures_are_none(error: Exception) -> None:
    assert shortage(error) is None


def test_a_pipe_that_is_full_is_no_want_of_threads() -> None:
    error = BlockingIOError(errno.EAGAIN, "write could not complete without blocking", 7)
    assert error.characters_written == 7
    assert shortage(error) is None


@pytest.mark.parametrize("said", [True, False])
def test_what_is_raised_from_none_is_its_own_fault(said: bool) -> None:
    """Python keeps what was handled then; only an error that does not hide it is one of it."""

    def fail() -> None:
        try:
            raise MemoryError
        except MemoryError as error:
            raise ValueError("another fault") from (error if said else None)

    with pytest.raises(ValueError, match="another fault") as raised:
        fail()
    assert (shortage(raised.value) is not None) == said


@pytest.mark.parametrize("wait", [True, False])
def test_a_lock_that_is_held_is_no_want_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait: bool) -> None:
    place, flock = tmp_path / "lock", fcntl.flock
    with place.open("ab") as held, place.open("ab") as another:
        flock(held, fcntl.LOCK_EX)

        def found_held(lock: Any, how: int) -> None:
            try:
                flock(lock, how)
            except BlockingIOError:
                if wait:  # from now on it is free
                    flock(held, fcntl.LOCK_UN)
                raise

        monkeypatch.setattr(fcntl, "flock", found_held)

        def fail() -> None:
            with compilation._alone(place, wait) as lock:
                assert (lock is None) == (not wait)
                with pytest.raises(BlockingIOError):
                    flock(another, fcntl.LOCK_EX | fcntl.LOCK_NB)
                raise ValueError("a fault")

        with pytest.raises(ValueError, match="a fault") as raised:
            fail()
        assert raised.value.__context__ is None


def test_threads_of_the_users_other_processes_are_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    user = os.getuid()
    for process, owner, threads in (("12", user, 5), ("13", user + 1, 7), (str(os.getpid()), user, 9)):
        (tmp_path / process).mkdir()
        (tmp_path / process / "status").write_text(f"Name:\tx\nUid:\t{owner}\t{owner}\nThreads:\t{threads}\n")
    monkeypatch.setattr(limits, "Path", lambda _: tmp_path)
    assert limits._threads_of_others() == 5


def test_threads_of_the_user_are_counted_before_libraries_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    user = os.getuid()
    monkeypatch.setattr(limits, "_threads_of_others", lambda: 7)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, 10))
    for number, least, is_enough in ((0, 4, True), (user or 1, 3, True), (user or 1, 4, False)):
        monkeypatch.setattr(os, "getuid", lambda number=number: number)
        with nullcontext() if is_enough else pytest.raises(ResourceError) as raised:
            limits.check_threads(least, "this")
    assert str(raised.value) == (
        "`ulimit -u` allows 10 threads of this user. Other processes of this user have 7. But this needs at least 4. "
        "Allow more."
    )


UNDER = """
import resource, runpy, sys
resource.setrlimit(resource.{limit}, ({number}, {number}))
sys.argv = ["swsdask", *{arguments!r}]
runpy.run_module("swsdask", run_name="__main__")
"""
"""A command under a limit of its process."""


def under(limit: str, number: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    script = UNDER.format(limit=limit, number=number, arguments=[str(each) for each in arguments])
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("mebibytes", [200, 300, 400, 500, 600, 700])
def test_too_few_addresses_are_said_at_once(files: Files, mebibytes: int) -> None:
    """Libraries abort the process, or wait without end, where they cannot allocate."""
    ended = under("RLIMIT_AS", mebibytes << 20, "score", files.reference, files.run)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert f"`ulimit -v` allows {mebibytes} MiB of addresses" in line


def test_threads_and_processes_need_more_addresses(files: Files) -> None:
    for executor, least in (("threads", "1,024"), ("processes", "1,536")):
        ended = under("RLIMIT_AS", 900 << 20, "score", files.reference, files.run, "--executor", executor)
        assert ended.returncode == 2
        (line,) = ended.stderr.splitlines()
        assert f"needs at least {least}." in line


def test_worker_processes_need_open_files(files: Files) -> None:
    ended = under("RLIMIT_NOFILE", 40, "score", files.reference, files.run, "--executor", "processes", "--workers", 2)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert (
        line
        == "swsdask: `ulimit -n` allows 40 open files. But a pool of 2 worker processes needs at least 48. Allow more."
    )


def test_a_small_evaluation_is_scored_in_few_addresses(files: Files) -> None:
    arguments = ["score", files.reference, files.run, "--quiet"]
    subprocess.run([sys.executable, "-m", "swsdask", *arguments], check=True)  # compiles what no test did before
    ended = under("RLIMIT_AS", 1 << 30, *arguments)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_worker_processes_need_a_working_directory(files: Files, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f"rmdir {gone}; {sys.executable} -m swsdask score {files.reference} {files.run}"
    ended = subprocess.run(["bash", "-c", command], cwd=gone, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    gone.mkdir()
    command = f"{command} --executor processes --workers 2 --quiet"
    ended = subprocess.run(["bash", "-c", command], cwd=gone, capture_output=True, text=True)
    assert ended.returncode == 4
    (line,) = ended.stderr.splitlines()
    assert "the working directory, in which worker processes start, has been removed" in line


def test_settings_are_not_explained_without_docstrings() -> None:
    ended = subprocess.run([sys.executable, "-OO", "-m", "swsdask", "settings"], capture_output=True, text=True)
    assert ended.returncode == 2
    (line,) = ended.stderr.splitlines()
    assert "-OO" in line


@pytest.mark.parametrize("form", ["csv", "spreadsheet", "json", "markdown", "latex"])
def test_every_form_is_printed_by_the_command_as_it_is_called(swsdask: Call, files: Files, form: str) -> None:
    """It has no pandas, which this process has."""
    arguments = [str(each) for each in ("score", files.reference, files.run, "--quiet", "--format", form)]
    ended = subprocess.run([sys.executable, "-m", "swsdask", *arguments], capture_output=True, text=True)
    result = sws.score(files.reference, runs=files.run)
    said = [*result.notes, f"Signature: {result.manifest['signature']}"]
    assert (ended.returncode, ended.stderr.splitlines()) == (0, said)
    assert ended.stdout == swsdask(*arguments).out
    if form == "csv":
        evaluation = sws.open(files.reference)
        assert ended.stdout == sws.score(evaluation, runs=files.run).to_csv()


WITHOUT = """
import sys
from swsdask.cli import console
sys.argv = ["swsdask", *{arguments!r}]
try:
    console()
except SystemExit:
    pass
assert "swsdask.kernels.text" in sys.modules
assert not {{"pandas", "scipy"}} & set(sys.modules), "needless"
assert sys.modules["pydantic.plugin._loader"]._plugins is None, "plugins were searched"
"""


def test_the_command_loads_no_needless_library(files: Files) -> None:
    """When memory is limited, scipy's BLAS waits without end for a buffer that it allocates as it is loaded."""
    script = WITHOUT.format(arguments=["score", str(files.reference), str(files.run), "--quiet"])
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
