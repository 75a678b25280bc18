from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from swsdask.execution.clusters import LocalProcesses
from swsdask.execution.dask import DaskExecutor

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="package")
def client() -> Iterator[Any]:
    """Two workers. They end with the tests of this folder: idle ones would take a fifth of a core from those after."""
    with LocalProcesses(workers=2).connect(print) as connected:
        yield connected


@pytest.fixture
def executor(client: Any) -> DaskExecutor:
    client.wait_for_workers(2, timeout=60)
    return DaskExecutor(client, fan_in=2, patience_s=60)


class Elsewhere:
    """A scheduler and workers that nobody restarts, as a batch system would run them."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.file = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0", "--no-dashboard")
        self.workers = [
            self._start("worker", "--no-nanny", "--nthreads", "1", "--no-dashboard", "--local-directory", str(folder))
            for _ in range(workers)
        ]

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", what, "--host", "127.0.0.1", "--scheduler-file", str(self.file)]
        return subprocess.Popen([*command, *options], cwd=ROOT, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Elsewhere]:
    made = Elsewhere(tmp_path, 2)
    yield made
    made.kill()


@contextmanager
def killing(folder: Path, readers: int, then: Callable[[], None] | None = None) -> Iterator[list[int]]:
    """Kill the first `readers` processes that read in `folder`, let the others go on; or do what `then` says."""
    killed: list[int] = []

    def work() -> None:
        while len(found := sorted(folder.glob("reader-*"))) < readers:
            threading.Event().wait(0.02)
        for reader in found[:readers]:
            killed.append(int(reader.name.partition("-")[2]))
            if then is None:
                os.kill(killed[-1], signal.SIGKILL)
        (then or (folder / "go").touch)()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield killed
    thread.join(60)
