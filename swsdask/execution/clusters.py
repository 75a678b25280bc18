"""Worker processes: started here, or those of a scheduler that runs elsewhere; what a file of `conf/cluster` says.

A cluster file is TOML with `kind` and the keys of that kind:

- `kind = "local"`: worker processes of this machine; `workers` (default: the cores there are), `threads` of each
  (default 1), `memory` of each ("auto": an equal share of the machine's, or such as "4 GiB").
- `kind = "address"`: a running scheduler at `address`, such as "tcp://scheduler:8786".
- `kind = "scheduler_file"`: the same, its address taken from the `path` that the scheduler writes.

The last two wait until `workers` (default 1) are there. Every kind has `timeout_s` (default 60): how long to wait for
the scheduler and the workers, at the start and when all of them are lost. What is waited for is told meanwhile.

Kernels are compiled once and kept on disk, but numba's cache does not bear several writers at once. Workers that are
started here find everything compiled. Where workers run elsewhere, call `load_kernels` once when their image or
environment is made, or give each worker a NUMBA_CACHE_DIR of its own.
"""

from __future__ import annotations

import logging
import pkgutil
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import dask
from dask.system import CPU_COUNT
from distributed import Client, LocalCluster
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

import swsdask
from swsdask.model.errors import ClusterError, SettingsError, counted
from swsdask.model.settings import conf_directory

ALLOCATION = {"MALLOC_MMAP_THRESHOLD_": 32 << 20, "MALLOC_TRIM_THRESHOLD_": 64 << 20}
"""Where glibc's allocator ends by itself in a process that uses arrays of megabytes. Dask sets the second so low that
workers give every array's pages back and fault them in again, which costs a fifth of their time; and setting either
ends the adaptation."""

QUIET = {
    "distributed.admin.tick.interval": "1 s",
    "distributed.admin.system-monitor.interval": "5 s",
    "distributed.worker.profile.enabled": False,
}
"""How seldom Dask's processes look at themselves: by default 50 times a second each, to draw a dashboard that is not
shown, on the very cores that the workers are to use."""


Tell = Callable[[str], None]
"""Is told what is waited for."""


