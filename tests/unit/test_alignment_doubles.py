from __future__ import annotations

import numpy as np

from swsdask.archive.memory import read_into_memory
from swsdask.archive.reference_tables import Excerpts
from swsdask.model.layers import build_settings
from swsdask.model.settings import EvaluationSettings
from swsdask.statistics import place_trials
from tests.archives import Pieces, excerpt, piece, queries, tables


def int32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def test_the_side_of_a_sum_in_doubles() -> None:
    assert 0.1 + 0.2 > 0.3
    assert 0.1 + 0.4 / 2 > 0.3
    assert place_trials.middle_noise(int32(1000, 148000), int32(4000, 4000)).tolist() == [1, 0]


def test_stdeval_adds_up_the_ends_of_excerpts_too() -> None:
    """0.7 + 8.2 lies below 8.9, 0.1 + 0.2 above 0.3; of excerpts that end together the one that lies highest counts."""
    assert 0.7 + 8.2 < 8.5 + 0.4 == 8.9
    reference = tables(
        [excerpt("d", 7000, 89000), excerpt("e", 7000, 89000), excerpt("e", 9000, 89000)], queries({"q": "a"})
    )
    excerpts = Excerpts.of(reference.documents)
    document, channel = int32(0, 0, 0, 1, 1), np.ones(5, np.int8)
    start, end = int32(85000, 7000, 85000, 85000, 7000), int32(89000, 89000, 88999, 89000, 89000)
    assert excerpts.inside(document, channel, start, end).tolist() == [3, 1, 1, 1, 1]
    excerpts = Excerpts.of(tables([excerpt("d", 1000, 3000)], queries({"q": "a"})).documents)
    assert excerpts.inside(int32(0), np.ones(1, np.int8), int32(1000), int32(3000)).tolist() == [2]


def test_a_detection_at_the_end_of_an_excerpt() -> None:
    reference = tables([excerpt("d", 0, 3000), excerpt("e", 0, 9000)], queries({"q": "a"}))
    rows = [("q", "d", 1, 1000, 2000, 0.5, 1), ("q", "d", 1, 0, 3000, 0.5, 1), ("q", "e", 1, 1000, 2000, 0.5, 1)]
    archive = read_into_memory(reference, [Pieces((piece(rows),))], EvaluationSettings())
    (cell,) = archive.cells("a", 10)
    detections = cell.read(["document", "start", "inside"])
    found = zip(detections.document.tolist(), detections.start.tolist(), detections.inside.tolist(), strict=True)
    assert sorted(found) == [(0, 0, 1), (0, 1000, 4), (1, 1000, 1)]
    assert archive.runs[0].outside == 0
    assert build_settings(None, "kwseval").evaluation.outside == "drop"
