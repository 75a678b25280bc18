"""Audio time: how many seconds were searched, and so how many trials a query has.

By default the excerpts of a document are united, whatever their channels (as NIST: two channels of one call count
once), and the lengths are summed over documents. Time that only `splitcts` excerpts cover counts half.

Quirks of the official tools, each under its `compat` only:

- `kwseval` does not unite: it sorts a document's excerpts by start (ties as in the ECF) and cuts each at the next
  one's start; different for nested excerpts alone.
- `stdeval` adds up the excerpts of channel 1, overlapping or not.

The ECF's own total is never used. All arithmetic is exact: half ticks of 0.05 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.settings import Compat
from swsdask.model.ticks import TICKS_PER_SECOND
from swsdask.model.trials import I64, Bool

HALF = "splitcts"
HALF_TICKS_PER_SECOND = 2 * TICKS_PER_SECOND
_STDEVAL_CHANNEL = 1


class _Excerpts(NamedTuple):
    """Columns by excerpt, those of a document together and by start; `worth` is what a tick counts for."""

    document: I64
    channel: I64
    start: I64
    end: I64
    worth: I64

    def chosen(self, rows: Bool) -> _Excerpts:
        return _Excerpts(*(column[rows] for column in self))


def audio_time(documents: pa.Table, compat: Compat) -> dict[str, int]:
    """T of every document in half ticks, in the order of the table `documents` (`model.schemas.DOCUMENTS`)."""
    ids = documents["document"].combine_chunks().dictionary_encode()
    document, channel, start, end = (
        column.to_numpy(zero_copy_only=False).astype(np.int64)
        for column in (ids.indices, *(documents[name].combine_chunks() for name in ("channel", "start", "end")))
    )
    half = pc.equal(documents["source_type"], HALF).to_numpy()
    order = np.lexsort([start, document])
    excerpts = _Excerpts(*(column[order] for column in (document, channel, start, end, 2 - half.astype(np.int64))))
    counted = _MEASURES.get(compat, _united)(excerpts)
    totals = np.zeros(len(ids.dictionary), np.int64)
    np.add.at(totals, excerpts.document, counted)
    return dict(zip(ids.dictionary.to_pylist(), totals.tolist(), strict=True))


def virtual_trials(trials_per_second: float, half_ticks: Iterable[int]) -> int:
    """N = n_tps T, the product of the decimals given, rounded half to even to an integer as NIST does (Eq. 2)."""
    return round(Fraction(repr(trials_per_second)) * Fraction(sum(half_ticks), HALF_TICKS_PER_SECOND))


def _united(excerpts: _Excerpts) -> I64:
    whole = excerpts.worth == 2
    counted = _uncovered(excerpts)
    counted[whole] += _uncovered(excerpts.chosen(whole))
    return counted


def _uncovered(excerpts: _Excerpts) -> I64:
    """How much of each excerpt lies behind the ends of those before it in its document."""
    before = excerpts.document * (excerpts.end.max(initial=0) + 1)
    reached = np.append(0, np.maximum.accumulate(before + excerpts.end)[:-1])[: len(before)] - before
    uncovered: I64 = np.maximum(excerpts.end - np.maximum(excerpts.start, reached), 0)
    return uncovered


def _cut_at_the_next(excerpts: _Excerpts) -> I64:
    last = np.append(excerpts.document[1:] != excerpts.document[:-1], True)[: len(excerpts.document)]
    following = np.where(last, excerpts.end, np.append(excerpts.start[1:], 0)[: len(last)])
    cut: I64 = (np.minimum(excerpts.end, following) - excerpts.start) * excerpts.worth
    return cut


def _first_channel(excerpts: _Excerpts) -> I64:
    first: I64 = (excerpts.end - excerpts.start) * excerpts.worth * (excerpts.channel == _STDEVAL_CHANNEL)
    return first


_MEASURES: dict[Compat, Callable[[_Excerpts], I64]] = {
    "kwseval": _cut_at_the_next,
    "stdeval": _first_channel,
}
"""Half ticks that each excerpt adds to its document, where that is not their union."""
