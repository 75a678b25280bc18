"""Phone and word alignments: what was spoken where, a line each (Zero Resource challenges; `.phn`, `.wrd`).

    file onset offset label

Times in seconds, offset behind onset; in any order, since they are sorted where they are used. The tools take the four
fields apart at single blanks; here any run of blanks and tabs parts them. Empty lines are passed over.
"""

from __future__ import annotations

import pyarrow as pa

from swsdask.errors import Problems
from swsdask.formats.blank_separated import tidy
from swsdask.formats.lines import Lines, read_lines
from swsdask.formats.noting import noted
from swsdask.formats.timed_text import COLUMNS, as_table, read_timed
from swsdask.model.corpus_schemas import ALIGNMENT


def read_alignment(url: str, problems: Problems) -> pa.Table:
    """The phones or words (`model.corpus_schemas.ALIGNMENT`), in file order; faults are added to `problems`."""
    parts = [COLUMNS.empty_table()]
    before = len(problems)
    with noted(problems):
        for lines in read_lines(url):
            parts.append(read_timed(Lines(lines.first, tidy(lines.data)), url, problems, label="label"))
    table = as_table(ALIGNMENT, parts)
    if not len(table) and len(problems) == before:
        problems.add(url, 1, "at least one line: file onset offset label", "none", "List what was spoken.")
    return table
