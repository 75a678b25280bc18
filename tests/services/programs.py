"""Programs that the tests of services start: found on the machine, or installed where that is possible."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NODE = Path(sys.prefix) / "services"
"""Where programs from npm are installed."""


def debian(program: str, *packages: str) -> str:
    """A program of some Debian packages. Skips the test where they cannot be installed."""
    found = shutil.which(program)
    if found is None:
        _install(["apt-get", "update", "-qq"], program)
        _install(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages], program)
        found = shutil.which(program)
    assert found is not None, f"{' '.join(packages)} came without {program}"
    return found


def npm(program: str, package: str) -> str:
    """A program of an npm package. Skips the test where it cannot be installed."""
    found = NODE / "node_modules" / ".bin" / program
    if not found.exists():
        _install([debian("npm", "npm"), "install", "--silent", "--prefix", str(NODE), package], program)
    return str(found)


def python(program: str) -> str:
    """A program of the extra `services`."""
    found = Path(sys.executable).with_name(program)
    assert found.exists(), f"{program} is missing: make services installs it"
    return str(found)


def _install(command: list[str], program: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    except OSError as error:
        pytest.skip(f"{program} is not installed, and cannot be: {error}")
    if done.returncode:
        pytest.skip(f"{program} is not installed, and cannot be: {' '.join(command)}: {done.stderr.strip()[-300:]}")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", 0))
        port: int = tried.getsockname()[1]
        return port


def wait_for(port: int, log: Path, limit_s: float = 60) -> None:
    """Wait until somebody listens on a port; `log` is shown if nobody does."""
    began = time.monotonic()
    while time.monotonic() - began < limit_s:
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nobody listens on {port}: {log.read_text()[-2000:]}")


@contextmanager
def serving(command: list[str], port: int, folder: Path, environment: dict[str, str] | None = None) -> Iterator[None]:
    """Run a server in a folder until the context ends."""
    log = folder / "log"
    with log.open("ab") as told:
        server = subprocess.Popen(
            command, cwd=folder, stdout=told, stderr=told, env={**os.environ, **(environment or {})}
        )
    try:
        wait_for(port, log)
        yield
    finally:
        server.terminate()
        server.wait(30)
