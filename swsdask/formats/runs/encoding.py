"""Tables with times in frames, or with costs for scores, such as those of Kaldi's kws-search.

kws-search writes lines "query utterance first-frame end-frame cost", where the cost is -log p.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.formats.runs.arrow import Batch
from swsdask.formats.values import BLANKS, NUMBER
from swsdask.model.errors import SettingsError

_TIMES = ("start", "duration", "end")
_DIGITS = 9
"""The decimals of seconds to which a product of frames and their length is rounded."""


@dataclass(frozen=True)
class Encoding:
    """The units of a table's times and scores.

    `frame_shift` is the number of seconds per frame, None for times in seconds; `negated` scores are costs.
    """

    frame_shift: float | None = None
    negated: bool = False

    def __post_init__(self) -> None:
        if self.frame_shift is not None and not 0 < self.frame_shift < 1e3:
            raise SettingsError(f"expected a frame shift in seconds, e.g. 0.01; found {self.frame_shift!r}.")

    def __bool__(self) -> bool:
        return self.frame_shift is not None or self.negated

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of a run's header that record it."""
        shift = {} if self.frame_shift is None else {"frame_shift": repr(self.frame_shift)}
        return shift | ({"negated_scores": "yes"} if self.negated else {})

    def decoded(self, batch: Batch) -> Batch:
        """The same rows with times in seconds and scores that rise with confidence."""
        columns = dict(batch.columns)
        if self.frame_shift is not None:
            columns |= {name: _in_seconds(columns[name], self.frame_shift) for name in _TIMES if name in columns}
        if self.negated:
            columns["score"] = _negative(columns["score"])
        return batch._replace(columns=columns)


PLAIN = Encoding()


def _in_seconds(column: pa.Array, shift: float) -> pa.Array:
    """Numbers of frames in seconds; text that is not a number is kept, and reported later."""
    try:
        frames = column.cast(pa.float64())
    except pa.ArrowInvalid:
        return pa.array([_time(text, shift) for text in column.to_pylist()], pa.string())
    missing = pc.is_null(frames).to_numpy(zero_copy_only=False)
    return pa.array(np.round(frames.to_numpy(zero_copy_only=False) * shift, _DIGITS), mask=missing)


def _time(text: str | None, shift: float) -> str | None:
    plain = "" if text is None else text.strip(BLANKS)
    return str(Decimal(plain) * Decimal(repr(shift))) if NUMBER.fullmatch(plain) else text


def _negative(column: pa.Array) -> pa.Array:
    """Negated numbers, with every digit."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return pc.negate(column)
    plain = pc.ascii_ltrim(pc.ascii_trim(column, BLANKS), "+")
    positive = pc.ascii_ltrim(plain, "-")
    return pc.if_else(
        pc.starts_with(plain, "-"), pc.utf8_slice_codeunits(plain, 1), pc.binary_join_element_wise("-", positive, "")
    )
