"""Worker processes: started here, or those of a scheduler that runs elsewhere."""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from ipaddress import ip_address
from itertools import islice
from multiprocessing import active_children, current_process, get_all_start_methods, get_start_method
from pathlib import Path
from typing import Annotated, ClassVar, Literal, Self
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen
from uuid import uuid4

import dask
from dask.system import CPU_COUNT
from dask.utils import parse_bytes
from distributed import Client, Future, LocalCluster
from distributed.system import MEMORY_LIMIT
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FilePath, model_validator

from swsdask.execution.checks import check_answers, looking, within
from swsdask.execution.dask import ANSWER_S
from swsdask.execution.encryption import Encryption
from swsdask.execution.fork_server import ALLOCATION, METHOD, look_after, signals_put_off
from swsdask.execution.fork_server import start as start_fork_server
from swsdask.kernels.compilation import load_kernels
from swsdask.model.errors import ClusterError, InsecureConnection, SettingsError
from swsdask.model.limits import check_addresses, check_open_files, check_threads, shortage
from swsdask.model.wording import counted
from swsdask.places.writing import temporary_folder

QUIET = {
    "distributed.admin.tick.interval": "1 s",
    "distributed.admin.system-monitor.interval": "5 s",
    "distributed.worker.profile.enabled": False,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
"""Settings that keep Dask's processes quiet. By default each inspects itself 50 times a second for a dashboard that is
not shown, on the cores that the workers need. Nothing is served by HTTP, which has no keys."""


LEAST_MEMORY = 512 << 20
"""The least memory limit of a worker. Loaded kernels and libraries take 330 to 400 MB, and Dask pauses a worker that
has 80 % of its limit."""


def memory_size(text: str) -> str:
    """Return a size of memory that Dask reads; 0 is no limit.

    Raises `ValueError` for another text, and for too little.
    """
    if text == "auto":
        return text
    try:
        size = parse_bytes(text)
    except (ValueError, OverflowError):  # the latter for "9e999 GB"
        raise ValueError(f'expected a size such as "4 GiB"; found {text!r}') from None
    if size != 0 and size < LEAST_MEMORY:
        raise ValueError(f"expected at least {LEAST_MEMORY >> 20} MiB, which a worker needs; found {text!r}")
    return text


_ADDRESSES = 3 << 29
"""The address space with which Dask, in this process and in each worker, leaves enough for a small evaluation."""

_FILES, _FILES_OF_WORKER = 24, 12
"""The open files of this process with worker processes, and for each worker. Above the limit, Dask logs endlessly."""

_TRIED, _REACH_S = 3, 1.0
"""The number of workers that are tried, and the time that each may take to accept a connection."""

_THREADS, _THREADS_OF_WORKER = 6, 10
"""The threads of this process with worker processes, and for each worker. Above the limit, a process would abort."""

_LONGEST_S = 365 * 86_400.0
"""The longest time limit. Dask adds it to the present time, which has to stay a date."""

_ADDRESS = re.compile(r"(?:[a-z]+://)?[^/@\s]+:[0-9]{1,5}|inproc://\S+")
"""The address of a scheduler, as Dask writes and reads it."""

CLOSE_S = 5.0
"""The time to wait for a scheduler to release a client."""


class _Quiet:
    """Keeps Dask from logging failures that swsdask raises as errors. Logging resumes when the last context ends.

    Where logging is configured, Dask's logger has no handlers, so its own level is raised too.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entered = 0
        self._before = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            self._entered += 1
            if self._entered == 1:
                logger = logging.getLogger("distributed")
                quietened: list[logging.Logger | logging.Handler] = [logger, *logger.handlers]
                for each in quietened:
                    self._before.callback(each.setLevel, each.level)
                    each.setLevel(logging.CRITICAL + 1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if self._entered == 0:
                self._before.close()


QUIET_LOG = _Quiet()

Tell = Callable[[str], None]
"""Receives a description of what is waited for."""


def most_workers() -> int:
    """The number of worker processes for which this machine has the cores, and four times the least memory of each."""
    return min(CPU_COUNT, MEMORY_LIMIT // (4 * LEAST_MEMORY))


class Workers(BaseModel):
    """Settings of worker processes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    shared: ClassVar[bool] = False
    """Whether other commands may use these workers too."""

    timeout_s: float = Field(default=60.0, gt=0, le=_LONGEST_S)

    @property
    def at_most(self) -> str:
        """The time limit in words."""
        return counted(self.timeout_s, "seconds", "g")


class LocalProcesses(Workers):
    """Worker processes of this machine."""

    kind: Literal["local"] = "local"
    workers: int = Field(default=CPU_COUNT, ge=1)
    threads: int = Field(default=1, ge=1)
    memory: Annotated[str, AfterValidator(memory_size)] = "auto"

    @contextmanager
    def connect(self, tell: Tell) -> Iterator[Client]:
        """Provide a client of newly started worker processes; they end with the context."""
        if current_process().daemon or get_start_method(allow_none=True) not in (None, *get_all_start_methods()):
            raise ClusterError(
                "this process is a worker of a pool, such as one of multiprocessing, Dask or joblib, and cannot start "
                "worker processes. Use the executor serial or threads."
            )
        check_addresses(_ADDRESSES, "a worker process")
        pool = f"a pool of {counted(self.workers, 'worker processes')}"
        check_open_files(_FILES + _FILES_OF_WORKER * self.workers, pool)
        check_threads(_THREADS + _THREADS_OF_WORKER * self.workers, pool)
        if self.memory == "auto" and self.workers * LEAST_MEMORY > MEMORY_LIMIT:
            raise ClusterError(
                f"{pool} needs {self.workers * LEAST_MEMORY >> 20:,} MiB of memory; this machine has "
                f"{MEMORY_LIMIT >> 20:,} MiB. Use fewer."
            )
        try:
            os.getcwd()
        except FileNotFoundError:
            raise ClusterError(
                "the working directory, in which worker processes start, has been removed. Change to another."
            ) from None
        tell(f"starting worker processes: {self.workers}")
        load_kernels()
        with QUIET_LOG, ExitStack() as stack:
            folder = stack.enter_context(temporary_folder())
            stack.enter_context(look_after())
            with signals_put_off():
                cluster = stack.enter_context(self._start(folder))
            # Some seconds after a worker is lost, Dask ends its nanny if no worker of that name is registered. A worker
            # that is lost again just before would never be restarted, so the check is delayed beyond any run.
            unhurried = {"distributed.deploy.lost-worker-timeout": "1 day"}
            stack.enter_context(dask.config.set(unhurried))
            # Results do not pass through the scheduler, which is in this process: they would be decrypted twice.
            try:
                client = stack.enter_context(Client(cluster, direct_to_workers=True, timeout=self.timeout_s))
            except OSError as error:
                raise ClusterError(f"the scheduler of the worker processes does not answer: {error}") from error
            check_memory(client)
            yield client

    def _start(self, folder: Path) -> LocalCluster:
        """Worker processes with files in `folder`. Keys made for this run keep other users of the machine out.

        Dask gives up if one is lost while it starts. Then all are started once more.
        """
        made = {
            "distributed.worker.multiprocessing-method": METHOD,
            "distributed.nanny.pre-spawn-environ": ALLOCATION,
            "distributed.scheduler.worker-ttl": f"{self.timeout_s:g} s",
            "temporary-directory": str(folder),
            **QUIET,
        }
        start = partial(
            LocalCluster,
            n_workers=self.workers,
            threads_per_worker=self.threads,
            processes=True,
            memory_limit=self.memory,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
            silence_logs=logging.CRITICAL,
            security=Encryption.temporary(),
            env=dict(os.environ),
        )
        with dask.config.set(made):
            try:
                start_fork_server()
                with suppress(RuntimeError), self._kill_late_ones():
                    return start()
                with self._kill_late_ones():
                    return start()
            except (RuntimeError, OSError) as error:
                if (short := shortage(error, "starting worker processes")) is not None:
                    raise short from error
                raise ClusterError(
                    f"the worker processes failed to start twice: {error} One was killed, ended with an error of its "
                    f"own, printed above, or needed more than {counted(self._start_s, 'seconds', 'g')}, which "
                    "timeout_s can extend."
                ) from error

    @property
    def _start_s(self) -> float:
        return max(self.timeout_s, ANSWER_S)

    @contextmanager
    def _kill_late_ones(self) -> Iterator[None]:
        """Kill worker processes that take too long to start: Dask would wait for a stopped one forever."""
        before, started = set(active_children()), threading.Event()

        def watch() -> None:
            limit_s = self._start_s
            while not started.wait(limit_s):
                limit_s = 1.0
                for process in set(active_children()) - before:
                    process.kill()

        threading.Thread(target=watch, daemon=True, name="swsdask start").start()
        try:
            yield
        finally:
            started.set()


class _Running(Workers):
    shared: ClassVar[bool] = True

    workers: int = Field(default=1, ge=1)
    tls_ca_file: FilePath | None = None
    tls_cert: FilePath | None = None
    tls_key: FilePath | None = None

    @contextmanager
    def _connect(self, address: str, what: str, tell: Tell) -> Iterator[Client]:
        tell(f"connecting to the scheduler at {what}, {self.at_most} at most")
        security = self._security(address)
        with QUIET_LOG, ExitStack() as stack:

            def connect_client(*, direct: bool) -> Client:
                connect = partial(Client, address, timeout=self.timeout_s, security=security, direct_to_workers=direct)
                # The client's own limit does not apply once a stopped scheduler has the connection.
                client = within(self.timeout_s + CLOSE_S, connect)
                stack.callback(_close, client)
                return client

            try:
                client = connect_client(direct=True)
                wait_for_workers(client, self.workers, self.timeout_s, f"the scheduler at {what}", tell)
                within(self.timeout_s, partial(check_code, client))
                within(self.timeout_s, partial(check_memory, client))
                if not reaches_workers(within(self.timeout_s, client.nthreads)):
                    client = connect_client(direct=False)
            except TimeoutError:
                raise ClusterError(
                    f"the scheduler at {what} or a worker did not answer within {self.at_most}"
                ) from None
            except (OSError, ValueError, MemoryError) as error:
                # The answer of a server of another kind reads as a length of any size.
                said = "something else does" if isinstance(error, MemoryError) else str(error)
                raise ClusterError(f"no scheduler answers at {what}: {said}") from error
            tell_dashboard(client, tell)
            yield client

    def _keys(self, address: str) -> Encryption:
        """Return the keys to connect with: those of the cluster file, else those of Dask's own configuration.

        Raises `SettingsError` if they do not fit the address.
        """
        if not _ADDRESS.fullmatch(address):
            raise SettingsError(f"expected the address of a scheduler, such as tcp://host:8786; found {address!r}.")
        given = {"tls_ca_file": self.tls_ca_file, "tls_client_cert": self.tls_cert, "tls_client_key": self.tls_key}
        keys = {name: str(path) for name, path in given.items() if path is not None}
        security = Encryption(**keys)
        if address.startswith("tls://"):
            held = security.get_tls_config_for_role("client")
            if not (held["ca_file"] and held["cert"]):
                raise SettingsError(
                    f"{address}: a scheduler with TLS needs keys. Make a cluster file with address, tls_ca_file, "
                    "tls_cert and tls_key, and give it with --cluster."
                )
        elif keys:
            raise SettingsError(f"{address}: TLS keys are given, but this address is without TLS. Give tls://.")
        return security

    def _security(self, address: str) -> Encryption:
        """Return the keys to connect with. Warns of a connection over a network without any."""
        security = self._keys(address)
        if not address.startswith("tls://") and not _is_loopback(address):
            warnings.warn(
                f"the connection to {address} is not encrypted: whoever reaches that port can run code on the workers, "
                "and read and change what they compute. Start the scheduler with TLS, and give keys in a cluster file.",
                InsecureConnection,
                stacklevel=2,
            )
        return security


def wait_for_workers(client: Client, workers: int, timeout_s: float, what: str, tell: Tell) -> None:
    """Wait until there are `workers` workers. Raises `ClusterError` after `timeout_s`.

    While there is none, a waiting task makes an adaptive cluster start its first worker.
    """
    deadline = time.monotonic() + timeout_s
    wanted, at_most = counted(workers, "workers"), counted(timeout_s, "seconds", "g")
    begun: list[Future[str]] = []
    while (there := len(within(timeout_s, client.nthreads))) < workers:
        tell(f"waiting for {wanted} of {what}, {at_most} at most: {there} so far")
        if not there and not begun:
            begun.append(client.submit(str, key=f"first-{uuid4().hex}"))
        left = max(0.1, deadline - time.monotonic())
        try:
            within(left + 1, partial(client.wait_for_workers, there + 1, timeout=left))
        except TimeoutError as error:
            raise ClusterError(f"{what} has fewer than {wanted} after {at_most}: {there} so far") from error


def reaches_workers(addresses: Iterable[str]) -> bool:
    """Return whether this process can connect to workers, so that results need not pass through the scheduler.

    They cannot be reached if only the scheduler can, for example behind a forwarded port. A few are tried.
    """
    for address in islice(addresses, _TRIED):
        place = urlsplit(address)
        try:
            socket.create_connection((place.hostname or "", place.port or 0), timeout=_REACH_S).close()
        except OSError:
            return False
    return True


def tell_dashboard(client: Client, tell: Tell) -> None:
    """Report the address of the scheduler's dashboard, if it has one."""
    try:
        urlopen(client.dashboard_link, timeout=2).close()
    except HTTPError as error:  # for example without bokeh; the error holds the connection
        error.close()
    except OSError:
        pass
    else:
        tell(f"dashboard: {client.dashboard_link}")


class RunningAt(_Running):
    """A scheduler that runs at an address."""

    kind: Literal["address"] = "address"
    address: str

    @model_validator(mode="after")
    def _keys_fit(self) -> Self:
        try:
            urlsplit(self.address)
        except ValueError as error:
            raise ValueError(f"expected an address such as tcp://host:8786: {error}") from None
        self._keys(self.address)
        return self

    @contextmanager
    def connect(self, tell: Tell) -> Iterator[Client]:
        """Provide a client of that scheduler, which continues to run when the context ends."""
        with self._connect(self.address, self.address, tell) as client:
            yield client


class RunningByFile(_Running):
    """A scheduler that wrote its address to a file."""

    kind: Literal["scheduler_file"] = "scheduler_file"
    path: Path

    @contextmanager
    def connect(self, tell: Tell) -> Iterator[Client]:
        """Provide a client of that scheduler, which continues to run when the context ends."""
        if not self.path.is_file():
            tell(f"waiting for a scheduler to write {self.path}, {self.at_most} at most")
        deadline = time.monotonic() + self.timeout_s
        while (address := self._address()) is None:
            if time.monotonic() > deadline:
                raise ClusterError(f"no scheduler wrote {self.path} within {self.at_most}")
            time.sleep(0.1)
        with self._connect(address, str(self.path), tell) as client:
            yield client

    def _address(self) -> str | None:
        """Return the address in the file; None until the file is complete."""
        try:
            return str(json.loads(self.path.read_bytes())["address"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None


class InKubernetes(_Running):
    """A scheduler behind a Service of Kubernetes."""

    kind: Literal["kubernetes"] = "kubernetes"
    service: str = "swsdask-scheduler"
    namespace: str = "default"
    port: int = Field(default=8786, ge=1, le=65535)

    @contextmanager
    def connect(self, tell: Tell) -> Iterator[Client]:
        """Provide a client of that scheduler. Outside the cluster, raises `ClusterError` with instructions."""
        host = f"{self.service}.{self.namespace}.svc"
        try:
            socket.getaddrinfo(host, self.port)
        except (OSError, UnicodeError) as error:
            raise ClusterError(
                f"{host} has no address here: {error}. Run the command in a Job of that "
                f"cluster, or forward its port, kubectl port-forward --namespace {self.namespace} "
                f"service/{self.service} {self.port}, and give --cluster tcp://127.0.0.1:{self.port}"
            ) from error
        scheme = "tls" if self.tls_cert else "tcp"
        with self._connect(f"{scheme}://{host}:{self.port}", host, tell) as client:
            yield client


def _is_loopback(address: str) -> bool:
    if address.startswith("inproc://"):
        return True
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _close(client: Client) -> None:
    """Close a client, even if its scheduler does not answer."""
    with suppress(TimeoutError, OSError):
        within(CLOSE_S, partial(client.close, timeout=CLOSE_S))


def check_code(client: Client) -> None:
    """Raise `ClusterError` if a worker has another swsdask, which may compute other bits, or lacks something."""
    check_answers(client.run(looking((), {}), on_error="return"))


def check_memory(client: Client) -> None:
    """Raise `ClusterError` if a worker has too little memory: Dask would pause it, and tasks would wait for it."""
    for address, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        limit = worker["memory_limit"]
        if limit and limit < LEAST_MEMORY:
            raise ClusterError(
                f"worker {address} has a memory limit of {limit >> 20} MiB; a worker needs {LEAST_MEMORY >> 20} MiB. "
                "Give each worker more memory, or use fewer workers."
            )
