"""The results of one run, computed from its statistics: numbers and curves as tables, and notes.

An archive caches the results of systems, so that numbers are neither computed nor encoded again. They depend on the
rows and the attributes of the run, on its name, which is in the rows of results, on the reference with its inputs, on
the settings of the evaluation, and on the requested measures. The results of a run are cached for the last `MOST` such
choices. Only measures of this package are cached: the version of others is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Protocol, Self

import numpy as np
import pyarrow as pa

from swsdask.archive.cache import OF_RESULTS, CacheFiles, can_cache, source_digest
from swsdask.archive.protocols import Run
from swsdask.archive.store import StoredArchive
from swsdask.measures import MEASURES, curves, system_notes
from swsdask.measures.measure import Curve, Measure, Scored, Values
from swsdask.measures.names import family_name
from swsdask.model.errors import SettingsError
from swsdask.model.hashes import hash_values
from swsdask.model.name_columns import coded, constant
from swsdask.model.results import CURVES, SCORES, Note
from swsdask.model.settings import EvaluationSettings
from swsdask.model.system_rows import file_of
from swsdask.model.trials import F64, I32, I64, Reference
from swsdask.scoring.rounds import Statistics, SystemResults
from swsdask.statistics.statistic import Statistic


class Observer(Protocol):
    """Collects data of every system beside its numbers."""

    @property
    def needs(self) -> tuple[type[Statistic], ...]:
        """The statistics that it needs."""
        ...

    @property
    def apart(self) -> bool:
        """Whether it needs statistics that keep every document separate."""
        ...

    def observe(self, system: str, scored: Scored) -> object:
        """Return the data of a system. Called in the task that computes the numbers of the system."""
        ...


@dataclass(frozen=True, eq=False)
class CountedRun:
    """A run with its merged statistics, the measures to compute, and the names of the requested ones (None: all).

    If there is an observer, it sees the run.
    """

    system: str
    rows: int
    statistics: Statistics
    families: Sequence[Measure]
    settings: EvaluationSettings
    names: Sequence[str] | None
    observer: Observer | None = None

    def __str__(self) -> str:
        return f"system {self.system}"

    def results(self, shared: tuple[Reference]) -> SystemResults:
        """Compute its results; `shared` is the reference."""
        scored = Scored(self.statistics, shared[0], self.settings)
        return SystemResults.of(
            *result_tables(self.system, scored, self.families, self.names),
            system_notes(scored),
            None if self.observer is None else self.observer.observe(self.system, scored),
        )


_OURS = frozenset(map(type, MEASURES))

_AT_ONCE = 16
"""The number of conditions whose sweeps, rankings and fits are in memory at a time."""


def result_tables(
    system: str, scored: Scored, families: Sequence[Measure], names: Sequence[str] | None
) -> tuple[pa.Table, pa.Table]:
    """Return the numbers and the curves of one system, as coded rows of `SCORES` and `CURVES`.

    Only the numbers in `names`; None: all that the measures yield. The name `twv@` means `twv@0.5` and other points.
    Numbers are ordered by condition, then those over all queries before those of each query in the order of the list,
    then by measure in the order of `families`; measures of users come last. Curves are ordered by kind, then condition.
    """
    of_users = [family for family in families if type(family) not in _OURS]
    own = [family for family in families if type(family) in _OURS]
    numbers: list[Values] = []
    drawn: list[Curve] = []
    for part in scored.parts(_AT_ONCE):
        numbers += (values for measure in own for values in measure.values(part))
        drawn += curves(part)
    for measure in of_users:  # which may expect all conditions
        numbers += _declared(measure, measure.values(scored))
    return _score_table(system, scored.reference, numbers, names), _curve_table(system, drawn)


def _declared(measure: Measure, numbers: Iterable[Values]) -> Iterator[Values]:
    """Pass the numbers of a measure of a user on. Raises `SettingsError` for a name that it does not declare."""
    for values in numbers:
        for name in values.columns:
            if name not in measure.names and family_name(name) not in measure.names:
                raise SettingsError(
                    f"the measure {type(measure).__name__} yields {name!r}; its names are {', '.join(measure.names)}."
                )
        yield values


def _score_table(system: str, reference: Reference, numbers: Iterable[Values], names: Sequence[str] | None) -> pa.Table:
    conditions = [condition.name for condition in reference.conditions]
    place = {name: number for number, name in enumerate(conditions)}
    requested = None if names is None else {*names}
    columns: list[tuple[str, int, I64, F64]] = [
        (name, place[values.condition], _OVERALL if values.queries is None else values.queries, column)
        for values in numbers
        for name, column in values.columns.items()
        if requested is None or name in requested or family_name(name) in requested
    ]
    rows = RowOrder(
        tuple(conditions),
        tuple(reference.query_ids),
        tuple((name, at, len(column)) for name, at, _, column in columns),
        np.concatenate([_OVERALL[:0], *(queries for _, _, queries, _ in columns)]),
    )
    order, names_of_rows = _in_order(rows)
    values = np.concatenate([np.empty(0), *(column for *_, column in columns)])[order]
    return pa.table([constant(pa.array([system]), len(values)), *names_of_rows, values], names=SCORES.names)


_OVERALL = np.array([-1])
"""Used in place of query numbers for a number over all queries."""


@dataclass(frozen=True, eq=False)
class RowOrder:
    """The structure of a system's numbers, which determines the order and the names of its rows.

    `columns` are the columns of numbers (measure, index of the condition, length); `queries` has the index of every
    number's query. Systems of one reference nearly always have equal structures, so the order is computed once.
    """

    conditions: tuple[str, ...]
    query_ids: tuple[str, ...]
    columns: tuple[tuple[str, int, int], ...]
    queries: I64

    @property
    def _ids(self) -> tuple[object, ...]:
        return self.columns, self.conditions, self.query_ids

    def __hash__(self) -> int:
        return hash(self.columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowOrder) and self._ids == other._ids and np.array_equal(self.queries, other.queries)


@lru_cache(maxsize=2)
def _in_order(rows: RowOrder) -> tuple[I64, tuple[pa.Array, pa.Array, pa.Array]]:
    """Return the order of the rows; and their conditions, queries and measures, in that order."""
    names, at, lengths = zip(*rows.columns, strict=True) if rows.columns else ((), (), ())
    condition = np.repeat(np.array(at, np.int64), lengths)
    order = np.argsort(condition * (len(rows.query_ids) + 1) + rows.queries, kind="stable")
    first = np.append(0, np.cumsum(lengths, dtype=np.int64))
    there = (number for number, length in enumerate(lengths) if length)
    appear = sorted(there, key=lambda number: (at[number], rows.queries[first[number]]))
    return order, (
        name_column(rows.conditions, condition[order]),
        name_column(rows.query_ids, rows.queries[order]),
        _each_named(names, np.repeat(np.arange(len(names)), lengths)[order], appear),
    )


_KINDS = ("det", "precision_recall", "ece", "ape")
"""The prefixes of the names of curves, by kind, in order."""


def _curve_table(system: str, curves_of_parts: Iterable[Curve]) -> pa.Table:
    drawn = sorted(
        curves_of_parts, key=lambda curve: next(n for n, k in enumerate(_KINDS) if curve.curve.startswith(k))
    )
    number = np.repeat(np.arange(len(drawn), dtype=np.int32), [len(curve.threshold) for curve in drawn])
    return pa.table(
        [
            constant(pa.array([system]), len(number)),
            _each_named([curve.condition for curve in drawn], number),
            _each_named([curve.curve for curve in drawn], number),
            *(
                np.concatenate([getattr(curve, axis) for curve in drawn] or [np.empty(0)])
                for axis in ("threshold", "x", "y")
            ),
        ],
        names=CURVES.names,
    )


def _each_named(names: Sequence[str], place: I64 | I32, appear: Iterable[int] | None = None) -> pa.Array:
    """Return a column of the names at the indices `place`. Names may be equal; no name is in the dictionary twice.

    `appear` are the indices that occur, in order of first appearance; None: they are in ascending order.
    """
    distinct = dict.fromkeys(names if appear is None else [names[number] for number in appear])
    codes = {name: code for code, name in enumerate(distinct)}
    return name_column([*codes], np.array([codes.get(name, -1) for name in names], np.int32)[place])


def name_column(names: Sequence[str], code: I64 | I32) -> pa.Array:
    """Return a column of names from their codes; a negative code means no name."""
    missing = code < 0 if code.min(initial=0) < 0 else None
    codes = pa.array(code.astype(np.int32, copy=False), mask=missing)
    return pa.DictionaryArray.from_arrays(codes, pa.array(names, pa.string()))


MOST = 16
"""The number of choices of reference, settings and measures for which the results of a run are cached."""

_NUMBER = pa.struct([SCORES.field(name) for name in ("condition", "measure", "value")])
_NOTE = pa.struct({"text": pa.string(), "summary": pa.string(), "number": pa.int64()})
_CACHED = pa.schema(
    {"scores": pa.binary(), "curves": pa.binary(), "overall": pa.list_(_NUMBER), "notes": pa.list_(_NOTE)}
)
"""The results of a run as they are cached."""


class CachedResults:
    """The results in the cache of an archive for one reference, settings and measures."""

    def __init__(
        self,
        archive: StoredArchive,
        reference: Reference,
        settings: EvaluationSettings,
        families: Sequence[Measure],
        names: Sequence[str] | None,
    ) -> None:
        self.files = CacheFiles(archive.storage, source_digest(OF_RESULTS), MOST)
        self._runs = {stored.run.system: stored for stored in archive.stored_runs}
        kinds = tuple(type(family).__name__ for family in families)
        requested = None if names is None else tuple(sorted(set(names)))
        self._choice = hash_values((archive.inputs, reference, settings.model_dump(), kinds, requested))

    def anew(self) -> Self:
        """Return a copy with its own counts."""
        results = copy(self)
        results.files = self.files.anew()
        return results

    def read(self, systems: Iterable[Run]) -> dict[str, SystemResults]:
        """Return the cached results of some systems."""
        places = {run.system: self._place(run.system) for run in systems}
        rows = self.files.read(set(places.values()))
        found = {}
        for system, place in places.items():
            with suppress(ValueError, KeyError):  # no row, or none of results
                found[system] = _from_arrow(rows[place], system)
        self.files.tally.used += len(found)
        self.files.tally.made += len(places) - len(found)
        return found

    def count_missing(self, systems: Iterable[Run], most: int) -> int:
        """Return the number of systems whose results are not cached, counted up to `most`."""
        missing = (run for run in systems if not self.files.has(self._place(run.system)))
        return sum(1 for _ in islice(missing, most))

    def write(self, results: Mapping[str, SystemResults]) -> None:
        """Cache the results of some systems."""
        self.files.write({self._place(system): _to_arrow(each) for system, each in results.items()})

    def _place(self, system: str) -> str:
        stored = self._runs[system]
        reported = stored.run.reported
        resources = None if reported is None else reported.to_json()
        return self.files.place(stored, "results", (self._choice, system, resources))


def cached_results_of(
    archive: object,
    reference: Reference,
    settings: EvaluationSettings,
    families: Sequence[Measure],
    names: Sequence[str] | None,
) -> CachedResults | None:
    """Return the cached results of an archive; None if none can be cached."""
    if isinstance(archive, StoredArchive) and can_cache(archive) and all(family in MEASURES for family in families):
        return CachedResults(archive, reference, settings, families, names)
    return None


def _to_arrow(results: SystemResults) -> pa.RecordBatch:
    """Results as one row: the encoded tables, the numbers over all queries, and the notes."""
    columns = results.overall.select([field.name for field in _NUMBER]).cast(pa.schema(_NUMBER)).columns
    numbers = pa.StructArray.from_arrays([column.combine_chunks() for column in columns], fields=list(_NUMBER))
    overall = pa.ListArray.from_arrays([0, len(numbers)], numbers)
    notes = [note._asdict() for note in results.notes]
    scores, curves = memoryview(file_of(results.scores, SCORES)), memoryview(file_of(results.curves, CURVES))
    return pa.record_batch(
        [[scores], [curves], overall, pa.array([notes], _CACHED.field("notes").type)], schema=_CACHED
    )


def _from_arrow(row: pa.RecordBatch, system: str) -> SystemResults:
    """Undo `_to_arrow`. Raises `ValueError` for any other row."""
    if row.schema != _CACHED:
        raise ValueError(f"{row.schema} for results")
    scores, curves = (row.column(name)[0].as_buffer() for name in ("scores", "curves"))
    numbers = pa.RecordBatch.from_struct_array(row.column("overall").flatten())
    named = {"system": [system] * len(numbers), "query": pa.nulls(len(numbers), pa.string())}
    overall = pa.table({name: named[name] if name in named else numbers.column(name) for name in SCORES.names})
    notes = tuple(Note(**note) for note in row.column("notes")[0].as_py())
    return SystemResults(scores, curves, coded(overall, SCORES), notes)
