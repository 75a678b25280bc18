"""The two dialects of NIST's lists of detections: `kwslist` (keyword search) and the older `stdlist`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from swsdask.kernels.xml_tags import pack_words

ROW_NAMES = {
    "document": "file",
    "channel": "channel",
    "start": "tbeg",
    "duration": "dur",
    "score": "score",
    "decision": "decision",
}
"""What both dialects call the values of a row."""


@dataclass(frozen=True)
class Dialect:
    """The names of a dialect's elements, and of the attributes of its lists."""

    root: str
    list: str
    row: str
    query: str
    search_time: str
    oov_count: str

    @cached_property
    def words(self) -> NDArray[np.uint8]:
        """The names as the scanner wants them."""
        return pack_words(self.root, self.list, self.row, self.query, self.search_time, self.oov_count)


DIALECTS = {
    dialect.root: dialect
    for dialect in (
        Dialect("kwslist", "detected_kwlist", "kw", "kwid", "search_time", "oov_count"),
        Dialect("stdlist", "detected_termlist", "term", "termid", "term_search_time", "oov_term_count"),
    )
}
"""By the name of the root element."""
