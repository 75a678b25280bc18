"""Rows are checked once, by counting where it goes through all of them anyway: bad ones end in the same error."""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import swsdask as sws
from swsdask.archive import cells
from swsdask.archive.store import open_archive
from swsdask.kernels.rows import rows_in_bounds
from swsdask.model.errors import ArchiveError
from swsdask.scoring import detections
from tests.archives import without_hashes
from tests.faults import hostile
from tests.faults.samples import Sample, evaluation

LAST_QUERY, LAST_DOCUMENT, LOWEST, HIGHEST = 5, 2, -1.5, 2.5
COLUMNS = ("query", "document", "score", "decision")
COUNTED, READ = "false_alarm", "drop"
"""Values of `outside`: under the first counting goes through all rows, under the second they are checked when read."""


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return evaluation(tmp_path_factory.mktemp("sample") / "archive")


def literally(query: list[int], document: list[int], score: list[float]) -> bool:
    return (
        all(0 <= each <= LAST_QUERY for each in query)
        and all(one <= other for one, other in pairwise(query))
        and all(-1 <= each <= LAST_DOCUMENT for each in document)
        and all(LOWEST <= each <= HIGHEST for each in score)
    )


def in_bounds(query: Any, document: Any, score: Any) -> bool:
    columns = np.array(query, np.int32), np.array(document, np.int32), np.array(score, np.float64)
    return rows_in_bounds(*columns, LAST_QUERY, LAST_DOCUMENT, LOWEST, HIGHEST)


@pytest.mark.parametrize("rows", [0, 1, 2, 1023, 1024, 1025, 2049])
def test_one_bad_value_anywhere_is_found(rows: int) -> None:
    chance = np.random.default_rng(rows)
    query = np.sort(chance.integers(0, LAST_QUERY + 1, rows)).tolist()
    document = chance.integers(-1, LAST_DOCUMENT + 1, rows).tolist()
    score = chance.uniform(LOWEST, HIGHEST, rows).tolist()
    score[:2] = [LOWEST, HIGHEST][:rows]
    assert in_bounds(query, document, score)
    for part in ((query, [], []), ([], document, []), ([], [], score)):
        assert in_bounds(*part)
    bad = {
        0: (-1, LAST_QUERY + 1, 2**31 - 1, -(2**31)),
        1: (-2, LAST_DOCUMENT + 1, 2**31 - 1, -(2**31)),
        2: (np.nan, -np.nan, np.inf, -np.inf, np.nextafter(LOWEST, -2), np.nextafter(HIGHEST, 3)),
    }
    for row in {0, rows // 2, rows - 1} & set(range(rows)):
        for place, values in bad.items():
            for value in values:
                columns = [list(query), list(document), list(score)]
                columns[place][row] = value
                assert not literally(*columns)
                assert not in_bounds(*columns), (place, row, value)
    if query[:1] != query[-1:]:
        assert not in_bounds(query[::-1], document, score)


def score(folder: Path, measures: tuple[str, ...], outside: str) -> None:
    sws.score(sws.open(folder, settings={"evaluation": {"outside": outside}}), measures, cache=False)


def error(folder: Path, outside: str, measures: tuple[str, ...] = ("atwv", "mtwv", "cnxe")) -> str:
    with pytest.raises(ArchiveError) as raised:
        score(folder, measures, outside)
    return str(raised.value)


@pytest.mark.parametrize("hashes", [True, False])
@pytest.mark.parametrize("column", COLUMNS)
def test_counting_refuses_bad_rows_with_the_error_of_reading(
    sample: Sample, tmp_path: Path, column: str, hashes: bool
) -> None:
    values = {f"{column} = {value} in row {row}" for value in hostile.VALUES[column] for row in (0, 17, -1)}
    for number, (name, case) in enumerate(hostile.cases()):
        if name in values:
            folder = Path(shutil.copytree(sample.folder, tmp_path / str(number)))
            case(folder)
            if not hashes:
                without_hashes(folder)
            found = {outside: error(folder, outside) for outside in (COUNTED, READ)}
            assert found[COUNTED] == found[READ]
            assert "found row group" in found[COUNTED]
            assert error(folder, COUNTED) == found[COUNTED], "not remembered as sound"


def test_rows_that_counting_goes_through_are_checked_by_nobody_else(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[int] = []

    def seen(*columns: Any) -> bool:
        checked.append(max(map(len, columns[:3])))
        return rows_in_bounds(*columns)

    def rows_checked(folder: Path, outside: str) -> int:
        checked.clear()
        monkeypatch.setattr(cells, "_checked", {})
        score(folder, ("atwv", "mtwv"), outside)
        return sum(checked)

    monkeypatch.setattr(cells, "rows_in_bounds", seen)
    rows = sum(run.rows for run in open_archive(str(sample.folder)).runs)
    unhashed = Path(shutil.copytree(sample.folder, tmp_path / "copy"))
    without_hashes(unhashed)
    for folder in (sample.folder, unhashed):
        assert rows_checked(folder, COUNTED) == 0
        assert rows_checked(folder, READ) == rows
    monkeypatch.setattr(detections, "FEW_ROWS", 1)
    for folder in (sample.folder, unhashed):
        assert rows_checked(folder, COUNTED) == 0
    monkeypatch.setattr(detections, "HELD_BYTES", 0)
    assert rows_checked(sample.folder, COUNTED) == 0
    assert rows_checked(unhashed, COUNTED) == rows, "in the second round: nothing says that it reads the same bytes"
