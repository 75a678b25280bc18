"""The settings of term discovery: `[discovery]`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from swsdask.model.corpus import Definition


class DiscoverySettings(BaseModel):
    """Everything that can move a number of term discovery. Part of the signature of every result."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)

    definition: Definition = "document"
