"""How much a system found: n_classes, n_fragments and n_words, of a set of folds and of each fold.

A class counts where one of its fragments does; fragments are distinct ones; words are the distinct transcriptions of
fragments, as the challenge's later toolbox counts them, without the empty one. What lies in no fold of the set does not
count. Over a set of folds these are numbers of distinct things, so they are not the sums over its folds.
"""

from __future__ import annotations

import numpy as np

from swsdask.model.corpus import NO_FOLD, Corpus, Discovered
from swsdask.model.trials import F64, I64

NAMES = ("n_classes", "n_fragments", "n_words")


def sizes(discovered: Discovered, corpus: Corpus, fold_set: int) -> tuple[dict[str, float], dict[str, F64]]:
    """The numbers over a set of folds, and for each name those of its folds, float64 [n_folds]."""
    fold = discovered.fold[fold_set].astype(np.int64)
    member_fold = fold[discovered.member_fragment]
    transcribed = np.flatnonzero(discovered.last > discovered.first)
    things = {
        "n_classes": (member_fold, discovered.member_cluster.astype(np.int64)),
        "n_fragments": (fold, np.arange(len(discovered))),
        "n_words": (fold[transcribed], discovered.type[transcribed].astype(np.int64)),
    }
    n_folds = len(corpus.folds[fold_set].names)
    counted = {name: _distinct(*columns, n_folds) for name, columns in things.items()}
    return {name: total for name, (total, _) in counted.items()}, {name: each for name, (_, each) in counted.items()}


def _distinct(fold: I64, thing: I64, n_folds: int) -> tuple[float, F64]:
    """How many distinct things are in any fold, and in each."""
    inside = fold != NO_FOLD
    fold, thing = fold[inside], thing[inside]
    pairs = np.unique(thing * n_folds + fold)
    return float(len(np.unique(thing))), np.bincount(pairs % n_folds, minlength=n_folds).astype(np.float64)
