import numpy as np
import pytest

from swsdask.model.columns import distinct_pairs
from swsdask.model.trials import Segments
from swsdask.statistics.segment_trials import Spans, segment_of, segment_targets, tile


def spans(*rows):
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    return Spans(
        columns[0].astype(np.int32),
        columns[1].astype(np.int8),
        columns[2].astype(np.int32),
        columns[3].astype(np.int32),
    )


def rows_of(segments: Segments):
    return list(
        zip(
            segments.document.tolist(),
            segments.channel.tolist(),
            segments.start.tolist(),
            segments.end.tolist(),
            strict=True,
        )
    )


def test_records_make_speech_and_gaps_make_the_rest():
    speakers = spans(
        (0, 1, 0, 50),
        (0, 1, 30, 40),
        (0, 1, 100, 110),
        (0, 1, 112, 122),
        (0, 1, 150, 200),
        (3, 2, 0, 50),
        (1, 1, 10, 50),
    )
    segments = tile(spans((1, 1, 0, 50), (0, 1, 0, 140)), speakers)
    assert rows_of(segments) == [
        (0, 1, 0, 50),
        (0, 1, 50, 100),
        (0, 1, 100, 110),
        (0, 1, 110, 112),
        (0, 1, 112, 122),
        (0, 1, 122, 140),
        (1, 1, 0, 10),
        (1, 1, 10, 50),
    ]
    assert segments.document.dtype == np.int32
    assert segments.channel.dtype == np.int8


def test_a_record_at_the_end_of_another_opens_a_segment_and_one_that_overlaps_does_not():
    speakers = spans((0, 1, 0, 10), (0, 1, 10, 20), (0, 1, 19, 30))
    assert rows_of(tile(spans((0, 1, 0, 30)), speakers)) == [(0, 1, 0, 10), (0, 1, 10, 30)]


def test_records_are_cut_at_the_ends_of_excerpts():
    excerpts = spans((0, 1, 10, 20), (0, 1, 20, 30), (0, 2, 40, 50))
    speakers = spans((0, 1, 0, 25), (0, 2, 45, 90), (0, 2, 0, 40))
    assert rows_of(tile(excerpts, speakers)) == [
        (0, 1, 10, 20),
        (0, 1, 20, 25),
        (0, 1, 25, 30),
        (0, 2, 40, 45),
        (0, 2, 45, 50),
    ]


def test_overlapping_and_nested_excerpts_are_one():
    excerpts = spans((0, 1, 0, 30), (0, 1, 5, 10), (0, 1, 20, 40))
    assert rows_of(tile(excerpts, spans())) == [(0, 1, 0, 40)]


def test_empty_records_and_excerpts_make_no_segment():
    assert rows_of(tile(spans((0, 1, 5, 5)), spans((0, 1, 0, 10)))) == []
    assert rows_of(tile(spans((0, 1, 0, 10)), spans((0, 1, 5, 5)))) == [(0, 1, 0, 10)]
    assert rows_of(tile(spans(), spans())) == []


SEGMENTS = tile(spans((0, 1, 0, 30), (2, 1, 0, 30), (2, 2, 10, 30)), spans((0, 1, 0, 10), (2, 1, 10, 20)))


@pytest.mark.parametrize(
    ("document", "channel", "start", "end", "segment"),
    [
        (0, 1, 0, 0, 0),
        (0, 1, 0, 19, 0),
        (0, 1, 0, 20, 1),
        (0, 1, 30, 30, 1),
        (0, 1, 30, 31, -1),
        (0, 2, 5, 6, -1),
        (1, 1, 5, 6, -1),
        (-1, 1, 5, 6, -1),
        (3, 1, 5, 6, -1),
        (2, 1, 19, 20, 3),
        (2, 1, 20, 20, 4),
        (2, 2, 9, 10, -1),
        (2, 2, 10, 10, 5),
        (2, 1, -5, 4, -1),
        (0, 1, 2**31 - 1, 2**31 - 1, -1),
    ],
)
def test_an_interval_lies_where_its_mid_point_does(document, channel, start, end, segment):
    one = spans((document, channel, start, end))
    assert segment_of(SEGMENTS, *one).tolist() == [segment]


def test_no_segments_hold_nothing():
    assert segment_of(tile(spans(), spans()), *spans((0, 1, 0, 5))).tolist() == [-1]


def test_a_target_holds_the_first_and_the_last_word_of_an_occurrence():
    segments = tile(spans((0, 1, 0, 140)), spans((0, 1, 0, 50), (0, 1, 100, 110), (0, 1, 112, 122)))
    int32 = lambda *values: np.array(values, np.int32)  # noqa: E731
    query, segment = segment_targets(
        segments,
        query=int32(2, 2, 1, 1),
        document=int32(0, 0, 0, 0),
        channel=np.ones(4, np.int8),
        start=int32(20, 105, 0, 30),
        end=int32(30, 117, 10, 40),
        first_word_end=int32(25, 110, 10, 40),
        last_word_start=int32(25, 112, 0, 30),
    )
    assert (query.tolist(), segment.tolist()) == ([1, 2], [0, 0])
    assert (query.dtype, segment.dtype) == (np.int32, np.int64)


def test_a_document_is_a_target_once():
    query, document = distinct_pairs(np.array([3, 1, 3, 3], np.int32), np.array([0, 5, 0, 2], np.int32))
    assert list(zip(query.tolist(), document.tolist(), strict=True)) == [(1, 5), (3, 0), (3, 2)]
    none = distinct_pairs(np.empty(0, np.int32), np.empty(0, np.int32))
    assert [column.tolist() for column in none] == [[], []]
