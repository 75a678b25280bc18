"""Rewriting of tables in text with new values: columns, quotes and other digits are kept.

A value is quoted if it was quoted, or if the new delimiter requires it. Blank lines are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from swsdask.formats.files import writing
from swsdask.formats.recognise import RUNS, Format, expect
from swsdask.formats.runs.table import choose_columns, first_line
from swsdask.formats.text import read_lines
from swsdask.formats.values import system_of_file
from swsdask.model.safe_text import without_formula
from swsdask.model.trials import F64

NewValues = Callable[[F64], Mapping[str, pa.StringArray]]
"""A function from the scores of rows to new values of columns; columns that the table lacks are added at the end."""

_TABLE = re.compile(r"\.(?:(tsv)|csv)(\.gz|\.zst)?$", re.IGNORECASE)


def delimiter_of(url: str) -> str | None:
    """Return the delimiter of a table in text, by its name; None if it is not the name of one."""
    named = _TABLE.search(url)
    return named and ("\t" if named[1] else ",")


def stays_table(source: str, target: str) -> bool:
    """Return whether a run is a table in text and stays one."""
    return delimiter_of(target) is not None and expect(source, *RUNS) is Format.TABLE


def system_to_add(source: str, target: str) -> str | None:
    """Return the name of a table's system, if only the name of its file has it and the name of the target differs."""
    _, names, _ = first_line(next(read_lines(source)))
    columns, _ = choose_columns(names)
    name = system_of_file(source)
    return None if "system" in columns or system_of_file(target) == name else name


def rewrite_table(source: str, target: str, new_values: NewValues, *, harmless: bool = False) -> None:
    """Write a table in text, which was read without problems, to another place with new values.

    `harmless`: see `without_formula`. The name of the target determines the delimiter and the compression. Raises
    `InputError` if it cannot be written.
    """
    to = delimiter_of(target) or "\t"
    blocks = read_lines(source)
    first = next(blocks)
    delimiter, names, rest = first_line(first)
    columns, _ = choose_columns(names)
    added = [name for name in new_values(np.zeros(0)) if name not in columns]
    places = {**columns, **{name: len(names) + number for number, name in enumerate(added)}}
    rewriting = Rewriting(delimiter, to, len(names), len(added), places, new_values, harmless)
    head = first.data.decode().partition("\n")[0]
    with writing(target) as sink:
        sink.write(rewriting.line([*_values(head, delimiter), *added], head))
        for block in chain((rest,), blocks):
            text = rewriting.in_columns(block.data)
            sink.write(rewriting.line_by_line(block.data) if text is None else text)


class Rewriting(NamedTuple):
    """The rewriting of the lines of a table into those of another.

    The table has `width` columns, to which `n_added` are added; `places` has the numbers of the columns by name.
    """

    delimiter: str
    to: str
    width: int
    n_added: int
    places: Mapping[str, int]
    new_values: NewValues
    harmless: bool

    def in_columns(self, data: bytes) -> bytes | None:
        """Rewrite lines, whole columns at a time; None if some have quotes or need them, or are not ordinary."""
        quotes = b'"' in data or (self.to != self.delimiter and self.to.encode() in data)
        if self.harmless or quotes or b"\r" in data:
            return None
        names = [str(number) for number in range(self.width)]
        try:
            table = pa_csv.read_csv(
                pa.py_buffer(data),
                pa_csv.ReadOptions(use_threads=False, column_names=names, block_size=len(data) + 1),
                pa_csv.ParseOptions(delimiter=self.delimiter, quote_char=False),
                pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
            )
            columns = next(iter(table.combine_chunks().to_batches()), None)
            if columns is None:
                return None
            scores = columns[self.places["score"]].cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid:
            return None
        new = {self.places[name]: texts for name, texts in self.new_values(scores).items()}
        if any(pc.any(pc.match_substring_regex(texts, f'["{self.to}]')).as_py() for texts in new.values()):
            return None
        both = (new[place] if place in new else columns[place] for place in range(self.width + self.n_added))
        lines = pc.binary_join_element_wise(*both, self.to)
        (text,) = pc.binary_join(pa.ListArray.from_arrays([0, len(lines)], lines), "\n")
        return memoryview(text.as_buffer()).tobytes() + b"\n"

    def line_by_line(self, data: bytes) -> bytes:
        """Rewrite any lines; blank ones are left out."""
        lines = [line for line in data.decode().split("\n") if line.strip(f'\r "{self.delimiter}')]
        rows = [[*_values(line, self.delimiter), *[""] * self.n_added] for line in lines]
        scores = np.array([float(_plain(row[self.places["score"]])) for row in rows], np.float64)
        for name, texts in self.new_values(scores).items():
            place = self.places[name]
            for row, text in zip(rows, texts.to_pylist(), strict=True):
                row[place] = f'"{text}"' if row[place].startswith('"') else text
        return b"".join(self.line(row, line) for row, line in zip(rows, lines, strict=True))

    def line(self, values: Sequence[str], source: str) -> bytes:
        """Values as a line with the same ending as their source."""
        if self.harmless:
            values = [value if (safe := without_formula(_plain(value))) == _plain(value) else safe for value in values]
        text = self.to.join(value if value.startswith('"') else quoted(value, self.to) for value in values)
        return f"{text}\r\n".encode() if source.endswith("\r") else f"{text}\n".encode()


def _values(line: str, delimiter: str) -> list[str]:
    """Return the values of a line, with their quotes."""
    line = line.removesuffix("\r")
    if '"' not in line:
        return line.split(delimiter)
    return [found[1] for found in re.finditer(rf'(?:^|{delimiter})((?:"(?:[^"]|"")*")|[^{delimiter}]*)', line)]


def _plain(value: str) -> str:
    return value[1:-1].replace('""', '"') if value.startswith('"') else value


def quoted(text: str, delimiter: str) -> str:
    """Return a text as a value of a table: quoted if it contains the delimiter or a quote."""
    if delimiter not in text and '"' not in text:
        return text
    escaped = text.replace('"', '""')
    return f'"{escaped}"'


def in_system(system: str | None, scores: F64) -> dict[str, pa.StringArray]:
    """Return the values of a column that has the name of the system; none if the table keeps what it has."""
    return {} if system is None else {"system": pa.repeat(system, len(scores))}
