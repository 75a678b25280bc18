"""A corpus for a definition: what each does with files, folds and classes, and what is said of what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.discovery.corpus import read_fragments, system_of
from swsdask.discovery.placing import equal_parts
from swsdask.model.discovery import Corpus
from swsdask.model.errors import InputError, SettingsError
from swsdask.model.units import MAX_TICKS
from tests.corpora import read_corpus

PHONES = "g 1.0 1.1 c\nf 0.2 0.3 b\nf 0.1 0.2 SIL\nf 0.5 0.6 SPN\n"
WORDS = "f 0.2 0.3 be\nf 0.1 0.2 SIL\ng 1.0 1.1 see\n"
DEFINITIONS = ("document", "tde2015", "tdev2")

Make = Callable[..., Corpus]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A corpus of texts, those of phones and words by default."""

    def make(definition: str = "document", n_folds: int = 10, **texts: str) -> Corpus:
        texts = {"phones": PHONES, "words": WORDS, **texts}
        for name, text in texts.items():
            (tmp_path / name).write_text(text)
        paths: dict[str, Any] = {name: f"{tmp_path}/{name}" for name in texts}
        return read_corpus(paths.pop("phones"), paths.pop("words"), definition, n_folds=n_folds, **paths)

    return make


def said(error: InputError) -> list[str]:
    name = {problem: problem.file.rsplit("/", 1)[-1] for problem in error.problems}
    return [f"{name[each]}:{each.line}: expected {each.expected}; found {each.found}" for each in error.problems]


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_tokens_are_sorted_and_numbered(make: Make, definition: str) -> None:
    corpus = make(definition)
    assert corpus.files == ("f", "g")
    assert corpus.phones.labels == ("SIL", "SPN", "b", "c")
    assert corpus.phones.file.tolist() == [0, 0, 0, 1]
    assert corpus.phones.start.tolist() == [1000, 2000, 5000, 10_000]
    assert corpus.phones.end.tolist() == [2000, 3000, 6000, 11_000]
    assert corpus.phones.label.tolist() == [0, 2, 1, 3]
    assert corpus.phones.first.tolist() == [0, 3, 4]
    assert corpus.segment.tolist() == [0, 0, 1, 2]
    assert corpus.silence.tolist() == [True, False, False, False]
    assert corpus.noise.tolist() == [False, True, False, False]
    for column in (corpus.phones.file, corpus.phones.start, corpus.phones.end, corpus.phones.label, corpus.segment):
        assert column.dtype == np.int32
    assert corpus.phones.first.dtype == np.int64


def test_silent_words_are_words_but_for_tdev2(make: Make) -> None:
    for definition, labels in (("document", ("SIL", "be", "see")), ("tde2015", ("SIL", "be", "see"))):
        assert make(definition).words.labels == labels
    corpus = make("tdev2")
    assert corpus.words.labels == ("be", "see")
    assert corpus.words.first.tolist() == [0, 1, 2]
    assert corpus.notes == ("1 word labelled SIL dropped, as in tdev2.",)


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_what_is_wrong_with_a_corpus_in_every_definition(make: Make, definition: str) -> None:
    with pytest.raises(InputError) as caught:
        make(
            definition,
            phones="f 0.1 0.2 a\nf 0.3 0.4 c\nf 0.19 0.25 b\nf 0.3 0.4 d\n",
            words="f 0 1 x\nh 0 1 y\nf 0.5 2 z\nh 1 2 y\ni 0 1 y\n",
            split="f 0 1\nf 2 3\nf 0.5 2\nh 0 1\n",
        )
    assert said(caught.value) == [
        "phones:3: expected phones that do not overlap; "
        "found in 'f' b (line 3, 0.19 s to 0.25 s) after a (line 1, 0.1 s to 0.2 s)",
        "phones:4: expected phones that do not overlap; "
        "found in 'f' d (line 4, 0.3 s to 0.4 s) after c (line 2, 0.3 s to 0.4 s)",
        "words:2: expected a file of the phone alignment; found 'h', in 2 lines",
        "words:5: expected a file of the phone alignment; found 'i', in 1 line",
        "split:4: expected a file of the phone alignment; found 'h', in 1 line",
        "split:3: expected stretches that do not overlap; found one that overlaps that of line 1",
    ]


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_repeated_lines_count_once(make: Make, tmp_path: Path, definition: str) -> None:
    """As in tdev2, whose intervals are sets, and in tde if a segment is repeated."""
    once = make(definition)
    again = make(definition, phones=PHONES + PHONES, words=f"{WORDS}g 1.00 1.1 see\ng 1.0 1.1 sea\n")
    assert len(again.words) == len(once.words) + 1
    for name in ("file", "start", "end", "label", "first"):
        assert getattr(again.phones, name).tolist() == getattr(once.phones, name).tolist()
    assert [note for note in again.notes if note not in once.notes] == [
        f"{tmp_path}/phones: 4 repeated lines counted once.",
        f"{tmp_path}/words: 1 repeated line counted once.",
    ]


