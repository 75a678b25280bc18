"""Bit-parallel distances against the table of all prefixes, in one word, in several, and in lanes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from swsdask.kernels.edit_distance import LANES, WORD, Types, add_distances, edit_distances
from tests.literal_pairs import levenshtein

Text = list[int]
N_LABELS = 5

texts = st.lists(st.lists(st.integers(0, N_LABELS - 1), max_size=12), min_size=1, max_size=25)
LENGTHS = (0, 1, 2, WORD - 1, WORD, WORD + 1, 2 * WORD - 1, 2 * WORD, 2 * WORD + 1, 3 * WORD + 7)


def laid_out(some: list[Text]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ends = np.cumsum([len(text) for text in some])
    return np.array([c for text in some for c in text], np.int32), ends - [len(text) for text in some], ends


@given(texts, texts)
def test_distances_of_pairs(ones: list[Text], others: list[Text]) -> None:
    n = min(len(ones), len(others))
    label, first, last = laid_out(ones[:n] + others[:n])
    found = edit_distances(label, N_LABELS, first[:n], last[:n], first[n:], last[n:])
    assert found.tolist() == [levenshtein(a, b) for a, b in zip(ones[:n], others[:n], strict=True)]


@pytest.mark.parametrize("n_labels", [2, N_LABELS])
def test_where_words_end(n_labels: int) -> None:
    rng = np.random.default_rng(1)
    some = [rng.integers(0, n_labels, length).tolist() for length in LENGTHS]
    some += [[*text[:10], *text[11:]] for text in some]
    label, first, last = laid_out(some)
    one, other = np.divmod(np.arange(len(some) ** 2), len(some))
    found = edit_distances(label, n_labels, first[one], last[one], first[other], last[other])
    assert found.tolist() == [levenshtein(some[a], some[b]) for a, b in zip(one, other, strict=True)]


def counted(
    some: list[Text], slots: list[dict[int, int]], sides: list[int], products: list[tuple[int, int, int]]
) -> tuple[np.ndarray, np.ndarray]:
    """The histogram of the kernel, and that of all pairs; the types of a side: its short ones before its long ones."""
    bounds = np.cumsum([0, *sides])
    order = [
        x for s in range(len(sides)) for x in sorted(range(bounds[s], bounds[s + 1]), key=lambda x: len(some[x]) > WORD)
    ]
    label, first, last = laid_out([some[x] for x in order])
    entries = np.cumsum([0, *(len(slots[x]) for x in order)])
    slot, number = (np.array([e[k] for x in order for e in slots[x].items()], np.int64) for k in (0, 1))
    longest = max(map(len, some))
    n_slots = max((slot for own in slots for slot in own), default=0) + 1
    histogram, expected = np.zeros((2, n_slots, (longest + 1) ** 2), np.int64)
    left, right, weight = (np.array(column, np.int64) for column in zip(*products, strict=True))
    place_of = np.arange(longest + 1) * (longest + 1)
    types = Types(bounds, first, last, entries, slot, number)
    add_distances(types, left, right, weight, label, N_LABELS, place_of, histogram)
    for one, other, times in products:
        for a in range(bounds[one], bounds[one + 1]):
            for b in range(a + 1 if one == other else bounds[other], bounds[other + 1]):
                place = place_of[max(len(some[a]), len(some[b]))] + levenshtein(some[a], some[b])
                for own in slots[a].keys() & slots[b].keys():
                    expected[own, place] += times * slots[a][own] * slots[b][own]
    return histogram, expected


@given(st.data())
def test_all_pairs_of_types(data: st.DataObject) -> None:
    some = data.draw(texts)
    in_slots = st.dictionaries(st.integers(0, 3), st.integers(1, 5), max_size=3)
    slots = [data.draw(in_slots) for _ in some]
    cut = data.draw(st.integers(0, len(some)))
    products = data.draw(
        st.lists(st.sampled_from([(0, 0, 1), (1, 1, 2), (0, 1, 1), (1, 0, -1)]), min_size=1, max_size=4)
    )
    np.testing.assert_array_equal(*counted(some, slots, [cut, len(some) - cut], products))


def test_more_types_than_lanes_and_longer_ones_than_words() -> None:
    rng = np.random.default_rng(2)
    lengths = [*rng.integers(0, 9, 2 * LANES + 3).tolist(), *LENGTHS]
    some = [rng.integers(0, N_LABELS, length).tolist() for length in lengths]
    slots = [{int(slot): int(slot) + 1 for slot in rng.choice(3, 2, replace=False)} for _ in some]
    np.testing.assert_array_equal(*counted(some, slots, [len(some)], [(0, 0, 1)]))
    np.testing.assert_array_equal(*counted(some, slots, [25, len(some) - 25], [(0, 1, 3), (1, 0, -2)]))
