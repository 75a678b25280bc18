"""Blocks of lines in their ordinary form, which a table in text has but for faults: read by compiled code."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from swsdask.formats.files import Lines
from swsdask.formats.runs.arrow import Names, TableRows
from swsdask.formats.runs.builder import Texts
from swsdask.kernels.table import (
    ALL,
    CHANNEL,
    DECISION,
    DOCUMENT,
    DURATION,
    END,
    ENTRIES,
    ODD,
    OTHER,
    POSITION,
    QUERY,
    ROWS,
    SCORE,
    START,
    STATE_SIZE,
    SYSTEM,
    scan_lines,
)
from swsdask.kernels.text import PADDING

_VALUES = {
    "system": SYSTEM,
    "query": QUERY,
    "document": DOCUMENT,
    "channel": CHANNEL,
    "start": START,
    "duration": DURATION,
    "end": END,
    "score": SCORE,
    "decision": DECISION,
}
_IDS = (SYSTEM, QUERY, DOCUMENT)
_NEWLINE = ord("\n")


class OrdinaryLines:
    """Reads lines of `size` values, of which `columns` has the indices of the known ones."""

    def __init__(self, delimiter: str, size: int, columns: Mapping[str, int]) -> None:
        self._delimiter = ord(delimiter)
        self._values = np.full(size, OTHER, np.int64)
        for name, place in columns.items():
            self._values[place] = _VALUES[name]
        self._texts = Texts()
        self._state = np.zeros(STATE_SIZE, np.int64)
        self._ids: list[str] = []

    def read(self, block: Lines) -> TableRows | None:
        """The rows of a block, one for each line; None if any of them is not ordinary (`kernels.table`).

        Their names have the ids of all blocks so far.
        """
        data = block.data.replace(b"\r\n", b"\n") if b"\r" in block.data else block.data
        if b'"' in data or b"\r" in data:
            return None
        text = np.frombuffer(data + bytes(PADDING), np.uint8)
        rows = int(np.count_nonzero(text == _NEWLINE))
        texts, state = self._texts, self._state
        state[[POSITION, ROWS]] = 0
        codes = np.empty((len(_IDS), rows), np.int32)
        found = TableRows(
            system=None,
            query=Names(codes[QUERY], []),
            document=Names(codes[DOCUMENT], []),
            channel=np.ones(rows, np.int8),
            start=np.zeros(rows, np.int32),
            duration=np.zeros(rows, np.int32),
            score=np.empty(rows, np.float64),
            decision=np.full(rows, -1, np.int8),
            rounded=np.empty(rows, np.int8),
        )
        while True:
            why = scan_lines(
                text,
                self._delimiter,
                self._values,
                state,
                codes,
                np.zeros((3, 3), np.int64),
                found.channel,
                found.start,
                found.duration,
                found.score,
                found.decision,
                found.rounded,
                *texts.dictionary,
            )
            if why == ODD:
                return None
            if why == ALL:
                break
            texts.make_room(int(state[ENTRIES]))
        self._ids += [name for name, _ in texts.names(int(state[ENTRIES]), len(self._ids))]
        system, query, document = (Names(codes[kind], self._ids) for kind in _IDS)
        has_system = SYSTEM in self._values
        return found._replace(system=system if has_system else None, query=query, document=document)
