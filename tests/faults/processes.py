"""The command with worker processes, one of which is killed, frozen or sent SIGTERM in some phase of it.

The processes are those that the command starts itself, or a scheduler and workers with nannies that run elsewhere. A
frozen client goes on after a while; all others stay frozen. Afterwards the numbers must be those of one process, or the
command must have ended with an error of one line and left what was there before.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import psutil

import swsdask as sws
from swsdask.render.outputs import read_outputs
from swsdask.simulate.evaluation import simulate, write
from tests.faults.samples import HUNG, IDENTICAL, LATE, LEFT, MISSED, ORPHANED, REFUSED, SILENT, UNCLEAR
from tests.faults.slowed import ROUNDS as ROUNDS_SET

PATIENCE_S = 30
LIMIT_S = 400.0
"""The longest that a command may take: silence of a minute, twice, and what a busy machine adds."""
GONE_S = 60.0
"""The longest that processes may take to notice that theirs is gone."""
FROZEN_S = 8.0
START_S, LATEST_S = 2.0, 0.5
"""How long after the begin of the start, and of another phase, a process is struck at most."""
EARLIER = 3
"""How often a strike whose phase had ended is tried again, after half the delay and at last after none."""
CORES = os.cpu_count() or 1
BESIDE = 10 * CORES
"""How many commands there are at the same time: those that were struck mostly wait, until patience ends."""
_not_struck = threading.Semaphore(2 * CORES)
"""Held by a command from its begin until it is struck: they wait for one another's processes at times."""

OURS, THEIRS = "started by the command", "of a running scheduler"
STRIKES = {
    THEIRS: {
        "client": (signal.SIGKILL, signal.SIGINT, signal.SIGTERM),
        "scheduler": (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM),
        "nanny": (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM),
        "worker": (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM),
    },
    OURS: {
        "client": (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
        "worker": (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM),
        "fork server": (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM),
    },
}
BEGIN, WRITING = ("starting", "connecting"), ("moving",)
PHASES = {
    "score": (BEGIN, ("systems",), WRITING),
    "score of files": (("reading",), ("writing",), ("round 1",), ("round 2",), ("numbers",), ("alignment",), WRITING),
    "ingest": (BEGIN, ("reading",), ("writing",)),
}
"""What lines of the log of each command begin with, behind the time and `swsdask:`, when a phase does.

`score` is of an archive, each system a task of its own; files are read into a temporary archive, and their systems
counted in rounds.
"""


@dataclass(frozen=True)
class Strike:
    """Which process of which command is struck by what, and how many seconds after the begin of a phase."""

    where: str
    command: str
    role: str
    number: signal.Signals
    phase: tuple[str, ...]
    delay_s: float

    @property
    def is_waited_for(self) -> bool:
        """Whether the command waits until its patience ends, or a minute: it takes long, but hardly any CPU time."""
        return self.role == "nanny" or (self.role in ("scheduler", "worker") and self.number == signal.SIGSTOP)

    def __str__(self) -> str:
        when = f"{self.delay_s:.1f} s after {self.phase[0]!r}"
        return f"{self.number.name} to the {self.role} ({self.where}), {self.command}, {when}"


MOMENTS = [(command, phase) for command, phases in PHASES.items() for phase in phases]
"""The phases of all commands."""

COMBINATIONS = [
    (where, role, sent, command, phase)
    for where, roles in STRIKES.items()
    for role, signals in roles.items()
    for sent in signals
    for command, phase in MOMENTS
    if where == THEIRS or role == "client" or phase != WRITING
]
"""Every signal to every process in every phase that has it, mixed: a command that writes has ended its workers."""
random.Random(0).shuffle(COMBINATIONS)


def strike(number: int) -> Strike:
    """The strike of that number: numbers in a row go through all combinations, each round with other delays."""
    where, role, sent, command, phase = COMBINATIONS[number % len(COMBINATIONS)]
    delay_s = random.Random(number).uniform(0.0, START_S if phase == BEGIN else LATEST_S)
    return Strike(where, command, role, sent, phase, delay_s)


@dataclass(frozen=True)
class Prepared:
    """Files of an evaluation, an archive of it without one of its runs, and what undisturbed commands give."""

    folder: Path
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)

    def arguments(self, command: str, place: Path) -> list[str]:
        """The command in a folder of its own, which has a copy of the archive."""
        archive, out, files = str(place / "archive"), str(place / "out"), str(self.folder / "files")
        return {
            "score": ["score", archive, "--out", out, "--no-cache"],
            "score of files": ["score", files, f"{files}/runs", "--preset", "sws2013", "--out", out, "--alignment"],
            "ingest": ["ingest", archive, "--run", str(self.folder / "late")],
        }[command]

    def state(self, command: str, place: Path) -> str:
        """What a reader finds in that folder."""
        if command == "ingest":
            return str(sws.score(sws.open(place / "archive"), ["atwv", "mtwv"], cache=False).table.to_pylist())
        if not (place / "out" / "manifest.json").exists():
            return ""
        found = read_outputs(place / "out")
        aligned = [] if found.alignment_table is None else found.alignment_table.to_pylist()
        return f"{found.table.to_pylist()} {aligned}"