def test_tde_wants_phones_that_touch_or_lie_apart(make: Make) -> None:
    phones = "f 0.1 0.2 a\nf 0.2001 0.3 b\ng 300.0 300.1 a\ng 300.103 300.2 b\ng 300.2031 300.3 c\n"
    words = "f 0.1 0.2 a\n"
    assert make("document", phones=phones, words=words).segment.tolist() == [0, 1, 2, 3, 4]
    assert make("tdev2", phones=phones, words=words).segment.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(InputError) as caught:
        make("tde2015", phones=phones, words=words)
    expected = "expected phones that touch, or are further apart (tde2015)"
    assert said(caught.value) == [
        f"phones:4: {expected}; found in 'g' b (line 4, 300.103 s to 300.2 s) close after a (line 3, 300 s to 300.1 s)"
    ]
    with pytest.raises(InputError, match="close after"):
        make("tde2015", phones="f 20 21.5 a\nf 21.5001 22 b\n", words="f 20 21 a\n")


def test_times_that_were_rounded_are_reported(make: Make) -> None:
    corpus = make(words="f 0.20001 0.3 be\n")
    assert [note.rsplit("/", 1)[-1] for note in corpus.notes if "rounded" in note] == [
        "words: 1 time finer than 0.1 ms rounded."
    ]


def test_default_folds_are_whole_files(make: Make) -> None:
    corpus = make("document", n_folds=2)
    (folds,) = corpus.folds
    assert (folds.condition, folds.names) == ("all", ("1", "2"))
    assert folds.stretches.file.tolist() == [0, 1]
    assert folds.stretches.fold.tolist() == [0, 1]
    assert folds.stretches.start.tolist() == [0, 0]
    assert folds.stretches.end.tolist() == [MAX_TICKS, MAX_TICKS]
    assert folds.stretches.first.tolist() == [0, 1, 2]
    assert folds.stretches.fold.dtype == np.int16
    assert make("document").notes == ("2 folds instead of 10, one for each file.",)
    assert make("tde2015", n_folds=1).folds[0].stretches.fold.tolist() == [0, 0]
    for wrong in (0, 40_000):
        with pytest.raises(SettingsError, match="expected from 1 to 32767 folds"):
            make("document", n_folds=wrong)


@pytest.mark.parametrize("definition", ["document", "tde2015"])
def test_folds_of_files_and_of_speakers(make: Make, definition: str) -> None:
    folds = "f 0.5 0.6\ng 0 2\n\nf 0.1 0.3\n"
    corpus = make(definition, folds=folds, speakers="g zoe\nf bob\nh eve\n")
    every, within = corpus.folds
    assert (every.condition, every.names) == ("all", ("1", "2"))
    assert every.stretches.start.tolist() == [1000, 5000, 0]
    assert every.stretches.fold.tolist() == [1, 0, 0]
    assert every.stretches.first.tolist() == [0, 2, 3]
    assert (within.condition, within.names) == ("within_talker", ("bob", "zoe"))
    assert within.stretches.fold.tolist() == [0, 1]
    assert any(note.endswith("speakers: 1 file without phones ignored.") for note in corpus.notes)
    corpus = make(definition, folds=folds, within=folds, speakers="g zoe\n")
    assert corpus.folds[1].names == ("1", "2")


