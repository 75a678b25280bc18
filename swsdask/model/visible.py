"""Text as a terminal or a page may show it.

Ids, file names and attributes come from others. A terminal obeys some characters (ESC, U+009B), and some make a line
read otherwise than it is stored (U+202E).
"""

from __future__ import annotations

import re

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


def styled(text: str) -> str:
    """The same, but for sequences that set colour and weight of text."""
    return _STYLE.sub(lambda found: found[1] or _escaped(found[2]), text) if _ACTS.search(text) else text


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place]:02x}{units[place + 1]:02x}" for place in range(0, len(units), 2))
