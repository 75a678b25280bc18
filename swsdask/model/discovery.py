"""Term discovery: the table of its measures, of which `discovery.measures` has the formulas; and its settings.

A family of measures has a precision, a recall and their harmonic mean, the F-score.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from swsdask.model.corpus import (
    DEFAULT_FOLDS,
    DEFAULT_READINGS,
    MAX_FOLDS,
    Coverage,
    Definition,
    OverlappingPairs,
    Readings,
    WrongBoundaries,
)
from swsdask.model.measures import Description

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
        yield Description(name, heading, ABOUT[name], 3, direction, span="0 .. 1", formula=_FORMULAS.get(name, ""))
    for family, heading in FAMILIES.items():
        for ending, word in WORDS.items():
            formula = _FORMULAS.get(ending, "")
            title = f"{ABOUT[family]}: {word}"
            yield Description(f"{family}_{ending}", f"{heading} {word}", title, 3, 1, span="0 .. 1", formula=formula)


DISCOVERY = tuple(_rows())
"""Every measure of term discovery."""


class DiscoverySettings(BaseModel):
    """Everything that can move a number of term discovery. Part of the signature of every result.

    Readings (`model.corpus.Readings`) are what the definition `document` leaves open.

    Attributes
    ----------
    definition : {"document", "tde2015", "tdev2"}
        The measures document, or the official tool whose definitions apply.
    coverage : {"intersected", "union"}
        Whether the cover of discovered pairs counts only inside that of all pairs.
    min_phones : int
        The least number of phones of a string that matching pairs have.
    boundaries : {"singly", "together"}
        Whether each boundary at no edge of a phone is a wrong one, or all of them are one.
    overlapping_pairs : {"left_out", "kept"}
        Whether pairs of one class that overlap are left out.
    n_folds : int
        The number of folds where there is no fold file.
    fold_by : {"file", "time"}
        Without a fold file: folds of whole files, or cut where they must be to be equally long.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)

    definition: Definition = "document"
    coverage: Coverage = "intersected"
    min_phones: int = Field(default=3, ge=1, le=3)
    boundaries: WrongBoundaries = "singly"
    overlapping_pairs: OverlappingPairs = "left_out"
    fold_by: Literal["file", "time"] = "file"
    n_folds: int = Field(default=DEFAULT_FOLDS, ge=1, le=MAX_FOLDS)

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
        """The settings of folds that are not the default: nothing else may define folds then."""
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
