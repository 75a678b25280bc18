"""Writing a result to a directory, and reading it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from swsdask.model.errors import InputError, Problem, ResourceError, SettingsError
from swsdask.model.limits import shortage
from swsdask.model.parquet_files import write_parquet
from swsdask.model.results import ALIGNMENT, CURVES, QUERY_TEXTS, SCORES, RankCorrelation, Result
from swsdask.model.safe_text import without_formula
from swsdask.model.system_rows import SystemRows
from swsdask.model.tables import as_json, read_parquet
from swsdask.places.reading import Location, is_file, join_path, read_whole
from swsdask.places.writing import MANIFEST, fingerprint, fingerprints, together
from swsdask.render.comparison import COMPARED, COMPARISON, comparison_files, read_comparison
from swsdask.render.html import page
from swsdask.render.number_lines import csv_parts, json_parts

OUTPUTS = ("scores", "json", "curves", "report")
"""The files of a result beside its manifest: scores.parquet, scores.json, curves.parquet, report.html."""

MOST_IN_JSON = 200_000
"""The number of numbers up to which scores.json, with about 120 bytes per number, is written by default."""

_SCHEMAS = {"scores": SCORES, "curves": CURVES, "alignment": ALIGNMENT, "query_texts": QUERY_TEXTS}


Official = Callable[[Path], Sequence[Path]]
"""Writes an official tool's files into a folder; returns the paths to name to the user."""


def known_outputs(names: Iterable[str]) -> list[str]:
    """Return the names of outputs. Raises `SettingsError` for one that is not in `OUTPUTS`."""
    chosen = list(names)
    unknown = [name for name in chosen if name not in OUTPUTS]
    if unknown:
        raise SettingsError(f"no output {unknown[0]!r}: there are {', '.join(OUTPUTS)}.")
    return chosen


def written_by_default(result: Result) -> tuple[str, ...]:
    """Return all of `OUTPUTS`, without scores.json for a result with many numbers."""
    return tuple(each for each in OUTPUTS if each != "json" or result.score_rows.num_rows <= MOST_IN_JSON)


def write_outputs(
    result: Result,
    directory: Location,
    correlations: Sequence[RankCorrelation] = (),
    official: Official | None = None,
    outputs: Collection[str] | None = None,
) -> list[str]:
    """Write a result into a directory, all files together (see `places.writing`).

    Parameters
    ----------
    result
        The result. Equal tables give equal bytes.
    directory
        The directory, a path or a URL, made if it does not exist. Files of an earlier result that this one does not
        have are removed; other files stay.
    correlations
        The rank correlations that `report.html` shows.
    official
        Writes the files of an official tool too.
    outputs
        The `OUTPUTS` to write; None: `written_by_default`.

    Returns
    -------
    list of str
        The written files, relative to `directory`: the `outputs`, `alignment.parquet` and `query_texts.parquet` if the
        result has them, `manifest.json` with the notes and the fingerprints of the others, those that `official` names,
        and the files of a comparison if the result has one.

    Raises
    ------
    OSError, InputError
        If the directory cannot be written.
    """
    chosen = written_by_default(result) if outputs is None else outputs
    with together(directory) as hidden:
        others = [] if official is None else [str(path.relative_to(hidden)) for path in official(hidden)]
        others += [] if result.comparison is None else comparison_files(result.comparison, hidden)
        for name, rows in result.tables.items():
            if rows is not None and (name in chosen or name not in OUTPUTS):
                _write_table(hidden / f"{name}.parquet", rows, _SCHEMAS[name])
        if "json" in chosen:
            with (hidden / "scores.json").open("wb") as file:
                file.writelines(part.encode() for part in json_parts(result.score_rows))
        if "report" in chosen:
            (hidden / "report.html").write_text(page(result, correlations), encoding="utf-8")
        manifest = {**result.manifest, "notes": list(result.notes), "files": fingerprints(hidden)}
        _write_manifest(hidden, manifest)
        listed = ("scores.parquet", "scores.json", *(f"{name}.parquet" for name in list(_SCHEMAS)[1:]))
        written = [name for name in (*listed, MANIFEST, "report.html") if (hidden / name).exists()]
        return [*written, *others]


