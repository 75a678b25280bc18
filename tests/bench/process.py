"""Whole processes. Nothing is imported here: on Linux a process begins with the peak of the one that started it."""

from __future__ import annotations

import ctypes
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

_PR_SET_CHILD_SUBREAPER = 36


def run_with_all(command: Sequence[str], **how: Any) -> tuple[str, float]:
    """What a command writes to its standard output, and its wall-clock seconds.

    Returns when all processes that it leaves behind have ended, too. On Linux they become children of this process, so
    that their CPU time is known.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    began = time.perf_counter()
    written = subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8", **how).stdout
    wall = time.perf_counter() - began
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return written, wall


def run_process(command: Sequence[str]) -> Callable[[], int]:
    """Runs a command that has run once before; the highest resident memory of a process, in bytes."""

    def step() -> int:
        subprocess.run(command, check=True, capture_output=True)
        return peak_of_children()

    step()
    return step


def peak_of_children() -> int:
    """The highest resident memory of a process that this one has started and that has ended, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
