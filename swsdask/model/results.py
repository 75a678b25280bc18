"""What scoring gives: numbers in long form, curves, and where they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from swsdask.model.wording import counted

if TYPE_CHECKING:
    import pandas as pd

SCORES = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("condition", pa.string(), nullable=False),
        pa.field("query", pa.string()),
        pa.field("measure", pa.string(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)
"""One row per number; `query` is null for a number over all queries; NaN where a number is not defined."""

CURVES = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("condition", pa.string(), nullable=False),
        pa.field("curve", pa.string(), nullable=False),
        pa.field("threshold", pa.float64(), nullable=False),
        pa.field("x", pa.float64(), nullable=False),
        pa.field("y", pa.float64(), nullable=False),
    ]
)
"""One row per point. `curve` is

- "det" (x = P_fa, y = P_miss, averaged over queries) or "det_pooled";
- "ece_default", "ece_actual", "ece_affine" or "ece_pav" (x = prior log-odds, y = C_xe in bits);
- "ape_default", "ape_actual", "ape_affine" or "ape_pav" (x = prior log-odds, y = error rate);
- "precision_recall" or "precision_recall_interpolated" (x = recall, y = precision).
"""

ALIGNMENT = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("query", pa.string(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("channel", pa.int8()),
        pa.field("reference_start", pa.float64()),
        pa.field("reference_end", pa.float64()),
        pa.field("start", pa.float64()),
        pa.field("end", pa.float64()),
        pa.field("score", pa.float64()),
        pa.field("decision", pa.string()),
        pa.field("outcome", pa.string(), nullable=False),
    ]
)
"""One row per trial and per unmapped occurrence. Times in seconds; `decision` YES, NO or null; `outcome` is hit, miss,
false_alarm or correct_nondetection."""


@dataclass(frozen=True)
class Result:
    """Scores of some systems on one evaluation.

    `manifest` holds the signature (measures, settings, definitions, version, input hashes), what was dropped and how it
    ran; `notes` are sentences a reader needs beside the numbers.
    """

    table: pa.Table
    curves: pa.Table
    manifest: dict[str, Any]
    notes: tuple[str, ...] = ()
    alignment: pa.Table | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        systems = len(self.table["system"].unique())
        held = f"{counted(systems, 'systems')}, {counted(self.table.num_rows, 'numbers')}"
        return f"<Result: {held}; {self.manifest.get('signature')}>"

    @property
    def asked(self) -> list[str] | None:
        """The measures that were asked for, in that order; None: all."""
        names = self.manifest.get("measures")
        return names if isinstance(names, list) else None

    @property
    def scores(self) -> pd.DataFrame:
        """All numbers as a pandas DataFrame: system, condition, query, measure, value."""
        frame: pd.DataFrame = self.table.to_pandas()
        return frame
