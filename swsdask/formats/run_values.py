"""The values of one detection as text, one at a time: where a row is not ordinary, and to say what is wrong with it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import DecimalException
from typing import TypeVar

from swsdask.model.ticks import MAX_TICKS, TICKS_PER_SECOND, ticks

BLANKS = " \t\r\n"
DECISIONS = {"YES": 1, "NO": 0}
MAX_CHANNEL = 127

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[0-9]+")
_SHOWN = 60

Value = TypeVar("Value")


class FormatError(Exception):
    """What is wrong with a value or a file: what was expected, what came, what to do."""

    def __init__(self, expected: str, found: str, remedy: str) -> None:
        super().__init__(expected, found, remedy)
        self.expected = expected
        self.found = found
        self.remedy = remedy


def shown(text: str) -> str:
    """Text as a message shows it: quoted, and not longer than a line."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def read_score(text: str) -> float:
    """A finite score. Raises `FormatError`."""
    text = text.strip(BLANKS)
    if not NUMBER.fullmatch(text):
        remedy = "Give a finite decimal number: a score that is not a number has no place in a ranking."
        raise FormatError("a score", shown(text), remedy)
    score = float(text)
    if not math.isfinite(score):
        raise FormatError("a finite score", shown(text), "Give a number that a 64-bit float can hold.")
    return score


def read_time(text: str, name: str) -> tuple[int, bool]:
    """A time of 0 or more in ticks, and whether it is rounded; `name` says which. Raises `FormatError`."""
    text = text.strip(BLANKS)
    if not NUMBER.fullmatch(text):
        raise FormatError(f"a {name} in seconds", shown(text), "Give a decimal number of seconds.")
    try:
        whole, rounded = ticks(text)
    except (DecimalException, OverflowError):
        whole, rounded = (-1 if text.startswith("-") else MAX_TICKS + 1), True
    if whole < 0:
        raise FormatError(
            f"a {name} of 0 or more seconds", shown(text), f"No detection has a negative {name}: mend the run."
        )
    if whole > MAX_TICKS:
        raise FormatError(f"a {name} of at most {MAX_TICKS / TICKS_PER_SECOND} seconds", shown(text), "Check its unit.")
    return whole, rounded


def read_channel(text: str) -> int:
    """A channel. Raises `FormatError`."""
    text = text.strip(BLANKS)
    if not _WHOLE.fullmatch(text) or len(text) > 9 or int(text) > MAX_CHANNEL:
        raise FormatError(
            f"a channel, a whole number from 0 to {MAX_CHANNEL}", shown(text), "Number the channels from 1."
        )
    return int(text)


def read_decision(text: str) -> int:
    """1 for YES, 0 for NO. Raises `FormatError`."""
    if text not in DECISIONS:
        raise FormatError("the decision YES or NO", shown(text), "Write it in capital letters, without blanks.")
    return DECISIONS[text]


@dataclass(frozen=True)
class Detection:
    """The values of one row; `decision` is None where it has none, `rounded` counts its rounded times."""

    document: str
    channel: int
    start: int
    duration: int
    score: float
    decision: int | None
    rounded: int


def read_detection(values: Mapping[str, str], names: Mapping[str, str]) -> Detection | list[FormatError]:
    """The detection that `values` hold, or all that is wrong with it.

    `names` maps document, channel, start, duration, score and decision to what the format calls them.
    """
    faults: list[FormatError] = []

    def read(field: str, reader: Callable[[str], Value], otherwise: Value) -> Value:
        name = names[field]
        if name not in values:
            faults.append(FormatError(f"a {name}", f"a row without {name}", f"Give every row its {name}."))
            return otherwise
        try:
            return reader(values[name])
        except FormatError as fault:
            faults.append(fault)
            return otherwise

    document = read("document", str, "")
    channel = read("channel", read_channel, 0)
    start, start_rounded = read("start", lambda text: read_time(text, "start"), (0, False))
    duration, duration_rounded = read("duration", lambda text: read_time(text, "duration"), (0, False))
    score = read("score", read_score, 0.0)
    decision = read("decision", read_decision, 0) if names["decision"] in values else None
    if not faults and start + duration > MAX_TICKS:
        found = f"{values[names['start']]} and {values[names['duration']]}"
        expected = f"start and duration of at most {MAX_TICKS / TICKS_PER_SECOND} seconds together"
        faults.append(FormatError(expected, found, "Check their unit."))
    if faults:
        return faults
    return Detection(document, channel, start, duration, score, decision, start_rounded + duration_rounded)
