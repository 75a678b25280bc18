"""The runs to score, the archive that holds them, and the executor that scores them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TypeGuard

from swsdask.api.arguments import GivenRuns, rows_about, run_files
from swsdask.api.opening import Evaluation
from swsdask.archive.memory import read_into_memory, sources_of
from swsdask.archive.protocols import Archive
from swsdask.archive.reference_tables import ReferenceTables
from swsdask.archive.storage import Storage
from swsdask.archive.versions import Layout
from swsdask.archive.write import write_runs
from swsdask.execution.executor import Executor, Progress
from swsdask.execution.open import open_executor
from swsdask.formats.runs.encoding import Encoding
from swsdask.model.errors import SettingsError
from swsdask.model.settings import Settings
from swsdask.places.writing import temporary_folder


def rows_to_score(evaluation: Evaluation, runs: GivenRuns) -> int:
    """The number of detections to score, estimated for files."""
    if runs is None or _are_systems(runs, evaluation.systems):
        wanted = set(evaluation.systems) if runs is None else set(runs)
        return sum(run.rows for run in evaluation.archive.runs if run.system in wanted)
    return rows_about(run_files(runs))


def _are_systems(runs: GivenRuns, held: Sequence[str]) -> TypeGuard[list[str]]:
    return bool(held) and isinstance(runs, list) and all(run in held for run in runs)


@contextmanager
def with_runs(
    evaluation: Evaluation,
    runs: GivenRuns,
    executor: Executor,
    buckets: int | None,
    encoding: Encoding | None = None,
    after: ExitStack | None = None,
) -> Iterator[tuple[Archive, list[str]]]:
    """Provide the archive that holds the runs, and the requested systems.

    Runs of files are read into memory where the executor shares it, else into a temporary archive. It is removed when
    the context `after` ends (default: this one). That should be after the executor's: where the work is broken off,
    workers that have not heard of it still write. `encoding` has the units of tables, and is an error without files.
    """
    archive = evaluation.archive
    held = evaluation.systems
    if encoding and (not runs or _are_systems(runs, held)):
        raise SettingsError("A frame shift, negated scores and segments apply to files: an archive is already decoded.")
    if not runs:
        if runs is not None or not held:
            raise SettingsError("No RUN to score: give tables, files, folders or globs, or an archive that holds runs.")
        yield archive, list(held)
    elif _are_systems(runs, held):
        yield archive, sorted(set(runs))
    else:
        tables = ReferenceTables.of(archive)
        settings = evaluation.settings.evaluation
        files = run_files(runs, encoding)
        if executor.shares_memory and buckets is None:
            loaded: Archive = read_into_memory(tables, sources_of(files), settings)
            yield loaded, [run.system for run in loaded.runs]
            return
        with ExitStack() as own:
            storage = Storage(str((after or own).enter_context(temporary_folder())))
            layout = Layout(buckets=buckets)
            sources = sources_of(files, executor.workers)
            loaded = write_runs(storage, tables, sources, settings, layout=layout, executor=executor)
            yield loaded, [run.system for run in loaded.runs]


@contextmanager
def working(
    settings: Settings, given: Executor | str | None, total_rows: int, progress: Progress | None
) -> Iterator[Executor]:
    """Provide the given executor, which stays open, or that of the settings, whose name may be `given` instead."""
    if given is None or isinstance(given, str):
        engine = settings.engine if given is None else settings.engine.model_copy(update={"executor": given})
        with open_executor(engine, total_rows, progress) as executor:
            yield executor
    else:
        yield given
