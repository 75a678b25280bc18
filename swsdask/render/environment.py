"""The environment of templates, the style sheet and the script of pages."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from swsdask.model.safe_text import visible
from swsdask.model.wording import counted

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).resolve().parent / "templates"


@cache
def environment() -> Environment:
    """Return the templates, each compiled once.

    Text is escaped and visible, JSON has no NaN; they can call `counted`.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # Not needed for tables in a terminal.

    from swsdask.render.compiled import Compiled

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_made_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=Compiled(TEMPLATES / "__pycache__"),
    )
    made.policies["json.dumps_function"] = _dumps
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":"), "ensure_ascii": False}
    made.globals["counted"] = counted
    return made


def _made_visible(value: object) -> object:
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _dumps(value: object, **how: Any) -> str:
    """JSON whose texts are visible to the reader of the page, not only of its source."""
    return json.dumps(_all_visible(value), **how)


def _all_visible(value: object) -> object:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {_all_visible(key): _all_visible(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [inner if type(inner) in _NUMBERS else _all_visible(inner) for inner in value]
    return value


_NUMBERS = {float, int, type(None)}
"""The types of most values of lists, which have no text."""


def style() -> Markup:
    """Return the style sheet of all pages."""
    return Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))


def script() -> dict[str, Markup | str]:
    """The script of pages with tables and figures, and the hash by which a content security policy lets it run."""
    text = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.js", "downloads.js"))
    hashed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return {"script": Markup(text), "script_hash": hashed}


def compile_templates() -> None:
    """Compile every template that is not cached, so that later processes need not."""
    for name in environment().list_templates(extensions=["j2"]):
        environment().get_template(name)
