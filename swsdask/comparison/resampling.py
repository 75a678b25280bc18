"""Resampling as weights: a replicate of an evaluation draws its queries again, with replacement.

A replicate of n queries is n draws, so a vector of n whole weights whose sum is n. A measure of the replicate is the
same arithmetic as the measure itself, every query counting as often as it was drawn: detections are never read again.

Replicate r of a seed has the stream of random numbers (seed, r) of Philox, a counter-based generator; a draw is the
high half of one 64-bit word, times n, divided by 2^32 and rounded down. Queries are numbered in the order of their ids.
So weights do not depend on the order of queries, systems or replicates, nor on workers.

Source: Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapters 6 and 8; Bisani and Ney, Bootstrap
estimates for confidence intervals in ASR performance evaluation, ICASSP 2004.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from swsdask.model.trials import I8, I32, I64

_DRAWS, _SIGNS = 0, 1
"""The streams of a replicate."""


def bootstrap_weights(seed: int, replicates: int, n_queries: int) -> I32:
    """How often each query is drawn in each replicate: int32 [n_queries, replicates]."""

    def draw(words: Callable[[int], np.ndarray]) -> I64:
        drawn = (words(n_queries) >> np.uint64(32)) * np.uint64(n_queries) >> np.uint64(32)
        return np.bincount(drawn.astype(np.int64), minlength=n_queries)

    return _by_replicate(seed, replicates, n_queries, _DRAWS, draw, np.int32)


def random_signs(seed: int, replicates: int, n_queries: int) -> I8:
    """1 or -1 for each query in each replicate, each as likely: int8 [n_queries, replicates]."""

    def draw(words: Callable[[int], np.ndarray]) -> np.ndarray:
        octets = words(-(-n_queries // 64)).astype("<u8").view(np.uint8)
        return 1 - 2 * np.unpackbits(octets, count=n_queries, bitorder="little").astype(np.int8)

    return _by_replicate(seed, replicates, n_queries, _SIGNS, draw, np.int8)


def left_out_weights(n_queries: int) -> I32:
    """The weights of the jackknife: replicate q leaves out query q. int32 [n_queries, n_queries]."""
    return np.ones((n_queries, n_queries), np.int32) - np.eye(n_queries, dtype=np.int32)


def _by_replicate(
    seed: int,
    replicates: int,
    n_queries: int,
    stream: int,
    draw: Callable[[Callable[[int], np.ndarray]], np.ndarray],
    number: type[np.int8 | np.int32],
) -> np.ndarray:
    rows = np.empty((replicates, n_queries), number)
    for replicate in range(replicates):
        key = np.array([seed, replicate], np.uint64)
        rows[replicate] = draw(np.random.Philox(key=key, counter=[0, 0, 0, stream]).random_raw)
    return np.ascontiguousarray(rows.T)
