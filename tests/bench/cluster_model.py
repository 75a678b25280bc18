"""Scoring on clusters that are not here: a discrete-event model of the task graph.

The graph is the product's own: cells become tasks by `scoring.detections.tasks`, systems groups by
`scoring.rounds.groups`, parts merge by `execution.executor.Tree`, and the client has as many tasks out as
`execution.dask`. Modelled are the client and the scheduler, which do one thing after the other; workers of one thread,
which fetch parts from one another; the store, which answers late and sends no more than its bandwidth; workers that are
slow, and workers that are lost, whose parts are computed again. `tests.bench.simulate_cluster` measures what tasks
cost, and compares the model with real schedulers and workers.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count, repeat

from swsdask.archive.protocols import Run
from swsdask.execution.dask import LEAST_AHEAD
from swsdask.execution.executor import TASKS_AHEAD, Tree
from swsdask.model.trials import ScoreRange
from swsdask.scoring.detections import ROWS_PER_CELL, TASKS_PER_WORKER, NoDetections, tasks
from swsdask.scoring.rounds import groups

FAN_IN = 8
"""As many parts merge at a time, as in `execution.dask.DaskExecutor`."""

SLOTS = 2
"""How many tasks of one thread distributed gives a worker at a time: ceil(1.1), its worker-saturation."""


CLIENT_RATE = 1e9
"""Bytes of statistics that the client takes and gives out per second."""


class Clock:
    """Makes calls at their times; those of one time in the order they came."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, int, Callable[[], object]]] = []
        self._number = count()

    def at(self, time: float, call: Callable[[], object]) -> None:
        """Call it then."""
        heappush(self._waiting, (time, next(self._number), call))

    def run(self) -> None:
        """Go on until nothing is left to be called."""
        while self._waiting:
            self.now, _, call = heappop(self._waiting)
            call()


class Server:
    """Does one thing after the other, beside what takes a share of its time; `busy` is how long it worked in all."""

    def __init__(self, clock: Clock, beside: float = 0.0) -> None:
        self._clock = clock
        self._slower = 1 / (1 - beside)
        self._free = 0.0
        self.busy = 0.0

    def do(self, seconds: float, then: Callable[[], object]) -> None:
        """Take something that lasts so long, and call `then` at its end."""
        self._clock.at(self.reserve(seconds), then)

    def reserve(self, seconds: float) -> float:
        """When something that lasts so long will have ended."""
        self._free = max(self._free, self._clock.now) + seconds * self._slower
        self.busy += seconds
        return self._free


@dataclass(frozen=True)
class Work:
    """A task: seconds of a worker, bytes that it reads from the store, bytes of its result."""

    seconds: float
    read: float = 0.0
    size: float = 0.0


@dataclass(frozen=True, eq=False)
class Phase:
    """A map over tasks, whose results merge; `client_s` is what the client does before, `merge_s` is per part."""

    name: str
    tasks: Iterable[Work]
    merge_s: float = 0.0
    client_s: float = 0.0


@dataclass(frozen=True)
class Machines:
    """A cluster. Seconds per task of the client, the scheduler and, beside its work, a worker; bytes per second.

    `requests` follow one another before a task has its first rows, each `store_latency_s` long; the others are made
    while it counts. `slow` of all tasks take `slower` times as long. Workers are lost at the times `lost_at`.
    `heartbeats` is the share of the scheduler's time that signs of life of hundreds of workers take: the more there
    are, the less often each gives one.
    """

    workers: int
    client_s: float = 0.0
    scheduler_s: float = 0.0
    worker_s: float = 0.0
    heartbeats: float = 0.0
    message_s: float = 0.0
    store_latency_s: float = 0.0
    requests: int = 2
    store_rate: float = math.inf
    line_rate: float = math.inf
    slow: float = 0.0
    slower: float = 1.0
    lost_at: tuple[float, ...] = ()
    one_process: bool = False
    """Whether the scheduler is a thread of the client, as on one machine."""


@dataclass(eq=False)
class Job:
    """A task or a merge of `inputs`. Its state: coming, waiting, under way, held (by `worker`), given up."""

    work: Work
    inputs: Sequence[Job] = ()
    user: Job | None = None
    worker: Worker | None = None
    state: str = "coming"
    collected: bool = False


@dataclass(eq=False)
class Worker:
    """One thread: merges go before tasks. `held` are the parts that it has in memory."""

    alive: bool = True
    running: Job | None = None
    merges: deque[Job] = field(default_factory=deque)
    tasks: deque[Job] = field(default_factory=deque)
    held: set[Job] = field(default_factory=set)


