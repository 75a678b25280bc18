"""The files of the official discovery tools: how much is in them, and that every definition can read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdask.discovery.corpus import read_fragments
from tests.corpora import read_corpus

SAMPLE_CLASSES = {
    "sample.classes": (13_785, 56_193),
    "sample.classes.example": (6_892, 13_405),
    "sample_jitA.classes": (1_500, 4_514),
}
MANDARIN_CLASSES = {"ZR17_mandarin.class": (4, 15), "mand_jit.class": (600, 2_042)}


@pytest.mark.parametrize("definition", ["document", "tde2015", "tdev2"])
def test_the_sample(cases: Path, definition: str) -> None:
    sample = f"{cases}/discovery/tde_sample/sample"
    corpus = read_corpus(
        f"{sample}.phn",
        f"{sample}.wrd",
        definition,
        split=f"{sample}.split",
        folds=f"{sample}.intervals.cross",
        within=f"{sample}.intervals.within",
    )
    assert (len(corpus.phones), len(corpus.words), len(corpus.files)) == (35_408, 12_268, 11)
    assert not corpus.silence.any()
    if definition == "tde2015":
        assert corpus.speech is not None
        assert len(corpus.speech) == 2_192
    if definition != "tdev2":
        every, within = corpus.folds
        assert (len(every.names), len(every.stretches), len(within.names)) == (4, 4 * 500, 2)
    for name, sizes in SAMPLE_CLASSES.items():
        found = read_fragments(f"{cases}/discovery/tde_sample/{name}", corpus)
        assert (len(found.classes), len(found)) == sizes
        assert (found.dropped, found.notes) == ({}, ())


def test_mandarin(cases: Path) -> None:
    mandarin = f"{cases}/discovery/tdev2_mandarin/mandarin"
    corpus = read_corpus(f"{mandarin}.phn", f"{mandarin}.wrd", "tdev2")
    assert (len(corpus.phones), len(corpus.words)) == (70_290, 19_796)
    assert len(corpus.phones) - corpus.silence[corpus.phones.label].sum() == 65_241
    assert corpus.notes == ()
    for name, sizes in MANDARIN_CLASSES.items():
        found = read_fragments(f"{cases}/discovery/tdev2_mandarin/{name}", corpus)
        assert (len(found.classes), len(found)) == sizes


@pytest.mark.parametrize(("definition", "n_words"), [("document", 11), ("tde2015", 11), ("tdev2", 10)])
def test_the_small_one(cases: Path, definition: str, n_words: int) -> None:
    micro = f"{cases}/discovery/micro/micro"
    corpus = read_corpus(f"{micro}.phn", f"{micro}.wrd", definition, within=f"{micro}.within")
    assert (len(corpus.phones), len(corpus.words), len(corpus.files)) == (28, n_words, 3)
    assert corpus.segment.max() == 4
    found = read_fragments(f"{micro}.disc", corpus)
    assert (found.classes, len(found)) == (("1", "2 name", "3", "4", "5"), 12)
