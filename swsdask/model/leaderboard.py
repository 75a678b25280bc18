"""The leaderboard: numbers over all queries by condition, system and measure; the rank of systems and its changes.

A night's record says how systems moved on the board, which runs were refused, and which gates failed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict, TypeAdapter

from swsdask.model.measures import better, ranking_measures, select_measures
from swsdask.model.name_columns import names_of
from swsdask.model.safe_text import without_secrets
from swsdask.model.wording import counted

LEADERBOARD = (
    ("n_hit", "n_miss", "n_false_alarm"),
    ("p_miss", "p_fa"),
    ("atwv", "actual_threshold"),
    ("mtwv", "mtwv_threshold"),
    ("otwv", "stwv"),
    ("cnxe", "cnxe_min"),
)
"""The columns of a leaderboard; those of a group stay side by side."""

RETRIEVAL = (("map", "ndcg", "r_precision"), ("bpref", "reciprocal_rank"), ("n_relevant", "n_relevant_retrieved"))
"""The measures of rankings alone."""

_IMPORTANCE = ("atwv", "mtwv", "cnxe", "map", "p_miss", "reciprocal_rank", "otwv", "stwv")
"""The measures whose groups of columns are shown if not all fit, the most important first."""


def importance(group: Collection[str]) -> int:
    """Return the rank of a group of columns if not all fit, 0 for the most important."""
    return next((rank for rank, name in enumerate(_IMPORTANCE) if name in group), len(_IMPORTANCE))


FACTS = {"n_queries": "queries", "n_target": "targets"}
"""Measures that are equal for all systems of a condition, and what they count."""


MOST_TABLES = 12
"""The maximum number of conditions that a terminal or a notebook shows unless more are requested."""

MOST_LINES = 60
"""The maximum number of systems in a table of a notebook, the same as in pandas."""


def columns_of(measures: Collection[str]) -> list[list[str]]:
    """Return the groups of columns of a leaderboard if all measures were requested; only columns that have numbers."""
    chosen = LEADERBOARD if any(name in measures for group in LEADERBOARD for name in group) else RETRIEVAL
    return [[name for name in group if name in measures] for group in chosen]


@dataclass(frozen=True)
class Leaderboard:
    """Conditions and measures in the order of the result; systems ranked in the first condition."""

    conditions: tuple[str, ...]
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    values: dict[tuple[str, str, str], float]
    by: tuple[str, ...]
    """The measures that rank systems: see `model.measures.ranking_measures`."""
    groups: tuple[tuple[str, ...], ...]
    """The columns of a leaderboard, in groups that stay together: the requested measures, each alone, in the order of
    the request, or those of `columns_of`."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a leaderboard."""
        return tuple(measure for group in self.groups for measure in group)

    def value(self, condition: str, system: str, measure: str) -> float:
        """Return one number; NaN if the result has none."""
        return self.values.get((condition, system, measure), math.nan)

    def leading(self, system: str) -> float:
        """The number by which a system is ranked first of all; NaN if it has none, or no measure ranks systems."""
        return self.value(self.conditions[0], system, self.by[0]) if self.conditions and self.by else math.nan

    def best(self, condition: str, measure: str) -> float:
        """Return the best number of a measure among several systems; NaN if the measure does not rank systems."""
        values = [self.value(condition, system, measure) for system in self.systems]
        known = [value for value in values if not math.isnan(value)]
        sign = better(measure)
        return sign * max(sign * value for value in known) if sign and len(known) > 1 else math.nan

    def facts(self, condition: str) -> list[str]:
        """Return the counts that are equal for all systems of a condition, such as `449 queries`."""
        known = {
            measure: [v for system in self.systems if not math.isnan(v := self.value(condition, system, measure))]
            for measure in FACTS
        }
        return [counted(int(values[-1]), FACTS[measure]) for measure, values in known.items() if values]

    @property
    def of_one_system(self) -> bool:
        """Whether it has several conditions of a single system, which are then the lines of one table."""
        return len(self.systems) == 1 < len(self.conditions)

    def of_first(self, n_conditions: int) -> Leaderboard:
        """Return the board of the first conditions; systems and their places do not change."""
        return replace(self, conditions=self.conditions[:n_conditions])

    def beta(self, condition: str) -> float | None:
        """The beta of TWV = 1 - (P_miss + beta P_fa) that follows from the numbers (2013 measures document, Eq. 6).

        The numbers with the highest P_fa are used, where rounding matters least; None if no system has a false alarm.
        """
        best, beta = 0.0, None
        for system in self.systems:
            for twv, miss, fa in (("atwv", "p_miss", "p_fa"), ("mtwv", "mtwv_p_miss", "mtwv_p_fa")):
                value, p_miss, p_fa = (self.value(condition, system, measure) for measure in (twv, miss, fa))
                if p_fa > best and math.isfinite(value) and math.isfinite(p_miss):
                    best, beta = p_fa, (1.0 - p_miss - value) / p_fa
        return beta if beta is not None and beta > 0 else None

    def ranked(self, condition: str) -> tuple[str, ...]:
        """Return the systems that have numbers in a condition, the best first: see `rank`."""
        return self._rankings.get(condition, ())

    def place(self, system: str) -> int:
        """Return the place of a system among all, from 0."""
        return self._places[system]

    @cached_property
    def _rankings(self) -> dict[str, tuple[str, ...]]:
        there: dict[str, set[str]] = {condition: set() for condition in self.conditions}
        for condition, system, _ in self.values:
            if condition in there:
                there[condition].add(system)
        return {
            condition: rank([system for system in self.systems if system in own], condition, self.values, self.by)
            for condition, own in there.items()
        }

    @cached_property
    def _places(self) -> dict[str, int]:
        return {system: place for place, system in enumerate(self.systems)}


