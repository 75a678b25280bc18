"""Secrets in URLs and in options of stores, struck out wherever text is shown or kept.

A URL may carry a password (`https://user:password@host/`) or, as presigned URLs do, a signature or a token in its query
string. Errors strike out what they say when they are made, and so does whatever keeps the name of a file.
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
_PARAMETER = re.compile(rf"([?&;]{_NAME}=)[^&#\s'\"<>]+", re.IGNORECASE)
_OPTION = re.compile(r"signature|token|passw|secret|credential|account_key|connection_string", re.IGNORECASE)

_known: set[str] = set()


def without_secrets(text: str) -> str:
    """Strike out the secrets of text: those of the URLs in it, and the values that `remember` got.

    Examples
    --------
    >>> without_secrets("https://me:hush@host/a.xml?X-Amz-Signature=0f0f&versionId=3")
    'https://me:***@host/a.xml?X-Amz-Signature=***&versionId=3'
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
