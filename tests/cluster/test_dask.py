"""The executor on worker processes: what every executor promises, and what happens when workers die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from contextlib import AbstractContextManager
from functools import partial
from importlib import import_module
from multiprocessing import active_children, get_context
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import dask
import fsspec.config
import pytest
from distributed import LocalCluster

import swsdask
from swsdask.execution import clusters, fork_server, forked
from swsdask.execution import dask as execution
from swsdask.execution.clusters import LocalProcesses, RunningAt, RunningByFile
from swsdask.execution.dask import LEAST_AHEAD, DaskExecutor, sent_options
from swsdask.execution.executor import TASKS_AHEAD
from swsdask.execution.open import cluster
from swsdask.model.errors import ClusterError, ExecutionError, InsecureConnection, SettingsError
from swsdask.places.store_options import options
from tests.cluster import cells
from tests.cluster.conftest import Elsewhere, killing
from tests.engines import most_ahead

pytestmark = pytest.mark.cluster


def test_workers_have_the_options_of_stores_while_they_are_sent(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsspec.config, "conf", {"s3": {"key": "k"}})
    with sent_options(client, shared=False):
        assert [found["s3"]["key"] for found in client.run(options).values()] == ["k", "k"]
    assert ["key" in found.get("s3", {}) for found in client.run(options).values()] == [False, False]


def test_everything_is_mapped_with_what_is_shared_and_merged(executor: DaskExecutor) -> None:
    ended: list[int] = []
    shared = (executor.share(100), executor.share(1))
    total = executor.map_reduce(cells.linear, range(30), cells.add, shared, done=ended.append)
    assert total == sum(item * 100 + 1 for item in range(30))
    assert sorted(ended) == list(range(30))
    assert list(executor.map(cells.linear, range(50), shared)) == [item * 100 + 1 for item in range(50)]
    assert executor.map_reduce(cells.linear, [7], cells.add, shared) == 701
    assert executor.map_reduce(cells.linear, [], cells.add, shared) is None


def test_tasks_are_named_by_round_and_label(client: Any, executor: DaskExecutor) -> None:
    executor.map_reduce(cells.linear, range(3), cells.add, (1, 0), label="system {}".format, name="round 7")
    told = client.run_on_scheduler(lambda dask_scheduler: sorted(map(str, dask_scheduler.task_prefixes)))
    assert "round 7" in told


def test_an_adaptive_cluster_starts_with_no_worker_and_gets_several(tmp_path: Path) -> None:
    with LocalProcesses(workers=1).connect(print) as client:
        client.cluster.scale(0)
        while client.nthreads():
            time.sleep(0.1)
        client.cluster.adapt(minimum=0, maximum=2, interval="100 ms", target_duration="100 ms")
        clusters.wait_for_workers(client, 1, 60, "the cluster", print)
        with killing(tmp_path, 2, then=(tmp_path / "go").touch) as readers:
            # Every task waits until two processes have begun one.
            assert DaskExecutor(client).map_reduce(cells.wait, [tmp_path] * 4, cells.add) == 4
    assert len(set(readers)) == 2


def test_what_is_shared_stays_on_the_workers(executor: DaskExecutor) -> None:
    """Not one copy per task; though Dask may drop one that no task waits for just then, and fetch it again."""
    found = executor.map_reduce(cells.where, range(80), cells.union, executor.share(list(range(1000))))
    assert found is not None
    assert len({process for process, _ in found}) == executor.workers == 2
    assert len(found) < 20


def test_items_are_drawn_only_a_few_ahead(executor: DaskExecutor) -> None:
    assert most_ahead(executor, 60) <= max(2 * TASKS_AHEAD, LEAST_AHEAD) == 32


def test_an_unexpected_failure_carries_the_label_and_the_cause(executor: DaskExecutor) -> None:
    with pytest.raises(ExecutionError, match=r"^cell 3: ZeroDivisionError: .*by zero$") as caught:
        executor.map_reduce(cells.invert, range(9), cells.add, label="cell {}".format)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_task_that_fails_once_is_tried_again(executor: DaskExecutor, tmp_path: Path) -> None:
    assert executor.map_reduce(cells.fail_once, [tmp_path], cells.add) == 1


def test_a_failing_merge_is_reported(executor: DaskExecutor) -> None:
    with pytest.raises(ExecutionError, match=r"^merging partial results: ArithmeticError: they do not add up$"):
        executor.map_reduce(cells.linear, range(5), cells.unmergeable, (1, 0))


def test_a_task_that_kills_every_worker_ends_with_advice(tmp_path: Path) -> None:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        LocalProcesses(workers=1).connect(print) as client,
        pytest.raises(ClusterError, match=r"^cell 0: the workers that tried it died.*smaller rows_per_task"),
    ):
        DaskExecutor(client).map_reduce(cells.die, [0], cells.add, label="cell {}".format)


def test_all_workers_lost_for_good(elsewhere: Elsewhere, tmp_path: Path) -> None:
    def kill() -> None:
        for worker in elsewhere.workers:
            worker.kill()
            worker.wait()

    with RunningByFile(path=elsewhere.file, workers=2).connect(print) as client:
        executor = DaskExecutor(client, patience_s=1.5)
        assert executor.map_reduce(cells.linear, range(5), cells.add, (1, 0)) == 10
        with (
            killing(tmp_path, 2, then=kill),
            pytest.raises(
                ClusterError, match=r"no scheduler that answers, or no workers, for 1\.5 seconds.*run the command again"
            ),
        ):
            executor.map_reduce(cells.wait, [tmp_path] * 4, cells.add)


def test_the_scheduler_lost(elsewhere: Elsewhere, tmp_path: Path) -> None:
    with cluster(elsewhere.file) as executor:
        executor.map_reduce(cells.linear, range(5), cells.add, (1, 0))
        with (
            killing(tmp_path, 1, then=elsewhere.kill),
            pytest.raises(ClusterError, match=r"the connection to the scheduler broke.*run the command again"),
        ):
            executor.map_reduce(cells.wait, [tmp_path] * 4, cells.add)
        with pytest.raises(ClusterError, match=r"the connection to the scheduler is "):
            executor.map_reduce(cells.linear, range(5), cells.add, (1, 0))


@pytest.fixture
def keys(client: Any, tmp_path: Path) -> dict[str, Path]:
    """The keys of the client's cluster in files, as a cluster file names them."""
    held = client.security.get_tls_config_for_role("client")
    files = {"tls_ca_file": "ca_file", "tls_cert": "cert", "tls_key": "key"}
    for name, role in files.items():
        (tmp_path / name).write_text(held[role])
    return {name: tmp_path / name for name in files}


