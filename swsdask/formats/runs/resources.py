"""Resources that a run used, processing times and memory (`model.resources`): the TOML file beside the run.

For `folder/NAME.kwslist.xml` it is `folder/NAME.resources.toml`, or `folder/resources.toml` if that is the only run in
the folder. Chained URLs (with `::`) have none.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from swsdask.formats.files import noted, read_lines
from swsdask.formats.reference.files import files_in
from swsdask.formats.sniff import RUNS, sniff
from swsdask.formats.values import shown, system_of_file
from swsdask.model.errors import InputError, Problem, Problems, counted
from swsdask.model.resources import Node, Phase, Resources
from swsdask.model.schemas import RunPiece
from swsdask.model.toml import read_toml
from swsdask.places.reading import before_query, is_file

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]
"""The path of a value: tables, keys and indices of arrays, from the outside in."""

MAX_BYTES = 1 << 20
"""The largest file that is read: a description has some hundred bytes."""

_TABLES: Mapping[str, type[BaseModel]] = {"indexing": Phase, "searching": Phase, "hardware": Node}
_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]")
_KEY = re.compile(r"\s*([\w-]+)\s*=")
_AT_LINE = re.compile(r" \(at line (\d+)(?:, column \d+)?\)$")


def read_resources(url: str, problems: Problems) -> Resources | None:
    """The resources in a file; None if it has problems, which are added to `problems` with their lines."""
    with noted(problems):
        content = _read(url)
        try:
            return Resources.model_validate(_parsed(url, content))
        except ValidationError as error:
            lines = _lines(content.decode())
            faults = [_fault(url, fault, lines) for fault in error.errors()]
            raise InputError(*sorted(faults, key=lambda fault: fault.line or 0)) from None
    return None


def _read(url: str) -> bytes:
    content = b""
    for lines in read_lines(url):
        content += lines.data
        if len(content) > MAX_BYTES:
            found = f"more than {MAX_BYTES} bytes"
            raise InputError(
                Problem(url, None, "a description of resources", found, "Check that it is the right file.")
            )
    return content


def _parsed(url: str, content: bytes) -> dict[str, object]:
    try:
        return read_toml(content)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        at = _AT_LINE.search(said)
        line = int(at[1]) if at else None
        raise InputError(Problem(url, line, "a TOML file", _AT_LINE.sub("", said), "Correct it.")) from None


def _fault(url: str, fault: ErrorDetails, lines: Mapping[Path, int]) -> Problem:
    """The problems that pydantic found, at the line of the innermost table or key that has one."""
    path: Path = fault["loc"]
    line = next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)
    match fault["type"]:
        case "extra_forbidden":
            table = _TABLES.get(str(path[0]), Resources) if len(path) > 1 else Resources
            near = difflib.get_close_matches(str(path[-1]), list(table.model_fields), n=1, cutoff=0.0)[0]
            remedy = f"Nearest valid key: {near}."
            return Problem(url, line, f"a key of {_place(path[:-1])}", shown(str(path[-1])), remedy)
        case "missing":
            return Problem(url, line, f"{path[-1]} in {_place(path[:-1])}", "none", "Give it for every node type.")
        case "value_error":
            found = ", ".join(fault["input"])
            return Problem(url, line, f"{fault['ctx']['error']}", found, f"Keep one of them in {_place(path)}.")
    name = ".".join(part for part in path if isinstance(part, str))
    found = shown(json.dumps(fault["input"], default=str))
    return Problem(url, line, f"{_expected(fault)} for {name}", found, "Correct the value.")


def _expected(fault: ErrorDetails) -> str:
    bounds = fault.get("ctx", {})
    match fault["type"]:
        case "greater_than_equal":
            return f"a number of at least {bounds['ge']:g}"
        case "less_than_equal":
            return f"a number of at most {bounds['le']:g}"
        case "float_type" | "finite_number":
            return "a finite number"
        case "int_type":
            return "a whole number"
        case "literal_error":
            return str(bounds["expected"])
        case "string_type" | "string_too_short":
            return "text"
        case "model_type":
            return "a table"
        case _ if fault["loc"] == ("hardware",):
            return "an array of tables"
    return "a number or a list of numbers"


def _place(path: Path) -> str:
    if not path:
        return "the file"
    return f"[[{path[0]}]]" if path[0] == "hardware" else f"[{path[0]}]"


def _lines(text: str) -> dict[Path, int]:
    """The line of every table and key that has a line of its own, from 1."""
    found: dict[Path, int] = {}
    table: Path = ()
    arrays: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if header := _HEADER.match(line):
            brackets, name = header.groups()
            table = tuple(name.split("."))
            found.setdefault(table, number)
            if brackets == "[[":
                arrays[name] = arrays.get(name, -1) + 1
                table = (*table, arrays[name])
                found[table] = number
        elif key := _KEY.match(line):
            found.setdefault((*table, key[1]), number)
    return found


ENDING = "resources.toml"


def resource_places(run: str) -> list[str]:
    """Where the resources of a run may be: the file that is named after it, and that of its folder."""
    if "::" in run:
        return []
    path, query = before_query(run)
    folder = path[: path.rfind("/") + 1]
    return [f"{folder}{system_of_file(run)}.{ENDING}{query}", f"{folder}{ENDING}"]


def find_resources(runs: Iterable[str], problems: Problems) -> dict[str, str]:
    """The files with the resources of runs (paths or fsspec URLs), by run; runs without one are left out.

    A `resources.toml` in a folder with several runs, or beside another file for the same run, is added to `problems`.
    """
    folders: dict[str, dict[str, str]] = {}
    for run in runs:
        for own, common in filter(None, [resource_places(run)]):
            folders.setdefault(common, {})[run] = own
    found: dict[str, str] = {}
    for common, inside in folders.items():
        with noted(problems):
            found.update((run, file) for run, file in inside.items() if is_file(file))
            if is_file(common):
                folder = common.removesuffix(ENDING)
                _check_common(common, folder, [file for file in inside.values() if file in found.values()])
                found[next(iter(inside))] = common
    return found


def resources_of_runs(runs: Iterable[str]) -> dict[str, Resources]:
    """The resources of runs, by path or URL; runs without such a file are left out.

    Raises `InputError` with every problem of the files.
    """
    problems = Problems()
    files = find_resources(runs, problems)
    told = {file: read_resources(file, problems) for file in dict.fromkeys(files.values())}
    problems.raise_if_any()
    return {run: resources for run, file in files.items() if (resources := told[file]) is not None}


def with_resources(pieces: Iterable[RunPiece], resources: Resources, problems: Problems) -> Iterator[RunPiece]:
    """The pieces of a file, with the resources of its system. Several systems in one file are a problem."""
    first: str | None = None
    for piece in pieces:
        header = piece.header
        first = header.system if first is None else first
        if header.system != first:
            found = f"{header.system!r} beside {first!r}"
            remedy = "Give each system a file of its own, or remove the resources."
            problems.add(piece.file, None, "one system in a run with resources", found, remedy)
            return
        yield replace(piece, header=replace(header, resources=resources))


def stray_resources(files: Iterable[str], runs: Iterable[str]) -> list[str]:
    """The `files` of resources in a folder that belong to no run in it, by their names."""
    known = {ENDING, *(f"{system_of_file(run)}.{ENDING}" for run in runs)}
    return [file for file in files if file.rsplit("/", 1)[-1] not in known]


def _check_common(common: str, folder: str, own: Sequence[str]) -> None:
    runs = sum(_is_run(file) for file in files_in(folder or "."))
    if own or runs > 1:
        found = own[0] if own else counted(runs, "runs")
        remedy = f"Name it after its run: NAME.{ENDING}."
        raise InputError(Problem(common, None, "one run in the folder, and one file for it", found, remedy))


def _is_run(file: str) -> bool:
    try:
        return sniff(file) in RUNS
    except InputError:
        return False
