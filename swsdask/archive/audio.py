"""Audio time: how many seconds were searched, and so how many trials a query has.

By default the excerpts of a document are united, whatever their channels (as NIST: two channels of one call count
once), and the lengths are summed over documents. Time that only `splitcts` excerpts cover counts half.

Quirks of the official tools, each under its `compat` only:

- `kwseval` does not unite: it sorts a document's excerpts by start (ties as in the ECF) and cuts each at the next
  one's start; different for nested excerpts alone.
- `stdeval` adds up the excerpts of channel 1, overlapping or not.

The ECF's own total is never used. All arithmetic is exact: ticks and fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

import pyarrow as pa

from swsdask.model.settings import Compat
from swsdask.model.ticks import TICKS_PER_SECOND

HALF = "splitcts"
_STDEVAL_CHANNEL = 1


@dataclass(frozen=True)
class _Excerpt:
    channel: int
    start: int
    end: int
    half: bool


def audio_seconds(documents: pa.Table, compat: Compat) -> dict[str, Fraction]:
    """T of every document, in the order of the table `documents` (`model.schemas.DOCUMENTS`)."""
    excerpts: dict[str, list[_Excerpt]] = {}
    columns = [documents[name].to_pylist() for name in ("document", "channel", "start", "end", "source_type")]
    for document, channel, start, end, source_type in zip(*columns, strict=True):
        excerpts.setdefault(document, []).append(_Excerpt(channel, start, end, source_type == HALF))
    measure = _MEASURES.get(compat, _united)
    return {document: Fraction(measure(parts), 2 * TICKS_PER_SECOND) for document, parts in excerpts.items()}


def virtual_trials(trials_per_second: float, seconds: Iterable[Fraction]) -> int:
    """N = n_tps T, the product of the decimals given, rounded half to even to an integer as NIST does (Eq. 2)."""
    return round(Fraction(repr(trials_per_second)) * sum(seconds, Fraction(0)))


def _united(excerpts: list[_Excerpt]) -> int:
    return _covered(excerpts) + _covered([each for each in excerpts if not each.half])


def _covered(excerpts: list[_Excerpt]) -> int:
    total = reached = 0
    for each in sorted(excerpts, key=lambda excerpt: excerpt.start):
        total += max(each.end - max(each.start, reached), 0)
        reached = max(reached, each.end)
    return total


def _cut_at_the_next(excerpts: list[_Excerpt]) -> int:
    ordered = sorted(excerpts, key=lambda excerpt: excerpt.start)
    following = [each.start for each in ordered[1:]] + [ordered[-1].end]
    return sum(_weighted(each, min(each.end, after)) for each, after in zip(ordered, following, strict=True))


def _first_channel(excerpts: list[_Excerpt]) -> int:
    return sum(_weighted(each, each.end) for each in excerpts if each.channel == _STDEVAL_CHANNEL)


def _weighted(excerpt: _Excerpt, end: int) -> int:
    return (end - excerpt.start) * (1 if excerpt.half else 2)


_MEASURES: dict[Compat, Callable[[list[_Excerpt]], int]] = {
    "kwseval": _cut_at_the_next,
    "stdeval": _first_channel,
}
"""Twice the ticks that some excerpts of one document count for, where that is not their union."""