def prepared(place: Path) -> Prepared:
    """The evaluation, and what a reader finds before and after the commands, done by one process."""
    write(simulate(1, hours=2, n_queries=40), place / "files")
    *runs, late = sorted((place / "files" / "runs").iterdir())
    (place / "late").mkdir()
    late.rename(place / "late" / late.name)
    sws.ingest(place / "archive", place / "files", runs=runs, preset="sws2013")
    made = Prepared(place)
    for command in PHASES:
        with _copied(made) as copy:
            made.before[command] = made.state(command, copy)
            arguments = [*made.arguments(command, copy), "--executor", "serial"]
            subprocess.run([sys.executable, "-m", "swsdask", *arguments], check=True, capture_output=True)
            made.after[command] = made.state(command, copy)
    return made


@contextmanager
def _copied(made: Prepared) -> Iterator[Path]:
    place = Path(tempfile.mkdtemp(dir=made.folder))
    shutil.copytree(made.folder / "archive", place / "archive")
    yield place
    shutil.rmtree(place)


class _Log:
    """What a process writes to its standard error, read as it comes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.lines: list[str] = []
        self._process = process
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stderr or ():
            self.lines.append(line.rstrip())

    def has_begun(self, phase: tuple[str, ...]) -> bool:
        return any(f"swsdask: {begin}" in line for line in list(self.lines) for begin in phase)

    def whole(self) -> str:
        """All of it, once the process has ended."""
        self._reader.join(timeout=GONE_S)
        return "\n".join(self.lines)


@dataclass(frozen=True)
class Cluster:
    """A scheduler that runs, and two workers below one nanny process."""

    file: Path
    scheduler: subprocess.Popen[str]
    nanny: subprocess.Popen[str]

    def is_whole(self) -> bool:
        """Whether all its processes are there."""
        return self.scheduler.poll() is None and self.nanny.poll() is None and len(_workers(self.nanny.pid)) == 2


@dataclass(frozen=True)
class _Running:
    """A command that was begun, what it logs, and the processes around it by role."""

    place: Path
    client: subprocess.Popen[str]
    log: _Log
    cluster: Cluster | None

    def process(self, role: str) -> psutil.Process | None:
        """The process of a role; None if there is none, or none yet."""
        if role in ("worker", "fork server"):
            parent = (self.cluster.nanny if self.cluster else self.client).pid
            with suppress(psutil.Error):
                return next(iter((_workers if role == "worker" else _fork_servers)(parent)), None)
            return None
        process = self.client if role == "client" else getattr(self.cluster, role)
        return psutil.Process(process.pid) if process.poll() is None else None


def _workers(parent: int) -> list[psutil.Process]:
    """The worker processes below a process: those that began anew, and those that its fork server made."""
    servers = {each.pid for each in _fork_servers(parent)}
    below = psutil.Process(parent).children(recursive=True)
    return [each for each in below if "spawn_main" in " ".join(each.cmdline()) or each.ppid() in servers]


def _fork_servers(parent: int) -> list[psutil.Process]:
    """The process that workers below a process are forked from, if there is one; they have its command line too."""
    own = psutil.Process(parent).children()
    return [each for each in own if "multiprocessing.forkserver" in " ".join(each.cmdline())]


@contextmanager
def _begun(place: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Begin Python programs, whose temporary folder is in `place`; kill what is left of them at the end.

    Processes that remove the semaphores of others when these have ended go on until they have done so.
    """
    begun: list[subprocess.Popen[str]] = []
    (place / "tmp").mkdir(parents=True)

    def begin(*arguments: str, err: int = subprocess.DEVNULL, **environ: str) -> subprocess.Popen[str]:
        environ = {**os.environ, "TMPDIR": str(place / "tmp"), **environ}
        call = [sys.executable, "-m", *arguments]
        begun.append(subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=err, text=True, env=environ))
        return begun[-1]

    try:
        yield begin
    finally:
        left = [psutil.Process(each.pid) for each in begun if each.poll() is None]
        for process in [child for each in left for child in each.children(recursive=True)] + left:
            with suppress(psutil.Error):
                if "resource_tracker" not in " ".join(process.cmdline()):
                    process.kill()
        for each in begun:
            each.wait()


