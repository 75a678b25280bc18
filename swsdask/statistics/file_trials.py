"""The trials of a system in the order of its files, for MediaEval's tool.

It sorts trials with a stable sort, never pools equal scores, and adds numbers one after the other: its output depends
on the whole list in the order of the file. So this statistic is that list. It is for document trials, and made only if
`Reference.file_order` is set.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from swsdask.model.trials import F64, I8, I32, I64, Reference, Trials
from swsdask.statistics.statistic import FirstRound, Found, OfDetections


@dataclass(frozen=True, eq=False)
class FileTrials(FirstRound, OfDetections):
    """One system's given trials: equally long columns, ascending by `position`, their place in its files.

    `decision` is -1 if there is none, and a `score` may be -0.0.
    """

    aligned: ClassVar[bool] = True
    columns: ClassVar[tuple[str, ...]] = ("document", "position")

    position: I64
    score: F64
    query: I32
    document: I32
    decision: I8

    @classmethod
    def prepare(cls, found: Found, reference: Reference) -> tuple[()] | None:
        """None if the order of files does not count."""
        return () if reference.file_order else None

    @classmethod
    def from_trials(cls, trials: Trials, reference: Reference, prepared: tuple[()]) -> Self:
        """Return the trials of one aligned cell."""
        columns = {
            "position": _of(trials, "position"),
            "score": _of(trials, "score"),
            "query": trials.query,
            "document": _of(trials, "document"),
            "decision": np.full(len(trials), -1, np.int8) if trials.decision is None else trials.decision,
        }
        order = np.argsort(columns["position"], kind="stable")
        return cls(**{name: column[order] for name, column in columns.items()})

    def merge(self, other: Self) -> Self:
        """The trials of both parts together. Columns are merged one after the other, as they are large, and sorted only
        if the parts overlap in the file.
        """
        parts = sorted((self, other), key=lambda part: part.position[:1].tolist())
        first, second = (part.position for part in parts)
        apart = not (len(first) and len(second)) or first[-1] < second[0]
        order = slice(None) if apart else np.argsort(np.concatenate([first, second]), kind="stable")

        def both(name: str) -> NDArray[Any]:
            column: NDArray[np.generic] = np.concatenate([getattr(part, name) for part in parts])[order]
            return column

        return type(self)(**{field.name: both(field.name) for field in fields(self)})


def _of(trials: Trials, column: str) -> NDArray[Any]:
    """Return a column of the detection of every trial."""
    values: NDArray[Any] | None = None if trials.detections is None else getattr(trials.detections, column)
    if values is None:
        raise ValueError(f"the column `{column}` was not read")
    return values if trials.row is None else values[trials.row]
