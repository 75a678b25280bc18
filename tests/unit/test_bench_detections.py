"""The detections on which speed and memory are measured."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from swsdask.model import schemas
from tests.bench.detections import DetectionBlocks, detections


@pytest.fixture(scope="module")
def blocks() -> DetectionBlocks:
    return detections(
        7,
        n_rows=60_000,
        n_queries=12,
        n_documents=9,
        n_channels=2,
        n_occurrences=500,
        document_s=300.0,
        rows_per_block=9_000,
    )


def rows_of(blocks: DetectionBlocks, number: int, system: int = 0) -> list[tuple[float, ...]]:
    block = blocks.block(number, system)
    columns = ("query", "document", "channel", "start", "duration", "score", "decision", "inside")
    return list(zip(*(getattr(block, name).tolist() for name in columns), strict=True))


def test_blocks_are_exact_in_number_and_sorted_together(blocks: DetectionBlocks) -> None:
    rows = [row for number in range(len(blocks)) for row in rows_of(blocks, number)]
    assert len(blocks) > 4
    assert len(rows) == 60_000 == blocks.rows.sum()
    keys = [(q, d, c, s, t, -score, decision) for q, d, c, s, t, score, decision, _ in rows]
    assert keys == sorted(keys)
    assert len({key[:4] for key in keys}) < len(keys), "the test needs ties"


def test_blocks_have_the_dtypes_of_the_schema(blocks: DetectionBlocks) -> None:
    block = blocks.block(0)
    for field in schemas.DETECTIONS:
        assert getattr(block, field.name).dtype == field.type.to_pandas_dtype()


def test_no_query_and_document_is_cut(blocks: DetectionBlocks) -> None:
    seen: Counter[tuple[float, float]] = Counter()
    for number in range(len(blocks)):
        seen.update({row[:2] for row in rows_of(blocks, number)})
    assert max(seen.values()) == 1


def test_blocks_are_made_alone_and_differ_between_systems(blocks: DetectionBlocks) -> None:
    assert rows_of(blocks, 3) == rows_of(blocks, 3)
    assert rows_of(blocks, 3) != rows_of(blocks, 3, system=1)


def test_codes_and_times_are_in_range(blocks: DetectionBlocks) -> None:
    for number in range(len(blocks)):
        for query, document, channel, start, duration, _, decision, inside in rows_of(blocks, number):
            assert query < 12
            assert document < 9
            assert channel in (1, 2)
            assert decision in (0, 1)
            assert 0 <= start < 3_000_000
            assert inside == (start + duration <= 3_000_000)


def test_block_occurrences_are_found_and_are_words(blocks: DetectionBlocks) -> None:
    documents = list(dict.fromkeys(blocks.documents["document"].to_pylist()))
    spoken = blocks.occurrences.to_pylist()
    assert len(spoken) == 500
    keys = [(o["query"], o["document"], o["channel"], o["start"], o["end"]) for o in spoken]
    assert keys == sorted(keys)
    texts = blocks.queries["text"].to_pylist()
    words = {(w["word"], w["document"], w["channel"], w["start"], w["end"]) for w in blocks.words.to_pylist()}
    assert words == {(texts[key[0]], *key[1:]) for key in keys}
    near: dict[tuple[float, ...], list[float]] = {}
    for number in range(len(blocks)):
        for query, document, channel, start, *_ in rows_of(blocks, number):
            near.setdefault((query, document, channel), []).append(start)
    found = sum(
        any(
            abs(start - o["start"]) <= 1000
            for start in near.get((o["query"], documents.index(o["document"]), o["channel"]), [])
        )
        for o in spoken
    )
    assert 380 <= found <= 460


def test_shares_make_a_hot_query() -> None:
    hot = detections(
        1, n_rows=20_000, n_queries=3, n_documents=40, n_occurrences=100, shares=(1, 8, 1), rows_per_block=4_000
    )
    counts = np.bincount(np.concatenate([block.query for block in hot]), minlength=3)
    assert counts.sum() == 20_000
    assert counts[1] == pytest.approx(16_000, rel=0.15)
