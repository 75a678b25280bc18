"""Formats of runs in text whose lines are detections, without names of columns.

A format is a module here that says in its `FORMATS` how its files are recognised and what its lines hold. It is found:
no other place names it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules

import pyarrow as pa

from swsdask.formats.files import Lines, read_lines
from swsdask.formats.runs.arrow import Batch, Gathering
from swsdask.formats.runs.encoding import PLAIN, Encoding
from swsdask.formats.runs.table import Separated
from swsdask.formats.values import CHANNELS, FormatError, read_header
from swsdask.model.errors import Problems
from swsdask.model.schemas import RunPiece

_COMMENT = re.compile(rb"^[ \t]*;;.*$", re.MULTILINE)
_UNEVEN_BLANKS = re.compile(rb"[\t\r]|  | $|^ ", re.MULTILINE)


@dataclass(frozen=True)
class LineFormat:
    """A format of runs whose lines have the same values in the same order. Lines that begin with `;;` are comments.

    Parameters
    ----------
    value : str
        Its name in messages.
    recognises : callable
        Whether a file is of the format, by its first line that is neither blank nor a comment. Of several formats the
        first takes it, by the names of their modules.
    columns : tuple of str
        The values of a line, named as the columns of a table (`formats.runs.table`); others are passed over. A channel
        may be A or B.
    delimiter : str
        What separates values; a blank is any number of blanks.
    endings : tuple of str
        How names of such files end, for files that content alone does not show.
    given : str
        How to give such a file where another one is expected.
    encoded : bool
        Whether times may be frames, scores costs and documents utterances.
    """

    value: str
    recognises: Callable[[str], bool]
    columns: tuple[str, ...]
    delimiter: str = " "
    endings: tuple[str, ...] = ()
    given: str = "as a run"
    encoded: bool = True

    def read(
        self, file: str, problems: Problems, rows_per_piece: int, system: str | None, encoding: Encoding = PLAIN
    ) -> Iterator[RunPiece]:
        """The pieces of a run; what is wrong is added to `problems`."""
        try:
            header = read_header(encoding.attributes, file, system)
        except FormatError as fault:
            problems.add(file, None, fault.expected, fault.found, fault.remedy)
            return
        gathering = Gathering(header, True, file, problems, rows_per_piece)
        columns = {name: place for place, name in enumerate(self.columns)}
        lines = Separated(problems, self.delimiter, len(columns), columns)
        blocks = _without_comments(read_lines(file))
        plain = with_even_blanks(blocks) if self.delimiter == " " else blocks
        yield from gathering.pieces(encoding.decoded(_with_numbered_channels(batch)) for batch in lines.batches(plain))


def _without_comments(blocks: Iterator[Lines]) -> Iterator[Lines]:
    """The lines, those that are comments empty."""
    for block in blocks:
        yield Lines(block.first, _COMMENT.sub(b"", block.data)) if b";;" in block.data else block


def with_even_blanks(blocks: Iterator[Lines]) -> Iterator[Lines]:
    """The lines with one blank between values and none around them."""
    for block in blocks:
        if _UNEVEN_BLANKS.search(block.data):
            yield Lines(block.first, b"\n".join(b" ".join(line.split()) for line in block.data.split(b"\n")))
        else:
            yield block


def _with_numbered_channels(batch: Batch) -> Batch:
    """The same rows, channels A and B as 1 and 2."""
    if "channel" not in batch.columns:
        return batch
    column = batch.columns["channel"]
    names = pa.array([CHANNELS.get(name, name) for name in column.dictionary.to_pylist()], pa.string())
    channel = pa.DictionaryArray.from_arrays(column.indices, names)
    return batch._replace(columns={**batch.columns, "channel": channel})


def line_formats() -> tuple[LineFormat, ...]:
    """Every format that a module here has, by the names of the modules."""
    modules = sorted(module.name for module in iter_modules(__path__, f"{__name__}."))
    return tuple(each for name in modules for each in import_module(name).FORMATS)
