"""The alignment as the CSV files that KWSEval and STDEval write.

A row is a trial with the occurrence that it is mapped to, or one of both alone. Rows come in our order, that of queries
in the list: the tools' is that of a hash. Where a tool prints the text of an input file, a number has as many decimals
as the longest of its column, at most `MOST_DECIMALS`: the text itself wherever a program wrote all of them alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.results import ALIGNMENT

MOST_DECIMALS = 6
_ROWS_AT_ONCE = 65_536
_LABELS = {"hit": "CORR", "miss": "MISS", "false_alarm": "FA", "correct_nondetection": "CORR!DET"}


def kwseval_alignment(alignment: pa.Table, language: str, texts: Mapping[str, str]) -> Iterator[str]:
    """The lines of KWSEval's alignment.csv (-c) of one system, some at a time.

    `language` is that of the query list; `texts` has what was searched by the ids of queries.
    """
    decimals = {name: _decimals(alignment[name]) for name in ("reference_start", "start", "score")}
    yield "language,file,channel,termid,term,ref_bt,ref_et,sys_bt,sys_et,sys_score,sys_decision,alignment\n"
    for batch in alignment.select(ALIGNMENT.names).to_batches(max_chunksize=_ROWS_AT_ONCE):
        lines = []
        for row in batch.to_pylist():
            cells = (
                language,
                row["document"],
                row["channel"] or 1,
                row["query"],
                texts[row["query"]],
                _fixed(row["reference_start"], decimals["reference_start"]),
                _fixed(row["reference_end"], 4),
                _fixed(row["start"], decimals["start"]),
                "" if row["end"] is None else f"{row['end']:.15g}",
                _fixed(row["score"], decimals["score"]),
                row["decision"] or "",
                _LABELS[row["outcome"]],
            )
            lines.append(",".join(map(str, cells)) + "\n")
        yield "".join(lines)


def _fixed(value: float | None, decimals: int | None) -> str:
    return "" if value is None else f"{value:.15g}" if decimals is None else f"{value:.{decimals}f}"


def _decimals(column: pa.ChunkedArray) -> int | None:
    """How many decimals the longest number of a column has; None if more than `MOST_DECIMALS`."""
    most = 0
    for chunk in column.chunks:
        for first in range(0, len(chunk), _ROWS_AT_ONCE):
            values = pc.drop_null(chunk.slice(first, _ROWS_AT_ONCE)).to_numpy()
            while most <= MOST_DECIMALS and not np.array_equal(np.round(values, most), values):
                most += 1
    return None if most > MOST_DECIMALS else most
