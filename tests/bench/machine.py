"""The machine and the libraries that numbers were taken with."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path

import psutil

LIBRARIES = ("swsdask", "numpy", "numba", "pyarrow", "dask", "lxml", "polars", "duckdb")


def machine() -> str:
    """Processor, cores, memory, system and library versions, as lines of a list."""
    lines = [
        f"processor: {_processor()}, {os.cpu_count()} cores",
        f"memory: {psutil.virtual_memory().total / 2**30:.0f} GiB",
        f"system: {platform.system()} {platform.release()}, Python {platform.python_version()}",
        "libraries: " + ", ".join(f"{name} {version(name)}" for name in LIBRARIES),
    ]
    return "\n".join(f"- {line}" for line in lines)


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
