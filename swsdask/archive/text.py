"""The text of words and queries as it is compared.

Text is compared code point by code point: it is never brought into a Unicode normal form, so a list and an RTTM that
write an accented letter in two ways do not match. `compareNormalize="lowercase"` in the query list's header folds the
case of both sides, word by word; any other value, or none, compares exactly. Ids are never folded.

The filters (KWSEval's text pre-filters) cut every word of both sides into units, each of which is then a word of its
own:

- `deletehyphens`: hyphens ("-") are removed first, so that the parts of "twenty-one" are joined to "twentyone"; a
  word of hyphens only is no word.
- `charsplit`: every character is a unit.
- `charsplit` with `notascii`: a character outside ASCII is a unit, and so is every longest run of ASCII characters.
  `notascii` alone changes nothing.

A character is a Unicode code point.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from swsdask.errors import InputError, Problem

LOWERCASE = "lowercase"

_CHARACTER = re.compile(r".", re.DOTALL)
_ASCII_RUN_OR_CHARACTER = re.compile(r"[\x00-\x7f]+|.", re.DOTALL)


def compare_normalize(queries: pa.Table) -> str:
    """How the header of a query list wants its text compared: "lowercase", or "" for exactly.

    Raises `InputError` for a value that is neither.
    """
    value: str = (queries.schema.metadata or {}).get(b"compareNormalize", b"").decode()
    if value not in ("", LOWERCASE):
        expected = f'compareNormalize="{LOWERCASE}" or compareNormalize=""'
        raise InputError(
            Problem("query list", None, expected, f'compareNormalize="{value}"', "Mend the list's header.")
        )
    return value


def units(word: str, normalize: str, text_filters: Sequence[str]) -> list[str]:
    """The units that one word is compared as, in order; none for a word that the filters leave nothing of."""
    if normalize == LOWERCASE:
        word = word.lower()
    if "deletehyphens" in text_filters:
        word = word.replace("-", "")
    if "charsplit" not in text_filters:
        return [word] if word else []
    pattern = _ASCII_RUN_OR_CHARACTER if "notascii" in text_filters else _CHARACTER
    return pattern.findall(word)


def query_units(text: str, normalize: str, text_filters: Sequence[str]) -> list[str]:
    """The units of a query's text, whose words are separated by white space."""
    return [unit for word in text.split() for unit in units(word, normalize, text_filters)]
