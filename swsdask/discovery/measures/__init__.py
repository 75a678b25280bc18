"""The measures of term discovery by name: those of each definition, and the classes that compute them.

A measure is arithmetic over one statistic, and a statistic merges. Names are listed here without imports; only the
requested families are imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, Protocol, Self

from swsdask.discovery.measures.parsing import SIZES
from swsdask.model.discovery import Corpus, Definition, Discovered
from swsdask.model.errors import SettingsError
from swsdask.model.trials import F64
from swsdask.model.wording import nearest


class DiscoveryStatistic(Protocol):
    """A mergeable count over one system's fragments. `merge` is associative, commutative and exact."""

    @classmethod
    def cells(cls, corpus: Corpus, discovered: Discovered, work: int) -> Iterator[object]:
        """Yield parts of the work, at least one, small and picklable, of about `work` elementary steps each.

        Their merged statistics are the statistic of the whole, for any partition.
        """
        ...

    @classmethod
    def from_cell(cls, cell: Any, corpus: Corpus, discovered: Discovered) -> Self:
        """Return the statistic of one part."""
        ...

    def merge(self, other: Self) -> Self:
        """Return the statistic of both parts together; neither is changed."""
        ...


class DiscoveryMeasure(Protocol):
    """A family of numbers. `names` are those that it computes per fold, in order.

    A precision and a recall are named "x_precision" and "x_recall"; "x_f_score" is derived per fold
    (`discovery.placing`). A number that is not defined in a fold is NaN.
    """

    names: ClassVar[tuple[str, ...]]
    statistic: ClassVar[type[DiscoveryStatistic]]

    def values(self, statistic: Any, corpus: Corpus, fold_set: int) -> Mapping[str, F64]:
        """Return the numbers of the folds of one set by name, float64 [n_folds]."""
        ...


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
"""The measures of each family, in the order of reports."""

_HOMES: dict[str, str | dict[Definition, str]] = {
    "ned": "ned:Ned",
    "coverage": {"document": "matching:Coverage", "tde2015": "matching:TimeCoverage", "tdev2": "matching:Coverage"},
    "matching": {"document": "matching:Matching", "tde2015": "matching:WeightedMatching"},
    "grouping": {
        "document": "clustering:Grouping",
        "tde2015": "clustering:GroupingTde",
        "tdev2": "clustering:Grouping",
    },
    "type": {"document": "clustering:Type", "tde2015": "clustering:SpelledType", "tdev2": "clustering:Type"},
    "token": "parsing:Token",
    "boundary": "parsing:Boundary",
}
"""The module and class of each family, one for all definitions or one for each definition that has it."""


def measures_of(definition: Definition) -> list[str]:
    """Return all measures of a definition."""
    return [name for family in _families(definition) for name in _NAMES[family]]


def select(requested: Iterable[str] | None, definition: Definition) -> tuple[list[str], list[DiscoveryMeasure]]:
    """Return the names of the requested measures, in the order of `measures_of`, and the families that compute them.

    The name of a family means all of its measures: "matching" its precision, recall and F-score. None means all. Raises
    `SettingsError` for an unknown name, with the nearest one.
    """
    known = measures_of(definition)
    families = _families(definition)
    wanted = (
        set(known)
        if requested is None
        else {name for word in requested for name in _spelled_out(word, known, definition)}
    )
    names = [name for name in known if name in wanted]
    needed = [family for family in families if family != "sizes" and wanted & set(_NAMES[family])]
    return names, [_made(family, definition) for family in needed]


def _families(definition: Definition) -> list[str]:
    return [family for family in _NAMES if family == "sizes" or _home(family, definition)]


def _home(family: str, definition: Definition) -> str:
    home = _HOMES.get(family, "")
    return home if isinstance(home, str) else home.get(definition, "")


def _made(family: str, definition: Definition) -> DiscoveryMeasure:
    module, _, name = _home(family, definition).partition(":")
    made: DiscoveryMeasure = getattr(import_module(f"{__name__}.{module}"), name)()
    return made


def _spelled_out(word: str, known: list[str], definition: Definition) -> tuple[str, ...]:
    if word in known:
        return (word,)
    families = _families(definition)
    if word in families:
        return _NAMES[word]
    near = nearest(word, [*known, *families])
    raise SettingsError(
        f"measure {word!r} is unknown under {definition}. Nearest: {near}. `swsdask measures` lists all."
    )


def home_of(name: str) -> str:
    """Return the module that computes a measure, whose docstring defines it for every definition.

    It is "" for an unknown name.
    """
    family = next((family for family, names in _NAMES.items() if name in names), "")
    home = _HOMES.get(family, "parsing:" if family else "")
    first = home if isinstance(home, str) else home["document"]
    return first and f"{__name__}.{first.partition(':')[0]}"