def test_a_scheduler_with_keys_is_reached_by_a_cluster_file(client: Any, keys: dict[str, Path], tmp_path: Path) -> None:
    address = client.cluster.scheduler_address
    assert address.startswith("tls://127.0.0.1:")
    told = "".join(f'{name} = "{path}"\n' for name, path in keys.items())
    (tmp_path / "c.toml").write_text(f'kind = "address"\naddress = "{address}"\nworkers = 2\n{told}')
    with cluster(tmp_path / "c.toml") as executor:
        assert executor.map_reduce(cells.linear, range(5), cells.add, (1, 0)) == 10


@pytest.mark.parametrize("reached", [True, False])
def test_results_come_from_the_workers_where_they_are_reached(
    elsewhere: Elsewhere, monkeypatch: pytest.MonkeyPatch, reached: bool
) -> None:
    def behind_a_forwarded_port(*_: object, **__: object) -> None:
        raise TimeoutError

    if not reached:
        monkeypatch.setattr(clusters.socket, "create_connection", behind_a_forwarded_port)
    with RunningByFile(path=elsewhere.file, workers=2).connect(print) as client:
        assert client.direct_to_workers is reached
        executor = DaskExecutor(client)
        assert executor.map_reduce(cells.linear, range(5), cells.add, (1, 0)) == 10


