"""The manifest of a result: the signature, which says what the numbers mean, and what was dropped or rounded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import xxhash

from swsdask import __version__
from swsdask.archive.protocols import Archive, Run
from swsdask.model.settings import Settings

PER_QUERY = ("search_time.", "oov_count.")
"""The beginnings of the names of attributes that describe one query."""


def manifest_of(
    archive: Archive, systems: Sequence[str], settings: Settings, measures: Sequence[str] | None, by: Sequence[str]
) -> dict[str, Any]:
    """What the numbers mean, and what was dropped or rounded on the way to them."""
    runs = {run.system: run for run in archive.runs if run.system in set(systems)}
    meaning = {
        "swsdask": __version__,
        "measures": list(measures) if measures else "all",
        "by": list(by),
        "settings": settings.evaluation.model_dump(mode="json"),
        "inputs": {**archive.inputs, "runs": {system: runs[system].content for system in systems}},
    }
    digest = xxhash.xxh3_64_hexdigest(json.dumps(meaning, sort_keys=True, allow_nan=False).encode())
    return {
        "signature": f"swsdask {__version__} {differences(settings)} {digest}",
        **meaning,
        "runs": {system: _provenance(runs[system]) for system in systems},
    }


def _provenance(run: Run) -> dict[str, Any]:
    """What a run is and what was counted of it, without the attributes of each query."""
    attributes = {name: text for name, text in run.attributes.items() if not name.startswith(PER_QUERY)}
    resources = None if run.resources is None else run.resources.model_dump(mode="json", exclude_defaults=True)
    return {**asdict(replace(run, attributes=attributes, resources=None)), "resources": resources}


def differences(settings: Settings) -> str:
    """The settings that are not the defaults, in one line."""
    chosen = settings.evaluation.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    point = chosen.pop("operating_point", {})
    pairs = [pair for key, value in chosen.items() for pair in _flat(key, value)] + list(point.items())
    return " ".join(f"{key}={value}" for key, value in pairs) or "defaults"


def _flat(key: str, value: Any) -> list[tuple[str, Any]]:
    """A setting, or those of a table of settings, named as `--set` takes them."""
    return [(f"{key}.{name}", each) for name, each in value.items()] if isinstance(value, dict) else [(key, value)]
