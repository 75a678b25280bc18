"""Scoring worlds of term discovery (`tests.discovery_worlds`) on any executor, down to the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from swsdask.discovery.measures import select
from swsdask.discovery.placing import locate
from swsdask.discovery.score import CountedDiscovery, FragmentSource, needed
from swsdask.execution.executor import Executor, Unseen
from swsdask.model.discovery import Corpus, Definition, Discovered, Fragments
from swsdask.scoring.rounds import Statistics, score_systems
from tests.discovery_worlds import World

DEFINITIONS: tuple[Definition, ...] = ("document", "tde2015", "tdev2")


def corpus_of(world: World, definition: Definition) -> Corpus:
    return world.corpus(definition, "split", "folds", "within")


def scored(corpus: Corpus, systems: Sequence[Fragments], executor: Executor, work: int = 10**9) -> tuple[bytes, Any]:
    """The bytes of the table of scores, and the examples of classes."""
    names, families = select(None, corpus.definition)

    def counted(found: Discovered, statistics: Statistics) -> CountedDiscovery:
        return CountedDiscovery(found, statistics, families, names)

    placed = (locate(fragments, corpus) for fragments in systems)
    source = FragmentSource(corpus, needed(families), executor, work)
    tables = score_systems(placed, len(systems), source, counted, executor, Unseen())
    assert set(tables.scores.table["measure"].to_pylist()) >= set(names)
    return b"".join(tables.scores.parts()), tables.observed
