"""Windows of phones: how long one may be from each phone on, and which fold it is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from swsdask.discovery.counting.remembered import per_corpus
from swsdask.kernels.containment import holding
from swsdask.kernels.ngrams import SHORTEST, U8
from swsdask.model.corpus import NO_FOLD, Corpus, Folds, Tokens
from swsdask.model.trials import I16, I64

LONGEST: Final = 20
"""Phones of the longest fragment that measures of matching know."""

LENGTHS: Final = range(SHORTEST, LONGEST + 1)


@dataclass(frozen=True, eq=False)
class Windows:
    """`room`, uint8 [n_phones]: how many phones there are from each on without a gap, 20 where there are more.

    `fold`, int16 [n_fold_sets, n_phones]: the fold a stretch of which a phone is entirely inside, `NO_FOLD` if none;
    `fold_room`, uint8 [n_fold_sets, n_phones]: how many of the phones of `room` are inside the same stretch.
    """

    room: U8
    fold: I16
    fold_room: U8


@per_corpus
def windows(corpus: Corpus) -> Windows:
    """The windows of a corpus."""
    in_one_run = np.zeros(len(corpus.phones), np.int64)
    stretch = [_stretch_of(folds, corpus.phones) for folds in corpus.folds]
    fold = np.array([_fold_of(one, folds) for one, folds in zip(stretch, corpus.folds, strict=True)], np.int16)
    room = [np.where(one < 0, np.uint8(0), _room(corpus, one)) for one in stretch]
    shape = len(corpus.folds), len(corpus.phones)
    return Windows(_room(corpus, in_one_run), fold.reshape(shape), np.array(room, np.uint8).reshape(shape))


def _room(corpus: Corpus, part: I64) -> U8:
    """How many phones there are from each on without a gap and with the same `part`, at most `LONGEST`."""
    n = len(corpus.phones)
    changes = (np.diff(corpus.segment) != 0) | (np.diff(part) != 0)
    ends = np.append(np.flatnonzero(changes) + 1, n) if n else np.empty(0, np.int64)
    lengths = np.diff(ends, prepend=0)
    to_end = np.repeat(ends, lengths) - np.arange(n)
    return np.minimum(to_end, LONGEST).astype(np.uint8)


def _stretch_of(folds: Folds, phones: Tokens) -> I64:
    stretches = folds.stretches
    return holding(phones.file, phones.start, phones.end, stretches.first, stretches.start, stretches.end)


def _fold_of(stretch: I64, folds: Folds) -> I16:
    found: I16 = np.append(folds.stretches.fold, np.int16(NO_FOLD))[stretch]
    return found
