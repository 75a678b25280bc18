"""The process that worker processes of this machine are forked from, where the system can do so.

A worker that begins anew imports Dask, Arrow and the measures, and loads the kernels: a second of CPU time for each.
The fork server does so once, while this process still imports what it needs itself; whatever it has, workers begin
with. It ends when this process and all workers have ended. If it cannot import something, workers do that themselves.

The fork server reports the ends of workers. One that is stopped (SIGSTOP) would report none, and keep who begins or
ends workers waiting; it is killed, and another one is started when it is needed.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import forkserver, resource_tracker
from pathlib import Path

METHOD = "forkserver" if sys.platform == "linux" else "spawn"
"""The start method of worker processes. Elsewhere the libraries of the system may not survive a fork."""

ALLOCATION = {"MALLOC_MMAP_THRESHOLD_": 32 << 20, "MALLOC_TRIM_THRESHOLD_": 64 << 20}
"""The limits that glibc's allocator finds itself in a process that uses arrays of megabytes. Dask sets the second so
low that workers give every array's pages back and fault them in again, which costs a fifth of their time; and setting
either ends the adaptation."""

FORKED = "SWSDASK_FORK_SERVER"
"""An environment variable of the fork server."""

_SINGLE = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Keeps libraries from starting threads when they are imported: a process is forked safely while it has one."""

_ENVIRONMENT = {
    **{name: str(value) for name, value in ALLOCATION.items()},
    **_SINGLE,
    FORKED: "1",
    "PYTHONSAFEPATH": "1",  # nothing is imported from the working directory
}

_PRELOADED = "swsdask.execution.forked"

LOOK_S = 1.0
"""The interval at which the fork server is checked."""


def start() -> None:
    """Start the fork server, unless it runs, or the system has none.

    Raises
    ------
    OSError
        If no process can be started.
    """
    if METHOD == "forkserver":
        atexit.unregister(_kill_stopped)
        atexit.register(_kill_stopped)
        forkserver.set_forkserver_preload([_PRELOADED])
        with signals_put_off(), _set(_ENVIRONMENT):
            forkserver.ensure_running()


@contextmanager
def looked_after() -> Iterator[None]:
    """Kill the fork server where it is stopped, as long as there are workers, and when they have ended."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(LOOK_S):
            _kill_stopped()

    threading.Thread(target=look, daemon=True, name="swsdask fork server").start()
    try:
        yield
    finally:
        ended.set()
        _kill_stopped()


def _kill_stopped() -> None:
    """Kill a fork server that is stopped. Its number is not public: where there is no such name, nothing is done."""
    server = getattr(forkserver._forkserver, "_forkserver_pid", None)
    with suppress(OSError):  # there is none any more
        if server is not None and Path(f"/proc/{server}/stat").read_text().rpartition(") ")[2].startswith("T"):
            os.kill(server, signal.SIGKILL)


@contextmanager
def _set(environment: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def signals_put_off() -> Iterator[None]:
    """Put off signals that end the command until processes are started.

    A terminal sends Ctrl-C and its own end (SIGHUP) to every process of its group. Workers never get them: processes
    and threads that start here inherit that the two are blocked, and so does a worker that one of these threads starts
    later. The client ends its workers itself. SIGTERM is not blocked but kept: Python ends workers by it.
    """
    to_group = {signal.SIGINT, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, to_group)
    resource_tracker.ensure_running()  # which unblocks Ctrl-C when it is done
    signal.pthread_sigmask(signal.SIG_BLOCK, to_group)
    caught: list[int] = []
    in_main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    if in_main_thread and callable(handler):
        signal.signal(signal.SIGTERM, lambda number, _: caught.append(number))
    try:
        yield
    finally:
        if in_main_thread and callable(handler):
            signal.signal(signal.SIGTERM, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if caught:
            signal.raise_signal(caught[0])
