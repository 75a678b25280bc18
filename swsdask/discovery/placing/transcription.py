"""The phones of a stretch of time: the three definitions of a fragment's transcription.

document: the phones that the fragment shares more than 30 ms with, or more than 50 % of, as the measures document of
the Zero Resource challenge has it; compared exactly, in ticks. Gaps between phones do not matter.

tde2015: QUIRK of tde: the phones that are `near` (more than 30 ms, or more than half of the phone OR of the fragment,
in doubles) within the one segment without gaps that is looked up, the last that is not after the fragment. A fragment
that is in no segment has no transcription and is dropped; one that has a segment and no phones stays.

tdev2: QUIRK of tdev2: all phones that share any time with the fragment, but the first and the last only if at least
30 ms (rounded to milliseconds) of a phone of 60 ms or more are shared, or at least half (in doubles) of a shorter one.
A fragment without phones is dropped.
"""

from __future__ import annotations

import numpy as np

from swsdask.kernels.placing import place_document, place_tde, place_tdev2
from swsdask.model.corpus import Corpus
from swsdask.model.trials import I32, I64

NO_PLACE = -1


def phones_of(file: I32, start: I32, end: I32, corpus: Corpus) -> tuple[I64, I64]:
    """The phones first:last of each stretch of time, int64; both `NO_PLACE` where it is dropped, without phones."""
    phones = corpus.phones
    if corpus.definition == "tde2015":
        return place_tde(file, start, end, *segments_of(corpus.segment, phones.first), phones.start, phones.end)
    if corpus.definition == "document":
        return place_document(file, start, end, phones.first, phones.start, phones.end)
    first, last = place_tdev2(file, start, end, phones.first, phones.start, phones.end)
    empty = first == last
    return np.where(empty, NO_PLACE, first), np.where(empty, NO_PLACE, last)


def segments_of(segment: I32, first: I64) -> tuple[I64, I64]:
    """Segments by file, int64 [n_files + 1], and the tokens of each, int64 [n_segments + 1].

    `segment` numbers the segment of each token, ascending from 0; a segment lies in one file, and the tokens of file f
    are rows first[f]:first[f + 1].
    """
    begins = np.append(np.flatnonzero(np.diff(segment, prepend=-1)), len(segment))
    return np.searchsorted(begins, first), begins
