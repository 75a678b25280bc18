"""Rewriting of a table in text with new values: its columns, quotes and other digits are kept.

A value is quoted if it was quoted, or if the new delimiter requires it. Blank lines are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from swsdask.formats.files import Lines, read_lines, writing
from swsdask.formats.runs.table import choose_columns, first_line
from swsdask.formats.sniff import RUNS, Format, expect
from swsdask.formats.values import system_of_file
from swsdask.model.shown_text import without_formula
from swsdask.model.trials import F64

Change = Callable[[F64], Mapping[str, Sequence[str]]]
"""From the scores of rows to new values of columns; columns that the table lacks are added after the others."""

_TABLE = re.compile(r"\.(?:(tsv)|csv)(\.gz|\.zst)?$", re.IGNORECASE)


def delimiter_of(url: str) -> str | None:
    """The delimiter of a table in text, by its name; None if it is not the name of one."""
    named = _TABLE.search(url)
    return named and ("\t" if named[1] else ",")


def stays_table(source: str, target: str) -> bool:
    """Whether a run is a table in text and stays one."""
    return delimiter_of(target) is not None and expect(source, *RUNS) is Format.TABLE


def system_to_add(source: str, target: str) -> str | None:
    """The name of a table's system, if only the name of its file has it and the name of the target differs."""
    _, names, _ = first_line(next(read_lines(source)))
    columns, _ = choose_columns(names)
    name = system_of_file(source)
    return None if "system" in columns or system_of_file(target) == name else name


def rewrite_table(source: str, target: str, change: Change, *, harmless: bool = False) -> None:
    """Write a table in text, which has been read without a problem, at another place with what `change` gives.

    `harmless`: see `without_formula`. The name of the target determines the delimiter and the compression. Raises
    `InputError` if it cannot be written.
    """
    to = delimiter_of(target) or "\t"
    blocks = read_lines(source)
    first = next(blocks)
    delimiter, names, rest = first_line(first)
    columns, _ = choose_columns(names)
    added = [name for name in change(np.zeros(0)) if name not in columns]
    places = {**columns, **{name: len(names) + number for number, name in enumerate(added)}}
    head = first.data.decode().partition("\n")[0]
    with writing(target) as sink:
        sink.write(_line([*_values(head, delimiter), *added], head, to, harmless))
        for block in _chained(rest, blocks):
            lines = [line for line in block.data.decode().split("\n") if line.strip(f'\r "{delimiter}')]
            rows = [[*_values(line, delimiter), *[""] * len(added)] for line in lines]
            scores = np.array([float(_plain(row[places["score"]])) for row in rows], np.float64)
            for name, texts in change(scores).items():
                for row, text in zip(rows, texts, strict=True):
                    row[places[name]] = f'"{text}"' if row[places[name]].startswith('"') else text
            sink.write(b"".join(_line(row, line, to, harmless) for row, line in zip(rows, lines, strict=True)))


def _chained(rest: Lines, blocks: Iterator[Lines]) -> Iterator[Lines]:
    yield rest
    yield from blocks


def _values(line: str, delimiter: str) -> list[str]:
    """The values of a line, with their quotes."""
    line = line.removesuffix("\r")
    if '"' not in line:
        return line.split(delimiter)
    return [found[1] for found in re.finditer(rf'(?:^|{delimiter})((?:"(?:[^"]|"")*")|[^{delimiter}]*)', line)]


def _plain(value: str) -> str:
    return value[1:-1].replace('""', '"') if value.startswith('"') else value


def _line(values: Sequence[str], source: str, delimiter: str, harmless: bool) -> bytes:
    """Values as a line with the same ending as their source."""
    if harmless:
        values = [value if (safe := without_formula(_plain(value))) == _plain(value) else safe for value in values]
    text = delimiter.join(value if value.startswith('"') else quoted(value, delimiter) for value in values)
    return f"{text}\r\n".encode() if source.endswith("\r") else f"{text}\n".encode()


def quoted(text: str, delimiter: str) -> str:
    """A text as a value of a table: quoted if it contains the delimiter or a quote."""
    if delimiter not in text and '"' not in text:
        return text
    escaped = text.replace('"', '""')
    return f'"{escaped}"'