@dataclass
class Outcome:
    """What a run took: wall-clock seconds, also by phase; busy seconds; jobs, those done again; bytes."""

    seconds: float = 0.0
    by_phase: dict[str, float] = field(default_factory=dict)
    jobs: int = 0
    again: int = 0
    read: float = 0.0
    moved: float = 0.0
    working: float = 0.0
    scheduler: float = 0.0
    client: float = 0.0


class Cluster:
    """Runs phases, one after the other."""

    def __init__(self, machines: Machines, seed: int = 0) -> None:
        self.machines = machines
        self.outcome = Outcome()
        self._clock = Clock()
        self._client = Server(self._clock)
        self._scheduler = self._client if machines.one_process else Server(self._clock, machines.heartbeats)
        self._store = Server(self._clock)
        self._finished = False
        self._random = random.Random(seed)
        self._workers = [Worker() for _ in range(machines.workers)]
        self._open: deque[Worker] = deque(self._workers * SLOTS)
        self._queued: deque[Job] = deque()
        self._ahead = max(LEAST_AHEAD, TASKS_AHEAD * machines.workers)

    def run(self, phases: Iterable[Phase]) -> Outcome:
        """The outcome of all phases."""
        self._phases = iter(phases)
        for time in self.machines.lost_at:
            self._clock.at(time, self._lose)
        self._begin()
        self._clock.run()
        if not self._finished:
            raise RuntimeError(f"the model stands still in {self._phase.name} at {self._clock.now} s")
        self.outcome.scheduler = self._scheduler.busy + self.machines.heartbeats * self.outcome.seconds
        self.outcome.client = self._client.busy
        return self.outcome

    def _begin(self) -> None:
        phase = next(self._phases, None)
        self.outcome.seconds = self._clock.now
        if phase is None:
            self._finished = True
            return
        self._phase, self._began = phase, self._clock.now
        self._items: Iterator[Work] = iter(phase.tasks)
        self._tree: Tree[Job] = Tree(self._join, FAN_IN)
        self._out, self._drawn = 0, False
        self._last: Job | None = None
        self._idle = True
        self._client.do(phase.client_s, self._draw)

    def _draw(self) -> None:
        """The client submits the next task, unless enough of them are out; at the end, the last merges."""
        self._idle = True
        if self._drawn or self._out >= self._ahead:
            return
        work = next(self._items, None)
        if work is None:
            self._drawn = True
            self._last = self._tree.total()
            self._end_if_done()
            return
        self._idle = False
        self._out += 1
        job = Job(work)
        self._submit(job)
        self._tree.add(job)
        self._clock.at(self._client.reserve(0.0), self._draw)

    def _join(self, parts: list[Job]) -> Job:
        size = max(part.work.size for part in parts)
        merge = Job(Work(self._phase.merge_s * len(parts), 0.0, size), tuple(parts))
        for part in parts:
            part.user = merge
        self._submit(merge)
        return merge

    def _submit(self, job: Job) -> None:
        self.outcome.jobs += 1
        cost = self.machines.scheduler_s / 2
        self._client.do(self.machines.client_s, lambda: self._scheduler.do(cost, partial(self._need, job)))

    def _need(self, job: Job) -> None:
        """The scheduler has a job, perhaps again: it waits for its inputs, and those that are gone are needed again."""
        job.state = "waiting"
        for part in job.inputs:
            if part.state == "given up":
                self.outcome.again += 1
                self._need(part)
        self._assign_if_ready(job)

    def _assign_if_ready(self, job: Job) -> None:
        if job.state != "waiting" or any(part.state != "held" for part in job.inputs):
            return
        job.state = "under way"
        if job.inputs:
            largest = max(job.inputs, key=lambda part: part.work.size)
            assert largest.worker is not None
            job.worker = largest.worker
            job.worker.merges.append(job)
            self._start(job.worker)
        else:
            self._queued.append(job)
            self._give()

    def _give(self) -> None:
        """Tasks go to the workers that have room for one."""
        while self._queued and self._open:
            worker = self._open.popleft()
            if worker.alive:
                job = self._queued.popleft()
                job.worker = worker
                worker.tasks.append(job)
                self._start(worker)

    def _start(self, worker: Worker) -> None:
        if worker.running is not None or not (worker.merges or worker.tasks):
            return
        job = (worker.merges or worker.tasks).popleft()
        if any(part.state != "held" for part in job.inputs):
            self._need(job)
            self._start(worker)
            return
        worker.running = job
        machines, now = self.machines, self._clock.now
        begin = now + machines.message_s + machines.worker_s
        for part in job.inputs:
            if part.worker is not worker:
                begin += machines.message_s + part.work.size / machines.line_rate
                self.outcome.moved += part.work.size
        factor = machines.slower if machines.slow and self._random.random() < machines.slow else 1.0
        end = begin + job.work.seconds * factor
        if job.work.read:
            self.outcome.read += job.work.read
            late = machines.requests * machines.store_latency_s
            sent = self._store.reserve(job.work.read / machines.store_rate)
            end = max(end, sent, begin + job.work.read / machines.line_rate) + late
        self.outcome.working += end - now
        self._clock.at(end, partial(self._finish, worker, job))

    def _finish(self, worker: Worker, job: Job) -> None:
        if worker.alive:
            worker.running = None
            self._start(worker)
            self._clock.at(
                self._clock.now + self.machines.message_s,
                lambda: self._scheduler.do(self.machines.scheduler_s / 2, partial(self._ended, job)),
            )

    def _ended(self, job: Job) -> None:
        assert job.worker is not None
        if not job.worker.alive:
            self.outcome.again += 1
            self._need(job)
            return
        job.state = "held"
        job.worker.held.add(job)
        for part in job.inputs:
            part.state = "given up"
            if part.worker is not None:
                part.worker.held.discard(part)
        if not job.inputs:
            self._open.append(job.worker)
            self._give()
            if not job.collected:
                job.collected = True
                self._out -= 1
                if self._idle:
                    self._draw()
        if job.user is not None:
            self._assign_if_ready(job.user)
        self._end_if_done()

    def _end_if_done(self) -> None:
        """The last part comes to the client, and the next phase begins."""
        if not self._drawn or self._out or (self._last is not None and self._last.state != "held"):
            return
        self._drawn = False
        size = 0.0 if self._last is None else self._last.work.size
        self.outcome.moved += size

        def ended() -> None:
            spent = self._clock.now - self._began
            self.outcome.by_phase[self._phase.name] = self.outcome.by_phase.get(self._phase.name, 0.0) + spent
            self._begin()

        self._clock.at(self._clock.now + self.machines.message_s + size / self.machines.line_rate, ended)

    def _lose(self) -> None:
        """A worker ends; what it had to do goes to others, and what it held is computed again where it is needed."""
        worker = next((worker for worker in self._workers if worker.alive), None)
        if worker is None or sum(each.alive for each in self._workers) == 1:
            return
        worker.alive = False
        left = [*([worker.running] if worker.running else []), *worker.merges, *worker.tasks]
        needed = [part for part in worker.held if part.user is None or part.user.state in ("coming", "waiting")]
        for job in (*left, *worker.held):
            job.state = "given up"
        for job in (*left, *needed):
            if job.state == "given up":
                self.outcome.again += 1
                self._need(job)


