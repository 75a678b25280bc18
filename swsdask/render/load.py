"""What each system took: the processing load in numbers, and the hardware in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swsdask.render.board import Board
from swsdask.render.faces import face, shown

MEASURES = ("isf", "ssf", "pmu_index", "pmu_search", "pl")

HARDWARE = {
    "count": "Nodes",
    "brand": "Brand",
    "cpu": "CPU",
    "cores": "Cores",
    "clock_ghz": "Clock (GHz)",
    "ram_gb": "RAM (GB)",
    "os": "Operating system",
}
"""What a manifest tells of each type of node."""

_WORDS = ("brand", "cpu", "os")
_PHASES = {"both": "indexing and searching", "indexing": "indexing", "searching": "searching"}


def processing_load(found: Board, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A table of the load, a row per system that has one, and of the hardware, a row per type of node."""
    columns = [measure for measure in MEASURES if measure in found.measures]
    condition = found.conditions[0] if found.conditions else ""
    runs = manifest.get("runs", {})
    return {
        "columns": [{"heading": face(measure).heading, "title": face(measure).title} for measure in columns],
        "rows": [
            {
                "system": system,
                "texts": [shown(measure, found.value(condition, system, measure)) for measure in columns],
            }
            for system in found.systems
            if any((condition, system, measure) in found.values for measure in columns)
        ],
        "hardware_columns": [{"heading": heading, "words": name in _WORDS} for name, heading in HARDWARE.items()],
        "hardware": [
            {
                "system": system,
                "phase": _PHASES[node.get("phase", "both")],
                "cells": [{"text": _text(node.get(name, 1)), "words": name in _WORDS} for name in HARDWARE],
            }
            for system, run in runs.items()
            for node in (run.get("resources") or {}).get("hardware", ())
        ],
    }


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,.6g}"
