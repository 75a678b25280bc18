"""A result of term discovery as a page: measures with their spread over folds, what was found, classes to look at."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from markupsafe import Markup

from swsdask.model.results import Result
from swsdask.model.wording import counted
from swsdask.render.board import COLOURS
from swsdask.render.discovery_figures import spread_panels, tallies
from swsdask.render.pages import TEMPLATES, environment, style
from swsdask.render.provenance import provenance

COUNTS = {"n_classes": "Classes", "n_fragments": "Fragments", "n_words": "Words", "n_pairs": "Pairs"}
"""Measures that count, and their headings."""

SINGLE = {"ned": "NED", "coverage": "Coverage"}

FAMILIES = {
    "matching": "Matching",
    "grouping": "Grouping",
    "type": "Type",
    "token": "Token",
    "boundary": "Boundary",
}
"""Families of a precision, a recall and an F-score, and their headings."""

ENDINGS = {"precision": "P", "recall": "R", "f_score": "F"}
WORDS = {"precision": "precision", "recall": "recall", "f_score": "F-score"}

ABOUT = {
    "ned": "Mean normalised edit distance of the pairs: 0 is best",
    "coverage": "How much of what there is to find is covered",
    "matching": "Pairs of stretches, with all parts of them, against all pairs of equal ones",
    "grouping": "Classes against what is transcribed alike: purity and inverse purity",
    "type": "What was found against the lexicon",
    "token": "Fragments against the words as they were spoken",
    "boundary": "Edges of fragments against the edges of words",
}

_HEADINGS = {"all": "All", "within_talker": "Within talker"}


@dataclass(frozen=True)
class Scores:
    """The numbers of a result by (condition, system, measure), and what there is of each in the result's order."""

    values: Mapping[tuple[str, str, str], float]
    conditions: tuple[str, ...]
    systems: tuple[str, ...]
    measures: tuple[str, ...]

    @classmethod
    def of(cls, table: pa.Table) -> Scores:
        """The numbers of a table of `model.results.SCORES`."""
        columns = [table[name].to_pylist() for name in ("condition", "system", "measure")]
        values = dict(zip(zip(*columns, strict=True), table["value"].to_pylist(), strict=True))
        conditions, systems, measures = (tuple(dict.fromkeys(column)) for column in columns)
        return cls(values, tuple(name for name in conditions if "/" not in name), systems, measures)

    def value(self, condition: str, system: str, measure: str) -> float:
        """One number; NaN where there is none."""
        return self.values.get((condition, system, measure), math.nan)

    def groups(self) -> list[dict[str, Any]]:
        """The measures that have numbers, in groups that belong together: a heading and (measure, heading) of each."""
        there = set(self.measures)
        found = [
            {"family": name, "heading": "", "columns": [(name, heading)]}
            for name, heading in SINGLE.items()
            if name in there
        ]
        for family, heading in FAMILIES.items():
            columns = [(f"{family}_{end}", short) for end, short in ENDINGS.items() if f"{family}_{end}" in there]
            if columns:
                found.append({"family": family, "heading": heading, "columns": columns})
        counts = [(name, heading) for name, heading in COUNTS.items() if name in there]
        return [*found, *([{"family": "", "heading": "", "columns": counts}] if counts else [])]


def shown(measure: str, value: float) -> str:
    """A number as it is printed: counts whole, others with three decimals, `-` where it is not defined."""
    if math.isnan(value):
        return "-"
    return f"{value:,.0f}" if measure in COUNTS else f"{value:.3f}"


def page(result: Result) -> str:
    """The report as text."""
    found = Scores.of(result.table)
    manifest = result.manifest
    script = (TEMPLATES / "report.js").read_text(encoding="utf-8")
    marks = {system: {"number": at + 1, "colour": at % COLOURS} for at, system in enumerate(found.systems)}
    return (
        environment()
        .get_template("discovery.html.j2")
        .render(
            title=found.systems[0] if len(found.systems) == 1 else counted(len(found.systems), "systems"),
            facts=[counted(manifest["corpus"][what], what) for what in ("files", "phones", "words")],
            signature=str(manifest.get("signature", "")),
            version=str(manifest.get("swsdask", "")),
            notes=result.notes,
            sections=[
                {
                    "name": _HEADINGS.get(condition, condition),
                    "folds": len(manifest["folds"].get(condition, {}).get("names", ())),
                    "groups": found.groups(),
                    "rows": _rows(found, condition, marks),
                    "panels": [row for of in _drawn(found) if (row := spread_panels(found, condition, marks, of))],
                }
                for condition in found.conditions
            ],
            about=ABOUT,
            tallies=tallies(result.curves, found.systems, marks),
            classes=[
                {"system": system, **marks[system], **kinds} for system, kinds in manifest.get("classes", {}).items()
            ],
            read=_read(manifest),
            provenance=provenance(
                {name: manifest[name] for name in manifest if name not in ("kind", "classes", "folds")}
            ),
            data={"faces": []},
            style=style() + Markup((TEMPLATES / "discovery.css").read_text(encoding="utf-8")),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        )
    )


def _drawn(found: Scores) -> list[list[tuple[str, str]]]:
    """The measures whose spread is drawn, with headings, in rows: single ones, then each family."""
    rows = [[(name, heading) for name, heading in SINGLE.items() if name in found.measures]]
    for family, heading in FAMILIES.items():
        names = ((f"{family}_{end}", f"{heading} {word}") for end, word in WORDS.items())
        rows.append([(name, told) for name, told in names if name in found.measures])
    return rows


def _rows(found: Scores, condition: str, marks: Mapping[str, Mapping[str, int]]) -> list[dict[str, Any]]:
    """A row per system, of cells with a number and its spread."""
    rows = []
    for system in found.systems:
        cells = []
        for group in found.groups():
            for measure, _ in group["columns"]:
                value, std = (found.value(condition, system, name) for name in (measure, f"{measure}_std"))
                spread = "" if math.isnan(std) else f"± {std:.3f}"
                sort = "" if math.isnan(value) else repr(value)
                cells.append({"text": shown(measure, value), "spread": spread, "sort": sort})
        rows.append({"system": system, **marks[system], "cells": cells})
    return rows


def _read(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What was read of each system, and what was dropped or changed."""
    runs: Mapping[str, Any] = manifest.get("runs", {})
    reasons = list(dict.fromkeys(reason for run in runs.values() for reason in run["dropped"]))
    clipped: Sequence[str] = ["Clipped"] if any(run["clipped"] for run in runs.values()) else []
    columns = [
        "Classes",
        "Fragments read",
        "Members",
        "Distinct",
        *(f"Dropped: {reason}" for reason in reasons),
        *clipped,
    ]
    rows = []
    for system, run in runs.items():
        counts = [run["classes"], run["rows"], run["members"], run["fragments"]]
        counts += [run["dropped"].get(reason, 0) for reason in reasons] + ([run["clipped"]] if clipped else [])
        rows.append({"system": system, "counts": [f"{count:,}" for count in counts], "files": run["files"]})
    return {"columns": columns, "rows": rows}
