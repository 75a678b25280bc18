"""What a night found: how systems moved, which runs were refused, and which gates failed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

NEW, REPLACED, SETTINGS, VERSION = "new", "run replaced", "other settings", "other version of swsdask"
"""Why a system is scored."""

GONE = ""
"""In place of the stamp of a refused run that is no longer in the inbox."""


@dataclass(frozen=True)
class Move:
    """How a system that is new in a night compares: `reason` says why it was scored.

    `was` is the number of the baseline, NaN where there is none; `p` of the difference, NaN where it was not tested.
    """

    system: str
    reason: str
    baseline: str | None
    measure: str
    value: float
    was: float
    p: float


@dataclass(frozen=True)
class Refused:
    """A run that was set aside: the file, its system, its first problems and how many there are."""

    url: str
    system: str
    problems: tuple[str, ...]
    total: int


@dataclass(frozen=True)
class Record:
    """What a night found beside its numbers.

    `stamps` are the size and time, or ETag, of every run that was looked into, and `GONE` of the refused ones that are
    gone; `rows` the detections that were ingested; `gates` what failed of them, `notes` what a reader must know.
    """

    number: int
    date: str
    version: int
    swsdask: str
    stamps: dict[str, str] = field(default_factory=dict)
    refused: tuple[Refused, ...] = ()
    moves: tuple[Move, ...] = ()
    gates: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rows: int = 0

    @property
    def gone(self) -> list[str]:
        """The runs that were refused before and are gone."""
        return [url for url, stamp in self.stamps.items() if stamp == GONE]

    def to_json(self) -> str:
        """Return the metadata of the night's file."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Read the text of `to_json`."""
        said = json.loads(text)
        refused = tuple(Refused(**{**each, "problems": tuple(each["problems"])}) for each in said.pop("refused"))
        moves = tuple(Move(**each) for each in said.pop("moves"))
        gates, notes = tuple(said.pop("gates")), tuple(said.pop("notes"))
        return cls(**said, refused=refused, moves=moves, gates=gates, notes=notes)
