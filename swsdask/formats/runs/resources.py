"""Reading of the TOML file with the resources that a run used: processing times and memory (`model.resources`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from swsdask.formats.files import noted
from swsdask.formats.text import read_lines
from swsdask.formats.values import shown
from swsdask.model.errors import InputError, Problem, Problems
from swsdask.model.layers import read_toml
from swsdask.model.resources import Node, Phase, Resources
from swsdask.model.schemas import RunPiece
from swsdask.model.wording import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Path = tuple[str | int, ...]
"""The path of a value: tables, keys and indices of arrays, from the outside in."""

MAX_BYTES = 1 << 20
"""The largest file that is read, in bytes; a description has a few hundred."""

_TABLES: Mapping[str, type[BaseModel]] = {"indexing": Phase, "searching": Phase, "hardware": Node}
_HEADER = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]")
_KEY = re.compile(r"\s*([\w-]+)\s*=")
_AT_LINE = re.compile(r" \(at line (\d+)(?:, column \d+)?\)$")


def read_resources(url: str, problems: Problems) -> Resources | None:
    """Return the resources in a file; None if it has problems, which are added to `problems` with their lines."""
    with noted(problems):
        content = _read_file(url)
        try:
            return Resources.model_validate(_parse_toml(url, content))
        except ValidationError as error:
            lines = _lines(content.decode())
            faults = [_fault(url, fault, lines) for fault in error.errors()]
            raise InputError(*sorted(faults, key=lambda fault: fault.line or 0)) from None
    return None


def _read_file(url: str) -> bytes:
    content = b""
    for lines in read_lines(url):
        content += lines.data
        if len(content) > MAX_BYTES:
            found = f"more than {MAX_BYTES} bytes"
            raise InputError(
                Problem(url, None, "a description of resources", found, "Check that it is the right file.")
            )
    return content


def _parse_toml(url: str, content: bytes) -> dict[str, object]:
    try:
        return read_toml(content)
    except ValueError as error:
        said = str(error)
        at = _AT_LINE.search(said)
        line = int(at[1]) if at else None
        raise InputError(Problem(url, line, "a TOML file", _AT_LINE.sub("", said), "Correct it.")) from None


def _fault(url: str, fault: ErrorDetails, lines: Mapping[Path, int]) -> Problem:
    """Return the problems that pydantic found, at the line of the innermost table or key that has one."""
    path: Path = fault["loc"]
    line = next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)
    match fault["type"]:
        case "extra_forbidden":
            table = _TABLES.get(str(path[0]), Resources) if len(path) > 1 else Resources
            remedy = f"Nearest valid key: {nearest(str(path[-1]), table.model_fields)}."
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
    """Return the line of every table and key that has a line of its own, from 1."""
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


def with_resources(pieces: Iterable[RunPiece], resources: Resources, problems: Problems) -> Iterator[RunPiece]:
    """Yield the pieces of a file, with the resources of its system. Several systems in one file are a problem."""
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
