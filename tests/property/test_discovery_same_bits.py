"""Law 1 for term discovery: cells, their order, groups of systems, executors and workers change no bit."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.execution.executor import SerialExecutor, ThreadExecutor
from swsdask.model.discovery import Definition, Readings
from swsdask.scoring import rounds
from tests.conftest import examples
from tests.discoveries import DEFINITIONS, corpus_of, scored
from tests.discovery_worlds import World, worlds
from tests.engines import AnyOrder
from tests.readings import READINGS, read


@pytest.mark.parametrize("definition", DEFINITIONS)
@examples(25)
@given(
    world=worlds(),
    readings=READINGS,
    chance=st.randoms(use_true_random=False),
    work=st.sampled_from([1, 7, 50, 1000]),
)
def test_same_bits(definition: Definition, world: World, readings: Readings, chance: random.Random, work: int) -> None:
    corpus = read(corpus_of(world, definition), readings)
    systems = [world.fragments(corpus, name) for name in "abc"]
    whole = scored(corpus, systems, SerialExecutor())
    most = rounds.MOST_SYSTEMS
    rounds.MOST_SYSTEMS = chance.choice([1, 2, 3])
    try:
        for executor in (SerialExecutor(), ThreadExecutor(3), AnyOrder(chance, chance.randint(2, 4), 3)):
            assert scored(corpus, systems, executor, work) == whole
            executor.close()
    finally:
        rounds.MOST_SYSTEMS = most
