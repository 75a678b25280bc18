"""Edges of transcription in ticks and in doubles, containment, partners, and numbers for sequences."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from random import Random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from swsdask.discovery.corpus import per_corpus
from swsdask.discovery.counting.per_fold import by_fold, distinct_things, things_counted
from swsdask.kernels.ngrams import find_sequences, number_sequences
from swsdask.kernels.pairs import have_partner, holding, sharing_most
from swsdask.kernels.placing import add_union, most_covered, place_document, place_tde, place_tdev2, same_labels
from swsdask.model.columns import ratio
from swsdask.model.discovery import Corpus
from tests import literal_discovery as literal
from tests.discovery_worlds import World

PHONES = "a 1000 1800, b 1800 2400, c 2400 2900, d 2900 3300, e 3300 4000, f 10000 11000, g 11000 12000"
"""Phones of 80, 60, 50, 40 and 70 ms, a gap, and two of 100 ms."""

BY_DOCUMENT = [
    (1499, 4000, "abcde"),
    (1500, 4000, "bcde"),
    (2099, 4000, "bcde"),
    (2100, 4000, "cde"),
    (2649, 4000, "cde"),
    (2650, 4000, "de"),
    (3099, 4000, "de"),
    (3100, 4000, "e"),
    (1000, 1300, ""),
    (1000, 1301, "a"),
    (1000, 2100, "a"),
    (1000, 2101, "ab"),
    (1000, 2650, "ab"),
    (1000, 2651, "abc"),
    (1000, 3100, "abc"),
    (1000, 3101, "abcd"),
    (1000, 3600, "abcd"),
    (1000, 3601, "abcde"),
    (1900, 2199, ""),
    (1900, 2200, ""),
    (1900, 2201, "b"),
    (2000, 2050, ""),
    (2575, 2825, ""),
    (2574, 2825, "c"),
    (2900, 3101, "d"),
    (4000, 10000, ""),
    (3600, 10301, "ef"),
    (3700, 10300, ""),
    (3699, 10300, "e"),
    (10700, 11300, ""),
    (10699, 11300, "f"),
    (10699, 11301, "fg"),
]


def tokens() -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    rows = [row.split() for row in PHONES.split(", ")]
    start, end = (np.array([int(row[k]) for row in rows], np.int32) for k in (1, 2))
    return np.array([0, len(rows)]), start, end, [row[0] for row in rows]


def column(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


@pytest.mark.parametrize(("start", "end", "expected"), BY_DOCUMENT)
def test_more_than_30_ms_or_more_than_half(start: int, end: int, expected: str) -> None:
    first, starts, ends, labels = tokens()
    begin, till = place_document(column(0), column(start), column(end), first, starts, ends)
    assert "".join(labels[begin[0] : till[0]]) == expected


@given(
    begin=st.integers(0, 2 * 10**7),
    duration=st.one_of(st.integers(1, 100), st.integers(585, 625), st.integers(1, 3000)),
    shared=st.one_of(st.integers(285, 305), st.integers(1, 1500)),
    left=st.booleans(),
)
def test_the_official_tools_doubles(begin: int, duration: int, shared: int, left: bool) -> None:
    """At any time of day: 30 ms, 60 ms and halves as Python's own doubles and `round` have them."""
    phone = ("f", begin + 5000, begin + 5000 + duration, "a")
    shared = min(shared, duration)
    start, end = (phone[2] - shared, phone[2] + 4000) if left else (phone[1] - 4000, phone[1] + shared)
    first, starts, ends = np.array([0, 1]), column(phone[1]), column(phone[2])
    for place, definition in ((place_tdev2, "tdev2"), (place_document, "document")):
        low, high = place(column(0), column(start), column(end), first, starts, ends)
        assert (high > low)[0] == bool(literal.transcribed(("f", start, end), [phone], definition))
    low, high = place_tde(column(0), column(start), column(end), first, np.array([0, 1]), starts, ends)
    expected = literal.transcribed(("f", start, end), [phone], "tde2015")
    assert (high[0] - low[0] if low[0] >= 0 else None) == (None if expected is None else len(expected))


@pytest.mark.parametrize(
    ("phone", "shared", "kept"),
    [
        ((2000, 2732), 295, True),  # .2732 - .2437 is the double .0295, which numpy rounds to .03, and Python to .029
        ((2000, 2732), 294, False),
        ((10, 642), 295, False),  # .0642 - .0347 is less
        ((20000, 20732), 295, True),  # 2.0732 - 2.0437 is more
    ],
)
def test_tdev2_rounds_what_is_shared_as_numpy(phone: tuple[int, int], shared: int, kept: bool) -> None:
    start, end = phone
    first, starts, ends = np.array([0, 1]), column(start), column(end)
    low, high = place_tdev2(column(0), column(end - shared), column(end + 2000), first, starts, ends)
    assert (high > low)[0] == kept


def test_fragments_of_files_without_phones_have_none() -> None:
    first, none = np.array([0, 0]), column()
    for place in (place_document, place_tdev2):
        assert [x.tolist() for x in place(column(0), column(5), column(900), first, none, none)] == [[0], [0]]
    missing = place_tde(column(0), column(5), column(900), first, np.array([0]), none, none)
    assert [x.tolist() for x in missing] == [[-1], [-1]]


