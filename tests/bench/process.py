"""Whole processes. Nothing is imported here: on Linux a process begins with the peak of the one that started it."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable, Sequence


def run_process(command: Sequence[str]) -> Callable[[], int]:
    """Runs a command that has run once before; the highest resident memory of a process, in bytes."""

    def step() -> int:
        subprocess.run(command, check=True, capture_output=True)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024

    step()
    return step
