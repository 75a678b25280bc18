"""Archives in memory and on storage hold the same rows, however the input came and however storage is cut."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from swsdask.archive.encode import Codes, encode_piece
from swsdask.archive.ingest import write_runs
from swsdask.archive.memory import MemoryArchive, read_into_memory
from swsdask.archive.storage import Storage
from swsdask.archive.store import StoredArchive, open_archive
from swsdask.archive.versions import Layout
from swsdask.model.schemas import DETECTIONS
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Detections
from tests.archives import Pieces, as_rows, excerpt, piece, queries, tables

NAMES = DETECTIONS.names
SETTINGS = EvaluationSettings(unknown_documents="outside", unknown_queries="drop")
TABLES = tables(
    [excerpt("d0", 0, 20), excerpt("d1", 5, 30), excerpt("d1", 10, 40, 2)], queries({f"q{n}": "w" for n in range(5)})
)


def row(decisions: st.SearchStrategy[int]) -> st.SearchStrategy[tuple]:
    return st.tuples(
        st.sampled_from(["q0", "q1", "q2", "q3", "q4", "nope"]),
        st.sampled_from(["d0", "d1", "elsewhere", "nowhere"]),
        st.integers(1, 2),
        st.integers(0, 40),
        st.integers(0, 20),
        st.floats(-2, 2, allow_nan=False) | st.sampled_from([0.0, -0.0, 1e300]),
        decisions,
    )


ROW = row(st.integers(-1, 1))
ROWS = st.lists(row(st.integers(0, 1)), max_size=60) | st.lists(row(st.just(-1)), max_size=60)
"""All with decisions, or none."""
CODES = Codes.of(TABLES.documents, TABLES.queries, TABLES.words)
LAYOUT = st.builds(
    Layout,
    buckets=st.integers(1, 70),
    rows_per_group=st.integers(1, 30),
    rows_per_fragment=st.integers(1, 60),
    rows_in_memory=st.integers(1, 40),
    codec=st.sampled_from(["lz4", "zstd"]),
)
FRESH = itertools.count()


def cut_up(rows, cuts: list[int], **more) -> Pieces:
    edges = [0, *sorted(min(each, len(rows)) for each in cuts), len(rows)]
    return Pieces(tuple(piece(rows[a:b], **more) for a, b in itertools.pairwise(edges)))


def named(rows: Detections) -> list[tuple]:
    """The rows with the hashes of unknown documents."""
    unknown = np.zeros(len(rows), np.int64) if rows.unknown_document is None else rows.unknown_document
    return [(*row, each) for row, each in zip(as_rows([rows]), unknown.tolist(), strict=True)]


def rows_of(archive: MemoryArchive | StoredArchive, rows_per_task: int) -> list[list[tuple]]:
    return [named(cell.read([*NAMES, "unknown_document"])) for cell in archive.cells("a", rows_per_task)]


@given(
    rows=ROWS,
    cuts=st.lists(st.integers(0, 60), max_size=3),
    layout=LAYOUT,
    rows_per_task=st.integers(1, 80),
    random=st.randoms(use_true_random=False),
)
def test_same_rows_in_memory_and_on_storage(rows, cuts, layout, rows_per_task, random) -> None:
    memory = read_into_memory(TABLES, [cut_up(rows, [])], SETTINGS)
    shuffled = cut_up(random.sample(rows, len(rows)), cuts, dictionary=["q4", "nope", "q1"])
    url = f"memory://same-rows/{next(FRESH)}"
    write_runs(Storage(url), TABLES, [shuffled], SETTINGS, layout=layout)
    stored = open_archive(url)

    whole = [row for rows in memory.detections.values() for row in named(rows)]
    assert whole == sorted(whole, key=canonical)
    for archive in (memory, stored):
        cells = rows_of(archive, rows_per_task)
        assert sorted(itertools.chain(*cells), key=canonical) == whole
        pairs = [{row[:2] for row in cell} for cell in cells]
        assert sum(map(len, pairs)) == len(set().union(*pairs))
        for cell in cells:
            assert cell
            assert [pair for pair, _ in itertools.groupby(row[:2] for row in cell)] == list(
                dict.fromkeys(row[:2] for row in cell)
            )
    assert list(itertools.chain(*rows_of(memory, rows_per_task))) == whole
    said, kept = memory.runs[0], stored.runs[0]
    assert (said.content, said.rows, said.outside, said.scores) == (kept.content, kept.rows, kept.outside, kept.scores)
    assert (said.unknown_documents, said.unknown_queries) == (kept.unknown_documents, kept.unknown_queries)


def canonical(row: tuple) -> tuple:
    score = row[5] if row[5] >> 63 else ~row[5]
    return (*row[:5], score, *row[6:])


@given(rows=st.lists(ROW, min_size=1, max_size=30), data=st.data())
def test_content_changes_with_any_row(rows, data) -> None:
    def content(of) -> str:
        return encode_piece(piece(of), CODES)[1].content

    at = data.draw(st.integers(0, len(rows) - 1))
    other = data.draw(ROW)
    changed = [*rows[:at], other, *rows[at + 1 :]]
    same = sorted(map(plain, rows)) == sorted(map(plain, changed))
    assert (content(rows) == content(changed)) == same
    assert content(rows) != content(rows[:at] + rows[at + 1 :])


def plain(row: tuple) -> tuple:
    return (*row[:5], row[5] + 0.0, row[6])
