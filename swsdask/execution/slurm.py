"""Workers in SLURM jobs that this process submits. This needs dask-jobqueue: `pip install 'swsdask[slurm]'`.

Each job is one worker. Keys of a cluster file with `kind = "slurm"`:

- `workers` (default 1) is the maximum number of jobs, `minimum` (default: `workers`) the minimum. In between, the
  number follows the work. A job that ends or is killed is replaced, and its results are computed again.
- `cores` (default 1), `memory` (default "4 GiB"), `walltime` (default "01:00:00"), `queue`, `account` of each job.
- `options`: further options of sbatch, such as "--constraint=avx512"; `prologue`: lines of shell before the worker.
- `interface`: the network interface on which jobs reach this process, such as "ib0".
- `folder` (default: the current one): a folder that this process and the jobs see. The logs of jobs stay there, the
  keys of the run do not.
- `dashboard` (default false): serve Dask's dashboard, without keys; needs bokeh.

Workers use TLS with keys that are made for each run. Each job first calls `swsdask warm-up`; only one of them compiles.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shlex import quote
from shutil import which
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import dask
from distributed import Client, SpecCluster
from pydantic import AfterValidator, Field

from swsdask.execution.clusters import (
    QUIET,
    QUIET_LOG,
    Tell,
    Workers,
    check_code,
    check_memory,
    memory_size,
    tell_dashboard,
    wait_for_workers,
)
from swsdask.execution.encryption import Encryption
from swsdask.execution.fork_server import ALLOCATION, signals_put_off
from swsdask.model.errors import ClusterError, SettingsError

_UNHURRIED = {"distributed.scheduler.allowed-failures": 10}
"""A task may lose many workers before it fails: if a job is killed, its task need not be the cause."""


class SlurmJobs(Workers):
    """Workers in jobs of SLURM that this process submits."""

    kind: Literal["slurm"] = "slurm"
    timeout_s: float = Field(default=600.0, gt=0)
    workers: int = Field(default=1, ge=1)
    minimum: int | None = Field(default=None, ge=0)
    cores: int = Field(default=1, ge=1)
    memory: Annotated[str, AfterValidator(memory_size)] = "4 GiB"
    walltime: str = "01:00:00"
    queue: str | None = None
    account: str | None = None
    interface: str | None = None
    folder: Path = Path()
    options: tuple[str, ...] = ()
    prologue: tuple[str, ...] = ()
    dashboard: bool = False

    @contextmanager
    def connect(self, tell: Tell) -> Iterator[Client]:
        """Provide a client of newly submitted jobs; they are cancelled when the context ends."""
        if which("sbatch") is None:
            raise ClusterError("sbatch was not found: run the command on a host that submits jobs to SLURM")
        least = self.workers if self.minimum is None else min(self.minimum, self.workers)
        tell(f"submitting jobs to SLURM: {least} to {self.workers}")
        with ExitStack() as stack:
            stack.enter_context(QUIET_LOG)
            keys = stack.enter_context(TemporaryDirectory(dir=self.folder, prefix="swsdask-keys-"))
            stack.enter_context(dask.config.set({**QUIET, **_UNHURRIED} if not self.dashboard else _UNHURRIED))
            with signals_put_off():
                cluster = stack.enter_context(self._submitting(keys))
            cluster.adapt(minimum=least, maximum=self.workers)
            client = stack.enter_context(Client(cluster, timeout=self.timeout_s))
            wait_for_workers(client, max(1, least), self.timeout_s, "SLURM", tell)
            check_code(client)
            check_memory(client)
            if self.dashboard:
                tell_dashboard(client, tell)
            yield client

    def _submitting(self, keys: str) -> SpecCluster:
        try:
            from dask_jobqueue.slurm import SLURMCluster
        except ImportError as error:
            raise SettingsError(
                f"kind = \"slurm\" needs dask-jobqueue: pip install 'swsdask[slurm]' ({error})"
            ) from None
        try:
            cluster: SpecCluster = SLURMCluster(
                queue=self.queue,
                account=self.account,
                walltime=self.walltime,
                cores=self.cores,
                processes=1,
                memory=self.memory,
                interface=self.interface,
                security=_write_keys(Encryption.temporary(), Path(keys)),
                log_directory=str(self.folder),
                job_name="swsdask",
                job_extra_directives=list(self.options),
                job_script_prologue=[
                    *self.prologue,
                    *(f"export {name}={value}" for name, value in ALLOCATION.items()),
                    f"{quote(sys.executable)} -m swsdask warm-up",
                ],
                scheduler_options={"dashboard": self.dashboard, "dashboard_address": ":0"},
                silence_logs="critical",
            )
        except (RuntimeError, OSError, ValueError) as error:
            raise ClusterError(f"the jobs were not submitted: {' '.join(str(error).split())}") from error
        return cluster


def _write_keys(made: Encryption, folder: Path) -> Encryption:
    """Write the keys of a run to files, which jobs read."""
    keys: dict[str, str] = {}
    for name, text in made.get_tls_config_for_role("worker").items():
        if name in ("ca_file", "cert", "key"):
            file = folder.resolve() / name
            file.write_text(text)
            roles = ("",) if name == "ca_file" else ("scheduler_", "worker_", "client_")
            keys |= {f"tls_{role}{name}": str(file) for role in roles}
    return Encryption(require_encryption=True, **keys)
