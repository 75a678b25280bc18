"""The corpus of term discovery, the fragments that systems found in it, and the tables of both.

Times are ticks of 0.1 ms (int32). Alignments and class files have at most four decimals, so `ticks / 10_000` is the
double that an official tool parses, and its arithmetic can be followed to the last digit.

Tables hold files as they were read, before any definition is applied. Their column `line` is for messages and is not
content; the metadata's `rounded` counts the times that were finer than a tick.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from swsdask.model.trials import I16, I32, I64, Bool

Definition = Literal["document", "tde2015", "tdev2"]
"""Whose meaning the measures have: the measures document's (see `Readings`), that of the challenge's tool of 2015
(`tde`), or that of 2017 and 2020 (`tdev2`)."""

Coverage = Literal["intersected", "union"]
WrongBoundaries = Literal["singly", "together"]
OverlappingPairs = Literal["left_out", "kept"]


@dataclass(frozen=True)
class Readings:
    """How the definition `document` reads what the measures document leaves open; other definitions have no choice.

    - `coverage`: |cover(P_disc)| / |cover(P_all)| of what is in both covers ("intersected"), or literally ("union").
    - `min_phones`: how many phones the shortest strings have that matching pairs; those of P_all have 3 or more.
    - `boundaries`: every boundary at no edge of a phone is a wrong one by itself ("singly"), or they are one element
      of their set, the index -1 ("together").
    - `overlapping_pairs`: pairs of P_clus that overlap are left out, as those of P_disc are ("left_out"), or "kept".
    """

    coverage: Coverage = "intersected"
    min_phones: int = 3
    boundaries: WrongBoundaries = "singly"
    overlapping_pairs: OverlappingPairs = "left_out"


DEFAULT_READINGS = Readings()

DEFAULT_FOLDS = 10
MAX_FOLDS = 2**15 - 1

NO_FOLD = -1


@dataclass(frozen=True, eq=False)
class Tokens:
    """Phones or words of a corpus, sorted by (file, start, end, label): equally long columns.

    `file` is a number in `Corpus.files`, `label` one in `labels`. The tokens of file f are rows
    `first[f]:first[f + 1]`. Phones of one file do not overlap; words may.
    """

    file: I32
    start: I32
    end: I32
    label: I32
    labels: tuple[str, ...]
    first: I64

    def __len__(self) -> int:
        return len(self.file)


@dataclass(frozen=True, eq=False)
class Stretches:
    """Parts of files, sorted by (file, start, end): the speech of a corpus, or the parts of its folds.

    `fold` numbers the fold of each; stretches of one set of folds do not overlap. The stretches of file f are rows
    `first[f]:first[f + 1]`.
    """

    file: I32
    start: I32
    end: I32
    fold: I16
    first: I64

    def __len__(self) -> int:
        return len(self.file)


@dataclass(frozen=True, eq=False)
class Folds:
    """A set of folds, and the condition that is averaged over them: "all", or "within_talker" (a fold per speaker).

    A fragment counts in the fold one of whose stretches it lies entirely inside; in none if there is no such stretch.
    A whole file is the stretch from 0 to `MAX_TICKS`.
    """

    condition: str
    names: tuple[str, ...]
    stretches: Stretches


@dataclass(frozen=True, eq=False)
class Corpus:
    """What was spoken; the same for every system, given to every worker once.

    `files` are sorted. `segment`, int32 [n_phones], numbers the maximal runs of phones of one file of which each starts
    where the one before ends, ascending. `silence` and `noise`, bool [n_phone_labels], mark the labels "SIL" and "SPN".
    `speech` are the stretches that fragments are clipped to (tde2015 only), None where none were given. `words` of
    tdev2 are those that it reads: not the ones labelled SIL. `notes` report what was changed or left aside.
    """

    definition: Definition
    files: tuple[str, ...]
    phones: Tokens
    words: Tokens
    segment: I32
    silence: Bool
    noise: Bool
    speech: Stretches | None
    folds: tuple[Folds, ...]
    notes: tuple[str, ...] = ()
    readings: Readings = DEFAULT_READINGS


@dataclass(frozen=True, eq=False)
class Fragments:
    """What one system found, as read: rows sorted by (class, file, start, end), duplicates kept.

    `cluster` is a number in `classes`, the names of the classes in the order of the file; an empty class has no rows.
    `dropped` counts the rows of the file that the definition does not let in, by reason; `notes` report what
    else was changed, or would have stopped the official tool.
    """

    system: str
    classes: tuple[str, ...]
    cluster: I32
    file: I32
    start: I32
    end: I32
    dropped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.cluster)


@dataclass(frozen=True, eq=False)
class Discovered:
    """One system's fragments placed in the corpus by a definition: what every statistic of discovery is counted on.

    Distinct fragments are rows sorted by (file, start, end) (tdev2: one row per distinct (file, start, end) too).
    Fragment i has the phones `first[i]:last[i]` of the corpus (maybe none) and `type[i]`, equal for fragments of equal
    phone labels and no others, numbered without gaps. `fold` is int16 [n_fold_sets, n_fragments], `NO_FOLD` for
    fragments that no fold of that set counts.

    Members are rows sorted by (cluster, fragment), a duplicate member one row each: `member_cluster`, a number in
    `classes`, and `member_fragment`, a row of the fragments. `dropped` counts the rows of the file that are no members,
    those of `Fragments.dropped` too, by reason; `clipped` those whose times a stretch of speech cut.
    """

    system: str
    classes: tuple[str, ...]
    file: I32
    start: I32
    end: I32
    first: I64
    last: I64
    type: I32
    fold: I16
    member_cluster: I32
    member_fragment: I64
    dropped: dict[str, int]
    clipped: int = 0

    def __len__(self) -> int:
        return len(self.file)

    @property
    def rows(self) -> int:
        """The number of distinct fragments."""
        return len(self)


_NAME = pa.dictionary(pa.int32(), pa.string())

ALIGNMENT = pa.schema(
    [
        pa.field("file", _NAME, nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("label", _NAME, nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per phone, or per word."""

STRETCHES = pa.schema(
    [
        pa.field("file", _NAME, nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("fold", pa.int32(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per stretch of speech (`fold` 0), or per stretch of a fold, numbered in the order of the file."""

SPEAKERS = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("speaker", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per file: who speaks in it."""

CLASSES = pa.schema(
    [
        pa.field("class", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per class, empty ones too: what follows `Class`, in the order of the file."""

FRAGMENTS = pa.schema(
    [
        pa.field("cluster", pa.int32(), nullable=False),
        pa.field("file", _NAME, nullable=False),
        pa.field("start", pa.int32(), nullable=False),
        pa.field("end", pa.int32(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per fragment as it was read; `cluster` is a row of the classes."""
