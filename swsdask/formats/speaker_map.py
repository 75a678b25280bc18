"""Speaker maps: who speaks in which file.

    file speaker

One line per file, with blanks or tabs between the two; empty lines are passed over.
"""

from __future__ import annotations

import pyarrow as pa

from swsdask.errors import Problems
from swsdask.formats.blank_separated import tidy
from swsdask.formats.lines import read_lines
from swsdask.formats.noting import noted, noted_at
from swsdask.formats.run_values import FormatError
from swsdask.model.corpus_schemas import SPEAKERS
from swsdask.model.ids import id_fault


def read_speakers(url: str, problems: Problems) -> pa.Table:
    """The speaker of each file (`model.corpus_schemas.SPEAKERS`), in file order; faults are added to `problems`."""
    rows: dict[str, tuple[str, int]] = {}
    before = len(problems)
    with noted(problems):
        for lines in read_lines(url):
            for number, line in enumerate(tidy(lines.data).decode().split("\n"), lines.first):
                if line:
                    fields = line.split(" ")
                    with noted_at(problems, url, number):
                        _check(fields)
                        _check_once(fields[0], rows)
                        rows[fields[0]] = fields[1], number
    if not rows and len(problems) == before:
        problems.add(url, 1, "at least one line: file speaker", "none", "List the files with their speakers.")
    columns = [list(rows), [speaker for speaker, _ in rows.values()], [line for _, line in rows.values()]]
    return pa.table(columns, schema=SPEAKERS)


def _check(fields: list[str]) -> None:
    if len(fields) != 2:
        raise FormatError("2 fields with blanks between them: file, speaker", f"{len(fields)}", "Mend the line.")
    for name, what in zip(fields, ("file", "speaker"), strict=True):
        wrong = id_fault(name)
        if wrong:
            raise FormatError(f"the name of a {what}", wrong, "Give it a plain name.")


def _check_once(file: str, rows: dict[str, tuple[str, int]]) -> None:
    if file in rows:
        raise FormatError("every file once", f"the file of line {rows[file][1]} again", "Remove one of the two.")
