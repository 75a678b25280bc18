"""Term discovery: its corpus and fragments, the table of its measures, and its settings.

`discovery.measures` has the formulas. A family of measures has a precision, a recall and their harmonic mean, the
F-score.

Times are ticks of 0.1 ms (int32). Alignments and class files have at most four decimals, so `ticks / 10_000` is the
double that an official tool parses, and the tool's arithmetic can be reproduced to the last digit.

Tables hold files as they were read, before any definition is applied. Their column `line` is only for messages; the
metadata's `rounded` counts the times that were finer than a tick.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Literal, Self

import pyarrow as pa
from pydantic import Field, model_validator

from swsdask.model.measures import Description
from swsdask.model.results import Note
from swsdask.model.settings_table import SettingsTable
from swsdask.model.trials import I16, I32, I64, Bool

Definition = Literal["document", "tde2015", "tdev2"]
"""The definition of the measures: of the measures document (see `Readings`), of the challenge's tool of 2015 (`tde`),
or of its tool of 2017 and 2020 (`tdev2`)."""

Coverage = Literal["intersected", "union"]
WrongBoundaries = Literal["singly", "together"]
OverlappingPairs = Literal["left_out", "kept"]


@dataclass(frozen=True)
class Readings:
    """Choices that the measures document leaves open, for the definition `document`; other definitions have none.

    - `coverage`: |cover(P_disc)| / |cover(P_all)|, where the numerator counts only what is in both covers
      ("intersected"), or as the formula is written ("union").
    - `min_phones`: the least number of phones of the strings of matching pairs; strings of P_all have 3 or more.
    - `boundaries`: every boundary that is not at the edge of a phone is one wrong boundary ("singly"), or all of them
      are one element of the set, the index -1 ("together").
    - `overlapping_pairs`: pairs of P_clus that overlap are left out, like those of P_disc ("left_out"), or "kept".
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

    `file` is an index into `Corpus.files`, `label` one into `labels`. The tokens of file f are rows
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
class FileIntervals:
    """Parts of files, sorted by (file, start, end): the speech of a corpus, or the parts of its folds.

    `fold` is the number of each part's fold; parts of one set of folds do not overlap. The parts of file f are rows
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

    A fragment counts in a fold if it lies entirely inside one of the fold's parts; otherwise it counts in none.
    A whole file is the part from 0 to `MAX_TICKS`.
    """

    condition: str
    names: tuple[str, ...]
    stretches: FileIntervals


@dataclass(frozen=True, eq=False)
class Corpus:
    """A corpus, in which systems search; the same for every system, sent to every worker once.

    `files` are sorted. A segment is a maximal run of phones of one file, each of which starts where the one before it
    ends; `segment`, int32 [n_phones], numbers them, ascending. `silence` and `noise`, bool [n_phone_labels], mark the
    labels "SIL" and "SPN". `speech` are the parts that fragments are clipped to (tde2015 only), None where none were
    given. `words` of tdev2 omit those labelled SIL, as the tool does. `notes` report changes and omissions.
    """

    definition: Definition
    files: tuple[str, ...]
    phones: Tokens
    words: Tokens
    segment: I32
    silence: Bool
    noise: Bool
    speech: FileIntervals | None
    folds: tuple[Folds, ...]
    notes: tuple[str, ...] = ()
    readings: Readings = DEFAULT_READINGS


@dataclass(frozen=True, eq=False)
class Fragments:
    """The fragments that one system found, as read: rows sorted by (class, file, start, end), duplicates kept.

    `cluster` is an index into `classes`, the names of the classes in the order of the file; an empty class has no rows.
    `dropped` counts the rows of the file that the definition excludes, by reason; `notes` report other
    changes, and faults that would have stopped the official tool.
    """

    system: str
    classes: tuple[str, ...]
    cluster: I32
    file: I32
    start: I32
    end: I32
    dropped: dict[str, int] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.cluster)


@dataclass(frozen=True, eq=False)
class Discovered:
    """One system's fragments placed in the corpus by a definition: the input of every statistic of discovery.

    Distinct fragments are rows sorted by (file, start, end) (tdev2: one row per distinct (file, start, end) too).
    Fragment i has the phones `first[i]:last[i]` of the corpus (maybe none). `type[i]` is equal for fragments with equal
    phone labels and for no others; types are numbered without gaps. `fold` is int16 [n_fold_sets, n_fragments],
    `NO_FOLD` for fragments that no fold of that set counts.

    Members are rows sorted by (cluster, fragment); each duplicate has a row of its own: `member_cluster`, an index into
    `classes`, and `member_fragment`, a row of the fragments. `dropped` counts the rows of the file that are no members,
    including those of `Fragments.dropped`, by reason; `clipped` counts those that were cut to a part of `speech`.
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
"""One row per part of the speech (`fold` 0), or per part of a fold; folds are numbered in the order of the file."""

SPEAKERS = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("speaker", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per file: its speaker."""

