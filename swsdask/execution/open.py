"""Make an executor from settings, or from the value of `--cluster`.

`--cluster` names an address, a scheduler's file, or a file of `conf/cluster`. A cluster file is TOML with `kind` and
the keys of that kind:

- `kind = "local"`: worker processes of this machine; `workers` (default: the number of cores), `threads` of each
  (default 1), `memory` of each ("auto": an equal share of the machine's, or a size such as "4 GiB").
- `kind = "address"`: a running scheduler at `address`, such as "tcp://scheduler:8786".
- `kind = "scheduler_file"`: the same, with the address in the file `path` that the scheduler writes.
- `kind = "kubernetes"`: the same, behind the Service `service` (default "swsdask-scheduler") of `namespace` at `port`.
- `kind = "slurm"`: workers in jobs of SLURM that this process submits (`execution.slurm`).

The kinds with a running scheduler wait until it has `workers` (default 1). A scheduler with TLS (tls://) needs
`tls_ca_file`, `tls_cert` and `tls_key`, files in PEM: the certificate authority of the cluster, the certificate of this
client, and its key. Local worker processes have their own keys, made for each run and never written to a permanent
file.

Every kind has `timeout_s` (default 60): the time to wait for the scheduler and the workers, at the start and when they
are lost, paused or stopped.

Kernels are compiled once and kept on disk. Local workers find everything compiled. If workers run elsewhere, call
`swsdask warm-up` once when their image or environment is made: they read the compiled kernels, even if they cannot
write.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import current_process
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Annotated, TypeAlias, cast, get_args

from pydantic import Field, TypeAdapter, ValidationError

from swsdask.execution.executor import Executor, Progress, SerialExecutor, or_unseen
from swsdask.model.errors import ClusterError, ResourceError, SettingsError
from swsdask.model.layers import build_settings, conf_directory, settings_of
from swsdask.model.settings import EngineSettings, Settings
from swsdask.model.wording import choices, cut
from swsdask.places.reading import read_small
from swsdask.places.writing import temporary_folder

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from swsdask.execution.clusters import InKubernetes, LocalProcesses, RunningAt, RunningByFile
    from swsdask.execution.slurm import SlurmJobs

    Cluster: TypeAlias = LocalProcesses | RunningAt | RunningByFile | InKubernetes | SlurmJobs

LOG = logging.getLogger("swsdask")

SMALL = 2_000_000
"""The number of rows below which work is not distributed."""

MANY = 100
"""The number of systems from which worker processes gain more time than it takes to start them. Computing the numbers
of a system mostly holds the interpreter's lock, so threads would wait for each other."""

_AT_ONCE = 2
"""The number of threads per core for distant data: while some wait, others compute."""


@contextmanager
def open_executor(
    settings: EngineSettings,
    total_rows: int | None = None,
    progress: Progress | None = None,
    *,
    distant: bool = False,
) -> Iterator[Executor]:
    """Provide the executor that `settings.executor` names, closed when the context ends.

    The name is "serial", "threads", "processes", "auto", a scheduler's address or file, or a file of conf/cluster.
    "auto" is serial if there is little to do (`total_rows` below `SMALL`, or None: unknown), if there is one core, or
    if one worker is requested. Otherwise it is threads on all cores, which start at once and share what they read, or
    twice as many for `distant` data, where reading mostly waits. If more than one worker is requested, or for many
    systems of an archive (`for_systems`), it is worker processes. Dask is imported only if needed. `progress` receives
    what is waited for.

    Raises `SettingsError` if the name is unknown, `ClusterError` if workers cannot be started or reached.
    """
    name = settings.executor
    workers = settings.workers or cores()
    if name == "auto":
        little = settings.workers is None and (total_rows or 0) < SMALL
        name = "serial" if little or workers == 1 else "threads" if settings.workers is None else "processes"
        if name == "threads" and distant:
            workers *= _AT_ONCE
    if name == "serial":
        yield SerialExecutor()
    elif name == "threads":
        from swsdask.execution.executor import ThreadExecutor

        threads = ThreadExecutor(workers)
        try:
            yield threads
        finally:
            threads.close()
    else:
        from swsdask.execution.clusters import LocalProcesses
        from swsdask.execution.dask import DaskExecutor, sent_options

        place = LocalProcesses(workers=workers) if name == "processes" else read_cluster(name, settings.workers)
        shown = or_unseen(progress)
        with ExitStack() as stack:
            here = isinstance(place, LocalProcesses)
            folder = str(stack.enter_context(temporary_folder())) if here else None
            client = stack.enter_context(place.connect(lambda what: shown.begin(what, 0)))
            stack.enter_context(sent_options(client, shared=place.shared))
            yield DaskExecutor(client, settings.fan_in, place.timeout_s, folder)


def for_systems(
    n_systems: int,
    place: str | None,
    executor: Executor,
    engine: EngineSettings | None,
    progress: Progress | None,
    stack: ExitStack,
) -> Executor:
    """Return the executor for scoring systems: worker processes if there are many and "auto" has chosen threads.

    Parameters
    ----------
    n_systems
        The number of systems to score.
    place
        The stored archive that has them. None: memory of this process, which workers do not see.
    executor
        The open executor.
    engine
        The settings that it was opened with; None if it was given.
    progress
        Receives what is waited for.
    stack
        Closes the workers.

    Returns
    -------
    Executor
        `executor` itself if another one was requested, for few systems, and if no worker processes can be started: for
        lack of cores or memory, or from a script, which every worker would run again.
    """
    if engine is None or engine.executor != "auto" or engine.workers is not None:
        return executor
    if n_systems < MANY or place is None or cores() == 1 or not _main_can_be_imported():
        return executor
    from swsdask.execution.clusters import most_workers

    workers = most_workers()
    if workers < 2:
        return executor
    chosen = engine.model_copy(update={"executor": "processes", "workers": workers})
    try:
        with ExitStack() as opened:
            processes = opened.enter_context(open_executor(chosen, progress=progress))
            processes.check([place])
            stack.push(opened.pop_all())
            return processes
    except (ClusterError, ResourceError) as error:
        LOG.info("scored without worker processes: %s", error)
        return executor


