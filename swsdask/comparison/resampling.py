"""Resampling as weights: a replicate of an evaluation draws its queries again, with replacement.

A replicate of n queries is n draws, so a vector of n whole weights whose sum is n. A measure of the replicate is the
same arithmetic as the measure itself, every query counting as often as it was drawn: detections are never read again.
On request documents are drawn likewise, independently of the queries (the pigeonhole bootstrap): a trial counts as
often as its query times as often as its document.

Replicate r of a seed has the stream of random numbers (seed, r) of Philox, a counter-based generator; a draw is the
high half of one 64-bit word, times n, divided by 2^32 and rounded down. Queries and documents are numbered in the order
of their ids. So weights do not depend on the order of queries, systems or replicates, nor on workers.

Draws are not keyed by the ids themselves: a draw picks one of n queries, so what it picks depends on which queries
there are, whatever it is keyed by, and the weights of a query would not stay the same in another evaluation.

Sources: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 6 and 8; Bisani and Ney, Bootstrap
estimates for confidence intervals in ASR performance evaluation, ICASSP 2004; Owen, The Pigeonhole Bootstrap, Annals of
Applied Statistics 1 (2007).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from swsdask.model.trials import I8, I32, I64

QUERIES, _SIGNS, DOCUMENTS = 0, 1, 2
"""The streams of a replicate."""

_AT_ONCE = 256
"""How many replicates are drawn at once."""


def bootstrap_weights(seed: int, replicates: int, n: int, stream: int = QUERIES) -> I32:
    """Count how often each of n queries, or of n `DOCUMENTS`, is drawn in each replicate: int32 [n, replicates]."""
    rows = np.empty((replicates, n), np.int32)
    for begin, words in _streams(seed, replicates, n, stream):
        drawn = ((words >> np.uint64(32)) * np.uint64(n) >> np.uint64(32)).astype(np.int64)
        place: I64 = drawn + np.arange(len(words))[:, np.newaxis] * n
        rows[begin : begin + len(words)] = np.bincount(place.ravel(), minlength=words.size).reshape(words.shape)
    return np.ascontiguousarray(rows.T)


def random_signs(seed: int, replicates: int, n_queries: int) -> I8:
    """1 or -1 for each query in each replicate, each as likely: int8 [n_queries, replicates]."""
    rows = np.empty((replicates, n_queries), np.int8)
    for begin, words in _streams(seed, replicates, -(-n_queries // 64), _SIGNS):
        octets = words.astype("<u8").view(np.uint8)
        bits = np.unpackbits(octets, axis=1, count=n_queries, bitorder="little")
        rows[begin : begin + len(words)] = 1 - 2 * bits.astype(np.int8)
    return np.ascontiguousarray(rows.T)


def left_out_weights(n_queries: int) -> I32:
    """The weights of the jackknife: replicate q leaves out query q. int32 [n_queries, n_queries]."""
    return np.ones((n_queries, n_queries), np.int32) - np.eye(n_queries, dtype=np.int32)


def _streams(seed: int, replicates: int, n_words: int, stream: int) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    """The first words of a stream of some replicates at once: the first of them, and uint64 [n_at_once, n_words]."""
    source = np.random.Philox(key=np.array([seed, 0], np.uint64), counter=[0, 0, 0, stream])
    state = source.state
    for begin in range(0, replicates, _AT_ONCE):
        words = np.empty((min(_AT_ONCE, replicates - begin), n_words), np.uint64)
        for row in range(len(words)):
            state["state"]["key"][1] = begin + row
            source.state = state
            words[row] = source.random_raw(n_words)
        yield begin, words
