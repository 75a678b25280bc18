"""Parsing of single values: of detections, of reference files, and of the header of a run.

Unusual rows are parsed value by value, to report their problems.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, DecimalException
from difflib import get_close_matches
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from swsdask.model.schemas import JOINED, RunHeader
from swsdask.model.units import INFINITE, MAX_TICKS, TICKS_PER_SECOND, document_fault, document_id, id_fault, ticks
from swsdask.model.wording import FEW, listed
from swsdask.places.reading import before_query

BLANKS = " \t\r\n"
DECISIONS = {"YES": 1, "NO": 0}
MAX_CHANNEL = 127
CHANNELS = {"A": "1", "B": "2"}
"""The channels of a CTM."""

SECONDS = pa.decimal128(36, 18)
"""The type of a column of times as files write them, exactly."""

_WHOLE_SECONDS_AND_TICKS = pa.decimal128(24, 4)

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
_WHOLE = re.compile(r"[0-9]+")
_SHOWN = 60

Value = TypeVar("Value")


class FormatError(Exception):
    """A problem of a value or a file: what was expected, what was found, the remedy."""

    def __init__(self, expected: str, found: str, remedy: str) -> None:
        super().__init__(expected, found, remedy)
        self.expected = expected
        self.found = found
        self.remedy = remedy


def shown(text: str) -> str:
    """Text for messages: quoted, and no longer than a line."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def with_article(name: str) -> str:
    """Return the name of a column with its article."""
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def check_columns(names: Sequence[str], needed: Sequence[str], single: Sequence[str]) -> None:
    """Check that a table has the columns, ignoring case and blanks around names.

    Raises `FormatError` if a column of `needed` is missing (the error names a similar column), or if one of `single`
    occurs twice.
    """
    plain = [name.strip().lower() for name in names]
    missing = [name for name in needed if name not in plain]
    twice = [name for name in single if plain.count(name) > 1]
    if not missing and not twice:
        return
    found = f"{shown(', '.join(names))}, no {' or '.join(missing)}" if missing else f"two columns {twice[0]}"
    others = {simple: name.strip() for name, simple in zip(names, plain, strict=True) if simple not in needed}
    near = {name: get_close_matches(name, others, n=1) for name in missing}
    renamed = [f"{shown(others[match[0]])} to {name}" for name, match in near.items() if match]
    if len(names) == 1 and any(sign in names[0] for sign in ";|"):
        remedy = "Separate the columns by commas or tabs; decimals have a point."
    else:
        remedy = f"Rename {', '.join(renamed)}." if renamed else "Name the columns so; times are in seconds."
    raise FormatError(f"the columns {', '.join(needed)}", found, remedy)


def read_score(text: str) -> float:
    """Return a score, infinite ones as inf and -inf. Raises `FormatError`."""
    text = text.strip(BLANKS)
    if _INFINITE.fullmatch(text):
        return float(text)
    if not NUMBER.fullmatch(text):
        remedy = "Give a decimal number, inf or -inf: a score that is not a number cannot be ranked."
        raise FormatError("a score", shown(text), remedy)
    score = float(text)
    if abs(score) >= INFINITE:  # archives store an infinite score as the largest number
        raise FormatError("a score below 1.797e308", shown(text), "Write an infinite score as inf or -inf.")
    return score


def read_time(text: str, name: str) -> tuple[int, bool]:
    """Return a non-negative time in ticks, and whether it is rounded; `name` is its name. Raises `FormatError`."""
    text = text.strip(BLANKS)
    if not NUMBER.fullmatch(text):
        raise FormatError(f"{with_article(name)} in seconds", shown(text), "Give a decimal number of seconds.")
    try:
        whole, rounded = ticks(text)
    except (DecimalException, OverflowError):
        whole, rounded = (-1 if text.startswith("-") else MAX_TICKS + 1), True
    if whole < 0:
        raise FormatError(
            f"{with_article(name)} of 0 or more seconds",
            shown(text),
            f"Correct the {name}: times count from the begin of the document.",
        )
    if whole > MAX_TICKS:
        raise FormatError(
            f"{with_article(name)} of at most {MAX_TICKS / TICKS_PER_SECOND} seconds", shown(text), "Check its unit."
        )
    return whole, rounded


def read_channel(text: str) -> int:
    """Return a channel. Raises `FormatError`."""
    text = text.strip(BLANKS)
    if not _WHOLE.fullmatch(text) or len(text) > 9 or int(text) > MAX_CHANNEL:
        raise FormatError(
            f"a channel, a whole number from 0 to {MAX_CHANNEL}", shown(text), "Number the channels from 1."
        )
    return int(text)


def read_decision(text: str) -> int:
    """1 for YES, 0 for NO. Raises `FormatError`."""
    if text not in DECISIONS:
        raise FormatError(
            "the decision YES or NO", shown(text), "Write YES or NO in capital letters; a DataFrame may have booleans."
        )
    return DECISIONS[text]


@dataclass(frozen=True)
class Detection:
    """The values of one row; `decision` is None if absent, `rounded` counts the rounded times."""

    document: str
    channel: int
    start: int
    duration: int
    score: float
    decision: int | None
    rounded: int


def read_detection(values: Mapping[str, str], names: Mapping[str, str]) -> Detection | list[FormatError]:
    """Return the detection in `values`, or its problems.

    `names` maps document, channel, start, duration, score and decision to their names in the format.
    """
    faults: list[FormatError] = []

    def read(field: str, reader: Callable[[str], Value], otherwise: Value) -> Value:
        name = names[field]
        if name not in values:
            faults.append(FormatError(with_article(name), f"a row without {name}", f"Give every row its {name}."))
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