@contextmanager
def running_cluster(place: Path) -> Iterator[Cluster]:
    """A scheduler and workers that run in a folder."""
    file = place / "scheduler.json"
    of_both = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file))
    with _begun(place) as begin:
        scheduler = begin("dask", "scheduler", "--port", "0", *of_both)
        nanny = begin("dask", "worker", "--nworkers", "2", "--nthreads", "1", *of_both)
        cluster = Cluster(file, scheduler, nanny)
        _wait(lambda: file.exists() and cluster.is_whole())
        yield cluster


@contextmanager
def _running(made: Prepared, command: str, cluster: Cluster | None) -> Iterator[_Running]:
    """Begin a command in a temporary folder, on a cluster or with workers of its own."""
    with _copied(made) as place, _begun(place) as begin:
        said: dict[str, object] = {"kind": "local", "workers": 2, "timeout_s": PATIENCE_S}
        if cluster is not None:
            said |= {"kind": "scheduler_file", "path": str(cluster.file)}
        settings = place / "cluster.toml"
        settings.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in said.items()))
        chosen = ["--cluster", str(settings), "--rows-per-task", "300"]
        rounds = {ROUNDS_SET: "1"} if command == "score of files" else {}
        call = ["tests.faults.slowed", *made.arguments(command, place), *chosen]
        client = begin(*call, err=subprocess.PIPE, **rounds)
        yield _Running(place, client, _Log(client), cluster)


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not until():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {LIMIT_S:g} s")
        time.sleep(0.05)


def attempts(numbers: Iterable[int], seconds: float) -> Counter[str]:
    """Make the strikes of some numbers, several beside each other; how many commands ended in which way.

    Those that will be waited for are begun first. After so many seconds no more are begun.
    """
    found: Counter[str] = Counter()
    until = time.monotonic() + seconds
    with (
        tempfile.TemporaryDirectory(prefix="swsdask-faults-") as folder,
        running_cluster(Path(folder)) as shared,
        ThreadPoolExecutor(BESIDE) as beside,
    ):
        made = prepared(Path(folder))
        ordered = sorted(numbers, key=lambda number: not strike(number).is_waited_for)
        for kind, message in beside.map(partial(_attempt, made, shared, until), ordered):
            found[kind] += 1
            if kind not in (IDENTICAL, REFUSED):
                print(f"processes: {kind}: {message}", flush=True)
    print(f"processes: {dict(found)}", flush=True)
    return found


def _attempt(made: Prepared, shared: Cluster, until: float, number: int) -> tuple[str, str]:
    """Make the strike of that number, earlier where its phase had ended; what became of the command, and a message."""
    kind, message, chosen = LATE, "", strike(number)
    for earlier in range(EARLIER):
        if time.monotonic() > until:
            break
        try:
            kind, message = _made(made, shared, chosen)
        except TimeoutError as error:
            kind, message = HUNG, f"it did not begin: {error}"
        if kind != MISSED:
            break
        chosen = replace(chosen, delay_s=chosen.delay_s / 2 if earlier < EARLIER - 2 else 0.0)
    return kind, f"number {number}, {chosen}: {message}"