def read_outputs(directory: Location) -> Result:
    """Read the result that `write_outputs` wrote.

    Parameters
    ----------
    directory
        The directory. Its tables must be those that `manifest.json` lists, byte for byte.

    Returns
    -------
    Result
        An equal result, without curves if they were not written.

    Raises
    ------
    InputError
        If a file is missing, is not the one that the manifest lists, or cannot be read.
    """
    manifest = _read_manifest(directory)
    files = manifest.pop("files")
    rows = {"curves": SystemRows.of(CURVES.empty_table(), CURVES)}
    tables = {}
    for name, schema in _SCHEMAS.items():
        file = f"{name}.parquet"
        if name != "scores" and file not in files:
            continue
        with _listed(directory, file, files) as content:
            if name != "query_texts":
                rows[name] = SystemRows.in_file(pa.py_buffer(content), schema)
            else:
                tables[name] = read_parquet(content).cast(schema)
    comparison = None
    if COMPARISON in files:
        with ExitStack() as stack:
            told, *compared = (stack.enter_context(_listed(directory, file, files)) for file in (COMPARISON, *COMPARED))
            comparison = read_comparison(told, *map(read_parquet, compared))
    notes = tuple(manifest.pop("notes"))
    return Result.of(
        rows["scores"], rows["curves"], manifest, notes, rows.get("alignment"), comparison, tables.get("query_texts")
    )


@contextmanager
def _listed(directory: Location, file: str, files: Mapping[str, object]) -> Iterator[bytes]:
    """Provide the content of a file that the manifest lists.

    Raises `InputError` for another, and if it cannot be read.
    """
    place = join_path(directory, file)
    if file not in files:
        output = file.partition(".")[0]
        remedy = f"Score again with --outputs {output}, or without --outputs."
        listing = join_path(directory, MANIFEST)
        raise InputError(Problem(listing, None, f"results with {file}", "results without it", remedy))
    try:
        content = read_whole(place)
        if fingerprint(content) != files[file]:
            raise _not_a_result(place, f"a file that is not the one {MANIFEST} lists")
        yield content
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _not_a_result(place, error) from None


def is_result(directory: Location) -> bool:
    """Return whether a place is a directory that `write_outputs` wrote."""
    return is_file(join_path(directory, "scores.parquet"))


def renew_report(directory: Location, result: Result, correlations: Sequence[RankCorrelation] = ()) -> list[str]:
    """Write `report.html` of a result anew, and the files of its comparison, where it was read from; their names.

    Raises
    ------
    InputError
        If the manifest cannot be read.
    OSError, InputError
        If the directory cannot be written.
    """
    manifest = _read_manifest(directory)
    with together(directory) as hidden:
        written = [] if result.comparison is None else comparison_files(result.comparison, hidden)
        (hidden / "report.html").write_text(page(result, correlations), encoding="utf-8")
        _write_manifest(hidden, {**manifest, "files": {**manifest["files"], **fingerprints(hidden)}})
    return [*written, "report.html"]


def _write_manifest(directory: Path, manifest: Mapping[str, object]) -> None:
    said = {**manifest, "hash": _own_hash(manifest)}
    (directory / MANIFEST).write_text(as_json(said, indent=2) + "\n", encoding="utf-8")


def _own_hash(manifest: Mapping[str, object]) -> str:
    """Return the hash of the content of a manifest, whatever its layout."""
    return str(fingerprint(as_json(manifest).encode())["xxh3_128"])


def _read_manifest(directory: Location) -> dict[str, Any]:
    place = join_path(directory, MANIFEST)
    try:
        manifest = dict(json.loads(read_whole(place)))
        of_known_kinds = isinstance(manifest["notes"], list) and isinstance(manifest["files"], dict)
        said = manifest.pop("hash", None)  # Earlier releases wrote none.
        is_own = said is None or said == _own_hash(manifest)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise _not_a_result(place, error) from None
    if not of_known_kinds:
        raise _not_a_result(place, "notes and files of another kind")
    if not is_own:
        raise _not_a_result(place, "one that is not what was written")
    return manifest


def result_as(form: str, result: Result) -> Iterator[str]:
    """Yield the parts of a result as text: its numbers as "csv", "spreadsheet" or "json", its leaderboards as
    "markdown" or "latex".
    """
    if form == "json":
        yield from json_parts(result.score_rows)
    elif form in ("csv", "spreadsheet"):
        yield from csv_parts(result.score_rows, without_formula if form == "spreadsheet" else str)
    else:
        found = result.numbers
        write = result.to_markdown if form == "markdown" else result.to_latex
        yield write(found.columns or found.measures, condition=None) + "\n"


def _write_table(path: Path, rows: pa.Table | SystemRows, schema: pa.Schema) -> None:
    if isinstance(rows, pa.Table):
        write_parquet(rows, schema, path)
    else:
        with path.open("wb") as file:
            file.writelines(rows.parts())


def _not_a_result(place: str, found: Exception | str) -> InputError | ResourceError:
    """The error for a file of a result; a missing file may be one that is being written, or whose writer ended."""
    if isinstance(found, Exception) and (short := shortage(found, place)) is not None:
        return short
    if isinstance(found, FileNotFoundError):
        found = "no such file"
    elif isinstance(found, KeyError):
        found = f"no entry {found}"
    expected = "a file that `swsdask score --out` wrote"
    remedy = "Score again with --out, or wait until the command that is writing there has ended."
    return InputError(Problem(place, None, expected, " ".join(str(found).split()), remedy))
