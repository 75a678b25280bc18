from __future__ import annotations

import struct
import tracemalloc
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from swsdask.archive import fragments
from swsdask.archive.encode import RowSum
from swsdask.archive.fragments import concatenate, cut_rows, in_order, pair_starts
from swsdask.archive.reference_tables import Excerpts
from swsdask.model.schemas import DOCUMENTS, RunHeader, RunPiece
from swsdask.model.trials import Detections
from tests.archives import as_rows, excerpt, piece, table

EXTREME = st.sampled_from([0, 1, 2**31 - 1, 5])
SCORE = st.sampled_from([0.0, 1.0, -1.0, 1e300, -1e300, 5e-324, -5e-324, 0.1])


def detections(rows) -> Detections:
    columns = list(zip(*rows, strict=True)) or [()] * 8
    dtypes = [np.int32, np.int32, np.int8, np.int32, np.int32, np.float64, np.int8, np.int8]
    names = ["query", "document", "channel", "start", "duration", "score", "decision", "inside"]
    return Detections(**{name: np.array(c, d) for name, c, d in zip(names, columns, dtypes, strict=True)})


ROW = st.tuples(
    EXTREME, st.integers(-1, 2), st.integers(-2, 2), EXTREME, EXTREME, SCORE, st.integers(-1, 1), st.integers(0, 1)
)


@given(st.lists(ROW, max_size=40))
def test_canonical_order_is_the_order_of_plain_tuples(rows) -> None:
    ordered = sorted(rows, key=lambda row: (*row[:5], -row[5], row[6]))
    keys = [row[:7] for row in ordered]
    assert [row[:7] for row in zip(*as_columns(in_order(detections(rows))), strict=True)] == keys


def as_columns(rows: Detections) -> list[list]:
    names = ["query", "document", "channel", "start", "duration", "score", "decision", "inside"]
    return [getattr(rows, name).tolist() for name in names]


@pytest.mark.parametrize("at_once", [7, 1 << 19])
def test_rows_that_agree_in_the_leading_bits_are_settled_by_the_whole_key(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fragments, "_TIED", at_once)
    rng = np.random.default_rng(3)
    n = 3000
    rows = [
        (int(q), int(d), 1, int(s), 7, float(x), int(y), 1)
        for q, d, s, x, y in zip(
            rng.choice([0, 2**31 - 1], n),
            rng.choice([0, 2**31 - 1], n),
            rng.choice([0, 1, 2**31 - 1], n),
            rng.choice([0.0, 0.5, -3.0], n),
            rng.choice([0, 1], n),
            strict=True,
        )
    ]
    ordered = sorted(rows, key=lambda row: (*row[:5], -row[5], row[6]))
    assert as_rows([in_order(detections(rows))]) == as_rows([detections(ordered)])


def test_the_order_of_equal_rows_takes_little_more_memory_than_that_of_others() -> None:
    def peak(times: int) -> int:
        row = np.arange(1 << 21, dtype=np.int32) // np.int32(times)
        zero = np.zeros(len(row), np.int8)
        rows = Detections(row % 500, row / 7, row % 1000, zero, row, row % 1500, zero)
        tracemalloc.start()
        in_order(rows)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(300) < 1.5 * peak(1)


