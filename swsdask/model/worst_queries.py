"""The queries that cost a system most, with their false alarms and missed targets, so that they can be listened to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from swsdask.model.tables import LateImport, Tables
from swsdask.model.wording import counted

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LateImport("pandas")

WORST_QUERIES = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("condition", pa.string(), nullable=False),
        pa.field("rank", pa.int64(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("cost", pa.float64(), nullable=False),
        pa.field("n_target", pa.int64(), nullable=False),
        pa.field("n_miss", pa.int64(), nullable=False),
        pa.field("n_false_alarm", pa.int64(), nullable=False),
        pa.field("confused_with", pa.list_(pa.string()), nullable=False),
    ]
)
"""One row per system, condition and query, the costliest first: P_miss + beta P_fa of the query, and its counts.
`confused_with` are the queries whose occurrences its listed false alarms overlap, the most frequent first."""

EVENTS = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("condition", pa.string(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("channel", pa.int8()),
        pa.field("start", pa.float64()),
        pa.field("end", pa.float64()),
        pa.field("score", pa.float64()),
        pa.field("confused_with", pa.list_(pa.string()), nullable=False),
    ]
)
"""One row per event: `false_alarm`, the highest scores first, or `miss`, by document and time. Times in seconds.
`document` is "" for a document that is not in the evaluation; `confused_with` are the queries that occur there."""


@dataclass(frozen=True, eq=False)
class Errors(Tables):
    """The errors of some systems: rows of `WORST_QUERIES` and of `EVENTS`, and notes.

    Attributes
    ----------
    query_table, event_table : pyarrow.Table
        The rows.
    notes : tuple of str
        Notes on omissions.
    signature : str
        The signature of the result: measures, settings, version and hashes of the inputs.
    beta : float
        The weight of P_fa in the cost of a query.
    """

    query_table: pa.Table
    event_table: pa.Table
    notes: tuple[str, ...] = ()
    signature: str = ""
    beta: float = math.nan

    def __repr__(self) -> str:
        rows = f"{counted(self.query_table.num_rows, 'queries')}, {counted(self.event_table.num_rows, 'events')}"
        return f"<Errors: {rows}; {self.signature}>"

    @property
    def tables(self) -> dict[str, pa.Table]:
        """The tables by the names of `to_arrow`: queries, events."""
        return {"queries": self.query_table, "events": self.event_table}

    @property
    def queries(self) -> pd.DataFrame:
        """The queries, the costliest of each system first."""
        return self._frame("queries")

    @property
    def events(self) -> pd.DataFrame:
        """The false alarms and the missed targets of these queries."""
        return self._frame("events")