@dataclass(frozen=True)
class Costs:
    """What rounds cost, by round: seconds and bytes read per row, bytes of a system's part, seconds to merge one.

    `numbers_s` is a system's numbers, and `results` the bytes of its results.
    """

    row_s: tuple[float, ...]
    row_read: tuple[float, ...]
    part: tuple[float, ...]
    merge_s: tuple[float, ...]
    numbers_s: float
    results: float


def scoring(costs: Costs, n_systems: int, rows: int, workers: int, rows_per_task: int) -> Iterator[Phase]:
    """The phases of scoring systems of so many rows each, on so many workers."""
    cells = rows // ROWS_PER_CELL

    def of(system: str, _: int) -> Iterator[NoDetections]:
        return repeat(NoDetections(system, rows // cells), cells)

    runs = [Run(f"s{n}", rows, "", True, ScoreRange(None, (0.0, 1.0))) for n in range(n_systems)]
    for group in groups(runs, TASKS_PER_WORKER * workers * rows_per_task):
        for number, row_s in enumerate(costs.row_s):
            read, part = costs.row_read[number], costs.part[number]
            works = (
                Work(row_s * each.rows, read * each.rows, part * len({cell.system for cell in each.cells}))
                for each in tasks(of, group, workers, rows_per_task)
            )
            yield Phase(f"round {number + 1}", works, costs.merge_s[number])
        statistics = sum(costs.part) * len(group)
        yield Phase(
            "numbers", (Work(costs.numbers_s, 0.0, costs.results) for _ in group), client_s=statistics / CLIENT_RATE
        )