def test_every_file_needs_a_speaker(make: Make) -> None:
    with pytest.raises(InputError) as caught:
        make(speakers="h eve\n")
    assert said(caught.value) == [
        f"speakers:None: expected a speaker for every file with phones; found none for {file!r}" for file in "fg"
    ]


def test_folds_do_not_overlap(make: Make) -> None:
    with pytest.raises(InputError) as caught:
        make(folds="f 0.1 0.3\n\nf 0.3 0.5\nf 0.1 0.3\n")
    assert said(caught.value) == [
        "folds:4: expected stretches that do not overlap; found one that overlaps that of line 1"
    ]


def test_tdev2_has_one_fold_and_leaves_the_others_aside(make: Make) -> None:
    corpus = make("tdev2", folds="f 0 1\n", within="f 0 1\n", speakers="f bob\n", split="f 0 1\n")
    (folds,) = corpus.folds
    assert (folds.condition, folds.names, folds.stretches.fold.tolist()) == ("all", ("all",), [0, 0])
    assert corpus.speech is None
    assert "Ignored: folds, within, speakers. tdev2 scores the corpus as a whole." in corpus.notes


def test_stretches_of_speech_are_for_tde(make: Make) -> None:
    split = "f 0.5 0.7\nf 0.1 0.3\n"
    assert make("tde2015", split=split).speech.start.tolist() == [1000, 5000]
    corpus = make("document", split=split)
    assert corpus.speech is None
    assert "The stretches of speech are ignored: document does not use them." in corpus.notes


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=40), st.integers(1, 12))
def test_equal_parts(durations: list[int], n_folds: int) -> None:
    part = equal_parts(np.array(durations), n_folds)
    n_parts = min(n_folds, len(durations))
    assert part.dtype == np.int16
    assert sorted(set(part.tolist())) == list(range(n_parts))
    assert np.all(np.diff(part) >= 0)
    total, longest = sum(durations), max(durations)
    if longest * n_parts <= total:
        for number in range(1, n_parts):
            before = sum(duration for duration, its in zip(durations, part.tolist(), strict=True) if its < number)
            assert abs(before - number * total / n_parts) <= longest


def test_equal_parts_cut_at_the_nearest_border() -> None:
    assert equal_parts(np.array([10, 10, 10, 10]), 2).tolist() == [0, 0, 1, 1]
    assert equal_parts(np.array([10, 20, 10]), 2).tolist() == [0, 1, 1]
    assert equal_parts(np.array([1, 1, 1, 97]), 3).tolist() == [0, 0, 1, 2]
    assert equal_parts(np.array([97, 1, 1, 1]), 3).tolist() == [0, 1, 2, 2]


CLASSES = "Class 7\ng 1 2\nf 3 4\nf 0 1\n\nClass 2 b\n\nClass 3\nf 3 4\nf 3 4\n"


@pytest.mark.parametrize("definition", DEFINITIONS)
def test_fragments_are_sorted_within_classes(make: Make, tmp_path: Path, definition: str) -> None:
    (tmp_path / "mine.classes.gz").write_text(CLASSES)
    found = read_fragments(f"{tmp_path}/mine.classes.gz", make(definition))
    assert found.system == "mine"
    assert found.classes == ("7", "2 b", "3")
    assert found.cluster.tolist() == [0, 0, 0, 2, 2]
    assert found.file.tolist() == [0, 0, 1, 0, 0]
    assert found.start.tolist() == [0, 30_000, 10_000, 30_000, 30_000]
    assert found.end.tolist() == [10_000, 40_000, 20_000, 40_000, 40_000]
    assert found.dropped == {}
    for column in (found.cluster, found.file, found.start, found.end):
        assert column.dtype == np.int32
    refused = [note for note in found.notes if "no empty line at the end; the tool tdev2 refuses" in note.text]
    assert len(refused) == (definition == "tdev2")


