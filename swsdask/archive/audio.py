"""Audio time: how many seconds were searched, and so how many trials a query has.

By default the excerpts of a document are united, whatever their channels (as NIST: two channels of one call count
once), and the lengths are summed over documents. Time that only `splitcts` excerpts cover counts half.

Quirks of the official tools, each under its `compat` only:

- `kwseval` does not unite: it sorts a document's excerpts by start, then by end, and cuts each at the next one's start;
  different for nested excerpts alone. N is T divided by the trials per second, not multiplied.
- `stdeval` adds up the excerpts of channel 1, overlapping or not; `splitcts` counts whole.
- Both add up seconds in double precision, so that T = 92.5 s can make 93 trials; so does `trial_counter`. It adds up
  documents in the order of the ECF, where KWSEval has that of a hash table.

The ECF's own total is never used. Otherwise all arithmetic is exact: half ticks of 0.05 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from fractions import Fraction
from functools import reduce
from operator import add
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
    ids, excerpts = _sorted(documents)
    counted = _MEASURES.get(compat, _united)(excerpts)
    totals = np.zeros(len(ids), np.int64)
    np.add.at(totals, excerpts.document, counted)
    return dict(zip(ids, totals.tolist(), strict=True))


def trial_counter(documents: pa.Table, trials_per_second: float, compat: Compat) -> Callable[[Collection[str]], int]:
    """What gives N, the number of virtual trials of one query (Eq. 2), in some of the documents, by their ids."""
    if compat in _COUNTERS:
        return _COUNTERS[compat](documents, trials_per_second)
    time = audio_time(documents, compat)
    return lambda within: virtual_trials(trials_per_second, (time[document] for document in within))


def _counter_of_kwseval(documents: pa.Table, trials_per_second: float) -> Callable[[Collection[str]], int]:
    ids, excerpts = _sorted(documents)
    seconds = _ends_cut_at_the_next(excerpts) / TICKS_PER_SECOND - excerpts.start / TICKS_PER_SECOND
    rows = list(zip(excerpts.document.tolist(), (seconds * (excerpts.worth / 2)).tolist(), strict=True))
    return lambda within: round(_added(each for number, each in rows if ids[number] in within) / trials_per_second)


def _counter_of_stdeval(documents: pa.Table, trials_per_second: float) -> Callable[[Collection[str]], int]:
    first = documents.filter(pc.equal(documents["channel"], _STDEVAL_CHANNEL))
    seconds = (first["end"].to_numpy() - first["start"].to_numpy()) / TICKS_PER_SECOND
    rows = list(zip(first["document"].to_pylist(), seconds.tolist(), strict=True))
    return lambda within: round(trials_per_second * _added(each for document, each in rows if document in within))


_COUNTERS: dict[Compat, Callable[[pa.Table, float], Callable[[Collection[str]], int]]] = {
    "kwseval": _counter_of_kwseval,
    "stdeval": _counter_of_stdeval,
}


def _added(seconds: Iterable[float]) -> float:
    """The sum in double precision, one by one: `sum` is more exact from Python 3.12 on."""
    return reduce(add, seconds, 0.0)


def _sorted(documents: pa.Table) -> tuple[list[str], _Excerpts]:
    """The distinct documents in order of appearance; their excerpts by (document, start, end)."""
    ids = documents["document"].combine_chunks().dictionary_encode()
    document, channel, start, end = (
        column.to_numpy(zero_copy_only=False).astype(np.int64)
        for column in (ids.indices, *(documents[name].combine_chunks() for name in ("channel", "start", "end")))
    )
    half = pc.equal(documents["source_type"], HALF).to_numpy()
    order = np.lexsort([end, start, document])
    columns = (document, channel, start, end, 2 - half.astype(np.int64))
    return ids.dictionary.to_pylist(), _Excerpts(*(column[order] for column in columns))


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
    cut: I64 = (_ends_cut_at_the_next(excerpts) - excerpts.start) * excerpts.worth
    return cut


def _ends_cut_at_the_next(excerpts: _Excerpts) -> I64:
    last = np.append(excerpts.document[1:] != excerpts.document[:-1], True)[: len(excerpts.document)]
    following = np.where(last, excerpts.end, np.append(excerpts.start[1:], 0)[: len(last)])
    ends: I64 = np.minimum(excerpts.end, following)
    return ends


def _first_channel(excerpts: _Excerpts) -> I64:
    first: I64 = 2 * (excerpts.end - excerpts.start) * (excerpts.channel == _STDEVAL_CHANNEL)
    return first


_MEASURES: dict[Compat, Callable[[_Excerpts], I64]] = {
    "kwseval": _cut_at_the_next,
    "stdeval": _first_channel,
}
"""Half ticks that each excerpt adds to its document, where that is not their union."""
