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

QUIRK, under `compat = "kwseval"`: the first word of a query is compared as above, the words behind it without case,
whatever the list says. The filters are KWSEval's own: `charsplit` without which the others do nothing; `notascii`
joins ASCII characters again in two passes over the whole text, which also joins ASCII words of a query ("ab cd" becomes
"abc d"); `deletehyphens` then puts a blank for every hyphen, so that the parts of "twenty-one" are words of their own.

QUIRK, under `compat = "stdeval"`: case is folded whatever the list says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from swsdask.errors import InputError, Problem
from swsdask.model.finding import FindRule

LOWERCASE = "lowercase"

_CHARACTER = re.compile(r".", re.DOTALL)
_ASCII_APART = re.compile(r"([\x01-\x7f])\s+([\x01-\x7f])")
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


def spelled(text: str, normalize: str, rule: FindRule) -> list[tuple[str, str]]:
    """The units of a query's text, or of one word, as the first unit of an occurrence and as a later one is compared.

    The words of a query are separated by white space.
    """
    if rule.finder == "kwseval":
        split = _kwseval_units(text, rule.text_filters)
        return [(unit.lower() if normalize == LOWERCASE else unit, unit.casefold()) for unit in split]
    if rule.finder == "stdeval":
        normalize = LOWERCASE
    return [(unit, unit) for word in text.split() for unit in units(word, normalize, rule.text_filters)]


def _kwseval_units(text: str, text_filters: Sequence[str]) -> list[str]:
    if "charsplit" in text_filters:
        text = " ".join(text)
        if "notascii" in text_filters:
            text = _ASCII_APART.sub(r"\1\2", _ASCII_APART.sub(r"\1\2", text))
        if "deletehyphens" in text_filters:
            text = text.replace("-", " ")
    return text.split()
