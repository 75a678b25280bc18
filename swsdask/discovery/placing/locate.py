"""Placing what a system found in the corpus: its distinct fragments, their phones, types and folds."""

from __future__ import annotations

import numpy as np

from swsdask.discovery.placing.clipping import clip
from swsdask.discovery.placing.numbering import rows_in_order
from swsdask.discovery.placing.restriction import folds_of
from swsdask.discovery.placing.transcription import phones_of
from swsdask.kernels.sequences import number_sequences
from swsdask.model.corpus import Corpus, Definition, Discovered, Fragments

OUTSIDE_SPEECH = "outside speech"
_UNPLACED: dict[Definition, str] = {"tde2015": "outside the segments of phones", "tdev2": "without phones"}


def locate(fragments: Fragments, corpus: Corpus) -> Discovered:
    """A system's fragments placed by the corpus's definition (`clipping`, `transcription`, `restriction`).

    To `dropped` come the reasons that occurred here, each with its number of rows as read. Types are numbered in the
    order in which the fragments first have them.
    """
    cluster, file, start, end = fragments.cluster, fragments.file, fragments.start, fragments.end
    dropped, clipped = dict(fragments.dropped), 0
    if corpus.definition == "tde2015" and corpus.speech is not None:
        start, end, some = clip(file, start, end, corpus.speech)
        clipped = int(np.count_nonzero((start != fragments.start) | (end != fragments.end)))
        if not some.all():
            dropped[OUTSIDE_SPEECH] = int(np.count_nonzero(~some))
            cluster, file, start, end = cluster[some], file[some], start[some], end[some]

    order = rows_in_order(file, start, end)
    file, start, end = file[order], start[order], end[order]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (file[1:] != file[:-1]) | (start[1:] != start[:-1]) | (end[1:] != end[:-1])
    member = np.empty(len(order), np.int64)
    member[order] = np.cumsum(fresh) - 1
    file, start, end = file[fresh], start[fresh], end[fresh]

    first, last = phones_of(file, start, end, corpus)
    placed = first >= 0
    if not placed.all():
        kept = placed[member]
        dropped[_UNPLACED[corpus.definition]] = int(np.count_nonzero(~kept))
        member, cluster = (np.cumsum(placed) - 1)[member[kept]], cluster[kept]
        file, start, end, first, last = file[placed], start[placed], end[placed], first[placed], last[placed]

    by_class = np.lexsort((member, cluster))
    return Discovered(
        system=fragments.system,
        classes=fragments.classes,
        file=file,
        start=start,
        end=end,
        first=first,
        last=last,
        type=number_sequences(first, last, corpus.phones.label)[0],
        fold=folds_of(file, start, end, corpus.folds),
        member_cluster=cluster[by_class],
        member_fragment=member[by_class],
        dropped=dropped,
        clipped=clipped,
    )
