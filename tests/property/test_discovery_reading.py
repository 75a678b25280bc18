"""Files of a corpus and of classes: what is written is what is read, by either way of reading."""

from __future__ import annotations

import tempfile
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from swsdask.discovery.corpus import build_corpus
from swsdask.discovery.fragments import read_fragments
from swsdask.formats.corpus_files import read_corpus_files
from tests.discovery_worlds import World, worlds

GIVEN = ("split", "folds", "within", "speakers")


def same(one: object, other: object) -> None:
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


@pytest.mark.parametrize("definition", ["document", "tde2015", "tdev2"])
@given(world=worlds())
@settings(max_examples=25, deadline=None)
def test_files_are_read_as_they_were_written(definition: str, world: World) -> None:
    corpus = world.corpus(definition, *GIVEN[:3])
    with tempfile.TemporaryDirectory() as folder:
        files = world.write(Path(folder))
        tables = read_corpus_files(files)
        same(corpus, build_corpus(tables, definition, n_folds=2))
        if world.classes:
            read = read_fragments(f"{folder}/w.classes", corpus)
            same(world.fragments(corpus), read)
