"""Writing of runs, and conversion between formats.

Scores keep every digit, times the digits down to 0.1 ms, so that reading the file gives the same rows. A file whose
name ends in .gz or .zst is compressed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from swsdask.formats.files import writing
from swsdask.formats.runs.encoding import Encoding
from swsdask.formats.runs.read import read_run
from swsdask.formats.runs.rewrite import delimiter_of, in_system, quoted, rewrite_table, stays_table, system_to_add
from swsdask.formats.runs.write_xml import (
    UNKNOWN_COUNT,
    UNKNOWN_TIME,
    attributes_of_other_dialect,
    file_name,
    header_attributes,
    seconds_text,
    write_kwslist,
    write_stdlist,
)
from swsdask.formats.values import shown
from swsdask.model.errors import InputError, Problem, Problems, SettingsError
from swsdask.model.safe_text import without_formula
from swsdask.model.schemas import WITHOUT_TIMES, RunHeader, RunPiece
from swsdask.model.units import TICKS_PER_SECOND
from swsdask.model.wording import counted
from swsdask.places.reading import is_folder, is_local, parted
from swsdask.places.writing import together

_COLUMNS = {
    "system": pa.string(),
    "query": pa.string(),
    "document": pa.string(),
    "channel": pa.int8(),
    "start": pa.float64(),
    "duration": pa.float64(),
    "score": pa.float64(),
    "decision": pa.string(),
}
_PLACES = ("channel", "start", "duration")
_DECISIONS = pa.array([None, "NO", "YES"])


_ROOTS: dict[Callable[[Iterable[RunPiece], str], None], str] = {write_kwslist: "kwslist", write_stdlist: "stdlist"}
"""The root element that each function writes."""


def write_run_table(pieces: Iterable[RunPiece], url: str, *, harmless: bool = False) -> None:
    """Write pieces of one or more runs as a table (`formats.runs.table`): .tsv or .csv, also compressed, or .parquet.

    Written piece by piece, so that memory is bounded by the largest. `harmless`: see `without_formula`. Tables do not
    keep queries without rows, and only Parquet with one system keeps the header. Raises `InputError` for another
    ending, and if the file cannot be written.
    """
    delimiter = delimiter_of(url)
    if delimiter is None and not url.lower().endswith(".parquet"):
        raise InputError(Problem(url, None, "a name that ends in .tsv, .csv or .parquet", shown(url), "Choose one."))
    with writing(url) as sink:
        if delimiter is None:
            _write_parquet(pieces, sink)
        else:
            _write_text(pieces, delimiter, sink, without_formula if harmless else str)


def _write_text(pieces: Iterable[RunPiece], delimiter: str, sink: pa.NativeFile, written: Callable[[str], str]) -> None:
    """Write a table in text. `written` converts ids, which are quoted if they contain the delimiter or a quote."""
    names, pieces = _columns_of(pieces)
    sink.write(f"{delimiter.join(names)}\n".encode())
    for piece in pieces:
        columns = {
            "system": _named([quoted(written(piece.header.system), delimiter)], np.zeros(len(piece), np.int8)),
            "query": _named([quoted(written(name), delimiter) for name in piece.queries], piece.query),
            "document": _named([quoted(written(name), delimiter) for name in _file_names(piece)], piece.document),
            "channel": pa.array(piece.channel).cast(pa.string()),
            "start": seconds_text(piece.start),
            "duration": seconds_text(piece.duration),
            "score": pa.array(piece.score).cast(pa.string()),
            "decision": pc.fill_null(_DECISIONS, "").take(pa.array(piece.decision + 1)),
        }
        lines = pc.binary_join_element_wise(*(columns[name] for name in names), delimiter)
        sink.write("".join(f"{line}\n" for line in lines.to_pylist()).encode())


def _columns_of(pieces: Iterable[RunPiece]) -> tuple[list[str], Iterator[RunPiece]]:
    """Return the columns of the table of runs, and the pieces. Runs without times have no columns of `_PLACES`."""
    rest = iter(pieces)
    first = [*islice(rest, 1)]
    untimed = any(map(_is_untimed, first))
    return [name for name in _COLUMNS if not (untimed and name in _PLACES)], chain(first, rest)


def _is_untimed(piece: RunPiece) -> bool:
    return WITHOUT_TIMES in piece.header.attributes


def _file_names(piece: RunPiece) -> list[str]:
    """Return the documents as a table names them: without times, in full."""
    return [name if _is_untimed(piece) else file_name(name) for name in piece.documents]


def _named(names: Sequence[str], codes: NDArray[np.integer]) -> pa.Array:
    return pa.array(names, pa.string()).take(pa.array(codes))


def _write_parquet(pieces: Iterable[RunPiece], sink: pa.NativeFile) -> None:
    names, pieces = _columns_of(pieces)
    schema = pa.schema([(name, _COLUMNS[name]) for name in names])
    said: dict[str, dict[str, str]] = {}
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for piece in pieces:
            writer.write_table(_table(piece, schema))
            said.setdefault(piece.header.system, {}).update(header_attributes(piece.header))
        if len(said) == 1:
            writer.add_key_value_metadata(next(iter(said.values())))


def _table(piece: RunPiece, schema: pa.Schema) -> pa.Table:
    columns = {
        "system": _named([piece.header.system], np.zeros(len(piece), np.int8)),
        "query": _named(piece.queries, piece.query),
        "document": _named(_file_names(piece), piece.document),
        "channel": pa.array(piece.channel),
        "start": pa.array(piece.start / TICKS_PER_SECOND),
        "duration": pa.array(piece.duration / TICKS_PER_SECOND),
        "score": pa.array(piece.score),
        "decision": _DECISIONS.take(pa.array(piece.decision + 1)),
    }
    return pa.table({name: columns[name] for name in schema.names}, schema=schema)


class Converted(NamedTuple):
    """A run that was written: the numbers of rows and of times finer than 0.1 ms, and what is lost: see `Losses`."""

    rows: int
    rounded: int
    dropped: tuple[str, ...]


def convert(
    source: str,
    target: str,
    system: str | None = None,
    encoding: Encoding | None = None,
    *,
    harmless: bool = False,
    reader: Callable[[Problems], Iterator[RunPiece]] | None = None,
) -> Converted:
    """Rewrite a run (path or URL) in the format of the target's name.

    A table in text that stays one keeps its columns, its quotes and every digit. The run is read twice, so that nothing
    is written of a run with problems. `system` replaces the name in the file; the target of a table with another
    `encoding` has times in seconds and scores that rise with confidence. `harmless`: for spreadsheets, see
    `model.safe_text.without_formula`. `reader` reads the source instead of `read_run`. Raises `InputError`
    with every problem of the source, and then leaves the target unchanged; `SettingsError` if the target of a
    `harmless` conversion is no table in text.
    """
    write = writer_of(target)
    if harmless:
        if delimiter_of(target) is None:
            raise SettingsError(f"{target}: only .tsv and .csv are made harmless for spreadsheets.")
        write = partial(write_run_table, harmless=True)
    folder, name = parted(target)
    if is_local(target) and not is_folder(folder or "."):
        raise InputError(Problem(target, None, "a folder to write into", f"no folder {folder}", "Create it first."))
    problems = Problems()
    read = reader or partial(read_run, source, system=system, encoding=encoding)
    rows, losses = 0, Losses(target)
    for piece in read(problems):
        rows += len(piece)
        losses.add(piece)
    problems.raise_if_any()
    with together(folder or ".") as hidden:
        unfinished = str(hidden / name)
        if reader is None and not encoding and stays_table(source, target):
            added = system or system_to_add(source, target)
            rewrite_table(source, unfinished, partial(in_system, added), harmless=harmless)
            losses = Losses(target)
        else:
            write(read(problems), unfinished)
    return Converted(rows, losses.rounded, losses.dropped)


class Losses:
    """Gathers what a file of a name does not keep of a run whose pieces are added.

    `rounded` counts times finer than 0.1 ms.
    """

    def __init__(self, target: str) -> None:
        self._target = target
        self._header: RunHeader | None = None
        self._listed: set[str] = set()
        self._detected: set[str] = set()
        self.rounded = 0

    def add(self, piece: RunPiece) -> None:
        """Add the next piece."""
        self.rounded += piece.rounded
        self._header = piece.header
        if piece.listed:
            there = np.flatnonzero(np.bincount(piece.query, minlength=len(piece.queries)))
            self._listed.update(piece.listed)
            self._detected.update(piece.queries[query] for query in there.tolist())

    @property
    def dropped(self) -> tuple[str, ...]:
        """The columns of a table, the attributes with a value, and the queries that are not written."""
        if self._header is None:
            return ()
        columns = self._header.attributes.get("ignored_columns")
        parts = [f"the columns {columns}"] if columns else []
        said = header_attributes(self._header)
        root = _ROOTS.get(writer_of(self._target))
        if delimiter_of(self._target) is not None:
            lost = said.keys() - {"system_id", WITHOUT_TIMES}
        else:
            lost = set() if root is None else said.keys() & attributes_of_other_dialect(said, root)
        # The names of a query's search time and count have its id after a dot.
        valued = {name.partition(".")[0] for name in lost if said[name] not in ("", UNKNOWN_TIME, UNKNOWN_COUNT)}
        if valued:
            parts.append(f"the attributes {', '.join(sorted(valued))}")
        if root is None and (n_empty := len(self._listed - self._detected)):
            parts.append(f"{counted(n_empty, 'queries')} without detections")
        return tuple(parts)


def writer_of(target: str) -> Callable[[Iterable[RunPiece], str], None]:
    """Return the writer of the format of a file's name. Raises `InputError` if the name has none."""
    name = target.lower().removesuffix(".gz").removesuffix(".zst")
    if name.endswith(".stdlist.xml"):
        return write_stdlist
    if name.endswith(".xml"):
        return write_kwslist
    if name.endswith((".tsv", ".csv")) or target.lower().endswith(".parquet"):
        return write_run_table
    raise InputError(
        Problem(
            target,
            None,
            "a name that ends in .kwslist.xml, .stdlist.xml, .tsv, .csv (also .gz, .zst) or .parquet",
            repr(os.path.basename(target)),
            "Choose one.",
        )
    )