_DECIMAL = re.compile(r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][+-]?0*[0-9]{1,2})?")
_EXACT = Context(prec=400)
"""Enough digits for any sum of what `_DECIMAL` matches."""


class TickInterval(NamedTuple):
    """`start` and `end` in ticks; `rounded` is the number of them that were finer than a tick."""

    start: int
    end: int
    rounded: int


def read_document(filename: str) -> str:
    """Return the id of the document of an audio file name. Raises `FormatError`."""
    wrong = document_fault(filename)
    if wrong:
        raise FormatError("the name of an audio file", wrong, "Give it a plain name.")
    return document_id(filename)


def joined_names(names: Iterable[str]) -> dict[str, str]:
    """Say which audio file names are one document, because only their folders or extensions differ: metadata.

    The key is `JOINED`; the dictionary is empty if there are none.
    """
    names_of: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        names_of.setdefault(document_id(name), []).append(name)
    several = [" and ".join(own[:2]) for own in names_of.values() if len(own) > 1]
    return {JOINED: listed(several, FEW)} if several else {}


def read_interval(start: str, duration: str) -> TickInterval:
    """Return the exact start and end, each rounded once, half to even. Raises `FormatError` for the first invalid one.

    Stretches that touch therefore still touch, however fine their times. A duration of zero is valid: words may have
    it.
    """
    first, length = _seconds(start, "start"), _seconds(duration, "duration")
    begin, begin_rounded = ticks(first)
    end, end_rounded = ticks(_EXACT.add(first, length))
    if end > MAX_TICKS:
        expected = f"an end of at most {MAX_TICKS / TICKS_PER_SECOND} seconds"
        raise FormatError(expected, f"start {start} and duration {duration}", "Check their unit: it must be seconds.")
    return TickInterval(begin, end, begin_rounded + end_rounded)


def _seconds(text: str, name: str) -> Decimal:
    match = _DECIMAL.fullmatch(text.strip(BLANKS))
    if not match:
        raise FormatError(f"{with_article(name)} in seconds", shown(text), "Write it as a decimal number.")
    seconds = Decimal(match[0])
    if seconds < 0:
        raise FormatError(f"{with_article(name)} of 0 or more seconds", shown(text), f"Correct the {name}.")
    if seconds * TICKS_PER_SECOND > 2 * MAX_TICKS:
        expected = f"{with_article(name)} of at most {MAX_TICKS / TICKS_PER_SECOND} seconds"
        raise FormatError(expected, shown(text), "Check its unit: it must be seconds.")
    return seconds


_SYSTEM = "system_id"
_LEAST, _MOST = "min_score", "max_score"
_ENDINGS = re.compile(r"(\.(gz|zst|bz2|xz|zip|xml|kwslist|stdlist|tsv|csv|ctm|txt|jsonl|parquet))+$", re.IGNORECASE)


def exact_ticks(seconds: pa.ChunkedArray) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the ticks of times of type `SECONDS`, and which of them were rounded, half to even.

    Raises `ValueError` if one is absent.
    """
    if seconds.null_count:
        raise ValueError("no time")
    try:
        exact, rounded = seconds.cast(_WHOLE_SECONDS_AND_TICKS), np.zeros(len(seconds), np.bool_)
    except pa.ArrowInvalid:  # finer than a tick
        nearest = pc.round(seconds, ndigits=4, round_mode="half_to_even")
        exact, rounded = nearest.cast(_WHOLE_SECONDS_AND_TICKS), pc.not_equal(nearest, seconds).to_numpy()
    return pc.multiply(exact, Decimal(TICKS_PER_SECOND)).cast(pa.int64()).to_numpy(), rounded


def is_number(text: str) -> bool:
    """Return whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def system_of_file(url: str) -> str:
    """Return the name of the system, from the name of the file: without known endings and the query string of a URL.

    Of a chain of URLs the first one that has a path names the file: `zip://run.csv::folder/runs.zip` is `run`.
    """
    path = before_query(url)[0]
    links = path.split("::") if "://" in path else [path]
    named = next((link for link in links if link.partition("://")[2]), links[-1])
    name = named.rstrip("/").rsplit("/", 1)[-1]
    return _ENDINGS.sub("", name) or name


def read_header(attributes: Mapping[str, str], file: str, system: str | None) -> RunHeader:
    """Return the header with `attributes`.

    The run's name is `system`, else that in the attributes, else that of the file.

    Raises `FormatError` for a name that is not an id, and for declared scores that are not a range.
    """
    others = dict(attributes)
    said = others.pop(_SYSTEM, "").strip()
    name = system or said or system_of_file(file)
    wrong = id_fault(name)
    if wrong:
        raise FormatError(
            f"a system id ({_SYSTEM})", wrong, "Give the system a plain name, or name that of the file: NAME=FILE."
        )
    if not {_LEAST, _MOST} <= set(others):
        return RunHeader(name, None, others)
    return RunHeader(name, _declared_scores(others.pop(_LEAST), others.pop(_MOST)), others)


def _declared_scores(first: str, last: str) -> tuple[float, float]:
    try:
        least, most = float(first), float(last)
    except ValueError:
        least, most = math.nan, math.nan
    if not (math.isfinite(least) and math.isfinite(most) and least <= most):
        found = f"{shown(first)} and {shown(last)}"
        raise FormatError(f"finite {_LEAST} <= {_MOST}", found, "Give the range of the scores, or leave both out.")
    return least, most
