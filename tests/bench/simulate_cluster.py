"""How long a cluster that is not here would take: python -m tests.bench.simulate_cluster [--quick]

Measures what the tasks of a score cost on this machine, and what a task costs the client and the scheduler; compares
the model of `tests.bench.cluster_model` with this machine's schedulers and workers; then prints what 1,000 workers
would take for 10^12 detections, and draws docs/pictures/scaling.svg. --quick: a tenth of the detections.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster, Worker

from swsdask.archive.reference import build_reference
from swsdask.archive.store import open_archive
from swsdask.execution.clusters import QUIET
from swsdask.execution.dask import DaskExecutor
from swsdask.execution.executor import Executor, SerialExecutor
from swsdask.execution.open import open_executor
from swsdask.measures import select
from swsdask.model.settings import EngineSettings
from swsdask.scoring.score import score_archive
from tests.bench.cluster_model import Cluster, Costs, Machines, Outcome, Phase, Work, scoring
from tests.bench.data import Archived, Data, Shape
from tests.bench.distant import columns_needed
from tests.bench.machine import machine
from tests.bench.scoring import FEW, settings
from tests.bench.table import markdown

SYSTEMS, SMALL, ROWS = 4, 1_100_000, 12_000_000
"""The systems of the archives here, small and large: of more rows than one task scores whole."""

EMPTY = 2_000
ALONE = 50
"""Tasks that do nothing: at once, and one after the other."""

TURNS, TURNS_OF_NAPS = 7, 3
"""Costs and what is compared with them are measured in turn, so that both meet the machine as it is."""

LIGHT = 200
NAP_S = 1.0
NAPS = 8
IDLE_S = 5.0
"""Light workers, how long each of their tasks sleeps, how many tasks each of them has, and how long all do nothing."""

FIGURE = Path(__file__).parents[2] / "docs" / "pictures" / "scaling.svg"

THOUSAND = Machines(
    workers=1000, message_s=0.5e-3, store_latency_s=0.03, store_rate=100e9, line_rate=1.25e9, slow=0.01, slower=3.0
)
"""Lines of 10 Gbit/s, a store that sends 100 GB/s after 30 ms, and one task of a hundred three times as long."""

FAST = 1e12
"""Bytes per second of a store that does not limit so many workers."""


class _Recorder(SerialExecutor):
    """Notes rows, seconds and bytes of every task, and seconds of merges, by the name of the map."""

    def __init__(self) -> None:
        self.tasks: dict[str, list[tuple[int, float, int]]] = {}
        self.merges: dict[str, list[float]] = {}

    def map_reduce(
        self,
        function: Callable[[Any, Any], Any],
        items: Iterable[Any],
        merge: Callable[[Any, Any], Any],
        shared: Any = None,
        *,
        label: Callable[[Any], str] = str,
        done: Callable[[Any], None] | None = None,
        name: str = "map",
    ) -> Any:
        def timed(item: Any, shared: Any) -> Any:
            began = time.perf_counter()
            part = function(item, shared)
            spent = time.perf_counter() - began
            self.tasks.setdefault(name, []).append((item.rows, spent, len(pickle.dumps(part))))
            return part

        def merged(one: Any, other: Any) -> Any:
            began = time.perf_counter()
            both = merge(one, other)
            self.merges.setdefault(name, []).append(time.perf_counter() - began)
            return both

        return super().map_reduce(timed, items, merged, shared, label=label, done=done, name=name)


def _score(url: str, executor: Executor) -> float:
    """The seconds of scoring all systems of an archive."""
    chosen, archive = settings({}), open_archive(url)
    reference = build_reference(archive, chosen.evaluation)
    began = time.perf_counter()
    score_archive(archive, [run.system for run in archive.runs], reference, select(FEW), chosen, executor, names=FEW)
    return time.perf_counter() - began


def _costs(archive: Archived) -> Costs:
    """What the rounds of a score cost here, one after the other."""
    recorder = _Recorder()
    _score(archive.url, recorder)
    rounds = [name for name in recorder.tasks if name.startswith("round")]
    numbers = recorder.tasks["numbers"]
    return Costs(
        row_s=tuple(sum(s for _, s, _ in recorder.tasks[r]) / sum(n for n, _, _ in recorder.tasks[r]) for r in rounds),
        row_read=tuple(size / archive.rows for size in columns_needed(archive.url)),
        part=tuple(statistics.mean(size for _, _, size in recorder.tasks[r]) for r in rounds),
        merge_s=tuple(statistics.mean(recorder.merges.get(r, [0.0])) for r in rounds),
        numbers_s=statistics.mean(spent for _, spent, _ in numbers),
        results=statistics.mean(size for _, _, size in numbers),
    )


def _nap(seconds: float, _shared: None) -> int:
    time.sleep(seconds)
    return 0


def _first(one: int, _other: int) -> int:
    return one


def _per_task(executor: DaskExecutor, machines: Machines, task_s: float, tasks: int) -> Machines:
    """The machines with the CPU seconds of client, scheduler and worker for a job: two threads', and a process's.

    They are those of a map over tasks that sleep `task_s`.
    """
    client = executor._client
    items = [task_s] * tasks
    executor.map_reduce(_nap, items[: tasks // 10], _first)
    own, workers = time.thread_time(), client.run(time.process_time)
    scheduler, _ = _busy(executor, lambda: executor.map_reduce(_nap, items, _first))
    spent = sum(client.run(time.process_time).values()) - sum(workers.values())
    jobs = _jobs(tasks)
    client_s = (time.thread_time() - own) / jobs
    return replace(machines, client_s=client_s, scheduler_s=scheduler / jobs, worker_s=spent / jobs)


def _message(executor: DaskExecutor, machines: Machines) -> float:
    """Seconds of one message: of what a map of one task takes beside the work of client, scheduler and worker."""
    turns = []
    for _ in range(ALONE):
        began = time.perf_counter()
        executor.map_reduce(_nap, [0.0], _first)
        turns.append(time.perf_counter() - began)
    modelled = Cluster(machines).run([Phase("map", [Work(0.0)])]).seconds
    messages = Cluster(replace(machines, message_s=1.0)).run([Phase("map", [Work(0.0)])]).seconds - modelled
    return max(0.0, statistics.median(turns) - modelled) / messages


def _busy(executor: DaskExecutor, step: Callable[[], object]) -> tuple[float, float]:
    """CPU seconds of the scheduler during a step, and how long that took."""
    client = executor._client
    began, before = time.perf_counter(), client.run_on_scheduler(time.thread_time)
    step()
    return client.run_on_scheduler(time.thread_time) - before, time.perf_counter() - began


def _jobs(tasks: int) -> int:
    """How many jobs a map of so many tasks submits, merges too."""
    return Cluster(Machines(1)).run([Phase("map", [Work(0.0)] * tasks)]).jobs


@contextmanager
def _light_workers(number: int) -> Iterator[DaskExecutor]:
    """A scheduler in this process, and workers of one thread each, all in one other process."""
    with (
        dask.config.set(QUIET),
        LocalCluster(n_workers=0, protocol="tcp://", dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        command = [sys.executable, "-m", __spec__.name, "--light", cluster.scheduler_address, str(number)]
        process = subprocess.Popen(command)
        try:
            client.wait_for_workers(number, timeout=300)
            yield DaskExecutor(client)
        finally:
            process.terminate()
            process.wait()


async def _serve(address: str, number: int) -> None:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    dask.config.set(QUIET)
    workers = [Worker(address, nthreads=1, memory_limit=0, dashboard=False) for _ in range(number)]
    await asyncio.gather(*workers)
    await asyncio.gather(*(worker.finished() for worker in workers))


def _phases(costs: Costs, archive: Archived, workers: int) -> Iterator[Phase]:
    return scoring(costs, SYSTEMS, archive.rows // SYSTEMS, workers, EngineSettings().rows_per_task)


def _checks(small: Archived, archive: Archived, light: int) -> tuple[Costs, Machines, list[tuple[str, ...]]]:
    """What was measured, and rows of the comparison of model and machine."""
    of_number: dict[int, Costs] = {}
    lines = []
    for workers in (1, 2):
        turns: list[Costs] = []
        walls: list[float] = []
        of_small: list[float] = []
        with open_executor(EngineSettings(executor="processes", workers=workers)) as executor:
            assert isinstance(executor, DaskExecutor)
            _score(archive.url, executor)
            for _ in range(TURNS):
                turns += _costs_at_once(archive, executor)
                of_small.append(_score(small.url, executor))
                walls.append(_score(archive.url, executor))
            here = _per_task(executor, Machines(workers, one_process=True), 0.0, EMPTY)
            here = replace(here, message_s=_message(executor, here))
        costs = of_number[workers] = _medians(turns)
        # What a score takes beside its tasks is what that of a small archive takes.
        beside = statistics.median(of_small) - Cluster(here).run(_phases(costs, small, workers)).seconds
        modelled = Cluster(here).run(_phases(costs, archive, workers)).seconds + beside
        lines.append(
            _line(f"scoring {archive.rows:,} detections, {workers} workers", modelled, statistics.median(walls))
        )
    with _light_workers(light) as executor:
        measured: list[tuple[float, ...]] = []
        for _ in range(TURNS_OF_NAPS):
            idle, idle_s = _busy(executor, lambda: time.sleep(IDLE_S))
            task = _per_task(executor, Machines(light), NAP_S / 2, NAPS * light)
            naps = _busy(executor, lambda: executor.map_reduce(_nap, [NAP_S] * NAPS * light, _first))
            measured.append((idle / idle_s, task.client_s, task.scheduler_s, *naps))
        heartbeats, client_s, scheduler_s, busy, wall = map(statistics.median, zip(*measured, strict=True))
        # All light workers are one process, so that its time says nothing of one worker.
        found = Machines(light, client_s, scheduler_s, here.worker_s, heartbeats)
    what = f"{NAPS * light:,} tasks of {NAP_S:g} s, {light} light workers, {wall:.0f} s: the scheduler's CPU"
    lines.append(_line(what, _jobs(NAPS * light) * found.scheduler_s + wall * found.heartbeats, busy))
    return of_number[1], found, lines


def _costs_at_once(archive: Archived, executor: DaskExecutor) -> list[Costs]:
    """What tasks cost on every worker while all of them count: they share the memory's bandwidth."""
    client = executor._client
    counting = [client.submit(_costs, archive, workers=each, pure=False) for each in client.nthreads()]
    return [each.result() for each in counting]


