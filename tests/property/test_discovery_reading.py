"""Files of a corpus and of classes: what is written is what is read, by either way of reading."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.discovery.corpus import build_corpus, read_fragments
from swsdask.formats.discovery import read_corpus_files
from tests.conftest import examples
from tests.discoveries import same
from tests.discovery_worlds import World, worlds

GIVEN = ("split", "folds", "within", "speakers")


@pytest.mark.parametrize("definition", ["document", "tde2015", "tdev2"])
@given(world=worlds())
@examples(25)
def test_files_are_read_as_they_were_written(definition: str, world: World) -> None:
    corpus = world.corpus(definition, *GIVEN[:3])
    with tempfile.TemporaryDirectory() as folder:
        files = world.write(Path(folder))
        tables = read_corpus_files(files)
        same(corpus, build_corpus(tables, definition, n_folds=2))
        if world.classes:
            read = read_fragments(f"{folder}/w.classes", corpus)
            same(world.fragments(corpus), read)


@pytest.mark.parametrize("definition", ["document", "tde2015", "tdev2"])
@given(world=worlds(), seed=st.integers(0, 1000))
@examples(25)
def test_the_order_of_lines_does_not_count(definition: str, world: World, seed: int) -> None:
    rng = Random(seed)
    shuffled = replace(
        world,
        phones=rng.sample(world.phones, len(world.phones)),
        words=rng.sample(world.words, len(world.words)),
        split=rng.sample(world.split, len(world.split)),
        folds=[rng.sample(fold, len(fold)) for fold in world.folds],
        classes=[(name, rng.sample(members, len(members))) for name, members in world.classes],
        speakers=dict(rng.sample(list(world.speakers.items()), len(world.speakers))),
    )
    corpus = world.corpus(definition, "split", "folds", "speakers")
    same(corpus, shuffled.corpus(definition, "split", "folds", "speakers"))
    same(world.fragments(corpus), shuffled.fragments(corpus))
