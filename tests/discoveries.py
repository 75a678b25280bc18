"""Scoring worlds of term discovery (`tests.discovery_worlds`) on any executor, down to the bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from swsdask.discovery.looks import Exemplars
from swsdask.discovery.measures import select
from swsdask.discovery.placing import locate
from swsdask.discovery.score import needed, numbers, score_systems, score_table
from swsdask.execution.executor import Executor, Unseen
from swsdask.model.corpus import Corpus, Definition, Fragments
from tests.discovery_worlds import World
from tests.engines import parquet

DEFINITIONS: tuple[Definition, ...] = ("document", "tde2015", "tdev2")


def corpus_of(world: World, definition: Definition) -> Corpus:
    return world.corpus(definition, "split", "folds", "within")


def scored(corpus: Corpus, systems: Sequence[Fragments], executor: Executor, work: int = 10**9) -> tuple[bytes, Any]:
    """The bytes of the table of scores, and the examples of classes."""
    names, families = select(None, corpus.definition)
    statistics = {**needed(families), Exemplars: "examples"}
    tables, told = [], []
    placed = (locate(fragments, corpus) for fragments in systems)
    for found, statistic in score_systems(placed, corpus, statistics, executor, work, Unseen()):
        tables.append(score_table(found.system, numbers(found, statistic, families, corpus, names)))
        told.append(statistic[Exemplars].report(corpus, found))
    assert set(tables[0]["measure"].to_pylist()) >= set(names)
    return parquet(pa.concat_tables(tables)), told