def _made(made: Prepared, shared: Cluster, chosen: Strike) -> tuple[str, str]:
    """Make a strike. Clients share a cluster that runs; to strike another process, a cluster of its own is begun."""
    with ExitStack() as stack:
        with _not_struck:
            cluster = None
            if chosen.where == THEIRS:
                own = made.folder / f"cluster-{time.monotonic_ns()}"
                cluster = shared if chosen.role == "client" else stack.enter_context(running_cluster(own))
            running = stack.enter_context(_running(made, chosen.command, cluster))
            struck, processes = _struck(running, chosen)
        if struck is not None and chosen.role == "client" and chosen.number == signal.SIGSTOP:
            time.sleep(FROZEN_S)
            struck.send_signal(signal.SIGCONT)
        try:
            code = running.client.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            return HUNG, f"{running.log.lines[-3:]}"
        if struck is None:
            return MISSED, f"exit code {code}: {running.log.lines[-3:]}"
        if cluster is shared and not shared.is_whole():
            return UNCLEAR, "the cluster of another did not outlive the client"
        kind, message = _found(made, running, chosen, code, processes)
        return kind, f"exit code {code}: {message}"


def _found(
    made: Prepared, running: _Running, chosen: Strike, code: int, processes: list[psutil.Process]
) -> tuple[str, str]:
    alive = [each for each in psutil.wait_procs(processes, timeout=GONE_S)[1] if not _is_zombie(each)]
    if alive:
        return ORPHANED, ", ".join(str(each) for each in alive)
    said = running.log.whole()
    killed = chosen.role == "client" and code == -signal.SIGKILL
    last = said.splitlines()[-1] if said else ""
    if "Traceback" in said or "fault of swsdask" in said or (code and not killed and not last.startswith("swsdask: ")):
        return UNCLEAR, said[-1500:]
    found, after = made.state(chosen.command, running.place), made.after[chosen.command]
    if found not in ((after,) if code == 0 else (made.before[chosen.command], after)):
        return SILENT, last
    left = _left(running, killed=killed)
    if left:
        return LEFT, ", ".join(left)
    return (IDENTICAL if code == 0 else REFUSED), last


def _is_zombie(process: psutil.Process) -> bool:
    """Whether a process has ended, and the system's first process has not yet taken note of it."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def _struck(running: _Running, chosen: Strike) -> tuple[psutil.Process | None, list[psutil.Process]]:
    """Strike in the phase: which process, None if the client had ended before, and those that the client had begun."""
    processes: dict[int, psutil.Process] = {}
    struck = None
    begun = None
    until = time.monotonic() + LIMIT_S
    while struck is None and running.client.poll() is None and time.monotonic() < until:
        if begun is None and running.log.has_begun(chosen.phase):
            begun = time.monotonic()
        with suppress(psutil.Error):
            processes.update({each.pid: each for each in psutil.Process(running.client.pid).children(recursive=True)})
        if begun is not None and time.monotonic() >= begun + chosen.delay_s:
            struck = running.process(chosen.role)
            with suppress(psutil.Error):
                if struck is not None:
                    struck.send_signal(chosen.number)
        time.sleep(0.02)
    return struck, list(processes.values())


def _left(running: _Running, *, killed: bool) -> list[str]:
    """The files that the command left; of a killed client those that the next command and `vacuum` do not remove."""
    if killed:
        sweep = "from swsdask.places.writing import temporary_folder, together\n"
        sweep += "with temporary_folder(), together('out'): pass"
        environ = {**os.environ, "TMPDIR": str(running.place / "tmp")}
        subprocess.run([sys.executable, "-c", sweep], cwd=running.place, env=environ, check=True)
        sws.vacuum(running.place / "archive", older_than_s=-10)
    hidden = [path for path in running.place.rglob("*") if ".swsdask-" in path.name or path.name.endswith(".part")]
    temporary = list((running.place / "tmp").iterdir())
    if running.cluster is not None:  # which has files of Dask's own
        temporary += (running.cluster.file.parent / "tmp").glob("swsdask-*")
    return sorted(str(path) for path in [*hidden, *temporary])
