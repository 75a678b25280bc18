"""The settings of term discovery: `[discovery]`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, Self

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

    def listed(self) -> dict[str, Any]:
        """The settings that a manifest lists: readings only where there is a choice, `n_folds` where it was chosen."""
        without = set() if self.definition == "document" else {field.name for field in fields(Readings)}
        without |= {"n_folds"} - set(self.chosen_folds)
        return self.model_dump(mode="json", exclude=without)

    @property
    def readings(self) -> Readings:
        """The readings of the measures document."""
        return Readings(**{field.name: getattr(self, field.name) for field in fields(Readings)})