def leaderboard_of(table: pa.Table, requested: Sequence[str] | None = None) -> Leaderboard:
    """Return the board of a table of `model.results.SCORES`; `requested` has the requested measures, None for all."""
    overall = table.filter(pc.is_null(table["query"]))
    names = [names_of(overall[name]) for name in ("condition", "system", "measure")]
    values = dict(zip(zip(*names, strict=True), overall["value"].to_pylist(), strict=True))
    conditions, systems, measures = (tuple(dict.fromkeys(column)) for column in names)
    by = ranking_measures(measures, requested)
    first = conditions[0] if conditions else ""
    columns = [[measure] for measure in dict.fromkeys(select_measures(requested or (), measures))]
    groups = tuple(map(tuple, columns or columns_of(measures)))
    return Leaderboard(conditions, rank(systems, first, values, by), measures, values, by, groups)


def rank(
    systems: Sequence[str], condition: str, values: dict[tuple[str, str, str], float], by: Sequence[str]
) -> tuple[str, ...]:
    """Systems, the best first, by the first measure of `by` that is defined for them; ties by name.

    Systems without any of the measures come last.
    """

    def key(system: str) -> tuple[bool, float, str]:
        merits = (better(measure) * values.get((condition, system, measure), math.nan) for measure in by)
        found = next((value for value in merits if not math.isnan(value)), math.nan)
        return math.isnan(found), 0.0 if math.isnan(found) else -found, system

    return tuple(sorted(systems, key=key))


NEW, REPLACED = "new", "run replaced"
SETTINGS, VERSION = "other settings, measures or collection", "other version of swsdask"
"""With `NEW` and `REPLACED`, the reasons why a system is scored."""

GONE, UNREAD = "", "unread"
"""Used instead of a stamp: for a refused run that is no longer in the inbox, and for one that could not be reached."""


_AS_WRITTEN = ConfigDict(strict=True, extra="forbid")
"""Of a night's record: values of the written types, and no others."""


@dataclass(frozen=True)
class Move:
    """The change of a system that was scored in a night: `reason` says why it was scored.

    `was` is the number of the baseline, NaN if there is none; `p` the p value of the difference, NaN if not tested.
    """

    __pydantic_config__ = _AS_WRITTEN

    system: str
    reason: str
    baseline: str | None
    measure: str
    value: float
    was: float
    p: float


@dataclass(frozen=True)
class Refused:
    """A refused run: the file, its system, its first problems and how many there are.

    A run that could not be reached is `unread`: every night tries it again. If scoring refused a run that was ingested,
    `signature` is that of the scoring, which is not tried again with the same signature; otherwise it is empty.
    """

    __pydantic_config__ = _AS_WRITTEN

    url: str
    system: str
    problems: tuple[str, ...]
    total: int
    unread: bool = False
    signature: str = ""


@dataclass(frozen=True)
class Record:
    """The findings of a night beside its numbers.

    `stamps` are the size and time, or ETag, of every run that was examined, `GONE` for refused ones that are gone,
    `UNREAD` for those that could not be reached. `sources` is the file of each system that was ingested, `rows` the
    number of detections that were ingested, `gates` the failed gates, and `notes` those for the reader.
    """

    __pydantic_config__ = _AS_WRITTEN

    number: int
    date: str
    version: int
    swsdask: str
    stamps: dict[str, str] = field(default_factory=dict)
    refused: tuple[Refused, ...] = ()
    moves: tuple[Move, ...] = ()
    gates: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    rows: int = 0
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def gone(self) -> list[str]:
        """The runs that were refused before and are gone."""
        return [url for url, stamp in self.stamps.items() if stamp == GONE]

    def to_json(self) -> str:
        """Return the metadata of the night's file."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Record:
        """Read the text of `to_json`. Earlier releases kept secrets of URLs, which are struck out.

        Raises `ValueError` for any other text.
        """
        said = _records().validate_json(text)
        return replace(
            said,
            stamps={without_secrets(url): stamp for url, stamp in said.stamps.items()},
            sources={system: without_secrets(url) for system, url in said.sources.items()},
            refused=tuple(replace(each, url=without_secrets(each.url)) for each in said.refused),
        )


@cache
def _records() -> TypeAdapter[Record]:
    return TypeAdapter(Record)
