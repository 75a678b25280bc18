"""Resources of a system: time, memory and hardware, as its developers report them in a `resources.toml` beside its run.

The 2013 measures document, section 4.3, requires them. Numbers are kept as they were written; computations with them
are exact (decimals as fractions) and rounded once, by the measure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from swsdask.model.settings_table import SettingsTable

SECONDS_PER_HOUR = 3600


def _listed(given: object) -> Any:
    return (given,) if isinstance(given, int | float) else given


LEAST, MOST = 1e-9, 1e15
"""Bounds far outside practical values, so that no quotient overflows."""

Amount = Annotated[float, Field(strict=True, ge=0, le=MOST)]
Positive = Annotated[float, Field(strict=True, ge=LEAST, le=MOST)]
Count = Annotated[int, Field(strict=True, ge=1, le=10**9)]
Amounts = Annotated[tuple[Amount, ...], BeforeValidator(_listed), Field(min_length=1)]
Durations = Annotated[tuple[Positive, ...], BeforeValidator(_listed), Field(min_length=1)]
Text = Annotated[str, Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Phase(_Table):
    """The resources that indexing, or searching, used.

    The time is CPU time (`cpu_hours` or `cpu_seconds`) or wall time (`wall_hours` or `wall_seconds`) on a number of
    `cores`. `peak_memory_gb` is one number or one per step and node; the highest counts.
    """

    wall_hours: Amount | None = None
    wall_seconds: Amount | None = None
    cores: Count | None = None
    cpu_hours: Amount | None = None
    cpu_seconds: Amount | None = None
    peak_memory_gb: Amounts | None = None

    @model_validator(mode="after")
    def _one_time(self) -> Self:
        walls = sum(time is not None for time in (self.wall_hours, self.wall_seconds))
        times = walls + sum(time is not None for time in (self.cpu_hours, self.cpu_seconds))
        if times > 1 or (self.cores is not None) != (walls == 1):
            raise ValueError("one of cpu_hours, cpu_seconds, wall_hours with cores, wall_seconds with cores")
        return self

    @property
    def cpu_time(self) -> Fraction | None:
        """Hours of one core: CPU time, or wall time times cores; None if no time is reported."""
        wall = _hours(self.wall_hours, self.wall_seconds)
        return _hours(self.cpu_hours, self.cpu_seconds) if wall is None else wall * (self.cores or 1)

    @property
    def peak_memory(self) -> Fraction | None:
        """GB: the highest of all steps and nodes; None where it is not reported."""
        return None if self.peak_memory_gb is None else _total(max(self.peak_memory_gb))


class Node(_Table):
    """A type of computing node, and how many of them were used. `phase` says for which phase."""

    brand: Text
    cpu: Text
    cores: Count
    clock_ghz: Positive
    ram_gb: Positive
    os: Text
    count: Count = 1
    phase: Literal["both", "indexing", "searching"] = "both"


class Resources(_Table):
    """A whole file. Unless the duration of the audio is given, it is that of the ECF.

    `query_seconds` or `query_hours` is the duration of all examples of all queries together, or a list with that of
    each example.
    """

    audio_hours: Positive | None = None
    audio_seconds: Positive | None = None
    query_hours: Durations | None = None
    query_seconds: Durations | None = None
    indexing: Phase = Phase()
    searching: Phase = Phase()
    hardware: tuple[Node, ...] = ()

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        for what in ("audio", "query"):
            if None not in (getattr(self, f"{what}_hours"), getattr(self, f"{what}_seconds")):
                raise ValueError(f"one of {what}_hours and {what}_seconds")
        return self

    @property
    def audio_time(self) -> Fraction | None:
        """Hours of audio, where they are given."""
        return _hours(self.audio_hours, self.audio_seconds)

    @property
    def query_time(self) -> Fraction | None:
        """Hours of query examples, all together, where they are reported."""
        return _hours(self.query_hours, self.query_seconds)

    def to_json(self) -> str:
        """Return the resources as canonical JSON: equal resources give equal text."""
        return self.model_dump_json(exclude_defaults=True)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the resources that `to_json` wrote."""
        return cls.model_validate_json(text)


class ProcessingLoadSettings(SettingsTable):
    """The rules of the processing load.

    Attributes
    ----------
    indexing_weight : float
        Lambda, the weight of indexing in PL; searching has the rest.
    query_seconds : float, optional
        The duration of all examples of all queries together, where a run's resources do not give it.
    """

    indexing_weight: float = Field(default=0.1, ge=0, le=1)
    query_seconds: Positive | None = None

    @property
    def query_time(self) -> Fraction | None:
        """Hours of query examples, where they are given."""
        return _hours(None, self.query_seconds)


def times_of_list(attributes: Mapping[str, str]) -> Resources | None:
    """Return the CPU seconds of indexing (`indexing_time`) and of searching all queries (`search_time` of each) that a
    kwslist or stdlist gives. None if it gives neither; a time that is not a number of seconds is ignored.
    """
    indexing = _seconds([attributes.get("indexing_time", "")])
    searching = _seconds([value for name, value in attributes.items() if name.startswith("search_time.")])
    if indexing is None and searching is None:
        return None
    return Resources(indexing=Phase(cpu_seconds=indexing), searching=Phase(cpu_seconds=searching))


def _seconds(texts: list[str]) -> float | None:
    """Their sum, None unless each is a number of seconds."""
    with suppress(ValueError):
        numbers = [float(text) for text in texts]
        if numbers and all(0 <= number <= MOST for number in numbers):
            return min(math.fsum(numbers), MOST)
    return None


def _hours(hours: tuple[float, ...] | float | None, seconds: tuple[float, ...] | float | None) -> Fraction | None:
    """Return the sum of the one that is given, in hours."""
    if hours is not None:
        return _total(hours)
    return None if seconds is None else _total(seconds) / SECONDS_PER_HOUR


def _total(decimals: tuple[float, ...] | float) -> Fraction:
    return sum((Fraction(repr(each)) for each in _listed(decimals)), Fraction(0))