def test_stretches_that_touch_hold_what_is_inside_one() -> None:
    first, start, end = np.array([0, 3, 3]), column(100, 200, 500), column(200, 300, 600)
    file, low, high = (
        column(0, 0, 0, 0, 0, 1),
        column(100, 150, 200, 300, 500, 100),
        column(200, 250, 300, 400, 600, 150),
    )
    assert holding(file, low, high, first, start, end).tolist() == [0, -1, 1, -1, 2, -1]
    assert sharing_most(file, low, high, first, start, end).tolist() == [0, 0, 1, -1, 2, -1]


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 40), st.integers(1, 30)), max_size=9),
    st.integers(0, 9),
)
@example([(0, 0, 10), (0, 8, 4)], 2)
@example([(0, 0, 4), (0, 2, 10)], 2)
@example([(0, 0, 5), (0, 2, 10)], 2)
def test_partners_are_those_of_all_pairs(rows: list[tuple[int, int, int]], cut: int) -> None:
    groups = [sorted((file, start, start + size) for file, start, size in part) for part in (rows[:cut], rows[cut:])]
    expected = [
        any(not literal.overlap(a, b) for place, b in enumerate(group) if place != number)
        for group in groups
        for number, a in enumerate(group)
    ]
    file, start, end = (column(*(row[k] for group in groups for row in group)) for k in range(3))
    begins = np.cumsum([0, *map(len, groups)])
    assert have_partner(begins, file, start, end).tolist() == expected


def test_sequences_are_numbered_in_the_order_in_which_they_come() -> None:
    rng = Random(5)
    label = column(*(rng.randrange(3) for _ in range(400)))
    ranges = [rng.choice(list(combinations(range(begin, begin + 8), 2))) for begin in rng.choices(range(390), k=3000)]
    first, last = (np.array(ends) for ends in zip(*ranges, strict=True))
    first[7] = last[7]
    numbers, *table = number_sequences(first, last, label)
    spelled = [tuple(label[low:high].tolist()) for low, high in zip(first, last, strict=True)]
    appearing = {sequence: number for number, sequence in enumerate(dict.fromkeys(spelled))}
    assert len(appearing) > 500
    assert numbers.tolist() == [appearing[sequence] for sequence in spelled]
    assert find_sequences(first, last, label, *table).tolist() == numbers.tolist()
    long = np.arange(300), np.arange(300) + 20
    assert find_sequences(*long, label, *table).tolist() == [-1] * 300


def test_no_sequences() -> None:
    none = np.empty(0, np.int64)
    numbers, *table = number_sequences(none, none, column(1, 2))
    assert len(numbers) == 0
    assert find_sequences(np.array([0]), np.array([2]), column(1, 2), *table).tolist() == [-1]


def test_words_may_overlap_and_the_first_of_equals_is_taken() -> None:
    first, start, end = np.array([0, 3]), column(0, 10, 50), column(100, 30, 60)
    file, low, high = column(0, 0, 0, 0), column(10, 0, 55, 200), column(30, 200, 90, 300)
    assert most_covered(file, low, high, first, start, end).tolist() == [1, 0, 2, -1]


@pytest.mark.parametrize(
    ("fold", "file", "expected"),
    [
        ([0, 0, 0, 0, 0], [0, 0, 0, 0, 0], [500_020 + 10 + 200]),
        ([0, 1, 1, 1, 2], [0, 0, 0, 0, 0], [500_000, 15 + 10 + 100, 85]),
        ([0, 0, 0, 0, 0], [0, 1, 1, 1, 2], [500_000 + 15 + 10 + 100 + 85]),
    ],
)
def test_what_nearly_touches_is_joined(fold: list[int], file: list[int], expected: list[int]) -> None:
    """The later, the more is close: 0.5 ms but not 1 ms at 50 s, 1.5 ms at 150 s."""
    start = column(0, 500_005, 500_030, 1_500_000, 1_500_115)
    end = column(500_000, 500_020, 500_040, 1_500_100, 1_500_200)
    ticks = np.zeros(len(expected), np.int64)
    add_union(np.array(fold, np.int16), column(*file), start, end, ticks)
    assert ticks.tolist() == expected


def test_labels_are_compared_one_by_one() -> None:
    label, low = column(1, 2, 1, 2, 3), np.array([0, 0, 0, 1, 1])
    same = same_labels(low, low + 2, np.array([2, 2, 3, 3, 4]), np.array([4, 5, 5, 5, 4]), label)
    assert same.tolist() == [True, False, False, False, False]


def test_things_of_folds() -> None:
    number, fold = column(5, 5, 5, 2, 9), np.array([1, 1, 0, 1, -1], np.int16)
    world = World([("f", 0, 900, "a")], [], [], [], [[("f", 0, 500)], [("f", 500, 900)]], [], {})
    corpus = world.corpus("tde2015", "folds")
    distinct = distinct_things(number, fold, 0)
    assert things_counted(distinct, 0, corpus).tolist() == [1, 2]
    assert {key: rows.tolist() for key, rows in by_fold(fold)} == {0: [2], 1: [0, 1, 3]}
    np.testing.assert_equal(ratio(np.array([1, 0]), np.array([4, 0])), [0.25, np.nan])


def test_what_depends_on_the_corpus_alone_is_found_once() -> None:
    asked = []

    @per_corpus
    def found(corpus: Corpus) -> int:
        asked.append(corpus)
        time.sleep(0.02)
        return len(corpus.phones)

    corpus = World([("f", 0, 900, "a")], [], [], [], [], [], {}).corpus("document")
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(found, [corpus] * 8)) == [1] * 8
    assert asked == [corpus]