def _main_can_be_imported() -> bool:
    """Return whether worker processes may import the main module of this one, as multiprocessing does.

    A notebook has no main module, and importing that of the command line starts nothing. Daemonic processes cannot
    have children.
    """
    main = sys.modules["__main__"]
    return not current_process().daemon and (getattr(main, "__file__", None) is None or "swsdask.cli" in sys.modules)


@contextmanager
def working(
    settings: Settings,
    given: Executor | str | None,
    total_rows: int,
    progress: Progress | None,
    *,
    distant: bool = False,
) -> Iterator[Executor]:
    """Provide the given executor, which stays open, or open the one of the settings or with the `given` name."""
    or_unseen(progress)  # raises before the work begins
    engine = engine_of(settings, given)
    if engine is None:
        yield cast(Executor, given)
    else:
        with open_executor(engine, total_rows, progress, distant=distant) as executor:
            yield executor


def engine_of(settings: Settings, given: Executor | str | os.PathLike[str] | None) -> EngineSettings | None:
    """Return the settings of the executor to open, with the `given` name if any; None if an executor is given."""
    if given is None:
        return settings.engine
    if isinstance(given, str | os.PathLike):
        return settings.engine.model_copy(update={"executor": os.fspath(given)})
    if not hasattr(given, "map_reduce"):
        raise SettingsError(
            f"expected an executor, its name, its file or the address of a scheduler (of a Dask client: "
            f"client.scheduler.address); found {cut(repr(given))}."
        )
    return None


@contextmanager
def cluster(where: str | os.PathLike[str], workers: int | None = None) -> Iterator[Executor]:
    """Provide an executor for several calls. For a single call, functions accept `where` as their executor.

    Parameters
    ----------
    where : str or path
        "serial", "threads", "processes", the address of a Dask scheduler, its scheduler file, or a file that describes
        a cluster, such as those of ``conf/cluster`` (see `swsdask.execution.open`).
    workers : int, optional
        The number of workers. Default: the number in the file, or the number of cores.

    Yields
    ------
    Executor
        An executor for `score`, `ingest`, `discover` and `calibrate`. It closes when the context ends.

    Raises
    ------
    SettingsError
        `where` names no executor.
    ClusterError
        Workers cannot be started or reached.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> evaluation = sws.open("demo/files", preset="sws2013")
    >>> with sws.cluster("threads", workers=2) as executor:
    ...     result = sws.score(evaluation, "mtwv", runs="demo/files/runs", executor=executor)
    >>> result.manifest["run"]["executor"]
    'ThreadExecutor'
    """
    engine = engine_of(Settings(), where)
    if engine is None:
        raise SettingsError("expected the name, file or address of an executor; found an executor, which is open.")
    settings = build_settings(explicit={"engine": {"executor": engine.executor, "workers": workers}})
    with open_executor(settings.engine) as executor:
        yield executor


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_cluster(where: str, workers: int | None = None) -> Cluster:
    """The cluster at `where`: an address with "://", a scheduler's .json file, a .toml file, or a name in conf/cluster.

    `workers`, if given, replaces the number in the file. Raises `SettingsError` if there is no such file, or a key or
    value in it is wrong.
    """
    from swsdask.execution.clusters import InKubernetes, LocalProcesses, RunningAt, RunningByFile
    from swsdask.execution.slurm import SlurmJobs

    kinds = LocalProcesses | RunningAt | RunningByFile | InKubernetes | SlurmJobs
    clusters: TypeAdapter[Cluster] = TypeAdapter(Annotated[kinds, Field(discriminator="kind")])
    given: dict[str, object] = {} if workers is None else {"workers": workers}
    is_url, path = "://" in where, where
    try:
        if is_url and not where.endswith(".toml"):
            return RunningAt(address=where, **given)
        if where.endswith(".json"):
            return RunningByFile(path=Path(where), **given)
        path = where if is_url else str(_cluster_file(where))
        return clusters.validate_python({**settings_of(read_small(path), path), **given})
    except ValidationError as error:
        raise SettingsError("\n".join(f"{path}: {_explain_error(each, kinds)}" for each in error.errors())) from None
    except OSError as error:
        raise SettingsError(f"{path}: the cluster file cannot be read: {error}") from None


def _explain_error(fault: ErrorDetails, kinds: UnionType) -> str:
    if fault["type"] == "union_tag_not_found":
        return "expected the kind of cluster: local, address, scheduler_file, kubernetes or slurm; found none."
    where = ".".join(map(str, fault["loc"])) or "file"
    if fault["type"] == "extra_forbidden":
        *of_kind, key = map(str, fault["loc"])
        models = {each.model_fields["kind"].default: each for each in get_args(kinds)}
        known = [name for name in models[of_kind[0]].model_fields if name != "kind"]
        return f"{where}: unknown key. Keys of this kind: {choices(known, key)}."
    return f"{where}: {fault['msg']}"


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
