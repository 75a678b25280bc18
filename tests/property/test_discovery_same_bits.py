"""Law 1 for term discovery: cells, their order, groups of systems, executors and workers change no bit."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swsdask.discovery import score
from swsdask.engine.serial import SerialExecutor
from swsdask.engine.threads import ThreadExecutor
from swsdask.model.corpus import Definition
from tests.discoveries import DEFINITIONS, corpus_of, scored
from tests.discovery_worlds import World, worlds
from tests.engines import AnyOrder


@pytest.mark.parametrize("definition", DEFINITIONS)
@settings(max_examples=25, deadline=None)
@given(world=worlds(), chance=st.randoms(use_true_random=False), work=st.sampled_from([1, 7, 50, 1000]))
def test_same_bits(definition: Definition, world: World, chance: random.Random, work: int) -> None:
    corpus = corpus_of(world, definition)
    systems = [world.fragments(corpus, name) for name in "abc"]
    whole = scored(corpus, systems, SerialExecutor())
    most = score.MOST_SYSTEMS
    score.MOST_SYSTEMS = chance.choice([1, 2, 3])
    try:
        for executor in (SerialExecutor(), ThreadExecutor(3), AnyOrder(chance, chance.randint(2, 4), 3)):
            assert scored(corpus, systems, executor, work) == whole
            executor.close()
    finally:
        score.MOST_SYSTEMS = most
