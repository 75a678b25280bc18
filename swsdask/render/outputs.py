"""A result as files in a directory, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from swsdask.model.errors import InputError, Problem
from swsdask.model.results import ALIGNMENT, CURVES, SCORES, RankCorrelation, Result
from swsdask.render.html import page
from swsdask.render.pages import replacing

_ROWS_PER_GROUP = 1_000_000


def write_outputs(result: Result, directory: Path, correlations: Sequence[RankCorrelation] = ()) -> None:
    """Write a result: `scores.parquet`, `scores.json`, `curves.parquet`, `alignment.parquet` if the result has one,
    `report.html` with `correlations`, and `manifest.json`, with the notes in it.

    All files are written beside the old ones before the first of them takes its place, `manifest.json` last; other
    files of the directory stay, but for the alignment of an earlier result, which would belong to other numbers. Equal
    tables give equal bytes. Raises `OSError` where the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as files:

        def new(name: str) -> IO[bytes]:
            return files.enter_context(replacing(directory / name))

        manifest = _finite({**result.manifest, "notes": list(result.notes)})
        new("manifest.json").write(_json(manifest, indent=2).encode() + b"\n")
        new("report.html").write(page(result, correlations).encode())
        if result.alignment is not None:
            _write_table(new("alignment.parquet"), result.alignment, ALIGNMENT)
        _write_table(new("curves.parquet"), result.curves, CURVES)
        new("scores.json").writelines(line.encode() for line in _json_lines(result.table))
        _write_table(new("scores.parquet"), result.table, SCORES)
    if result.alignment is None:
        (directory / "alignment.parquet").unlink(missing_ok=True)


def read_outputs(directory: Path) -> Result:
    """The result that `write_outputs` wrote. Raises `InputError` if it is not there or not whole."""
    tables = {}
    for name, schema in (("scores", SCORES), ("curves", CURVES), ("alignment", ALIGNMENT)):
        path = directory / f"{name}.parquet"
        if name == "alignment" and not path.exists():
            continue
        try:
            tables[name] = pq.read_table(path).cast(schema)
        except (OSError, ValueError) as error:
            raise _not_a_result(path, error) from None
    path = directory / "manifest.json"
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        notes = tuple(manifest.pop("notes"))
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise _not_a_result(path, error) from None
    return Result(tables["scores"], tables["curves"], manifest, notes, tables.get("alignment"))


def scores_json(result: Result) -> str:
    """All numbers as a JSON list of {system, condition, query, measure, value}, one number per line.

    `query` is null for a number over all queries. `value` is null where a number is not defined; infinities are the
    strings "inf" and "-inf". Numbers have the shortest digits that give the same float back.
    """
    return "".join(_json_lines(result.table))


def _write_table(file: IO[bytes], table: pa.Table, schema: pa.Schema) -> None:
    """One compression, one size of row group, no metadata but the schema; every NaN the same NaN."""
    columns = [
        _one_nan(column) if pa.types.is_floating(column.type) else column for column in table.select(schema.names)
    ]
    plain = pa.table(columns, names=schema.names).cast(schema).combine_chunks()
    pq.write_table(plain, file, compression="zstd", row_group_size=_ROWS_PER_GROUP, version="2.6")


def _one_nan(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.is_nan(column), np.nan, column)


def _json_lines(table: pa.Table) -> Iterator[str]:
    quoted = cache(_json)
    yield "["
    before = "\n"
    for batch in table.select(SCORES.names).to_batches(max_chunksize=65_536):
        for system, condition, query, measure, value in zip(*(column.to_pylist() for column in batch), strict=True):
            number = repr(value) if math.isfinite(value) else _json(_finite(value))
            yield (
                f'{before}{{"system": {quoted(system)}, "condition": {quoted(condition)}, "query": {quoted(query)}, '
                f'"measure": {quoted(measure)}, "value": {number}}}'
            )
            before = ",\n"
    yield "\n]\n"


def _json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def _finite(value: Any) -> Any:
    """What JSON has no numbers for: None for NaN, "inf" and "-inf" for infinities; everything else as it is."""
    if isinstance(value, Mapping):
        return {name: _finite(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else repr(value)
    return value


def _not_a_result(path: Path, error: Exception) -> InputError:
    found = "no such file" if isinstance(error, FileNotFoundError) else " ".join(str(error).split())
    return InputError(
        Problem(str(path), None, "a file that `swsdask score --out` wrote", found, "Score again with --out.")
    )
