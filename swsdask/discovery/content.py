"""Content hashes of what was read: of what it says, not of how it was written or compressed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import xxhash

from swsdask.model.corpus import Corpus, Fragments, Stretches, Tokens


def corpus_content(corpus: Corpus) -> dict[str, str]:
    """Hashes of the phones, the words, the stretches of speech if any, and each set of folds, by what they are."""
    found = {"phones": _tokens(corpus.phones, corpus), "words": _tokens(corpus.words, corpus)}
    if corpus.speech is not None:
        found["split"] = _digest(corpus.files, _columns(corpus.speech))
    for folds in corpus.folds:
        found[f"folds of {folds.condition}"] = _digest((corpus.files, folds.names), _columns(folds.stretches))
    return found


def fragments_content(fragments: Fragments, corpus: Corpus) -> str:
    """The hash of what one system found."""
    columns = (fragments.cluster, fragments.file, fragments.start, fragments.end)
    return _digest((corpus.files, fragments.classes), columns)


def _tokens(tokens: Tokens, corpus: Corpus) -> str:
    return _digest((corpus.files, tokens.labels), (tokens.file, tokens.start, tokens.end, tokens.label))


def _columns(stretches: Stretches) -> tuple[np.ndarray[Any, Any], ...]:
    return stretches.file, stretches.start, stretches.end, stretches.fold


def _digest(names: Any, columns: Iterable[np.ndarray[Any, Any]]) -> str:
    """32 hexadecimal digits of names and integer columns."""
    state = xxhash.xxh3_128(json.dumps(names, ensure_ascii=False).encode())
    for column in columns:
        state.update(str(len(column)).encode())
        state.update(column.astype("<i8").tobytes())
    return state.hexdigest()