def test_unknown_files_of_fragments(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("Class 1\nh 1 2\nf 0 1\n\nClass 2\nh 3 4\ni 3 4\n\n")
    for definition in ("document", "tdev2"):
        with pytest.raises(InputError) as caught:
            read_fragments(str(path), make(definition))
        assert said(caught.value) == [
            "x:2: expected a file of the phone alignment; found 'h', in 2 lines",
            "x:7: expected a file of the phone alignment; found 'i', in 1 line",
        ]
    found = read_fragments(str(path), make("tde2015"))
    assert (found.cluster.tolist(), found.classes, found.dropped) == ([0], ("1", "2"), {"unknown file": 3})


def test_class_numbers_that_come_again(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("Class 1\nf 0 1\nh 0 1\n\nClass 2\nf 1 2\n\nClass 01\nf 2 3\n\nClass 1 b\nf 3 4\n\n")
    for definition in ("document", "tdev2"):
        with pytest.raises(InputError) as caught:
            read_fragments(str(path), make(definition))
        assert "x:11: expected every class once; found class 1 again, first at line 1" in said(caught.value)
    found = read_fragments(str(path), make("tde2015"))
    assert found.classes == ("2", "01", "1 b")
    assert list(zip(found.cluster.tolist(), found.start.tolist(), strict=True)) == [
        (0, 10_000),
        (1, 20_000),
        (2, 30_000),
    ]
    assert found.dropped == {"replaced class": 2}


def test_tde_wants_whole_numbers_of_classes(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("Class one\nf 0 1\n\nClass 2:\nf 0 1\n\n")
    for definition in ("document", "tdev2"):
        assert read_fragments(str(path), make(definition)).classes == ("one", "2:")
    with pytest.raises(InputError) as caught:
        read_fragments(str(path), make("tde2015"))
    assert said(caught.value) == [
        "x:1: expected a whole number after Class (tde2015); found 'one'",
        "x:4: expected a whole number after Class (tde2015); found '2:'",
    ]


def test_rounded_times_of_fragments_are_reported(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("Class 1\nf 0.00001 1.00001\n\n")
    found = read_fragments(str(path), make("document"))
    assert [note.text for note in found.notes] == ["2 times finer than 0.1 ms rounded."]


def test_names_of_systems(make: Make, tmp_path: Path) -> None:
    names = {
        "a/b/sys.classes": "sys",
        "s3://x/sys.v2.class.zst": "sys.v2",
        "sys.txt.gz": "sys",
        "sys.disc": "sys",
        "sys": "sys",
        ".classes": ".classes",
        "sys.old": "sys.old",
    }
    assert {url: system_of(url) for url in names} == names
    (tmp_path / "x").write_text("Class 1\nf 0 1\n")
    with pytest.raises(InputError, match="the name of a system"):
        read_fragments(f"{tmp_path}/x", make(), system="a/b")


def test_phones_and_words_that_look_exchanged(make: Make) -> None:
    def exchanged(corpus: Corpus) -> list[str]:
        return [note for note in corpus.notes if "exchanged" in note]

    phones = "".join(f"f {n / 10:.1f} {n / 10 + 0.1:.1f} p{n % 3}\n" for n in range(12))
    words = "".join(f"f {n / 10:.1f} {n / 10 + 0.3:.1f} w{n % 2}\n" for n in range(0, 12, 3))
    assert exchanged(make(phones=phones, words=words)) == []
    (note,) = exchanged(make(phones=words, words=phones))
    assert note.startswith("12 words are more than the 4 phones, and shorter: were ")
    assert exchanged(make(phones=phones, words=phones + words)) == [], "words may overlap"
