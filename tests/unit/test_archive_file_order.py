"""Under compat = "mediaeval" rows keep the order of the files, however these are read, and no trial is there twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import swsdask as sws
from swsdask.archive.change import ChangePolicy
from swsdask.archive.ingest import ingest, write_runs
from swsdask.archive.memory import read_into_memory
from swsdask.archive.reference_files import read_reference
from swsdask.archive.storage import Storage
from swsdask.archive.store import StoredArchive, open_archive
from swsdask.archive.versions import Layout
from swsdask.formats.find import find_reference
from swsdask.formats.runs.read import RunFile
from swsdask.model.errors import ArchiveError, InputError
from swsdask.model.settings import EvaluationSettings
from tests.archives import Pieces, Row, excerpt, piece, queries, tables, words
from tests.document_trials import World

MEDIAEVAL = EvaluationSettings(trials="document", compat="mediaeval", impute=0.0)
ORDINARY = EvaluationSettings(trials="document")
TABLES = tables(
    [excerpt(name, 0, 100) for name in ("a", "b", "c")],
    queries({"q": "x", "r": "y"}),
    words([("x", 0, 10, "lex")], document="a"),
)
IN_FILE = [("r", "b"), ("q", "c"), ("q", "a"), ("r", "a"), ("q", "b")]
ROWS: list[Row] = [(query, document, 1, 0, 10, 0.5, 1) for query, document in IN_FILE]


def in_pieces(*sizes: int) -> Pieces:
    begins = np.cumsum([0, *sizes]).tolist()
    return Pieces(tuple(piece(ROWS[begin : begin + size]) for begin, size in zip(begins, sizes, strict=False)))


@pytest.mark.parametrize("sources", [[in_pieces(5)], [in_pieces(1, 3, 1)], [in_pieces(2), Pieces((piece(ROWS[2:]),))]])
def test_positions_ascend_in_file_order_however_the_file_is_read(sources: Sequence[Pieces], tmp_path: Path) -> None:
    memory = read_into_memory(TABLES, sources, MEDIAEVAL)
    layout = Layout(buckets=2, rows_per_group=1, rows_per_fragment=2, rows_in_memory=2)
    stored = write_runs(Storage(str(tmp_path), {}), TABLES, sources, MEDIAEVAL, layout=layout)
    for archive in (memory, stored):
        found = []
        for cell in archive.cells("a", 2):
            rows = cell.read(["document", "position"])
            assert rows.document is not None
            assert rows.position is not None
            found += zip(rows.position.tolist(), rows.query.tolist(), rows.document.tolist(), strict=True)
        assert [("qr"[query], "abc"[document]) for _, query, document in sorted(found)] == IN_FILE


def test_the_order_is_part_of_a_runs_content_where_it_counts() -> None:
    def content(rows: list[Row], settings: EvaluationSettings) -> str:
        return read_into_memory(TABLES, [Pieces((piece(rows),))], settings).runs[0].content

    assert content(ROWS, MEDIAEVAL) != content(ROWS[::-1], MEDIAEVAL) != content(ROWS, ORDINARY)
    assert content(ROWS, ORDINARY) == content(ROWS[::-1], ORDINARY)
    assert read_into_memory(TABLES, [in_pieces(5)], ORDINARY).detections["a"].position is None


def test_a_run_in_another_order_is_another_run(tmp_path: Path) -> None:
    """Its numbers are others, so it must not be passed over as if it were there already."""
    url = str(tmp_path)
    sources = [[in_pieces(5)], [in_pieces(2, 3)], [Pieces((piece(ROWS[::-1]),))]]
    versions = [write_runs(Storage(url, {}), TABLES, each, MEDIAEVAL).version for each in sources[:2]]
    assert versions == [1, 1]
    with pytest.raises(ArchiveError, match="other content is there"):
        write_runs(Storage(url, {}), None, sources[2], MEDIAEVAL)
    assert write_runs(Storage(url, {}), None, sources[2], MEDIAEVAL, policy=ChangePolicy(replace=True)).version == 2


WORLD = World(
    documents=("a", "b"),
    queries=("q", "r"),
    targets=frozenset({("q", "a"), ("r", "b")}),
    run=(("q", "b", 0.5, True), ("r", "a", 0.25, False), ("q", "a", 0.5, True), ("r", "b", 1.0, True)),
)


def ingested(folder: Path, settings: EvaluationSettings, *, replace: bool = False) -> StoredArchive:
    run = WORLD.write(folder)
    return ingest(
        str(folder / "archive"),
        find_reference(str(folder)),
        [RunFile(str(run))],
        settings,
        policy=ChangePolicy(replace),
    )


def test_a_run_ingested_without_its_order_says_what_to_do(tmp_path: Path) -> None:
    ingested(tmp_path, ORDINARY)
    archive = str(tmp_path / "archive")
    evaluation = sws.open(archive, preset="quesst2014", compat="mediaeval")
    with pytest.raises(ArchiveError, match="--compat mediaeval --change-settings --replace"):
        sws.score(evaluation, ["cnxe_min_pav"])
    assert sws.score(evaluation, ["cnxe"]).table.num_rows > 0
    ingested(tmp_path, MEDIAEVAL, replace=True)
    again = sws.score(sws.open(archive, preset="quesst2014", compat="mediaeval"), ["cnxe_min_pav"])
    assert again.table["value"].to_pylist()[0] == pytest.approx(0.0)
    assert open_archive(archive).version == 2


@pytest.mark.parametrize(("place", "line"), [(1, 12), (3, 12), (4, 15)])
def test_a_trial_that_is_there_twice_is_reported_with_its_line(tmp_path: Path, place: int, line: int) -> None:
    run = list(WORLD.run)
    run.insert(place, ("q", "a", 0.75, False))
    world = World(WORLD.documents, WORLD.queries, WORLD.targets, tuple(run))
    path = world.write(tmp_path)
    reference = find_reference(str(tmp_path))
    with pytest.raises(InputError) as caught:
        read_into_memory(read_reference(reference), [RunFile(str(path))], MEDIAEVAL)
    with pytest.raises(InputError) as ingesting:
        ingest(str(tmp_path / "archive"), reference, [RunFile(str(path))], MEDIAEVAL)
    for error in (caught.value, ingesting.value):
        (problem,) = error.problems
        assert (problem.file, problem.line) == (str(path), line)
        assert "query q in document a" in problem.found
    ordinary = read_into_memory(read_reference(reference), [RunFile(str(path))], ORDINARY)
    assert ordinary.runs[0].rows == 5
