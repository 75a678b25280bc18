"""Where pages come from: templates that make one HTML file with everything in it."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from swsdask.model.wording import counted

TEMPLATES = Path(__file__).resolve().parent / "templates"


def environment() -> Environment:
    """The templates; all text that goes into one is escaped, and JSON has no NaN. `counted` is theirs to call."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":"), "ensure_ascii": False}
    made.globals["counted"] = counted
    return made


def style() -> Markup:
    """The style sheet of all pages."""
    return Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))
