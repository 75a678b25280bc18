"""Parts that all pages share: the template environment, the style sheet and the provenance tables."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from swsdask.model.errors import counted, visible

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).resolve().parent / "templates"


def environment() -> Environment:
    """The templates. Their text is escaped and visible, their JSON has no NaN, and they can call `counted`."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # A table in a terminal needs none of it.

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_made_visible,
        trim_blocks=True,
        lstrip_blocks=True,
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


def _all_visible(value: Any) -> object:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {_all_visible(key): _all_visible(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [inner if type(inner) in _NUMBERS else _all_visible(inner) for inner in value]
    return value


_NUMBERS = {float, int, type(None)}
"""What most lists are made of, which has no text."""


def style() -> Markup:
    """The style sheet of all pages."""
    return Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))


def script() -> dict[str, Markup | str]:
    """The script of pages with tables and figures, and the hash by which a content security policy lets it run."""
    text = "".join((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.js", "downloads.js"))
    hashed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return {"script": Markup(text), "script_hash": hashed}


_ELSEWHERE = ("signature", "swsdask", "runs", "notes")

OUTSIDE = {
    "drop": "Detections outside the evaluated excerpts are dropped.",
    "false_alarm": "Detections outside the evaluated excerpts are false alarms unless they match an occurrence.",
    "error": "Detections outside the evaluated excerpts are an error.",
}
"""A description of each value of the setting `outside`."""

COUNTS = {
    "rows": "Detections",
    "outside": "Outside the excerpts",
    "unknown_documents": "In unknown documents",
    "unknown_queries": "Of unknown queries, dropped",
    "rounded": "Times rounded to 0.1 ms",
}
"""The counts of a run in a manifest. Detections in unknown documents count as outside the excerpts too."""


def provenance(manifest: Mapping[str, object]) -> list[dict[str, object]]:
    """Make one table per nested entry of the manifest, and one of the other entries."""
    entries = {name: value for name, value in manifest.items() if name not in _ELSEWHERE}
    alone = {name: value for name, value in entries.items() if not isinstance(value, Mapping)}
    groups = {name: value for name, value in entries.items() if isinstance(value, Mapping) and value}
    tables = [*([("scored", alone)] if alone else []), *groups.items()]
    return [
        {
            "name": name.replace("_", " ").capitalize(),
            "rows": [{"name": key, "value": text} for key, text in _flat(value)],
        }
        for name, value in tables
    ]


def runs(manifest: Mapping[str, Any]) -> dict[str, object]:
    """The counts of what was read, dropped or rounded: a row per system and a column per entry of `COUNTS`."""
    return {
        "outside": OUTSIDE.get(manifest.get("settings", {}).get("outside"), ""),
        "columns": list(COUNTS.values()),
        "rows": [
            {
                "system": system,
                "counts": [f"{_total(run.get(name, 0)):,}" for name in COUNTS],
                "files": [str(file) for file in run.get("files", ())],
            }
            for system, run in manifest.get("runs", {}).items()
        ],
    }


def _total(count: int | Mapping[str, int]) -> int:
    """A number, or the sum of numbers by id."""
    return sum(count.values()) if isinstance(count, Mapping) else count


def _flat(entries: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every value with its path; lists on one line. Unset and empty values are left out."""
    for name, value in entries.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            if value:
                yield f"{prefix}{name}", ", ".join(map(str, value))
        elif value is not None:
            yield f"{prefix}{name}", str(value)
