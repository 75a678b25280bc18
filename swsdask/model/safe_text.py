"""Text that is safe to show and to keep: secrets are struck out, and control characters are escaped.

A URL may contain a password (`https://user:password@host/`) or, if it is presigned, a signature or a token in its query
string. Errors strike out secrets when they are made, and so does all code that keeps the name of a file. Where a
password has characters that a URL must write as %40 or %2F, everything up to the last @ is taken for the password: too
much is struck out rather than too little.

Ids, file names and attributes are untrusted. A terminal obeys some characters (ESC, U+009B), and others display a line
in another order than it is stored (U+202E).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

STRUCK = "***"
"""The text that replaces a secret."""

_SHORTEST = 8
"""Shorter values are not searched for in text: they could be any word."""

_PASSWORD = re.compile(
    r"((?<![a-z0-9+.-])[a-z][a-z0-9+.-]*://(?!\[|(?:localhost|[^\s/:@?#]*\.[^\s/:@?#]*):\d{1,5}[/?#])[^\s/:@?#]*:)\S+@",
    re.IGNORECASE,
)
"""The user and the password; not an IPv6 address or a host with a port, followed by an @."""
_TOKEN = re.compile(r"(https?://)[^\s/:@?#]+@", re.IGNORECASE)
"""A user without a password: a token, as repository hosts accept it."""
_PARAMETER = re.compile(r"[?&;#]([^\s=&?#;]+)=")
_VALUE = re.compile(r"[^&\s]*[^&\s'\"<>:.,;)]|")
"""The value of a parameter, without punctuation that may follow it in a sentence."""
_SECRET = re.compile(r"sig|token|passw|pwd|secret|credential|key|auth|jwt|^code$", re.IGNORECASE)
"""The names of parameters that are struck out."""
_OPTION = re.compile(r"signature|token|passw|secret|credential|account_key|connection_string", re.IGNORECASE)

_known: set[str] = set()


def without_secrets(text: str) -> str:
    """Strike out the secrets in a text: those of its URLs, and the values that `remember` got.

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
        text = _TOKEN.sub(rf"\1{STRUCK}@", _PASSWORD.sub(rf"\1{STRUCK}@", text))
        text = "".join(_without_parameters(text))
    for value in _known:
        if value in text:
            text = text.replace(value, STRUCK)
    return text


def _without_parameters(text: str) -> Iterator[str]:
    """Yield the parts of text, without the values of parameters that are secrets, also in URLs inside URLs."""
    done = 0
    for parameter in _PARAMETER.finditer(text):
        if parameter.start() >= done and _SECRET.search(unquote(parameter[1])):
            yield f"{text[done : parameter.end()]}{STRUCK}"
            value = _VALUE.match(text, parameter.end())
            done = value.end() if value else parameter.end()
    yield text[done:]


def remember(options: Mapping[str, object]) -> None:
    """Remember the secrets among the options of a store; names identify them, and options may be nested."""
    for name, value in options.items():
        if isinstance(value, Mapping):
            remember(value)
        elif isinstance(value, str) and len(value) >= _SHORTEST and _OPTION.search(name):
            _known.add(value)


_ACTING = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    r"\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, or directions
    r"\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
)
"""U+200C and U+200D are kept: several scripts need them to join letters."""

_ACTS = re.compile(f"[{_ACTING}]")
_STYLE = re.compile(rf"(\x1b\[[0-9;]*m)|([{_ACTING}])")


def visible(text: str) -> str:
    r"""Return the text with every invisible control character escaped as in JSON, such as ``\u202e``."""
    if text.isprintable():  # a faster check: no such character is printable
        return text
    return _ACTS.sub(lambda found: _escaped(found[0]), text)


def is_text(name: str) -> bool:
    """Return whether the name of a file is valid UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def one_line(text: str) -> str:
    r"""Return the text in one line, each newline as ``\n``: names of files may have newlines."""
    return text.replace("\n", "\\n")


def styled(text: str) -> str:
    """Return the same, but sequences that set the colour and weight of text are kept."""
    return _STYLE.sub(lambda found: found[1] or _escaped(found[2]), text) if _ACTS.search(text) else text


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))


_FORMULA = re.compile(r"(?![+-][0-9.]+(?:[eE][+-]?[0-9]+)?$)[=+\-@\t\r]")
"""The beginning of a formula in some spreadsheet (OWASP, CSV Injection), unless it is a number."""


def without_formula(text: str) -> str:
    """Return the text with an apostrophe in front if a spreadsheet would take it for a formula."""
    return f"'{text}" if _FORMULA.match(text) else text
