"""Runs that callers give: their normalisation, and the archive that holds them.

Runs come in many forms. `given_runs` turns them into names of systems of an archive, or into sources of rows
(`model.schemas.RunSource`). No other code handles the given forms.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from glob import glob
from numbers import Number
from typing import TYPE_CHECKING, Any, TypeVar

from swsdask.archive.cache import KnownSources
from swsdask.archive.ingest import write_runs
from swsdask.archive.memory import read_into_memory
from swsdask.archive.protocols import Archive
from swsdask.archive.reference_tables import ReferenceTables, with_documents_of
from swsdask.archive.storage import Storage
from swsdask.archive.versions import Layout
from swsdask.execution.executor import Executor
from swsdask.formats.files import noted
from swsdask.formats.find import find_runs, resources_of_runs
from swsdask.formats.in_memory import Judged, Table, TableRun, are_scores, by_pair, is_table, is_uncomputed
from swsdask.formats.runs.encoding import Encoding
from swsdask.formats.runs.read import RunFile
from swsdask.formats.runs.table import NEEDED, proper_names
from swsdask.model.errors import Problems, SettingsError
from swsdask.model.schemas import RunSource
from swsdask.model.wording import choices, cut
from swsdask.places.reading import Location, is_local, readable
from swsdask.places.writing import temporary_folder

if TYPE_CHECKING:
    from swsdask.api.opening import Evaluation

Runs = Location | Table | Iterable[Location | Table] | Mapping[Any, Location | Judged] | None
"""Files, directories, globs, URLs or tables in memory; a mapping from system to one of these, or to scores by query and
document; such scores of one system; or names of systems of an archive."""


@dataclass(frozen=True)
class GivenRuns:
    """Runs in one form: systems that an archive holds, or sources to read.

    `unread` are files that need not be read, because the archive has all their runs.
    """

    systems: tuple[str, ...] = ()
    sources: tuple[RunSource, ...] = ()
    unread: tuple[RunFile, ...] = ()

    @property
    def rows_about(self) -> int:
        """The approximate number of rows to read. Raises `InputError` with every file that is not there."""
        rows, problems = 0, Problems()
        for source in self.sources:
            with noted(problems):
                rows += source.rows_about
        problems.raise_if_any()
        return rows


def given_runs(
    runs: Runs,
    held: Sequence[str] = (),
    *,
    judged: bool = False,
    encoding: Encoding | None = None,
    known: KnownSources | None = None,
) -> GivenRuns:
    """Normalise runs: either all are names of the systems `held` in an archive (None: all of them), or all are read.

    `judged` says whether documents are judged: then tables in memory need no times, and text of no known format is a
    TREC run. `encoding` has the units of all tables. Files that are `known` are not opened.

    Raises `InputError` for a name that is no run, and with every problem of the resources beside runs. Raises
    `SettingsError` for systems together with files, and for an encoding of systems.
    """
    tables: list[TableRun] = []
    files: list[RunFile] = []
    places: list[str] = []
    for name, system, run in _one_by_one(runs):
        if not isinstance(run, str | os.PathLike):
            tables.append(TableRun(name, by_pair(run, name, "score"), system, encoding, judged))
        elif system is not None:
            files.append(RunFile(readable(run), system, encoding, judged=judged))
        else:
            places.append(readable(run))
    systems = held if runs is None else _systems(places, held, others=tables)
    if systems and encoding:
        raise SettingsError("A frame shift, negated scores and segments apply to files: an archive is already decoded.")
    if systems:
        return GivenRuns(systems=tuple(systems))
    if places:
        found = find_runs(places, None if known is None else known.among, judged=judged)
        files += [RunFile(file, encoding=encoding, judged=judged) for file in found]
    files, unread = (files, []) if known is None else known.parted(files)
    resources = resources_of_runs(run.file for run in files)
    with_resources = [replace(run, resources=resources.get(run.file)) for run in files]
    return GivenRuns(sources=(*tables, *with_resources), unread=tuple(unread))


def _one_by_one(runs: Runs) -> list[tuple[str, str | None, Location | Judged]]:
    """Return each run as given: its name in messages if it is a table, its system if that is given, and the run."""
    if runs is None:
        return []
    if isinstance(runs, Mapping) and _are_empty(runs):
        return [(f"run {name}", name, _NO_ROWS) for name in by_system(runs)]
    if is_table(runs) or are_scores(runs) or is_uncomputed(runs):
        return [("run", None, runs)]
    if isinstance(runs, Mapping):
        named = by_system(runs).items()
        return [(f"run {name}", name, _NO_ROWS if _is_empty(run) else run) for name, run in named]
    several = list(runs) if isinstance(runs, Iterable) and not isinstance(runs, str | os.PathLike) else [runs]
    if is_table(several):
        return [("run", None, several)]
    return [(f"run {number}", None, run) for number, run in enumerate(several, 1)]


_NO_ROWS: Mapping[str, list[object]] = {name: [] for name in NEEDED}
"""A table without detections."""


def _is_empty(run: object) -> bool:
    """Return whether a run is an empty list of rows, or maps no query."""
    return isinstance(run, list | tuple | Mapping) and not run


def _are_empty(runs: Mapping[Any, object]) -> bool:
    """Return whether every system of a mapping has no rows. Columns without rows are a table."""
    return all(map(_is_empty, runs.values())) and {"query", "score"}.isdisjoint(proper_names([*map(str, runs)]))


Given = TypeVar("Given")


def by_system(runs: Mapping[str, Given]) -> dict[str, Given]:
    """Runs by the names of their systems: text, or numbers such as seeds. Raises `SettingsError` for other keys."""
    found: dict[str, Given] = {}
    for key, run in runs.items():
        if isinstance(key, bool) or not isinstance(key, str | Number) or key == "":
            raise SettingsError(f"runs: expected the name of a system; found {cut(repr(key))}.")
        if found.setdefault(str(key), run) is not run:
            raise SettingsError(f"runs: two are named {cut(repr(str(key)))}, by text and by a number.")
    return found


def _systems(places: Sequence[str], held: Sequence[str], others: Sequence[TableRun]) -> list[str]:
    """Return the named systems of an archive, sorted; none if all runs are to be read.

    Raises `SettingsError` for a path that does not exist, and for systems together with files or the tables `others`.
    """
    there = set(held)
    systems = [place for place in places if place in there]
    files = [place for place in places if place not in there]
    missing = [file for file in files if held and is_local(file) and not glob(file) and not os.path.exists(file)]
    if missing:
        raise SettingsError(f"{missing[0]} is neither a file nor a system of the archive: {choices(held, missing[0])}.")
    if systems and (files or others):
        other = "a table" if others else f"{files[0]} a file"
        both = f"{systems[0]} is a system of the archive, {other}"
        raise SettingsError(f"{both}: score them one after the other, or ingest the file.")
    return sorted(set(systems))


def rows_to_score(archive: Archive, runs: GivenRuns) -> int:
    """Return the number of detections to score, estimated for files."""
    named = set(runs.systems)
    return runs.rows_about + sum(run.rows for run in archive.runs if run.system in named)


def runs_for(evaluation: Evaluation, runs: Runs, encoding: Encoding) -> GivenRuns:
    """Normalise the runs to be scored in an evaluation, see `given_runs`; the encoding is that of all tables."""
    return given_runs(runs, evaluation.systems, judged=evaluation.judged, encoding=encoding)


@contextmanager
def with_runs(
    evaluation: Evaluation,
    runs: GivenRuns,
    executor: Executor,
    buckets: int | None = None,
    after: ExitStack | None = None,
) -> Iterator[tuple[Archive, list[str]]]:
    """Provide the archive that holds the runs of an evaluation, and the requested systems.

    A collection of judged documents also has the documents of runs in files; those that were not judged are not
    relevant. Runs in files are read into memory if the executor shares it, otherwise into a temporary archive. It is
    removed when the context `after` ends (default: this one). `after` should end later than the executor: after an
    interruption, workers may still write for a while.
    """
    archive, settings = evaluation.archive, evaluation.settings.evaluation
    if runs.systems:
        yield archive, list(runs.systems)
        return
    if not runs.sources:
        raise SettingsError("No runs to score: give tables, files, folders or globs, or an archive that holds runs.")
    tables = ReferenceTables.of(archive)
    if evaluation.judged:
        tables = with_documents_of(tables, runs.sources, executor)
    with ExitStack() as own:
        if executor.shares_memory and buckets is None:
            loaded: Archive = read_into_memory(tables, runs.sources, settings)
        else:
            storage = Storage(str((after or own).enter_context(temporary_folder())))
            layout = Layout(buckets=buckets)
            loaded = write_runs(storage, tables, runs.sources, settings, layout=layout, executor=executor)
        yield loaded, [run.system for run in loaded.runs]
