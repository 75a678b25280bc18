"""A run as it is read: pieces of rows with dictionaries of their own, before an archive gives them its codes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from swsdask.model.resources import Resources


@dataclass(frozen=True)
class RunHeader:
    """What a run says of itself. `attributes` holds everything else the file's root element or metadata gives.

    `resources` are what the file beside it tells, if there is one.
    """

    system: str
    declared_scores: tuple[float, float] | None = None
    attributes: dict[str, str] = field(default_factory=dict)
    resources: Resources | None = None


@dataclass(frozen=True, eq=False)
class RunPiece:
    """Some rows of one run, in file order.

    `queries`, `documents` are this piece's dictionaries (document ids already without directory and extension, or whole
    if they are `judged` documents), with the line where each first stands (None: the format has no lines). The columns:
    `query`, `document` int32 codes, `channel` int8, `start`, `duration` int32 ticks, `score` float64 finite, `decision`
    int8 (1 YES, 0 NO, -1 absent). `rounded` counts times finer than a tick. `listed` are the queries the file lists,
    with or without rows; all of them are among `queries`. `position` int64, where it counts, ascends with the rows of
    all pieces (see `archive.file_order`).
    """

    header: RunHeader
    file: str
    queries: tuple[str, ...]
    query_lines: tuple[int | None, ...]
    documents: tuple[str, ...]
    document_lines: tuple[int | None, ...]
    query: NDArray[np.int32]
    document: NDArray[np.int32]
    channel: NDArray[np.int8]
    start: NDArray[np.int32]
    duration: NDArray[np.int32]
    score: NDArray[np.float64]
    decision: NDArray[np.int8]
    rounded: int = 0
    listed: tuple[str, ...] = ()
    position: NDArray[np.int64] | None = None
    judged: bool = False

    def __len__(self) -> int:
        return len(self.query)
