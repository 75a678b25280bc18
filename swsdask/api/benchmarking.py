"""The cost of scoring an archive, phase by phase, compared with a bare read of its detections."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from swsdask.api.opening import Evaluation, as_evaluation
from swsdask.api.results import write
from swsdask.api.scoring import Measures, resolve_measures, score
from swsdask.archive.reference import build_reference
from swsdask.archive.store import StoredArchive
from swsdask.archive.stored_tables import Fragment
from swsdask.execution.executor import Executor, Progress, or_unseen
from swsdask.execution.open import working
from swsdask.model.errors import SettingsError
from swsdask.model.tables import LateImport, Tables
from swsdask.places.reading import Location
from swsdask.places.writing import temporary_folder
from swsdask.scoring.rounds import NUMBERS, ROUND, SYSTEMS
from swsdask.statistics.alignment import trial_columns

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LateImport("pandas")

READ = "bare read"
"""The phase that all others are compared with."""

PHASES = pa.schema(
    [
        pa.field("phase", pa.string(), nullable=False),
        pa.field("workers", pa.bool_(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("cpu_seconds", pa.float64(), nullable=False),
    ]
)
"""One row per phase, in order: whether workers share it, its rows, its wall-clock time, and the CPU time of this
process, which includes threads but not worker processes."""


@dataclass(frozen=True)
class Benchmark(Tables):
    """The cost of scoring an archive.

    Attributes
    ----------
    phase_table : pyarrow.Table
        The phases, as `PHASES` describes them. The first is a read of the same columns by pyarrow alone, unverified, in
        one thread of this process.
    systems, rows, file_size : int
        The numbers of systems and detections that were scored, and the size of their files in bytes.
    workers : int
        The number of tasks that ran at once.
    """

    phase_table: pa.Table
    systems: int
    rows: int
    file_size: int
    workers: int

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The table of `to_arrow`: phases, with rows per second and the time relative to the bare read."""
        rows, seconds = self.phase_table["rows"].cast(pa.float64()), self.phase_table["seconds"]
        rates = self.phase_table.append_column("rows_per_second", pc.divide(rows, seconds))
        return {"phases": rates.append_column("of_read", pc.divide(seconds, seconds[0]))}

    @property
    def phases(self) -> pd.DataFrame:
        """The phases as a DataFrame, with rows per second and the time relative to the bare read."""
        return self._frame("phases")

    def seconds_with(self, workers: int) -> float:
        """Return the least time of scoring with `workers` workers: only the phases that they share become shorter."""
        scoring = self.phase_table.to_pylist()[1:]
        factors = {True: self.workers / workers, False: 1.0}
        return math.fsum(factors[phase["workers"]] * phase["seconds"] for phase in scoring)


def benchmark(
    evaluation: Evaluation | Location,
    measures: Measures = None,
    *,
    executor: Executor | str | None = None,
    progress: Progress | None = None,
) -> Benchmark:
    """Score an archive, and report the cost of each phase compared with a bare read of the detections.

    Cached statistics and results are neither used nor stored. The run with the fewest rows is scored once before, so
    that no phase includes the compilation of kernels.

    Parameters
    ----------
    evaluation : Evaluation, path or URL
        An archive of detections, on storage.
    measures : str, Measure, or iterable of these, optional
        As for `score`.
    executor : Executor or str, optional
        Where the work runs, see `cluster`. Default: the executor of the settings' ``[engine]``.
    progress : Progress, optional
        Receives the phases of the work and the number of rows done.

    Returns
    -------
    Benchmark
        The phases: the bare read; the preparation of the reference; the systems that one task scores whole; for larger
        systems, every round and the numbers; tables and manifest; the files of the result.

    Raises
    ------
    SettingsError
        The evaluation is not an archive on storage, or has no runs.
    ArchiveError, ClusterError
        As `score`.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.benchmark("demo/archive", ["atwv", "mtwv"]).phases["phase"].tolist()
    ['bare read', 'reference', 'systems', 'tables', 'files']
    """
    evaluation = as_evaluation(evaluation)
    archive = evaluation.archive
    if not isinstance(archive, StoredArchive) or not archive.runs:
        raise SettingsError("A benchmark needs an archive with runs: `swsdask ingest` makes one.")
    _, _, settings = resolve_measures(measures, evaluation.settings)
    rows = sum(run.rows for run in archive.runs)
    watch = _Watch(or_unseen(progress), rows)
    with working(settings, executor, rows, None) as opened:
        least = min(archive.runs, key=lambda run: run.rows).system
        score(evaluation, measures, runs=[least], executor=opened, cache=False)
        rule = build_reference(archive, settings.evaluation).rule
        watch.begin(READ, rows)
        _read(archive, trial_columns(rule, 1, True), watch)
        watch.begin("reference", 0)
        result = score(evaluation, measures, executor=opened, cache=False, progress=watch)
        watch.begin("files", 0)
        with temporary_folder() as folder:
            write(result, folder / "results")
        watch.end()
        return Benchmark(
            pa.Table.from_pylist(watch.phases, schema=PHASES),
            len(archive.runs),
            rows,
            sum(fragment.file.size or 0 for stored in archive.stored_runs for fragment in stored.fragments),
            opened.workers,
        )


def _read(archive: StoredArchive, columns: Sequence[str], progress: Progress) -> None:
    """Read columns of all detections by pyarrow alone."""
    for fragment in chain.from_iterable(stored.fragments for stored in archive.stored_runs):
        name = fragment.file.file
        try:
            with archive.storage.open(name) as source:
                _read_groups(source, fragment, columns)
        except ValueError:  # from a web server that does not send parts of files
            _read_groups(pa.BufferReader(archive.storage.read(name)), fragment, columns)
        progress.advance(sum(fragment.groups))


def _read_groups(source: IO[bytes] | pa.BufferReader, fragment: Fragment, columns: Sequence[str]) -> None:
    with pq.ParquetFile(source) as file:
        for group in range(len(fragment.groups)):
            file.read_row_group(group, columns=list(columns), use_threads=False)


class _Watch:
    """Measures the time of phases, and passes them on.

    The phase after the numbers of the last systems is that of the tables; `rows` are those of all systems.
    """

    def __init__(self, shown: Progress, rows: int) -> None:
        self._shown = shown
        self._began = (0.0, 0.0)
        self._left = rows
        self._has_numbers = False
        self.phases: list[dict[str, object]] = []

    def begin(self, phase: str, rows: int) -> None:
        """End the previous phase and begin a new one."""
        self.end()
        self._shown.begin(phase, rows)
        self._has_numbers = phase.startswith((NUMBERS, SYSTEMS))
        shared = self._has_numbers or phase.startswith(ROUND)
        self.phases.append({"phase": phase, "workers": shared, "rows": rows})
        self._began = (time.perf_counter(), time.process_time())

    def advance(self, rows: int) -> None:
        """Count rows as done. After the numbers of the last systems, the tables begin."""
        self._shown.advance(rows)
        if self._has_numbers:
            self._left -= rows
            if self._left <= 0:
                self.begin("tables", 0)

    def end(self) -> None:
        """End the current phase, if there is one."""
        if self.phases:
            seconds, cpu = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
            self.phases[-1] |= {"seconds": seconds, "cpu_seconds": cpu}
