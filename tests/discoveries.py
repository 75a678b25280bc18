"""Scoring worlds of term discovery (`tests.discovery_worlds`) on any executor, down to the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swsdask.discovery.measures import select
from swsdask.discovery.placing import locate
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
