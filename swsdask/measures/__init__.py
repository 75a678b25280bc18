"""Measures: arithmetic over merged statistics. Each family is a file whose docstring is its specification.

A measure is a class of a module here and a row of `model.measures.TABLE`. Modules are searched for measures; there is
no list of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

from swsdask.measures import average_precision, retrieval
from swsdask.measures.measure import Measure
from swsdask.measures.names import with_points
from swsdask.measures.notes import interpretation, system_notes
from swsdask.measures.retrieval import GradedRetrieval, JudgedRetrieval
from swsdask.measures.threshold_curves import curves
from swsdask.model.errors import SettingsError
from swsdask.model.measures import TABLE, parse_name
from swsdask.model.trials import Reference

__all__ = [
    "MEASURES",
    "RANKED",
    "curves",
    "interpretation",
    "require_judgments",
    "select",
    "system_notes",
    "with_points",
]


def _families() -> tuple[Measure, ...]:
    """Every class of a module here that is a measure; families are ordered by the last of their rows in the table."""
    rows = {row.name: number for number, row in enumerate(TABLE)}
    modules = [import_module(each.name) for each in iter_modules(__path__, f"{__name__}.") if not each.ispkg]
    found: list[Measure] = [
        each()
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__ and {"names", "values"} <= vars(each).keys()
        if each is not Measure
    ]
    return tuple(sorted(found, key=lambda family: max(rows.get(name, len(rows)) for name in family.names)))


MEASURES = _families()
"""Every family of measures, in canonical order."""

RANKED = tuple(
    family for family in MEASURES if type(family).__module__ in (average_precision.__name__, retrieval.__name__)
)
"""The families of the rankings of queries, which depend on no operating point and no decision."""


def select(names: Sequence[str] | None, otherwise: Sequence[Measure] = MEASURES) -> list[Measure]:
    """The families that yield the named measures, in canonical order; `otherwise` for None.

    A name may have a point (`twv@0.5`; see `measures.names`). Raises `SettingsError` for an unknown name, with the
    nearest one.
    """
    if names is None:
        return list(otherwise)
    known = [name for family in MEASURES for name in family.names]
    requested = {parse_name(name).family: name for name in names}
    for family, name in requested.items():
        if family not in known:
            near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.0)
            raise SettingsError(f"measure {name!r} is unknown. Nearest: {near[0]}. `swsdask measures` lists all.")
    return [family for family in MEASURES if not requested.keys().isdisjoint(family.names)]


def require_judgments(names: Sequence[str] | None, reference: Reference) -> None:
    """Raises `SettingsError` if a measure of judged documents is requested but none was judged."""
    judged = {name for family in (GradedRetrieval, JudgedRetrieval) for name in family.names}
    for name in names or () if reference.judgments is None else ():
        if parse_name(name).family in judged:
            raise SettingsError(
                f"measure {name!r} needs judged documents: qrels, or a column `grade` of occurrences where trials are "
                "documents."
            )
