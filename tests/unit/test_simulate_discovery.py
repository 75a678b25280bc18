"""Simulated corpora of term discovery: the same seed the same bytes, and files that say what the tables say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from swsdask.discovery.corpus import build_corpus
from swsdask.formats.discovery import CorpusFiles, CorpusTables, read_classes, read_corpus_files
from swsdask.model.errors import Problems
from swsdask.simulate.discovery import (
    DISCOVERERS,
    Discoverer,
    SimulatedCorpus,
    simulate_classes,
    simulate_corpus,
    write_classes,
    write_corpus,
)

N_PHONES = 6_000


@pytest.fixture(scope="module")
def corpus() -> SimulatedCorpus:
    return simulate_corpus(7, n_phones=N_PHONES, phones_per_file=700, files_per_speaker=2, n_words=300)


def files_in(folder: Path) -> CorpusFiles:
    names = (f"{folder}/sim.{ending}" for ending in ("phn", "wrd", "split"))
    return CorpusFiles(*names, speakers=f"{folder}/sim.speakers")


def test_the_same_seed_gives_the_same_bytes(corpus: SimulatedCorpus, tmp_path: Path) -> None:
    write_corpus(corpus, tmp_path / "a")
    again = simulate_corpus(7, n_phones=N_PHONES, phones_per_file=700, files_per_speaker=2, n_words=300)
    write_corpus(again, tmp_path / "b")
    write_corpus(simulate_corpus(8, n_phones=N_PHONES, phones_per_file=700, n_words=300), tmp_path / "c")
    for name in ("sim.phn", "sim.wrd", "sim.split", "sim.speakers"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
        assert (tmp_path / "a" / name).read_bytes() != (tmp_path / "c" / name).read_bytes()


def test_files_say_what_the_tables_say(corpus: SimulatedCorpus, tmp_path: Path) -> None:
    write_corpus(corpus, tmp_path)
    read = read_corpus_files(files_in(tmp_path))
    for name in ("phones", "words", "split", "speakers"):
        assert getattr(read, name).to_pylist() == getattr(corpus, name).to_pylist(), name


@pytest.mark.parametrize("system", DISCOVERERS, ids=lambda system: system.name)
def test_class_files_say_what_the_tables_say(corpus: SimulatedCorpus, system: Discoverer, tmp_path: Path) -> None:
    found = simulate_classes(corpus, system)
    write_classes(found, tmp_path)
    problems = Problems()
    read = read_classes(f"{tmp_path}/{system.name}.classes", problems)
    problems.raise_if_any()
    assert read.classes.to_pylist() == found.classes.to_pylist()
    assert read.fragments.to_pylist() == found.fragments.to_pylist()
    assert read.ends_blank


def test_a_corpus_is_whole_words_of_phones_that_do_not_overlap(corpus: SimulatedCorpus) -> None:
    tables = CorpusTables(CorpusFiles("p", "w"), corpus.phones, corpus.words, speakers=corpus.speakers)
    built = build_corpus(tables, "document")
    assert N_PHONES - 8 < len(built.phones) <= N_PHONES
    assert corpus.word_phones.sum() == len(built.phones)
    assert [len(folds.names) for folds in built.folds] == [len(built.files), -(-len(built.files) // 2)]
    assert built.segment[-1] + 1 == len(corpus.split)
    first = np.cumsum(corpus.word_phones) - corpus.word_phones
    assert np.array_equal(built.phones.start[first], built.words.start)
    assert np.array_equal(built.phones.end[first + corpus.word_phones - 1], built.words.end)


def test_systems_differ_in_quality(corpus: SimulatedCorpus) -> None:
    sizes = {
        system.name: np.bincount(simulate_classes(corpus, system).fragments["cluster"].to_numpy())
        for system in DISCOVERERS
    }
    for system in DISCOVERERS:
        limited = sizes[system.name][1 if system.giant else 0 :]
        assert limited.max() <= system.most_members
        assert limited.min() >= 1
    assert sizes["dense"].sum() > 3 * sizes["careful"].sum()


def test_a_giant_class_takes_its_share(corpus: SimulatedCorpus) -> None:
    found = simulate_classes(corpus, Discoverer("giant", found=0.5, giant=0.4))
    sizes = np.bincount(found.fragments["cluster"].to_numpy())
    assert 0.3 < sizes[0] / sizes.sum() < 0.5


def test_two_systems_of_one_quality_differ(corpus: SimulatedCorpus) -> None:
    one, same, other = (simulate_classes(corpus, DISCOVERERS[0], number) for number in (0, 0, 1))
    assert one.fragments.equals(same.fragments)
    assert not one.fragments.equals(other.fragments)


def test_a_system_may_find_nothing(corpus: SimulatedCorpus) -> None:
    found = simulate_classes(corpus, Discoverer("none", found=0.0))
    assert len(found.classes) == len(found.fragments) == 0


def test_the_smallest_corpus_is_a_word() -> None:
    assert len(simulate_corpus(1, n_phones=1).words) >= 1