CLASSES = pa.schema(
    [
        pa.field("class", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
    ]
)
"""One row per class, empty ones too: the text after `Class`, in the order of the file."""

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


COUNTS = {"n_classes": "Classes", "n_fragments": "Fragments", "n_words": "Words", "n_pairs": "Pairs"}
"""Measures that count, and their headings."""

SINGLE = {"ned": "NED", "coverage": "Coverage"}
"""Measures of one number, and their headings."""

FAMILIES = {
    "matching": "Matching",
    "grouping": "Grouping",
    "type": "Type",
    "token": "Token",
    "boundary": "Boundary",
}
"""Families of a precision, a recall and an F-score, and their headings."""

ENDINGS = {"precision": "P", "recall": "R", "f_score": "F"}
WORDS = {"precision": "precision", "recall": "recall", "f_score": "F-score"}

ABOUT = {
    "ned": "Mean normalised edit distance of the pairs: 0 is best",
    "coverage": "Share of the discoverable phones that is covered",
    "matching": "Pairs of fragments and their parts, against all pairs with equal transcriptions",
    "grouping": "Classes against equal transcriptions: purity and inverse purity",
    "type": "Word types found, against the lexicon",
    "token": "Fragments against word tokens",
    "boundary": "Fragment boundaries against word boundaries",
}

_COUNTED = {
    "n_classes": "Classes that a system found",
    "n_fragments": "Distinct fragments that a system found",
    "n_words": "Distinct transcriptions of fragments",
    "n_pairs": "Pairs of fragments that NED averages",
}
_FORMULAS = {
    "ned": "mean over pairs of distance / length",
    "f_score": "2 precision recall / (precision + recall)",
}


def _rows() -> Iterator[Description]:
    for name, heading in COUNTS.items():
        yield Description(name, heading, _COUNTED[name], 0, span="0 ..")
    for name, heading in SINGLE.items():
        direction = -1 if name == "ned" else 1
        formula = _FORMULAS.get(name, "")
        yield Description(name, heading, ABOUT[name], 3, direction, balanced=True, span="0 .. 1", formula=formula)
    for family, heading in FAMILIES.items():
        for ending, word in WORDS.items():
            formula = _FORMULAS.get(ending, "")
            title = f"{ABOUT[family]}: {word}"
            name, balanced = f"{family}_{ending}", ending == "f_score"
            yield Description(name, f"{heading} {word}", title, 3, 1, balanced, span="0 .. 1", formula=formula)


DISCOVERY = tuple(_rows())
"""Every measure of term discovery."""


def measures_named(name: str) -> list[str]:
    """Return the measures of term discovery of this name, or of the family of this name; none for another name.

    Examples
    --------
    >>> measures_named("token"), measures_named("ned"), measures_named("atwv")
    (['token_precision', 'token_recall', 'token_f_score'], ['ned'], [])
    """
    wanted = {f"{name}_{ending}" for ending in WORDS} if name in FAMILIES else {name}
    return [row.name for row in DISCOVERY if row.name in wanted]


class DiscoverySettings(SettingsTable):
    """Everything that can change a number of term discovery. Part of the signature of every result.

    Readings (`model.discovery.Readings`) are choices that the definition `document` leaves open.

    Attributes
    ----------
    definition : {"document", "tde2015", "tdev2"}
        The measures document, or the official tool whose definitions apply.
    coverage : {"intersected", "union"}
        Whether the cover of discovered pairs counts only inside the cover of all pairs.
    min_phones : int
        The least number of phones of the strings of matching pairs.
    boundaries : {"singly", "together"}
        Whether boundaries that are not at the edge of a phone are one wrong boundary each, or one together.
    overlapping_pairs : {"left_out", "kept"}
        Whether pairs of one class that overlap are left out.
    n_folds : int
        The number of folds where there is no fold file.
    fold_by : {"file", "time"}
        Without a fold file: whether folds consist of whole files, or files are cut so that folds are equally long.
    """

    definition: Definition = "document"
    coverage: Coverage = "intersected"
    min_phones: int = Field(default=3, ge=1, le=3)
    boundaries: WrongBoundaries = "singly"
    overlapping_pairs: OverlappingPairs = "left_out"
    fold_by: Literal["file", "time"] = "file"
    n_folds: int = Field(default=DEFAULT_FOLDS, ge=1, le=MAX_FOLDS)

    @staticmethod
    def taken_by(definition: Definition, settings: Mapping[str, object]) -> dict[str, object]:
        """Return the given settings that a definition has: only the document has readings, and tdev2 has no folds."""
        without = set() if definition == "document" else {field.name for field in fields(Readings)}
        without |= {"n_folds", "fold_by"} if definition == "tdev2" else set()
        return {name: value for name, value in settings.items() if name not in without}

    @model_validator(mode="after")
    def _of_the_document(self) -> Self:
        if self.definition != "document":
            for name, value in vars(DEFAULT_READINGS).items():
                if getattr(self, name) != value:
                    raise ValueError(f'{name} goes with definition = "document": {self.definition} reads it one way')
        if self.definition == "tdev2" and self.chosen_folds:
            raise ValueError(
                f'{self.chosen_folds[0]} goes with definition = "document" or "tde2015": tdev2 has no folds'
            )
        return self

    @property
    def chosen_folds(self) -> list[str]:
        """The settings of folds that differ from the default; nothing else may then define folds."""
        defaults = {name: DiscoverySettings.model_fields[name].default for name in ("fold_by", "n_folds")}
        return [name for name, default in defaults.items() if getattr(self, name) != default]

    def listed(self) -> dict[str, object]:
        """The settings that a manifest lists: readings only where there is a choice, `n_folds` where it was chosen."""
        without = set() if self.definition == "document" else {field.name for field in fields(Readings)}
        without |= {"n_folds"} - set(self.chosen_folds)
        return self.model_dump(mode="json", exclude=without)

    @property
    def readings(self) -> Readings:
        """The readings of the measures document."""
        return Readings(**{field.name: getattr(self, field.name) for field in fields(Readings)})
