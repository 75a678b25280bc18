"""The results of systems kept in an archive: numbers that were computed once are not computed again.

The results of a system depend on the rows of its run and what it tells of itself, on the reference with its inputs, the
settings of the evaluation, and on which measures were requested; not on the name of the system. Of `MOST` such choices
the results of a run are kept, the last ones. Only measures of this package are kept: the version of others is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Self

import numpy as np
import pyarrow as pa

from swsdask.archive.kept_statistics import OF_RESULTS, KeptFiles, can_keep, digest_of, version
from swsdask.archive.protocols import Run
from swsdask.archive.store import StoredArchive
from swsdask.measures import MEASURES
from swsdask.measures.measure import Measure
from swsdask.model.results import Note
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Reference
from swsdask.scoring.result_tables import named
from swsdask.scoring.rounds import SystemResults

MOST = 16
"""Of how many choices of reference, settings and measures the results of a run are kept."""

SYSTEM = "system"
_NOTES = pa.list_(pa.struct({"text": pa.string(), "summary": pa.string(), "number": pa.int64()}))


class KeptResults:
    """The results that an archive keeps for one reference, settings and measures."""

    def __init__(
        self,
        archive: StoredArchive,
        reference: Reference,
        settings: EvaluationSettings,
        families: Sequence[Measure],
        measures: Sequence[str] | None,
    ) -> None:
        self.files = KeptFiles(archive.storage, version(OF_RESULTS), MOST)
        self._runs = {stored.run.system: stored for stored in archive.stored_runs}
        names = tuple(type(family).__name__ for family in families)
        requested = None if measures is None else tuple(sorted(set(measures)))
        self._choice = digest_of((archive.inputs, reference, settings.model_dump(), names, requested))

    def anew(self) -> Self:
        """The same with a tally of its own."""
        kept = copy(self)
        kept.files = self.files.anew()
        return kept

    def read(self, systems: Iterable[Run]) -> dict[str, SystemResults]:
        """The results that are kept, of some systems."""
        places = {run.system: self._place(run.system) for run in systems}
        rows = self.files.read(set(places.values()))
        found = {}
        for system, place in places.items():
            with suppress(ValueError, KeyError):  # no row, or none of results
                found[system] = _from_arrow(rows[place], system)
        self.files.tally.used += len(found)
        self.files.tally.made += len(places) - len(found)
        return found

    def write(self, results: Mapping[str, SystemResults]) -> None:
        """Keep the results of some systems."""
        self.files.write({self._place(system): _to_arrow(each) for system, each in results.items()})

    def _place(self, system: str) -> str:
        stored = self._runs[system]
        told = stored.run.told
        resources = None if told is None else told.to_json()
        return self.files.place(stored, "results", (self._choice, resources))


def kept_results(
    archive: object,
    reference: Reference,
    settings: EvaluationSettings,
    families: Sequence[Measure],
    measures: Sequence[str] | None,
) -> KeptResults | None:
    """The results that an archive keeps; None where nothing can be."""
    if isinstance(archive, StoredArchive) and can_keep(archive) and all(family in MEASURES for family in families):
        return KeptResults(archive, reference, settings, families, measures)
    return None


def _to_arrow(results: SystemResults) -> pa.RecordBatch:
    """Results as one row: a list of rows of each table, without the system, and the notes."""
    notes = pa.array([[note._asdict() for note in results.notes]], _NOTES)
    columns = {"scores": _as_list(results.scores), "curves": _as_list(results.curves), "notes": notes}
    return pa.RecordBatch.from_pydict(columns)


def _from_arrow(row: pa.RecordBatch, system: str) -> SystemResults:
    """Undo `_to_arrow`. Raises `ValueError` or `KeyError` for another row."""
    scores, curves = (_as_table(row.column(each), system) for each in ("scores", "curves"))
    notes = row.column("notes")
    if notes.type != _NOTES:
        raise ValueError(f"{notes.type} for notes")
    return SystemResults(scores, curves, tuple(Note(**note) for note in notes[0].as_py()))


def _as_list(table: pa.Table) -> pa.Array:
    bare = table.drop_columns(SYSTEM)
    rows = pa.StructArray.from_arrays([column.combine_chunks() for column in bare.columns], bare.schema.names)
    return pa.LargeListArray.from_arrays(pa.array([0, len(rows)], pa.int64()), rows)


def _as_table(column: pa.Array, system: str) -> pa.Table:
    if not pa.types.is_large_list(column.type) or not pa.types.is_struct(column.type.value_type):
        raise ValueError(f"{column.type} for a table")
    bare = pa.Table.from_batches([pa.RecordBatch.from_struct_array(column.flatten())])
    return bare.add_column(0, SYSTEM, named([system], np.zeros(len(bare), np.int64)))
