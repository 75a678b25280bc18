"""The process that local worker processes are forked from, if the system supports it.

A new worker has to import Dask, Arrow and the measures, and load the kernels, which takes a second of CPU time. The
fork server does so once, while this process still imports its own modules, and workers start with its state. It ends
when this process and all workers have ended. If it cannot import something, workers import it themselves.

The fork server reports when workers end. If it is stopped (SIGSTOP), it reports nothing, and starting or ending workers
would wait. So it is then killed, and a new one is started when needed.

Its socket is in a folder of multiprocessing, which remains when a client is killed. The folder is therefore inside a
temporary folder that the next command removes.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from multiprocessing import forkserver, resource_tracker
from multiprocessing.util import Finalize, get_temp_dir
from pathlib import Path

from swsdask.places.writing import temporary_folder

METHOD = "forkserver" if sys.platform == "linux" else "spawn"
"""The start method of worker processes. On other systems, system libraries may not survive a fork."""

ALLOCATION = {"MALLOC_MMAP_THRESHOLD_": 32 << 20, "MALLOC_TRIM_THRESHOLD_": 64 << 20}
"""The limits to which glibc's allocator adapts in a process with arrays of megabytes. Dask sets the second so low
that workers return the pages of every array and fault them in again, which costs a fifth of their time. Setting either
of them ends the adaptation."""

FORKED = "SWSDASK_FORK_SERVER"
"""An environment variable of the fork server."""

_SINGLE = {
    **dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"),
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""Keeps libraries from starting threads on import, because only a process with a single thread can be forked safely."""

_ENVIRONMENT = {
    **{name: str(value) for name, value in ALLOCATION.items()},
    **_SINGLE,
    FORKED: "1",
    "PYTHONSAFEPATH": "1",  # nothing is imported from the working directory
}

_PRELOADED = "swsdask.execution.forked"

_LONGEST_FOLDER = 49
"""The maximum length in bytes of the name of the folder of temporary files: sockets are in a folder of a folder of it,
and their names have at most 107 bytes."""

_SHORT_FOLDER = "/tmp"  # nosec B108
"""The folder for sockets if that of temporary files has a longer name, as scratch folders of batch systems have."""

_AFTER_SOCKETS = -101
"""The priority of the finaliser: after multiprocessing removes its folder, at -100."""

LOOK_S = 1.0
"""The interval at which the fork server is checked."""


def start() -> None:
    """Start the fork server, unless it is running or the system does not support it.

    Raises
    ------
    OSError
        If no process can be started, or the working directory has been removed.
    """
    if METHOD == "forkserver":
        os.getcwd()  # in a removed directory, a process of Python 3.13.0 would print a traceback and end
        atexit.unregister(_kill_stopped)
        atexit.register(_kill_stopped)
        forkserver.set_forkserver_preload([_PRELOADED])
        _make_socket_folder()
        with signals_put_off(), _set(_ENVIRONMENT):
            forkserver.ensure_running()


@cache
def _make_socket_folder() -> None:
    """Let multiprocessing make its folder, which exists as long as this process, inside a temporary folder."""
    stack, before = ExitStack(), tempfile.tempdir
    if len(os.fsencode(tempfile.gettempdir())) > _LONGEST_FOLDER and os.access(_SHORT_FOLDER, os.W_OK):
        tempfile.tempdir = _SHORT_FOLDER
    try:
        tempfile.tempdir = str(stack.enter_context(temporary_folder()))
        Finalize(None, stack.close, exitpriority=_AFTER_SOCKETS)
        get_temp_dir()
    finally:
        tempfile.tempdir = before


@contextmanager
def look_after() -> Iterator[None]:
    """Kill the fork server if it is stopped, while there are workers and after they have ended."""
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
    """Kill a fork server that is stopped. Its process id is not public: if the attribute is missing, do nothing."""
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
    """Delay signals that end the command until processes are started.

    A terminal sends Ctrl-C and its own end (SIGHUP) to every process of its group. Workers never get them: processes
    and threads that start here inherit that the two are blocked, and so does a worker that one of these threads starts
    later. The client ends its workers itself. SIGTERM is not blocked but delayed: Python ends workers by it.
    """
    to_group = {signal.SIGINT, signal.SIGHUP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, to_group)
    resource_tracker.ensure_running()  # it unblocks Ctrl-C at its end
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