@pytest.mark.parametrize("wrong", [None, 0, 98, 99, 100, 101, 199, 200, 297])
def test_rows_in_order_are_not_copied_and_others_are_found_wherever_they_are(
    wrong: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighbours are compared block by block, those at the edges of blocks too."""
    monkeypatch.setattr(fragments, "_BLOCK", 100)
    rows = [(number // 7, number, 1, 5, 7, 0.5, 1, 1) for number in range(299)]
    if wrong is not None:
        rows[wrong + 1] = (0, 0, 1, 5, 6, 0.5, 1, 1)  # lies before all others: one pair of neighbours is wrong
    given = detections(rows)
    ordered = in_order(given)
    assert (ordered is given) == (wrong is None)
    assert as_rows([ordered]) == as_rows([detections(sorted(rows))])


@given(st.lists(st.integers(1, 9), max_size=30), st.integers(1, 20))
def test_cuts_fall_between_pairs_and_are_small_and_even(sizes, limit) -> None:
    query = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    rows = Detections(query=query, score=np.zeros(len(query)), document=np.zeros(len(query), np.int32))
    starts = pair_starts(rows)
    assert starts.tolist() == (np.cumsum(sizes) - sizes).tolist()
    parts = cut_rows(starts, len(query), limit)
    covered = [row for part in parts for row in range(part.start, part.stop)]
    assert covered == list(range(len(query)))
    for part in parts:
        assert part.start in starts
        assert part.stop - part.start <= limit or len(set(query[part].tolist())) == 1
    if sizes and limit >= 9:
        assert len(parts) <= 2 * -(-len(query) // limit)


def test_joined_keeps_columns_and_order() -> None:
    one, other = detections([(1, 0, 1, 2, 3, 0.5, 1, 1)]), detections([(0, 2, 1, 2, 3, 0.25, 0, 1)])
    assert as_rows([concatenate([one, other])]) == as_rows([one, other])
    few = Detections(query=one.query, score=one.score)
    assert concatenate([few, few]).start is None


INTERVAL = st.tuples(st.sampled_from("de"), st.integers(1, 2), st.integers(0, 20), st.integers(0, 12))
STRETCH = st.tuples(st.integers(-1, 1), st.integers(1, 2), st.integers(-2, 25), st.integers(0, 12))


@given(st.lists(INTERVAL, max_size=8), st.lists(STRETCH, max_size=12))
def test_inside_is_inside_one_excerpt(excerpts, intervals) -> None:
    documents = table(DOCUMENTS, [excerpt(name, a, a + n, channel) for name, channel, a, n in excerpts])
    names = list(dict.fromkeys(name for name, *_ in excerpts))
    expected = [
        any(
            0 <= d < len(names) and name == names[d] and c == channel and a <= start and start + length <= a + n
            for name, c, a, n in excerpts
        )
        for d, channel, start, length in intervals
    ]
    columns = np.array(intervals, np.int64).reshape(-1, 4).T
    found = Excerpts.of(documents).contain(
        columns[0].astype(np.int32), columns[1].astype(np.int8), columns[2].astype(np.int32), columns[2] + columns[3]
    )
    assert found.tolist() == expected


@given(
    st.lists(INTERVAL, min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(0, 7), st.integers(0, 3)), max_size=12),
    st.lists(STRETCH, max_size=4),
)
def test_how_a_sum_in_doubles_lies_to_the_end_of_the_excerpt(excerpts, at_ends, intervals) -> None:
    """The farthest excerpt that begins no later decides; of those that end together, the latest sum in doubles."""
    names = list(dict.fromkeys(name for name, *_ in excerpts))
    documents = table(DOCUMENTS, [excerpt(name, 1000 * a, 1000 * (a + n), c) for name, c, a, n in excerpts])
    for number, later in at_ends:
        name, channel, a, n = excerpts[number % len(excerpts)]
        intervals.append((names.index(name), channel, a + min(later, n), n - min(later, n)))
    expected = []
    for d, channel, a, n in intervals:
        open_then = [
            (x + m, x / 10 + m / 10)
            for name, c, x, m in excerpts
            if 0 <= d < len(names) and name == names[d] and c == channel and x <= a
        ]
        end, added = max(open_then, default=(-100, 0.0))
        own = a / 10 + n / 10
        at_end = (own > (a + n) / 10) + 2 * (own > added)
        expected.append(0 if end < a + n else 1 if end > a + n else 1 + at_end)
    columns = 1000 * np.array(intervals, np.int64).reshape(-1, 4).T
    found = Excerpts.of(documents).inside(
        (columns[0] // 1000).astype(np.int32),
        (columns[1] // 1000).astype(np.int8),
        columns[2].astype(np.int32),
        columns[2] + columns[3],
    )
    assert found.tolist() == expected


def test_a_long_excerpt_reaches_over_later_short_ones() -> None:
    nested = [excerpt("d", 0, 20), excerpt("d", 2, 3), excerpt("d", 4, 5), excerpt("e", 0, 1)]
    zero, one = np.zeros(3, np.int32), np.ones(3, np.int8)
    starts, ends = np.array([4, 5, 10], np.int32), np.array([6, 20, 21], np.int32)
    assert Excerpts.of(table(DOCUMENTS, nested)).contain(zero, one, starts, ends).tolist() == [True, True, False]


def test_inside_at_the_longest_times() -> None:
    most = 2**31 - 1
    index = Excerpts.of(table(DOCUMENTS, [excerpt("d", 0, most), excerpt("e", 0, 5)]))
    found = index.contain(
        np.array([0, 0, 1], np.int32),
        np.array([1, 1, 1], np.int8),
        np.array([0, most, most], np.int32),
        np.array([most, 2 * most, 2 * most]),
    )
    assert found.tolist() == [True, False, False]


READ = st.tuples(
    st.sampled_from(["q1", "q2", "é"]),
    st.sampled_from("de"),
    st.integers(1, 2),
    EXTREME,
    EXTREME,
    SCORE,
    st.integers(-1, 1),
)


@given(st.lists(READ, max_size=20), st.randoms(use_true_random=False), st.integers(0, 20))
def test_content_is_of_the_rows_not_of_their_order_or_codes(rows, random, at) -> None:
    shuffled = random.sample(rows, len(rows))
    whole = RowSum.of(piece(rows))
    parts = RowSum.of(piece(shuffled[:at], dictionary=["é", "q9"])) + RowSum.of(piece(shuffled[at:], file="b"))
    assert whole.digest(None) == parts.digest(None)
    assert whole.digest(None) != (whole + RowSum.of(piece(rows[:1] or [("q", "d", 1, 0, 0, 0.0, 1)]))).digest(None)


def placed(rows, **more) -> RunPiece:
    return replace(piece(rows, **more), position=np.arange(len(rows)))


@given(st.lists(READ, min_size=1, max_size=20), st.randoms(use_true_random=False), st.lists(st.integers(0, 20)))
def test_content_is_of_the_order_where_rows_have_positions(rows, random, cuts) -> None:
    """However the input is cut; and of the sign of zeros, which MediaEval's tool distinguishes."""
    shuffled = random.sample(rows, len(rows))
    edges = [0, *sorted(cuts), len(rows)]
    parts = [RowSum.of(placed(rows[begin:end], dictionary=["é"])) for begin, end in pairwise(edges)]
    whole = RowSum.of(placed(rows)).digest(None)
    assert reduce(add, parts, RowSum()).digest(None) == whole
    assert (RowSum.of(placed(shuffled)).digest(None) == whole) == (repr(shuffled) == repr(rows))
    assert RowSum.of(piece(rows)).digest(None) != whole


MASK = 2**64 - 1


def mixed(value: int) -> int:
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        value = (value ^ value >> shift) * factor & MASK
    return value


def lane(rows, number: int, at: int) -> int:
    """The definition, row by row, in integers of any size."""
    total = 0
    for query, document, channel, start, duration, score, decision in rows:
        ids = zip((query, document), (2 * number, 2 * number + 1), strict=True)
        value = mixed(sum(xxhash.xxh3_64_intdigest(identifier.encode(), seed) for identifier, seed in ids) & MASK)
        value = mixed(value ^ (start << 32 | duration))
        value = mixed(value ^ int.from_bytes(struct.pack("<d", score), "little"))
        value = mixed(value ^ ((channel % 2**32) << 32 | decision % 2**32))
        total = (total * at + value) & MASK
    return total


@given(st.lists(READ, max_size=20))
def test_content_is_what_it_is_defined_as(rows) -> None:
    plain = [(*row[:5], row[5] + 0.0, row[6]) for row in rows]
    assert RowSum.of(piece(rows)).lanes == (lane(plain, 0, 1), lane(plain, 1, 1))
    assert RowSum.of(placed(rows)).lanes == tuple(lane(rows, number, 0x9E3779B97F4A7C15) for number in (0, 1))


BASE = ("q", "d", 1, 10, 20, 0.5, 1)


@pytest.mark.parametrize(
    "other",
    [
        ("r", "d", 1, 10, 20, 0.5, 1),
        ("q", "e", 1, 10, 20, 0.5, 1),
        ("d", "q", 1, 10, 20, 0.5, 1),
        ("q", "d", 2, 10, 20, 0.5, 1),
        ("q", "d", -1, 10, 20, 0.5, 1),
        ("q", "d", 1, 20, 10, 0.5, 1),
        ("q", "d", 1, 10, 20, 0.5000000000000001, 1),
        ("q", "d", 1, 10, 20, -0.5, 1),
        ("q", "d", 1, 10, 20, 0.5, 0),
        ("q", "d", 1, 10, 20, 0.5, -1),
    ],
)
def test_content_sees_every_column(other) -> None:
    assert RowSum.of(piece([BASE])).digest(None) != RowSum.of(piece([other])).digest(None)


def test_content_distinguishes_what_is_said() -> None:
    rows = [("q", "d", 1, 0, 5, 0.0, 1)]
    assert RowSum.of(piece(rows)).digest(None) == RowSum.of(piece([("q", "d", 1, 0, 5, -0.0, 1)])).digest(None)
    assert RowSum.of(piece(rows)).digest(None) != RowSum.of(piece(rows)).digest((0.0, 1.0))
    assert RowSum.of(piece(rows * 2)).digest(None) != RowSum.of(piece(rows)).digest(None)
    assert RowSum.of(piece([])).digest(None) == RowSum().digest(None)
    other_header = RunHeader("other", attributes={"x": "y"})
    assert RowSum.of(piece(rows)).digest(None) == RowSum.of(piece(rows, header=other_header)).digest(None)


def test_content_is_stable() -> None:
    """A changed hash makes every archive's runs look changed: then CONTENT_VERSION must change too."""
    rows = [BASE, ("é", "d2", -1, 0, 2**31 - 1, -1e300, -1)]
    assert RowSum.of(piece(rows)).digest((-1.0, 1.0)) == "12e1da1dba693cfc019db6a10737441a"