def _medians(turns: list[Costs]) -> Costs:
    def median(name: str) -> Any:
        values = [getattr(each, name) for each in turns]
        if isinstance(values[0], tuple):
            return tuple(map(statistics.median, zip(*values, strict=True)))
        return statistics.median(values)

    return Costs(**{name: median(name) for name in vars(turns[0])})


def _line(what: str, modelled: float, real: float) -> tuple[str, ...]:
    return what, f"{modelled:.3g} s", f"{real:.3g} s", f"{100 * (modelled - real) / real:+.0f} %"


def _scenarios(costs: Costs, here: Machines, rows: int, systems: int) -> Iterator[tuple[str, ...]]:
    """Rows of a table: what many workers take, and what is busy meanwhile."""
    cluster = _thousand(here)
    fast = replace(cluster, store_rate=FAST)
    for what, machines in (
        ("as it is", cluster),
        ("ten workers lost", replace(cluster, lost_at=tuple(float(n) for n in range(5, 55, 5)))),
        ("a store of 1 TB/s", fast),
        ("that, 300 workers", replace(fast, workers=300)),
        ("that, 3,000 workers", replace(fast, workers=3000)),
    ):
        found = _scored(machines, costs, rows, systems)
        yield what, *_shares(found, machines)


def _scored(machines: Machines, costs: Costs, rows: int, systems: int) -> Outcome:
    """What machines take to score systems of so many rows in all."""
    rows_per_task = EngineSettings().rows_per_task
    return Cluster(machines).run(scoring(costs, systems, rows // systems, machines.workers, rows_per_task))


def _thousand(here: Machines) -> Machines:
    """The machines of `THOUSAND`, whose client and scheduler take as long as here."""
    return replace(
        THOUSAND,
        client_s=here.client_s,
        scheduler_s=here.scheduler_s,
        worker_s=here.worker_s,
        heartbeats=here.heartbeats,
    )


def _shares(found: Outcome, machines: Machines) -> tuple[str, ...]:
    store = found.read / machines.store_rate
    busy = {"client": found.client, "scheduler": found.scheduler, "store": store}
    busy["workers"] = found.working / machines.workers
    first = max(busy, key=lambda name: busy[name])
    return (
        f"{found.seconds:,.0f} s",
        f"{found.jobs:,}",
        *(f"{100 * seconds / found.seconds:.0f} %" for seconds in busy.values()),
        f"{found.read / 1e12:.1f} TB",
        f"{found.moved / 1e9:.1f} GB",
        f"{found.again:,}",
        first,
    )


def _draw(costs: Costs, here: Machines, rows: int, systems: int) -> None:
    """Time over workers, with two stores, beside what counting and reading alone would take."""
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "swsdask"
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    counts = [10, 30, 100, 300, 1000, 3000]
    for rate, what in ((THOUSAND.store_rate, "100 GB/s"), (FAST, "1 TB/s")):
        machines = replace(_thousand(here), store_rate=rate)
        walls = [_scored(replace(machines, workers=workers), costs, rows, systems).seconds for workers in counts]
        (line,) = axes.loglog(counts, walls, marker="o", label=f"a store that sends {what}")
        axes.axhline(rows * sum(costs.row_read) / rate, color=line.get_color(), lw=0.8, ls="--")
    alone = rows * sum(costs.row_s)
    axes.loglog(counts, [alone / workers for workers in counts], "k:", label="counting alone")
    axes.plot([], [], color="grey", lw=0.8, ls="--", label="reading alone")
    axes.set(xlabel="workers", ylabel="seconds", title=f"Scoring {rows:.0e} detections, modelled".replace("e+", "e"))
    axes.legend()
    figure.savefig(FIGURE, bbox_inches="tight", metadata={"Date": None})


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.simulate_cluster", description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--light", nargs=2, metavar=("SCHEDULER", "WORKERS"), help="serve as light workers")
    asked = parser.parse_args()
    if asked.light:
        asyncio.run(_serve(asked.light[0], int(asked.light[1])))
        return
    scale = 10 if asked.quick else 1
    with tempfile.TemporaryDirectory(prefix="swsdask-bench-") as folder:
        data = Data(Path(folder), 1.0)
        small, large = (data.written(f"cluster-{rows}", Shape(rows), SYSTEMS) for rows in (SMALL, ROWS))
        costs, here, checks = _checks(small, large, LIGHT)
    print(f"{machine()}\n\n{costs}\n{here}\n", flush=True)
    print(markdown(("what", "model", "here", "error"), checks) + "\n", flush=True)
    rows, systems = 10**12 // scale, 1000
    print(f"{rows:.0e} detections of {systems:,} systems, {THOUSAND}\n")
    header = ("plan", "time", "jobs", "client", "scheduler", "store", "workers", "read", "moved", "again", "most busy")
    print(markdown(header, list(_scenarios(costs, here, rows, systems))), flush=True)
    if not asked.quick:
        _draw(costs, here, rows // 10, systems // 10)
        print(f"drawn: {FIGURE}")


if __name__ == "__main__":
    main()
