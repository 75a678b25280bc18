"""Scoring worlds of term discovery (`tests.discovery_worlds`) on any executor, down to the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import reduce
from typing import Any

import numpy as np

from swsdask.discovery.measures import select
from swsdask.discovery.placing import Discovered, locate
from swsdask.discovery.score import CountedDiscovery, FragmentSource, Placed, needed
from swsdask.execution.executor import Executor, Unseen
from swsdask.model.discovery import Corpus, Definition, Fragments
from swsdask.scoring.rounds import Statistics, score_systems
from tests.discovery_worlds import World

DEFINITIONS: tuple[Definition, ...] = ("document", "tde2015", "tdev2")


def corpus_of(world: World, definition: Definition) -> Corpus:
    return world.corpus(definition, "split", "folds", "within")


@dataclass(frozen=True)
class Read:
    """A system that was read before."""

    fragments: Fragments

    @property
    def system(self) -> str:
        return self.fragments.system

    @property
    def rows(self) -> int:
        return len(self.fragments)


def place(system: Read, corpus: Corpus) -> Placed:
    return Placed(locate(system.fragments, corpus), (), {})


def scored(corpus: Corpus, systems: Sequence[Fragments], executor: Executor, work: int = 10**9) -> tuple[bytes, Any]:
    """The bytes of the table of scores, and the examples of classes."""
    names, families = select(None, corpus.definition)

    def counted(system: Read, statistics: Statistics) -> CountedDiscovery:
        return CountedDiscovery(system.system, statistics, families, names)

    source = FragmentSource(corpus, place, needed(families), executor, work)
    tables = score_systems(map(Read, systems), len(systems), source, counted, executor, Unseen())
    assert set(tables.scores.table["measure"].to_pylist()) >= set(names)
    return b"".join(tables.scores.parts()), tables.observed


def same(one: object, other: object) -> None:
    """Fail unless two things are the same but for their notes: types, fields, arrays."""
    assert type(one) is type(other)
    if is_dataclass(one):
        for field in fields(one):
            if field.name != "notes":
                same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            same(mine, theirs)
    else:
        assert one == other


def whole(statistic: Any, corpus: Corpus, discovered: Discovered, work: int = 1 << 20) -> Any:
    """A statistic of a corpus, merged from its cells of at most so much work."""
    parts = [statistic.from_cell(cell, corpus, discovered) for cell in statistic.cells(corpus, discovered, work)]
    return reduce(statistic.merge, parts)
