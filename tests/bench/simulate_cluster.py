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
LIGHT = 200
NAP_S = 1.0
NAPS = 8
"""Light workers, how long each of their tasks sleeps, and how many tasks each of them has."""

FIGURE = Path(__file__).parents[2] / "docs" / "pictures" / "scaling.svg"

THOUSAND = Machines(
    workers=1000, message_s=0.5e-3, store_latency_s=0.03, store_rate=100e9, line_rate=1.25e9, slow=0.01, slower=3.0
)
"""Lines of 10 Gbit/s, a store that sends 100 GB/s after 30 ms, and one task of a hundred three times as long."""


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
    score_archive(archive, [run.system for run in archive.runs], reference, select(FEW), chosen, executor, measures=FEW)
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


def _nothing(item: int, _shared: None) -> int:
    return item


def _nap(seconds: float, _shared: None) -> int:
    time.sleep(seconds)
    return 0


def _first(one: int, _other: int) -> int:
    return one


def _per_task(executor: DaskExecutor) -> tuple[float, float]:
    """CPU seconds of the client and of the scheduler for one job of a map: their threads', in one process."""
    client = executor._client
    executor.map_reduce(_nothing, range(EMPTY // 10), _first)
    began, scheduler = time.thread_time(), client.run_on_scheduler(time.thread_time)
    executor.map_reduce(_nothing, range(EMPTY), _first)
    jobs = len(list(_jobs(EMPTY)))
    return (time.thread_time() - began) / jobs, (client.run_on_scheduler(time.thread_time) - scheduler) / jobs


def _jobs(tasks: int) -> Iterator[int]:
    """As many as a map of so many tasks submits, merges too."""
    return iter(range(Cluster(Machines(1)).run([Phase("map", [Work(0.0)] * tasks)]).jobs))


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
    turns: list[Costs] = []
    real: dict[int, list[float]] = {1: [], 2: []}
    of_small: list[float] = []
    for workers, walls in real.items():
        with open_executor(EngineSettings(executor="processes", workers=workers)) as executor:
            assert isinstance(executor, DaskExecutor)
            _score(archive.url, executor)
            for _ in range(3):
                turns.append(_costs(archive))
                of_small.append(_score(small.url, executor))
                walls.append(_score(archive.url, executor))
            per_task = _per_task(executor)
    costs = _medians(turns)
    here = Machines(1, *per_task, one_process=True)
    # What a score takes beside its tasks is what that of a small archive takes.
    beside = statistics.median(of_small) - Cluster(here).run(_phases(costs, small, 1)).seconds
    lines = []
    for workers, walls in real.items():
        modelled = Cluster(replace(here, workers=workers)).run(_phases(costs, archive, workers)).seconds + beside
        lines.append(
            _line(f"scoring {archive.rows:,} detections, {workers} workers", modelled, statistics.median(walls))
        )
    with _light_workers(light) as executor:
        client = executor._client
        executor.map_reduce(_nap, [0.0] * light, _first)
        scheduler = client.run_on_scheduler(time.thread_time)
        began = time.perf_counter()
        executor.map_reduce(_nap, [NAP_S] * NAPS * light, _first)
        wall = time.perf_counter() - began
        busy = client.run_on_scheduler(time.thread_time) - scheduler
    found = Cluster(replace(here, workers=light)).run([Phase("naps", [Work(NAP_S)] * NAPS * light)])
    what = f"{NAPS * light:,} tasks of {NAP_S:g} s, {light} light workers"
    lines.append(_line(what, found.seconds, wall))
    lines.append(_line(f"{what}, the scheduler's CPU", found.jobs * here.scheduler_s, busy))
    return costs, here, lines


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
    cluster = replace(THOUSAND, client_s=here.client_s, scheduler_s=here.scheduler_s)
    default = EngineSettings().rows_per_task
    for what, machines, rows_per_task in (
        ("as it is", cluster, default),
        ("five times as large tasks", cluster, 5 * default),
        ("ten workers lost", replace(cluster, lost_at=tuple(float(n) for n in range(5, 55, 5))), default),
        ("a store of 1 TB/s", replace(cluster, store_rate=1e12), default),
        ("both, 3,000 workers", replace(cluster, workers=3000, store_rate=1e12), 5 * default),
    ):
        found = Cluster(machines).run(scoring(costs, systems, rows // systems, machines.workers, rows_per_task))
        yield what, *_shares(found, machines)


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
    """Time over workers, for tasks of the default size and others, beside what workers alone would take."""
    from matplotlib import pyplot as plt

    plt.rcParams["svg.hashsalt"] = "swsdask"
    figure, axes = plt.subplots(figsize=(6.4, 4.0))
    counts = [10, 30, 100, 300, 1000, 3000]
    default = EngineSettings().rows_per_task
    for rows_per_task in (default, 5 * default):
        walls = []
        for workers in counts:
            machines = replace(THOUSAND, workers=workers, client_s=here.client_s, scheduler_s=here.scheduler_s)
            walls.append(
                Cluster(machines).run(scoring(costs, systems, rows // systems, workers, rows_per_task)).seconds
            )
        axes.loglog(counts, walls, marker="o", label=f"{rows_per_task / 1e6:g} M rows a task")
    alone = rows * sum(costs.row_s)
    axes.loglog(counts, [alone / workers for workers in counts], "k:", label="counting alone")
    axes.axhline(rows * sum(costs.row_read) / THOUSAND.store_rate, color="grey", lw=0.8, label="a store of 100 GB/s")
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
