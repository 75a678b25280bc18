"""What a piece of work costs: CPU seconds, wall-clock seconds and peak memory, in a process of its own."""

from __future__ import annotations

import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil


@dataclass(frozen=True)
class Cost:
    """Medians over the repeats, in seconds; the highest resident memory of the process in bytes; the last result."""

    cpu: float
    wall: float
    peak: int
    result: Any


def cost(work: Callable[..., Callable[[], Any]], *arguments: Any, repeats: int = 3) -> Cost:
    """Run work(*arguments) in a new process, then what it returns, `repeats` times: only that is timed.

    The new process imports nothing but the module of `work` (and this one), so its peak is its own. CPU seconds are
    user and system time, of all processes below it too.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_cost, work, arguments, repeats).result()


def in_turn(*works: tuple[Any, ...], turns: int = 3) -> list[Cost]:
    """The cost of each (work, arguments...), in turn and again: medians over `turns` processes.

    Processes differ by where their memory lies, and what slows the machine for a while slows both sides of a ratio.
    """
    found = [[cost(*work) for work in works] for _ in range(turns)]
    return [
        Cost(
            statistics.median(one.cpu for one in own),
            statistics.median(one.wall for one in own),
            max(one.peak for one in own),
            own[-1].result,
        )
        for own in zip(*found, strict=True)
    ]


def side_by_side(*works: tuple[Any, ...], repeats: int = 30) -> list[Cost]:
    """The cost of each (work, arguments...), all in one new process, forwards and backwards: medians over `repeats`.

    For differences that are smaller than those between two processes. The peak is that of all together.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_side_by_side, works, repeats).result()


def _side_by_side(works: tuple[tuple[Any, ...], ...], repeats: int) -> list[Cost]:
    steps = [work(*arguments) for work, *arguments in works]
    order = range(len(steps))
    found: list[list[tuple[float, float, Any]]] = [[] for _ in steps]
    for turn in range(repeats):
        for number in order if turn % 2 else reversed(order):
            found[number].append(_timed(steps[number]))
    return [
        Cost(
            statistics.median(cpu for cpu, _, _ in own),
            statistics.median(wall for _, wall, _ in own),
            peak_memory(),
            own[-1][2],
        )
        for own in found
    ]


def _cost(work: Callable[..., Callable[[], Any]], arguments: tuple[Any, ...], repeats: int) -> Cost:
    step = work(*arguments)
    cpu, wall, results = zip(*(_timed(step) for _ in range(repeats)), strict=True)
    return Cost(statistics.median(cpu), statistics.median(wall), peak_memory(), results[-1])


def _timed(step: Callable[[], Any]) -> tuple[float, float, Any]:
    """CPU seconds, wall-clock seconds and the result of one step."""
    gc.collect()
    began_cpu, began = cpu_seconds(), time.perf_counter()
    result = step()
    wall = time.perf_counter() - began
    return cpu_seconds() - began_cpu, wall, result


def cpu_seconds() -> float:
    """User and system time of this process and of all below it: those that have ended, and those that have not."""
    below = (each.cpu_times() for each in psutil.Process().children(recursive=True))
    running = sum(each.user + each.system + each.children_user + each.children_system for each in below)
    return own_seconds() + _seconds(resource.RUSAGE_CHILDREN) + running


def own_seconds() -> float:
    """User and system time of this process alone."""
    return _seconds(resource.RUSAGE_SELF)


def _seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def peak_memory() -> int:
    """The highest resident memory of this process so far, in bytes.

    Linux keeps in `ru_maxrss` what a process had before it became another program; VmHWM it does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
