"""The settings of term discovery: `[discovery]`."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from swsdask.model.corpus import DEFAULT_READINGS, Coverage, Definition, OverlappingPairs, Readings, WrongBoundaries


class DiscoverySettings(BaseModel):
    """Everything that can move a number of term discovery. Part of the signature of every result.

    The readings are those of `model.corpus.Readings`. Without fold file, folds are made of whole files, or, with
    `fold_by` "time", cut where they must be to be equally long.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)

    definition: Definition = "document"
    coverage: Coverage = "intersected"
    min_phones: int = Field(default=3, ge=1, le=3)
    boundaries: WrongBoundaries = "singly"
    overlapping_pairs: OverlappingPairs = "left_out"
    fold_by: Literal["file", "time"] = "file"

    @model_validator(mode="after")
    def _of_the_document(self) -> Self:
        if self.definition != "document":
            for name, value in vars(DEFAULT_READINGS).items():
                if getattr(self, name) != value:
                    raise ValueError(f'{name} goes with definition = "document": {self.definition} reads it one way')
        if self.definition == "tdev2" and self.fold_by == "time":
            raise ValueError('fold_by = "time" goes with definition = "document" or "tde2015": tdev2 has no folds')
        return self

    def told(self) -> dict[str, Any]:
        """What a reader is told of them: readings only where there is a choice."""
        without = set() if self.definition == "document" else {field.name for field in fields(Readings)}
        return self.model_dump(mode="json", exclude=without)

    @property
    def readings(self) -> Readings:
        """The readings of the measures document."""
        return Readings(**{field.name: getattr(self, field.name) for field in fields(Readings)})
