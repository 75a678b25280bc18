"""The numbers over all queries, at hand by condition, system and measure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.merit import merit, ranking_measures
from swsdask.model.wording import counted

COLOURS, DASHES = 6, 3
"""How many colours and ways of dashing a page has; the number tells systems apart beyond these."""

FACTS = {"n_queries": "queries", "n_target": "targets"}
"""Measures that are the same for all systems of a condition, and what they count."""


@dataclass(frozen=True)
class Board:
    """Conditions and measures in the order of the result; systems ranked in the first condition."""

    conditions: tuple[str, ...]
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    values: dict[tuple[str, str, str], float]
    by: tuple[str, ...]
    """The measures that rank systems: see `model.merit.ranking_measures`."""

    def value(self, condition: str, system: str, measure: str) -> float:
        """One number; NaN where the result has none."""
        return self.values.get((condition, system, measure), math.nan)

    def mark(self, system: str) -> dict[str, int]:
        """What stands for a system in every table and picture: its number, colour and dashes."""
        place = self.systems.index(system)
        return {"number": place + 1, "colour": place % COLOURS, "dash": place // COLOURS % DASHES}

    def facts(self, condition: str) -> list[str]:
        """What is the same for all systems of a condition: `449 queries`."""
        known = {measure: value for (where, _, measure), value in self.values.items() if where == condition}
        return [
            counted(int(known[measure]), things)
            for measure, things in FACTS.items()
            if not math.isnan(known.get(measure, math.nan))
        ]

    def ranked(self, condition: str) -> tuple[str, ...]:
        """The systems that have numbers in a condition, the best first: see `rank`."""
        there = {system for where, system, _ in self.values if where == condition}
        return rank([system for system in self.systems if system in there], condition, self.values, self.by)


def board(table: pa.Table, asked: Sequence[str] | None = None) -> Board:
    """The board of a table of `model.results.SCORES`; `asked` are the measures that were asked for, None: all."""
    overall = table.filter(pc.is_null(table["query"]))
    names = [overall[name].to_pylist() for name in ("condition", "system", "measure")]
    values = dict(zip(zip(*names, strict=True), overall["value"].to_pylist(), strict=True))
    conditions, systems, measures = (tuple(dict.fromkeys(column)) for column in names)
    by = ranking_measures(measures, asked)
    first = conditions[0] if conditions else ""
    return Board(conditions, rank(systems, first, values, by), measures, values, by)


def rank(
    systems: Sequence[str], condition: str, values: dict[tuple[str, str, str], float], by: Sequence[str]
) -> tuple[str, ...]:
    """Systems, the best first, by the first measure of `by` that is defined for them; ties by name.

    Those that have none of the measures come last.
    """

    def key(system: str) -> tuple[bool, float, str]:
        merits = (merit(measure) * values.get((condition, system, measure), math.nan) for measure in by)
        found = next((value for value in merits if not math.isnan(value)), math.nan)
        return math.isnan(found), 0.0 if math.isnan(found) else -found, system

    return tuple(sorted(systems, key=key))
