"""What follows from a corpus alone, found once in each process."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from threading import Lock
from typing import TypeVar

from swsdask.model.corpus import Corpus

Found = TypeVar("Found")

_CORPORA = 2
"""How many corpora are remembered: the one that is scored on, and the one before."""


def per_corpus(find: Callable[[Corpus], Found]) -> Callable[[Corpus], Found]:
    """Remember what a function finds of a corpus. Of several threads that ask, the others wait for the first."""
    remembered, one_at_a_time = lru_cache(_CORPORA)(find), Lock()

    @wraps(find)
    def found(corpus: Corpus) -> Found:
        with one_at_a_time:
            return remembered(corpus)

    return found
