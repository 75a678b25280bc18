"""Text that is shown or kept: secrets are struck out, and characters that act instead of being seen are escaped.

A URL may carry a password (`https://user:password@host/`) or, as presigned URLs do, a signature or a token in its query
string. Errors strike out secrets when they are made, and so does whatever keeps the name of a file.

Ids, file names and attributes come from others. A terminal obeys some characters (ESC, U+009B), and some make a line
read otherwise than it is stored (U+202E).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

STRUCK = "***"
"""What a secret is replaced by."""

_SHORTEST = 8
"""Values with fewer characters are not looked for in text: they may be any word."""

_PASSWORD = re.compile(r"([a-z][a-z0-9+.-]*://[^\s/:@?#]*:)[^\s/@?#]+@", re.IGNORECASE)
_NAME = r"[^=&?#\s]*(?:sig|token|passw|secret|credential|key|auth)[^=&?#\s]*"
_PARAMETER = re.compile(rf"([?&;]{_NAME}=)[^&#\s'\"<>]*[^&#\s'\"<>:]", re.IGNORECASE)
_OPTION = re.compile(r"signature|token|passw|secret|credential|account_key|connection_string", re.IGNORECASE)

_known: set[str] = set()


def without_secrets(text: str) -> str:
    """Strike out the secrets of text: those of the URLs in it, and the values that `remember` got.

    Examples
    --------
    >>> without_secrets("https://me:hush@host/a.xml?X-Amz-Signature=0f0f&versionId=3")
    'https://me:***@host/a.xml?X-Amz-Signature=***&versionId=3'
    >>> without_secrets("https://host/a.xml?sig=ab%3D: no answer")
    'https://host/a.xml?sig=***: no answer'
    >>> without_secrets("https://host/a.xml: no answer")
    'https://host/a.xml: no answer'
    """
    if "://" in text:
        text = _PARAMETER.sub(rf"\1{STRUCK}", _PASSWORD.sub(rf"\1{STRUCK}@", text))
    for value in _known:
        if value in text:
            text = text.replace(value, STRUCK)
    return text


def remember(options: Mapping[str, Any]) -> None:
    """Remember the secrets among options of a store, by their names; options may be nested."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            remember(value)
        elif isinstance(value, str) and len(value) >= _SHORTEST and _OPTION.search(name):
            _known.add(value)


_ACTING = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and newline
    r"\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # unseen, or directions
    r"\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""U+200C and U+200D join letters of several scripts and stay."""

_ACTS = re.compile(f"[{_ACTING}]")
_STYLE = re.compile(rf"(\x1b\[[0-9;]*m)|([{_ACTING}])")


def visible(text: str) -> str:
    r"""The text with every character that acts instead of being seen escaped as in JSON, such as ``\u202e``."""
    return _ACTS.sub(lambda found: _escaped(found[0]), text) if _ACTS.search(text) else text


def one_line(text: str) -> str:
    r"""The text in one line, each newline as ``\n``: names of files may have some."""
    return text.replace("\n", "\\n")


def styled(text: str) -> str:
    """The same, but for sequences that set colour and weight of text."""
    return _STYLE.sub(lambda found: found[1] or _escaped(found[2]), text) if _ACTS.search(text) else text


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


_FORMULA = re.compile(r"(?![+-][0-9.]+(?:[eE][+-]?[0-9]+)?$)[=+\-@\t\r]")
"""What begins a formula in some spreadsheet (OWASP, CSV Injection), unless it is a number."""


def without_formula(text: str) -> str:
    """The text as a spreadsheet takes it for text or a number: with an apostrophe before what would be a formula."""
    return f"'{text}" if _FORMULA.match(text) else text
