"""Times as whole ticks of 0.1 ms, infinite scores as finite ones, and identifiers of systems, queries and documents.

Mid-points in floating point disagree with exact arithmetic at the edge of a tolerance, so every time in swsdask is a
whole number of ticks (int32 in tables, int64 where sums are doubled). Finer input is rounded half to even, and
counted.

Infinities mark the ends of score ladders and missing scores. Therefore an infinite score is stored, counted and
compared as the largest finite float of its sign. No run may contain that float itself.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal

import xxhash

from swsdask.model.errors import SettingsError

TICKS_PER_SECOND = 10_000
MAX_TICKS = 2**31 - 1
"""The longest time a table holds: 59.65 hours within one document."""

_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_MOST_DIGITS = 15


def ticks(seconds: str | float | Decimal) -> tuple[int, bool]:
    """Ticks of a time in seconds, and whether it had to be rounded (half to even).

    A float is taken at its shortest decimal form, so `ticks(0.1)` is exact. Raises `decimal.InvalidOperation` for text
    that is no number, `OverflowError` for infinities and times of more than 15 digits of ticks, `ValueError` for NaN.
    """
    exact = _EXACT.multiply(Decimal(repr(seconds) if isinstance(seconds, float) else seconds), TICKS_PER_SECOND)
    if exact and exact.adjusted() >= _MOST_DIGITS:
        raise OverflowError(f"{seconds} seconds")
    whole = int(exact.to_integral_value(ROUND_HALF_EVEN))
    return whole, whole != exact


def whole_ticks(name: str, seconds: float) -> int:
    """Return a setting's seconds in ticks. Raises `SettingsError` if they are not a whole number of ticks."""
    whole, rounded = ticks(seconds)
    if rounded:
        raise SettingsError(f"setting evaluation.{name}: expected a multiple of 0.0001 s; found {seconds!r}.")
    return whole


def seconds(ticks: int) -> float:
    """Return the time in seconds, the float nearest to the exact value."""
    return ticks / TICKS_PER_SECOND


INFINITE = sys.float_info.max
"""The finite score that represents inf; its negative represents -inf."""

AUDIO_EXTENSIONS = (".sph", ".wav", ".flac", ".mp3", ".ogg")
MAX_ID_LENGTH = 500

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def id_fault(identifier: str) -> str | None:
    """Why a system or query id is not acceptable, or None.

    An id has 1 to 500 characters, no control characters and no path separators, and is not `.` or `..`: ids are used
    in reports, file names and URLs, and must not lead outside a folder.
    """
    if not identifier.strip():
        return "an empty id"
    if len(identifier) > MAX_ID_LENGTH:
        return f"an id of {len(identifier)} characters"
    if _CONTROL.search(identifier):
        return f"a control character in the id {identifier!r}"
    if "/" in identifier or "\\" in identifier or identifier in (".", ".."):
        return f"a path in the id {identifier!r}"
    return None


def name_fault(name: str) -> str | None:
    """Why the name of a document in a collection, which may have slashes, is not acceptable as its id, or None."""
    if ".." in name.split("/"):
        return f"a path that climbs out of its folder, {name!r}"
    return id_fault(name.replace("/", "-"))


def id_hash(identifier: str) -> int:
    """Return a hash of an id, 0 to 2^63 - 1, always the same."""
    return xxhash.xxh3_64_intdigest(identifier.encode()) >> 1


def document_id(filename: str) -> str:
    """Return the document id of an audio file name: without its directory and one known audio extension."""
    name = filename.rsplit("/", 1)[-1]
    stem, dot, ending = name.rpartition(".")
    return stem if stem and dot + ending.lower() in AUDIO_EXTENSIONS else name


class DocumentCodes:
    """The codes of documents by the names that runs use: their places among `ids`.

    The name of a judged document is its whole id. The name of an audio file, without directory and extension, means the
    document with this id, or else the only document whose id without its own directory and extension is the same.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._whole = {identifier: code for code, identifier in enumerate(ids)}
        times = Counter(map(document_id, self._whole))
        self._bare = {document_id(name): code for name, code in self._whole.items() if times[document_id(name)] == 1}

    def get(self, name: str, *, judged: bool) -> int | None:
        """Return the code of a document, None if there is none of that name."""
        code = self._whole.get(name)
        return self._bare.get(name) if code is None and not judged else code


def document_fault(filename: str) -> str | None:
    """Why an audio file name cannot name a document, or None. Directories are fine, `..` is not."""
    if ".." in filename and ".." in filename.split("/"):
        return f"a path that climbs out of its folder, {filename!r}"
    return id_fault(document_id(filename))