class _Cluster(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    timeout_s: float = Field(default=60.0, gt=0)

    @property
    def _at_most(self) -> str:
        return counted(self.timeout_s, "seconds", "g")


class LocalProcesses(_Cluster):
    """Worker processes of this machine."""

    kind: Literal["local"] = "local"
    workers: int = Field(default=CPU_COUNT, ge=1)
    threads: int = Field(default=1, ge=1)
    memory: str = "auto"

    @contextmanager
    def connected(self, tell: Tell) -> Iterator[Client]:
        """A client of newly started worker processes; they end with the context."""
        tell(f"starting worker processes: {self.workers}")
        load_kernels()
        try:
            with dask.config.set({"distributed.nanny.pre-spawn-environ": ALLOCATION, **QUIET}):
                cluster = LocalCluster(
                    n_workers=self.workers,
                    threads_per_worker=self.threads,
                    processes=True,
                    memory_limit=self.memory,
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                    silence_logs=logging.CRITICAL,
                )
        except (RuntimeError, OSError) as error:
            raise ClusterError(
                f"the worker processes did not start: {error} In a script, put what you call under "
                '`if __name__ == "__main__":`, for worker processes import the script too.'
            ) from error
        # Some seconds after a worker is lost, Dask ends its nanny if no worker of that name is registered. One that is
        # lost again shortly before would never be restarted, so that check is put off beyond any run.
        unhurried = {"distributed.deploy.lost-worker-timeout": "1 day"}
        with dask.config.set(unhurried), cluster, Client(cluster, timeout=self.timeout_s) as client:
            yield client


class _Running(_Cluster):
    workers: int = Field(default=1, ge=1)

    @contextmanager
    def _connected(self, what: str, tell: Tell, **where: Any) -> Iterator[Client]:
        tell(f"connecting to the scheduler at {what}, {self._at_most} at most")
        try:
            client = Client(timeout=self.timeout_s, **where)
        except (OSError, ValueError) as error:
            raise ClusterError(f"no scheduler answers at {what}: {error}") from error
        with client:
            self._wait_for_workers(client, what, tell)
            _check_versions(client)
            yield client

    def _wait_for_workers(self, client: Client, what: str, tell: Tell) -> None:
        deadline = time.monotonic() + self.timeout_s
        wanted = counted(self.workers, "workers")
        while (there := len(client.nthreads())) < self.workers:
            tell(f"waiting for {wanted} of the scheduler at {what}, {self._at_most} at most: {there} there")
            try:
                client.wait_for_workers(there + 1, timeout=max(0.1, deadline - time.monotonic()))
            except TimeoutError as error:
                raise ClusterError(
                    f"the scheduler at {what} has fewer than {wanted} after {self._at_most}: {there} there"
                ) from error


class RunningAt(_Running):
    """A scheduler that runs at an address."""

    kind: Literal["address"] = "address"
    address: str

    @contextmanager
    def connected(self, tell: Tell) -> Iterator[Client]:
        """A client of that scheduler, which goes on when the context ends."""
        with self._connected(self.address, tell, address=self.address) as client:
            yield client


class RunningByFile(_Running):
    """A scheduler that wrote its address to a file."""

    kind: Literal["scheduler_file"] = "scheduler_file"
    path: Path

    @contextmanager
    def connected(self, tell: Tell) -> Iterator[Client]:
        """A client of that scheduler, which goes on when the context ends."""
        if not self.path.is_file():
            tell(f"waiting for a scheduler to write {self.path}, {self._at_most} at most")
        deadline = time.monotonic() + self.timeout_s
        while not self.path.is_file():
            if time.monotonic() > deadline:
                raise ClusterError(f"no scheduler wrote {self.path} within {self._at_most}")
            time.sleep(0.1)
        with self._connected(str(self.path), tell, scheduler_file=str(self.path)) as client:
            yield client


Cluster = LocalProcesses | RunningAt | RunningByFile

_CLUSTER: TypeAdapter[Cluster] = TypeAdapter(Annotated[Cluster, Field(discriminator="kind")])


def describe(where: str, workers: int | None = None) -> Cluster:
    """The cluster at `where`: an address with "://", a scheduler's .json file, a .toml file, or a name in conf/cluster.

    `workers`, if given, replaces what the file says. Raises `SettingsError` if there is no such file, or a key or value
    in it is wrong.
    """
    given: dict[str, Any] = {} if workers is None else {"workers": workers}
    if "://" in where:
        return RunningAt(address=where, **given)
    if where.endswith(".json"):
        return RunningByFile(path=Path(where), **given)
    path = _cluster_file(where)
    try:
        return _CLUSTER.validate_python({**tomllib.loads(path.read_text(encoding="utf-8")), **given})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: the cluster file cannot be read: {error}") from None
    except ValidationError as error:
        faults = "\n".join(f"{path}: {'.'.join(map(str, e['loc'])) or 'file'}: {e['msg']}" for e in error.errors())
        raise SettingsError(faults) from None


def _cluster_file(where: str) -> Path:
    folder = conf_directory() / "cluster"
    for path in (Path(where), folder / where, folder / f"{where}.toml"):
        if path.is_file():
            return path
    names = ", ".join(sorted(path.stem for path in folder.glob("*.toml")))
    raise SettingsError(
        f"executor {where!r} is neither auto, serial, threads, processes, an address such as tcp://host:8786, a "
        f"scheduler's .json file, nor a cluster file; those of conf/cluster are: {names}."
    )


def load_kernels() -> None:
    """Import every kernel: whatever numba has not on disk yet is compiled now, so that others only read it."""
    kernels = import_module("swsdask.kernels")
    for module in pkgutil.iter_modules(kernels.__path__, "swsdask.kernels."):
        import_module(module.name)


def _check_versions(client: Client) -> None:
    """Raise `ClusterError` if a worker has another swsdask: then it need not compute the same bits."""
    versions = client.run(_version)
    others = {address: version for address, version in versions.items() if version != swsdask.__version__}
    if others:
        address, version = min(others.items())
        raise ClusterError(
            f"worker {address} has swsdask {version}, this is {swsdask.__version__}: install the same on all workers"
        )


def _version() -> str:
    return swsdask.__version__
