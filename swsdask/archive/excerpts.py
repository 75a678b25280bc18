"""The evaluated excerpts: which documents there are, and which stretches of time lie inside one excerpt."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdask.model.trials import I8, I32, I64, UNKNOWN_DOCUMENT, Bool

_TRACK_BITS = 32


def document_ids(documents: pa.Table) -> tuple[str, ...]:
    """The distinct documents in the order of the table `documents`: a document's code is its place here."""
    return tuple(dict.fromkeys(documents["document"].to_pylist()))


def spoken_elsewhere(documents: pa.Table, words: pa.Table) -> tuple[str, ...]:
    """The documents with words that the table `documents` does not have, sorted. Their codes follow those it has."""
    return tuple(sorted(set(words["document"].unique().to_pylist()) - set(document_ids(documents))))


def document_codes(ids: tuple[str, ...], column: pa.ChunkedArray) -> I32:
    """The codes of a column of document ids, int32; -1 for documents that are not among `ids`."""
    found = pc.fill_null(pc.index_in(column, value_set=pa.array(ids, pa.string())), UNKNOWN_DOCUMENT)
    codes: I32 = found.to_numpy().astype(np.int32)
    return codes


@dataclass(frozen=True, eq=False)
class Excerpts:
    """The excerpts, ready for looking up.

    `begins` are (document, channel, start) packed in an int64, ascending; `reaches` the latest end of an excerpt of
    that (document, channel) that begins no later, packed likewise.
    """

    begins: I64
    reaches: I64

    @classmethod
    def of(cls, documents: pa.Table) -> Self:
        """The excerpts of a table of `model.schemas.DOCUMENTS`."""
        codes = document_codes(document_ids(documents), documents["document"])
        channel = documents["channel"].to_numpy()
        begins = _packed(codes, channel, documents["start"].to_numpy())
        ends = _packed(codes, channel, documents["end"].to_numpy())
        order = np.argsort(begins, kind="stable")
        return cls(begins[order], np.maximum.accumulate(ends[order]))

    def contain(self, document: I32, channel: I8, start: I32, end: NDArray[np.signedinteger]) -> Bool:
        """Whether each [start, end] (ticks) lies entirely inside one excerpt of its (document, channel), ends
        inclusive.

        An excerpt that holds it begins no later, and of those the one that reaches farthest decides.
        """
        if not len(self.begins):
            return np.zeros(len(document), bool)
        last = np.searchsorted(self.begins, _packed(document, channel, start), "right") - 1
        inside: Bool = (last >= 0) & (self.reaches[last] >= _packed(document, channel, end))
        return inside


def _packed(document: I32, channel: I8, time: NDArray[np.signedinteger]) -> I64:
    track = document.astype(np.int64) * 256 + (channel.astype(np.int64) + 128)
    return (track << _TRACK_BITS) + time