def test_a_scheduler_with_keys_needs_them(client: Any, keys: dict[str, Path]) -> None:
    address = client.cluster.scheduler_address
    with pytest.raises(SettingsError, match=r"needs keys. Make a cluster file"), cluster(address):
        pass
    with pytest.raises(SettingsError, match=r"this address is without TLS"):
        RunningAt(address=address.replace("tls://", "tcp://"), **keys)


def test_workers_of_another_version_are_refused(
    client: Any, keys: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(swsdask, "__version__", "0.0.9")
    address = client.cluster.scheduler_address
    with (
        pytest.raises(ClusterError, match=r"worker tls://.* has swsdask .*; this process has 0\.0\.9"),
        RunningAt(address=address, **keys).connect(print),
    ):
        pass


def test_too_few_workers(client: Any, keys: dict[str, Path]) -> None:
    told: list[str] = []
    address = client.cluster.scheduler_address
    with (
        pytest.raises(ClusterError, match=r"fewer than 50 workers after 10 seconds: 2 so far"),
        RunningAt(address=address, workers=50, timeout_s=10, **keys).connect(told.append),
    ):
        pass
    assert told == [
        f"connecting to the scheduler at {address}, 10 seconds at most",
        f"waiting for 50 workers of the scheduler at {address}, 10 seconds at most: 2 so far",
    ]


def test_workers_with_too_little_memory_are_refused(
    client: Any, keys: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "LEAST_MEMORY", 1 << 60)
    address = client.cluster.scheduler_address
    with (
        pytest.raises(ClusterError, match=r"memory limit of \d+ MiB; a worker needs 1099511627776 MiB"),
        RunningAt(address=address, **keys).connect(print),
    ):
        pass


def test_a_scheduler_on_a_network_without_encryption_is_warned_of() -> None:
    for address, insecure in (("tcp://192.0.2.1:8786", True), ("tcp://127.0.0.2:1", False), ("tcp://[::1]:1", False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            RunningAt(address=address)._security(address)
        assert [each.category for each in caught] == [InsecureConnection] * insecure


class Info:
    """A client of a cluster that does not move, with workers of some states."""

    status = "running"

    def __init__(self, *states: str, nanny: str | None = None) -> None:
        self.states = states
        self.nanny = nanny
        self.restarted: list[str] = []

    def nthreads(self) -> dict[str, int]:
        return {str(number): 1 for number in range(len(self.states))}

    def scheduler_info(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1
        seen = {"running": 7.0, "paused": time.monotonic()}
        said = [{"status": state, "nanny": self.nanny, "last_seen": seen[state]} for state in self.states]
        return {"workers": {str(number): worker for number, worker in enumerate(said)}}

    def restart_workers(self, workers: list[str], raise_for_error: bool) -> None:
        self.restarted += workers
        self.states = ()


@pytest.mark.parametrize(
    ("client", "fault"),
    [
        (Info(), "no scheduler that answers, or no workers"),
        (Info("paused", "paused"), "all workers have been paused"),
    ],
)
def test_a_cluster_that_does_not_move(client: Any, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "POLL_S", 0.01)
    with pytest.raises(ClusterError, match=rf"{fault}.* for 0\.1 seconds.*run the command again"):
        execution._FutureWatch(client, 0.1).next_of(SimpleQueue())


def test_a_worker_that_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A nanny restarts it; here no worker comes back."""
    monkeypatch.setattr(execution, "POLL_S", 0.01)
    monkeypatch.setattr(execution, "ANSWER_S", 0.0)
    client: Any = Info("running", nanny="tcp://nanny")
    with pytest.raises(ClusterError, match=r"no workers, for 0\.1 seconds"):
        execution._FutureWatch(client, 0.1).next_of(SimpleQueue())
    assert client.restarted == ["0"]
    client = Info("running")
    with pytest.raises(ClusterError, match=r"worker 0 has not responded for 0\.1 seconds, and has no nanny.*again"):
        execution._FutureWatch(client, 0.1).next_of(SimpleQueue())


def test_a_scheduler_that_is_stopped(elsewhere: Elsewhere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with cluster_of(elsewhere, tmp_path) as executor:
        executor.map_reduce(cells.linear, range(5), cells.add, (1, 0))
        monkeypatch.setattr(execution, "ANSWER_S", 0.0)
        monkeypatch.setattr(executor, "_patience_s", 3.0)
        stop = partial(elsewhere.scheduler.send_signal, signal.SIGSTOP)
        with (
            killing(tmp_path, 1, then=stop),
            pytest.raises(ClusterError, match=r"no scheduler that answers.* for 3 seconds"),
        ):
            executor.map_reduce(cells.wait, [tmp_path] * 4, cells.add)


def test_a_scheduler_that_is_stopped_before_it_is_reached(elsewhere: Elsewhere, tmp_path: Path) -> None:
    with cluster_of(elsewhere, tmp_path) as executor:
        executor.map_reduce(cells.linear, range(5), cells.add, (1, 0))
    elsewhere.scheduler.send_signal(signal.SIGSTOP)
    (tmp_path / "c.toml").write_text(f'kind = "scheduler_file"\npath = "{elsewhere.file}"\ntimeout_s = 2\n')
    with pytest.raises(ClusterError, match="did not answer within 2 seconds"), cluster(tmp_path / "c.toml"):
        pass


def cluster_of(elsewhere: Elsewhere, folder: Path) -> AbstractContextManager[Any]:
    (folder / "c.toml").write_text(f'kind = "scheduler_file"\npath = "{elsewhere.file}"\ntimeout_s = 20\n')
    return cluster(folder / "c.toml")


ATTACK = """
import json, os, socket, ssl, sys
from distributed.security import Security

def answers(port, context):
    # Whoever is let in gets Dask's greeting.
    with socket.create_connection(("127.0.0.1", port), timeout=60) as plain:
        try:
            if context is None:
                plain.sendall(bytes(64))
                return plain.recv(1) != b""
            with context.wrap_socket(plain) as stream:
                return stream.recv(1) != b""
        except OSError:
            return False

def context_of(security):
    context = security.get_connection_args("client")["ssl_context"]
    context.verify_mode = ssl.CERT_NONE
    return context

keys, ports = json.loads(sys.stdin.read())
right, own = context_of(Security(require_encryption=True, **keys)), context_of(Security.temporary())
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for port in ports:
    print([answers(port, context) for context in (None, own, right)])
"""
"""What another user of the machine may try: to connect without keys, and with keys of their own. With the keys of the
cluster the same code is let in."""


def test_another_user_cannot_reach_the_processes_of_this_machine(client: Any) -> None:
    served = (client.cluster.scheduler_address, *client.nthreads(), *client.run(worker_nanny).values())
    ports = [int(address.rpartition(":")[2]) for address in served]
    held = client.security.get_tls_config_for_role("client")
    keys = {"tls_ca_file": held["ca_file"], "tls_client_cert": held["cert"], "tls_client_key": held["key"]}
    given = json.dumps([keys, ports])
    tried = subprocess.run([sys.executable, "-c", ATTACK], cwd="/", input=given, capture_output=True, text=True)
    assert tried.stdout == "[False, False, True]\n" * 5, tried.stderr


def worker_nanny(dask_worker: Any) -> str:
    return str(dask_worker.nanny)


def test_workers_do_not_get_what_a_terminal_sends(client: Any) -> None:
    for process in client.run(os.getpid).values():
        status = Path(f"/proc/{process}/status").read_text()
        blocked = int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk:")), 16)
        assert blocked >> (signal.SIGINT - 1) & blocked >> (signal.SIGHUP - 1) & 1
        assert not blocked >> (signal.SIGTERM - 1) & 1


@pytest.mark.skipif(fork_server.METHOD == "spawn", reason="the system has no safe fork")
def test_workers_are_forked_with_what_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a process of one thread; their environment is that of this process now.

    The libraries are those of the process that they are forked from: with some versions of Dask, a worker imports
    pandas to report its version.
    """

    def has() -> tuple[list[str], int, str | None]:
        parent = Path(f"/proc/{os.getppid()}")
        loaded = (parent / "maps").read_text()
        libraries = [name for name in ("numba", "pandas", "scipy") if f"/{name}/" in loaded]
        return libraries, len([*(parent / "task").iterdir()]), os.environ.get("SWSDASK_TEST")

    monkeypatch.setenv("SWSDASK_TEST", "set late")
    with LocalProcesses(workers=1).connect(print) as later:
        assert [*later.run(has).values()] == [(["numba"], 1, "set late")]


@pytest.mark.skipif(fork_server.METHOD == "spawn", reason="the system has no safe fork")
def test_a_fork_server_that_is_stopped_keeps_nobody_waiting() -> None:
    with LocalProcesses(workers=1).connect(print) as later:
        (worker,) = later.run(os.getpid).values()
        (server,) = later.run(os.getppid).values()
        os.kill(server, signal.SIGSTOP)
        os.kill(worker, signal.SIGKILL)
        assert later.submit(os.getpid).result(timeout=120) not in (worker, None)
        assert list(later.run(os.getppid).values()) != [server]


def test_there_is_all_that_workers_are_forked_with() -> None:
    for name in forked.MODULES:
        import_module(name)


@pytest.mark.skipif(fork_server.METHOD == "spawn", reason="the system has no safe fork")
def test_the_fork_server_imports_nothing_from_the_working_directory_and_ends_with_the_command(tmp_path: Path) -> None:
    for name in ("distributed", "numpy", "swsdask"):
        (tmp_path / f"{name}.py").write_text("from pathlib import Path\nPath('imported').touch()\n")
    script = tmp_path / "elsewhere" / "script.py"
    script.parent.mkdir()
    script.write_text("from swsdask.execution import fork_server\n\nfork_server.start()\n")
    # It returns when nobody has its output any more.
    subprocess.run([sys.executable, script], cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert not (tmp_path / "imported").exists()


STARTED = """
import os, sys
from multiprocessing import get_context
from multiprocessing.util import get_temp_dir
from swsdask.execution import fork_server

if __name__ == "__main__":
    fork_server.start()
    child = get_context("forkserver").Process(target=int)
    child.start()
    child.join()
    print(child.exitcode, get_temp_dir(), flush=True)
    {end}
"""
USED_BY_OTHERS = """
import multiprocessing
from multiprocessing.util import Finalize
from swsdask.execution import fork_server

if __name__ == "__main__":
    fork_server.start()
    child = multiprocessing.get_context("fork").Process(target=int)
    child.start()
    child.join()
    child = multiprocessing.get_context("forkserver").Process(target=int)
    child.start()
    child.join()
    with multiprocessing.Manager() as manager:
        print(child.exitcode, *manager.list([1]))
"""


@pytest.mark.skipif(fork_server.METHOD == "spawn", reason="the system has no safe fork")
def test_processes_that_others_fork_leave_the_fork_server_alone(tmp_path: Path) -> None:
    """multiprocessing drops what is to be done at the end in a child, and with it the folder's context."""
    script = tmp_path / "script.py"
    script.write_text(USED_BY_OTHERS)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "0 1\n", "")


SWEEP = "from swsdask.places.writing import temporary_folder as made\nwith made(): pass"


@pytest.mark.skipif(fork_server.METHOD == "spawn", reason="the system has no safe fork")
@pytest.mark.parametrize("length", [0, 50 - len("/tmp/swsdask-12345678/"), 72 - len("/tmp/swsdask-12345678/")])
def test_the_fork_server_leaves_no_folder_behind(length: int) -> None:
    """However the command ends. If the name of the folder of temporary files leaves too little room for that of a
    socket, the sockets are below /tmp.
    """
    with tempfile.TemporaryDirectory(prefix="swsdask-", dir="/tmp") as place:
        folder = Path(place, "t" * length)
        folder.mkdir(exist_ok=True)
        environ = {**os.environ, "TMPDIR": str(folder)}
        of_sockets = {**environ, "TMPDIR": "/tmp"} if length else environ

        def ended(end: str) -> tuple[int, str, Path]:
            script = Path(place, "script.py")
            script.write_text(STARTED.format(end=end))
            ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, env=environ)
            code, sockets = ran.stdout.split()
            return ran.returncode, code, Path(sockets)

        def left() -> set[str]:
            return {path.name.rpartition("-")[0] for path in folder.iterdir() if path.name != "script.py"}

        *codes, sockets = ended("pass")
        assert codes == [0, "0"]
        assert not sockets.exists()
        assert left() == set()
        *codes, sockets = ended("os.kill(os.getpid(), 9)")
        assert codes == [-9, "0"]
        assert sockets.parent.parent == Path(of_sockets["TMPDIR"])
        assert sockets.parent.exists()
        for each in (environ, of_sockets):
            subprocess.run([sys.executable, "-c", SWEEP], check=True, env=each)
        assert left() == set()
        assert not sockets.parent.exists()


def test_a_worker_is_restarted_however_soon_dask_looks_for_it() -> None:
    """Dask's own check, here at once, would end the nanny that is restarting the worker."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1 ms"}),
        LocalProcesses(workers=1).connect(print) as client,
    ):
        (process,) = client.run(os.getpid).values()
        lost = set(client.nthreads())
        os.kill(process, signal.SIGKILL)
        until = time.monotonic() + 120
        while not set(client.nthreads()) - lost:
            assert time.monotonic() < until, "the worker was not restarted"
            time.sleep(0.1)


def test_workers_that_do_not_start_in_time_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask would wait without end for one that is stopped."""

    def wait_for_a_stuck_worker(**_: object) -> None:
        worker = get_context("spawn").Process(target=time.sleep, args=(600,))
        worker.start()
        worker.join()
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(clusters, "ANSWER_S", 0.01)
    monkeypatch.setattr(clusters, "LocalCluster", wait_for_a_stuck_worker)
    before = set(active_children())
    with pytest.raises(ClusterError, match="failed to start twice: Nanny failed to start"):
        LocalProcesses(workers=1, timeout_s=0.01).connect(print).__enter__()
    assert set(active_children()) <= before


def test_workers_of_which_one_is_lost_while_it_starts_are_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[dict[str, Any]] = []

    def lose_the_first(**given: Any) -> LocalCluster:
        begun.append(given)
        if len(begun) == 1:
            raise RuntimeError("Nanny failed to start.")
        in_this_process = given | {"processes": False, "security": None}
        del in_this_process["env"]
        return LocalCluster(**in_this_process)

    monkeypatch.setattr(clusters, "LocalCluster", lose_the_first)
    with LocalProcesses(workers=1, threads=2).connect(print) as client:
        assert client.submit(int, "3").result() == 3
    assert begun[0] == begun[1]


def test_a_file_that_workers_do_not_see_is_an_error_before_the_work(executor: DaskExecutor, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.touch()
    executor.check([str(there)])
    with pytest.raises(ClusterError, match=r"worker tls://.* does not see .*gone: no such file or folder\."):
        executor.check([str(there), str(tmp_path / "gone")])
