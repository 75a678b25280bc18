"""Where work runs: settings become an executor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from swsdask.execution.executor import Executor, Progress, SerialExecutor, Unseen
from swsdask.model.settings import EngineSettings, Settings

SMALL = 2_000_000
"""Below so many rows, there is nothing to share out."""


_AT_ONCE = 2
"""How many threads a core has where data is distant: while some wait, others count."""


@contextmanager
def open_executor(
    settings: EngineSettings,
    total_rows: int | None = None,
    progress: Progress | None = None,
    *,
    distant: bool = False,
) -> Iterator[Executor]:
    """The executor that `settings.executor` names, closed when the context ends.

    "serial", "threads", "processes", a scheduler's address or file, or a file of conf/cluster. "auto" is serial where
    there is little to do (`total_rows` below `SMALL`; None: not known, so taken as little), one core, or one worker is
    requested, else threads on all cores: they start at once and share what they read; twice as many where reading is
    mostly waiting, for `distant` data. If more than one worker is requested it is worker processes. Only what needs
    Dask imports it. `progress` receives what is waited for.

    Raises `SettingsError` if the name means nothing, `ClusterError` if workers cannot be started or reached.
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
        from swsdask.execution.cluster_files import read_cluster
        from swsdask.execution.clusters import LocalProcesses
        from swsdask.execution.dask import DaskExecutor, sent_options

        place = LocalProcesses(workers=workers) if name == "processes" else read_cluster(name, settings.workers)
        shown = progress or Unseen()
        with place.connected(lambda what: shown.begin(what, 0)) as client, sent_options(client):
            yield DaskExecutor(client, settings.fan_in, place.timeout_s)


@contextmanager
def working(
    settings: Settings,
    given: Executor | str | None,
    total_rows: int,
    progress: Progress | None,
    *,
    distant: bool = False,
) -> Iterator[Executor]:
    """Provide the given executor, which stays open, or that of the settings, whose name may be `given` instead."""
    if given is None or isinstance(given, str):
        engine = settings.engine if given is None else settings.engine.model_copy(update={"executor": given})
        with open_executor(engine, total_rows, progress, distant=distant) as executor:
            yield executor
    else:
        yield given


@contextmanager
def cluster(where: str | os.PathLike[str], workers: int | None = None) -> Iterator[Executor]:
    """Provide an executor, to use in several calls; for one call, functions take `where` as their executor.

    Parameters
    ----------
    where : str or path
        "serial", "threads", "processes", the address of a Dask scheduler, its scheduler file, or a file that describes
        a cluster, such as those of ``conf/cluster`` (see `swsdask.execution.cluster_files`).
    workers : int, optional
        The number of workers. Default: the number of cores, or what the file says.

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
    with open_executor(EngineSettings(executor=os.fspath(where), workers=workers)) as executor:
        yield executor


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
