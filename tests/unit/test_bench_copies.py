"""The copies of which the largest benchmark is made: counts are multiples, values are equal to the last bit."""

from __future__ import annotations

from tests.bench.copies import copies, score_copies
from tests.bench.data import Shape

BLOCK = Shape(100_000, n_occurrences=300, n_queries=20, n_documents=50)


def test_copies_have_multiples_of_the_counts_and_the_same_values() -> None:
    once, thrice = (score_copies(BLOCK, number)() for number in (1, 3))
    assert once["n_detections"] == BLOCK.rows
    assert thrice == {name: 3 * value if name.startswith("n_") else value for name, value in once.items()}


def test_cells_are_in_the_recordings_of_their_copy() -> None:
    archive = copies(BLOCK, 3)
    cells = list(archive.cells("copies", 10**7))
    assert sum(cell.rows for cell in cells) == 3 * BLOCK.rows
    documents = [cell.read(["document"]).document for cell in cells]
    assert [int(found.max()) // BLOCK.n_documents for found in documents if found is not None] == [0, 1, 2]
    assert len(archive.documents) == 3 * BLOCK.n_documents
