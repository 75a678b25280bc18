"""Programs that the tests of services start: found on the machine, or installed where that is possible."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

NODE = Path(sys.prefix) / "services"
"""Where programs from npm are installed."""


INSTALL_S = 480.0
"""How long all installs together may take."""

_APT = ("apt-get", "-qq", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=30", "-o", "DPkg::Lock::Timeout=60")


def debian(program: str, *packages: str) -> str:
    """A program of some Debian packages. Skips the test where they cannot be installed."""
    found = _which(program)
    if found is None:
        _install(program, (*_APT, "update"))
        _install(program, (*_APT, "install", "-y", "--no-install-recommends", *packages))
        found = _which(program)
    assert found is not None, f"{' '.join(packages)} came without {program}"
    return found


def npm(program: str, package: str) -> str:
    """A program of an npm package. Skips the test where it cannot be installed."""
    found = NODE / "node_modules" / ".bin" / program
    if not found.exists():
        installer = debian("npm", "npm")
        _install(program, (installer, "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(NODE), package))
    return str(found)


def python(program: str) -> str:
    """A program of the extra `services`."""
    found = Path(sys.executable).with_name(program)
    assert found.exists(), f"{program} is missing: make services installs it"
    return str(found)


def _which(program: str) -> str | None:
    """Where a program is, also one for administrators."""
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin")


def _install(program: str, command: tuple[str, ...]) -> None:
    if fault := _fault_of(command):
        pytest.skip(f"{program} is not installed, and cannot be: {' '.join(command)}: {fault}")


@cache
def _fault_of(command: tuple[str, ...]) -> str | None:
    """Why an install failed, which is not tried again; None if it did not."""
    limited = ("timeout", "--kill-after=10", f"{max(1.0, _installs_end() - time.monotonic()):.0f}", *command)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(limited, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment)
    except OSError as error:
        return str(error)
    if done.returncode in (124, 137, -signal.SIGKILL):
        return f"not done within {INSTALL_S:.0f} s with the installs before"
    return done.stderr.strip()[-300:] or f"exit code {done.returncode}" if done.returncode else None


@cache
def _installs_end() -> float:
    return time.monotonic() + INSTALL_S


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
