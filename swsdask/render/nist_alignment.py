"""The alignment as the CSV files that KWSEval and STDEval write.

A row is a trial with the occurrence that it is mapped to, or one of both alone. Rows come in our order, that of queries
in the list: the tools' is that of a hash. Where a tool prints the text of an input file, the alignment may have it in
columns of its own (`formats.spelling`); else a number has as many decimals as the longest of its column, at most
`MOST_DECIMALS`: the text itself wherever a program wrote all of them alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOST_DECIMALS = 6
_ROWS_AT_ONCE = 65_536
_KWSEVAL = {"hit": "CORR", "miss": "MISS", "false_alarm": "FA", "correct_nondetection": "CORR!DET"}
_COLUMNS = "language,file,channel,termid,term,ref_bt,ref_et,sys_bt,sys_et,sys_score,sys_decision,alignment\n"


def kwseval_alignment(alignment: pa.Table, language: str, texts: Mapping[str, str]) -> Iterator[str]:
    """The lines of KWSEval's alignment.csv (-c) of one system, some at a time.

    `language` is that of the query list; `texts` has what was searched by the ids of queries.
    """
    yield _COLUMNS
    for lines in _lines(alignment, language, texts, end_decimals=4):
        yield "".join(f"{line},{_KWSEVAL[row['outcome']]}\n" for row, line in lines)


def stdeval_alignment(
    alignment: pa.Table, language: str, texts: Mapping[str, str], types: Mapping[tuple[str, int], str]
) -> Iterator[str]:
    """The lines of STDEval's CSV report (-C) of one system, some at a time; `types` are those of source.

    QUIRK: what is mapped is CORR and what is not is FA, whatever was decided.
    """
    yield f"type,{_COLUMNS}"
    for lines in _lines(alignment, language, texts, end_decimals=None):
        yield "".join(
            f"{types.get((row['document'], row['channel'] or 1), '')},{line},{_label_of_stdeval(row)}\n"
            for row, line in lines
        )


def _label_of_stdeval(row: Mapping[str, Any]) -> str:
    if row["score"] is None:
        return "MISS"
    return "CORR" if row["outcome"] in ("hit", "miss") else "FA"


def _lines(
    alignment: pa.Table, language: str, texts: Mapping[str, str], end_decimals: int | None
) -> Iterator[list[tuple[dict[str, Any], str]]]:
    """Rows and what both tools print of them, some at a time."""
    places = {name: decimals(alignment[name]) for name in ("reference_start", "start", "score")}
    places |= {"reference_end": end_decimals, "end": None}
    numbers = ("reference_start", "reference_end", "start", "end", "score")
    for batch in alignment.to_batches(max_chunksize=_ROWS_AT_ONCE):
        lines = []
        for row in batch.to_pylist():
            query = row["query"]
            shown = ",".join(row.get(f"{name}_text") or fixed(row[name], places[name]) for name in numbers)
            spoken = f"{language},{row['document']},{row['channel'] or 1},{query},{texts[query]}"
            lines.append((row, f"{spoken},{shown},{row['decision'] or ''}"))
        yield lines


def fixed(value: float | None, places: int | None) -> str:
    """A number with so many decimals, or with 15 digits; "" for None."""
    return "" if value is None else f"{value:.15g}" if places is None else f"{value:.{places}f}"


def decimals(column: pa.ChunkedArray) -> int | None:
    """Return the decimals of the longest number of a column; None if more than `MOST_DECIMALS`."""
    most = 0
    for chunk in column.chunks:
        for first in range(0, len(chunk), _ROWS_AT_ONCE):
            values = pc.drop_null(chunk.slice(first, _ROWS_AT_ONCE)).to_numpy()
            while most <= MOST_DECIMALS and not np.array_equal(np.round(values, most), values):
                most += 1
    return None if most > MOST_DECIMALS else most
