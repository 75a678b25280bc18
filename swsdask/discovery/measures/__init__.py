"""Every measure of discovery, by name: which there are under a definition, and what computes them.

Names are known without importing what counts; only the families that are asked for are imported.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib import import_module

from swsdask.discovery.measures.tokens import NAMES as SIZES
from swsdask.discovery.statistic import Measure
from swsdask.model.corpus import Definition
from swsdask.model.errors import SettingsError

_ENDINGS = ("precision", "recall", "f_score")

_NAMES: dict[str, tuple[str, ...]] = {
    "sizes": SIZES,
    "ned": ("n_pairs", "ned"),
    "coverage": ("coverage",),
    **{
        family: tuple(f"{family}_{ending}" for ending in _ENDINGS)
        for family in ("matching", "grouping", "type", "token", "boundary")
    },
}
"""The measures of each family, in the order in which they are told."""

_HOMES: dict[str, str | dict[Definition, str]] = {
    "ned": "ned:Ned",
    "coverage": {"document": "coverage:Coverage", "tde2015": "coverage:TimeCoverage", "tdev2": "coverage:Coverage"},
    "matching": {"document": "matching:Matching", "tde2015": "matching:WeightedMatching"},
    "grouping": {"document": "grouping:Grouping", "tde2015": "grouping:GroupingTde", "tdev2": "grouping:Grouping"},
    "type": {"document": "types:Type", "tde2015": "types:SpelledType", "tdev2": "types:Type"},
    "token": "tokens:Token",
    "boundary": "boundaries:Boundary",
}
"""Where a family is computed: module and class, the same for all definitions or one for each that has it."""


def names_of(definition: Definition) -> list[str]:
    """All measures of a definition."""
    return [name for family in _families(definition) for name in _NAMES[family]]


def select(asked: Iterable[str] | None, definition: Definition) -> tuple[list[str], list[Measure]]:
    """The names of the measures that are asked for, in the order of `names_of`, and the families that compute them.

    A family's name stands for all of its measures: "matching" for its precision, recall and F-score. None: all. Raises
    `SettingsError` for a name that there is not, naming the nearest.
    """
    known = names_of(definition)
    families = _families(definition)
    wanted = set(known) if asked is None else {name for word in asked for name in _spelled_out(word, known, definition)}
    names = [name for name in known if name in wanted]
    needed = [family for family in families if family != "sizes" and wanted & set(_NAMES[family])]
    return names, [_made(family, definition) for family in needed]


def _families(definition: Definition) -> list[str]:
    return [family for family in _NAMES if family == "sizes" or _home(family, definition)]


def _home(family: str, definition: Definition) -> str:
    home = _HOMES.get(family, "")
    return home if isinstance(home, str) else home.get(definition, "")


def _made(family: str, definition: Definition) -> Measure:
    module, _, name = _home(family, definition).partition(":")
    made: Measure = getattr(import_module(f"{__name__}.{module}"), name)()
    return made


def _spelled_out(word: str, known: list[str], definition: Definition) -> tuple[str, ...]:
    if word in known:
        return (word,)
    families = _families(definition)
    if word in families:
        return _NAMES[word]
    near = difflib.get_close_matches(word, [*known, *families], n=1, cutoff=0.0)
    raise SettingsError(
        f"measure {word!r} is unknown under {definition}. Nearest: {near[0]}. Known: {', '.join(known)}."
    )
