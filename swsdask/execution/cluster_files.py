"""What `--cluster` names: an address, a scheduler's file, or a file of `conf/cluster`.

A cluster file is TOML with `kind` and the keys of that kind:

- `kind = "local"`: worker processes of this machine; `workers` (default: the cores there are), `threads` of each
  (default 1), `memory` of each ("auto": an equal share of the machine's, or such as "4 GiB").
- `kind = "address"`: a running scheduler at `address`, such as "tcp://scheduler:8786".
- `kind = "scheduler_file"`: the same, its address taken from the `path` that the scheduler writes.
- `kind = "kubernetes"`: the same, behind the Service `service` (default "swsdask-scheduler") of `namespace` at `port`.
- `kind = "slurm"`: workers in jobs of SLURM that this process submits, see `swsdask.execution.slurm`.

Those of a running scheduler wait until `workers` (default 1) are there. A scheduler with TLS (tls://) needs
`tls_ca_file`, `tls_cert` and `tls_key`, files in PEM: who signed the certificates of the cluster, this client's
certificate, and its key. Worker processes of this machine have keys of their own, made for each run and never written
to a file that stays.

Every kind has `timeout_s` (default 60): how long to wait for the scheduler and the workers, at the start and when they
are lost, paused or stopped.

Kernels are compiled once and kept on disk. Workers that are started here find everything compiled. Where workers run
elsewhere, call `swsdask warm-up` once when their image or environment is made: they read what it compiled, also where
they cannot write.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, TypeAdapter, ValidationError

from swsdask.execution.clusters import InKubernetes, LocalProcesses, RunningAt, RunningByFile
from swsdask.execution.slurm import SlurmJobs
from swsdask.model.errors import SettingsError
from swsdask.model.layers import conf_directory, settings_of
from swsdask.places.reading import read_small

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Cluster = LocalProcesses | RunningAt | RunningByFile | InKubernetes | SlurmJobs

_CLUSTER: TypeAdapter[Cluster] = TypeAdapter(Annotated[Cluster, Field(discriminator="kind")])


def read_cluster(where: str, workers: int | None = None) -> Cluster:
    """The cluster at `where`: an address with "://", a scheduler's .json file, a .toml file, or a name in conf/cluster.

    `workers`, if given, replaces what the file says. Raises `SettingsError` if there is no such file, or a key or value
    in it is wrong.
    """
    given: dict[str, object] = {} if workers is None else {"workers": workers}
    if "://" in where:
        return RunningAt(address=where, **given)
    if where.endswith(".json"):
        return RunningByFile(path=Path(where), **given)
    path = _cluster_file(where)
    try:
        return _CLUSTER.validate_python({**settings_of(read_small(path), str(path)), **given})
    except ValidationError as error:
        raise SettingsError("\n".join(f"{path}: {_explained(each)}" for each in error.errors())) from None
    except OSError as error:
        raise SettingsError(f"{path}: the cluster file cannot be read: {error}") from None


def _explained(fault: ErrorDetails) -> str:
    if fault["type"] == "union_tag_not_found":
        return "expected the kind of cluster: local, address, scheduler_file, kubernetes or slurm; found none."
    return f"{'.'.join(map(str, fault['loc'])) or 'file'}: {fault['msg']}"


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
