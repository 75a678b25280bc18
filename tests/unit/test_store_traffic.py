"""What is requested of a store: each part once, parts at the same time, and little beside what is needed."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest

import swsdask as sws
from swsdask.archive import cells
from swsdask.archive.cells import chunk_range
from swsdask.archive.ingest import write_runs
from swsdask.archive.reference import build_reference
from swsdask.archive.storage import Storage
from swsdask.archive.store import StoredArchive, open_archive
from swsdask.archive.stored_tables import StoredFile
from swsdask.archive.versions import EvaluationManifest, Layout, open_version
from swsdask.execution.executor import SerialExecutor
from swsdask.measures import select
from swsdask.model.errors import ArchiveError
from swsdask.model.settings import Settings
from swsdask.scoring.rounds import ResultTables
from swsdask.scoring.score import score_archive
from swsdask.statistics.alignment import trial_columns
from tests.bench.data import Shape, SimulatedRun, tables_of
from tests.small_evaluation import ECF, QUERIES, RTTM, RUN
from tests.traffic import Traffic, traffic

N_SYSTEMS = 5
SHAPE = Shape(rows=40_000, n_occurrences=500, n_documents=50, n_queries=40)
SLOW_S = 0.5
"""The delay of answers where requests are counted that are made at the same time: those that a busy machine makes late
still come before the first answer."""
MEASURES = ("mtwv",)
"""It needs two rounds: all columns in the first, queries and scores in the second, for which they are held."""


@pytest.fixture(scope="module")
def store(s3_server: dict[str, Any]) -> Iterator[tuple[Traffic, Storage]]:
    """An archive of several systems in a store behind a proxy."""
    bucket = f"evals-{uuid.uuid4().hex}"
    fsspec.filesystem("s3", **s3_server).mkdir(bucket)
    sources = [SimulatedRun(SHAPE, number) for number in range(N_SYSTEMS)]
    with traffic(s3_server["endpoint_url"], delay_s=0.03) as counted:
        storage = Storage(f"s3://{bucket}/a", {**s3_server, "endpoint_url": counted.address})
        write_runs(storage, tables_of(SHAPE.blocks()), sources, Settings().evaluation, layout=Layout(buckets=4))
        yield counted, storage


@pytest.fixture
def seen(store: tuple[Traffic, Storage]) -> tuple[Traffic, Storage]:
    """The same; requests are counted anew, and no footer is known."""
    counted, _ = store
    counted.requests.clear()
    counted.most_at_once = counted.in_sequence = 0
    cells._footers.clear()
    return store


def scored(archive: StoredArchive) -> ResultTables:
    settings = Settings()
    reference = build_reference(archive, settings.evaluation)
    systems = [run.system for run in archive.runs]
    return score_archive(
        archive, systems, reference, select(MEASURES), settings, SerialExecutor(), names=list(MEASURES)
    )


def test_a_score_requests_the_columns_that_it_needs(seen: tuple[Traffic, Storage]) -> None:
    counted, storage = seen
    archive = StoredArchive(storage, open_version(storage, None, EvaluationManifest))
    scored(archive)
    detections = counted.of("/detections/")
    assert {each.method for each in counted.requests} == {"GET"}  # no request for a size
    fragments = [fragment for stored in archive.stored_runs for fragment in stored.fragments]
    assert len(fragments) == N_SYSTEMS
    rule = build_reference(archive, Settings().evaluation).rule
    asked, footers = 0, 0
    for fragment in fragments:
        metadata = pq.read_metadata(storage._filesystem.open(storage.path(fragment.file.file)))
        footers += min(cells._FOOTER_GUESS, fragment.file.size or 0)
        columns = dict.fromkeys(("query", "score", *trial_columns(rule, 1, True)))
        places = [metadata.schema.names.index(name) for name in columns]
        asked += sum(chunk_range(metadata.row_group(0).column(place))[1] for place in places)
    down = sum(each.down for each in detections)
    assert down <= 1.1 * asked + footers
    assert len(detections) <= N_SYSTEMS * (1 + 2)  # the footer; query and score may lie apart; no round reads again


def test_cells_are_requested_while_others_are_counted(
    seen: tuple[Traffic, Storage], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, storage = seen
    archive = StoredArchive(storage, open_version(storage, None, EvaluationManifest))
    with monkeypatch.context() as slow:
        slow.setattr(counted, "delay_s", SLOW_S)
        tables = scored(archive)
    assert counted.most_at_once >= N_SYSTEMS
    assert tables.scores.files == scored(archive).scores.files


def test_tables_are_requested_at_once(seen: tuple[Traffic, Storage], monkeypatch: pytest.MonkeyPatch) -> None:
    counted, storage = seen
    monkeypatch.setitem(fsspec.config.conf, "s3", storage.options)
    with monkeypatch.context() as slow:
        slow.setattr(counted, "delay_s", SLOW_S)
        sws.plan(storage.url, MEASURES)
    assert counted.in_sequence == 3  # the list of versions, the manifest, all tables
    sws.score(sws.open(storage.url), MEASURES, cache=False)
    asked = Counter(each.path for each in counted.requests if "/detections/" not in each.path)
    assert set(asked.values()) == {2}  # once by either
    assert len(asked) == 2 + len(open_archive(storage.url).manifest.tables)


def test_a_missing_table_is_reported(store: tuple[Traffic, Storage]) -> None:
    _, storage = store
    archive = StoredArchive(storage, open_version(storage, None, EvaluationManifest))
    lost = StoredFile("tables/words-lost.parquet", 100, "0" * 32)
    broken = replace(archive, manifest=replace(archive.manifest, tables={**archive.manifest.tables, "words": lost}))
    broken.fetch()
    with pytest.raises(ArchiveError, match=r"words-lost\.parquet: expected .* found none"):
        _ = broken.words
    assert broken.queries.equals(archive.queries)


def test_an_error_of_a_cell_that_is_read_ahead_is_reported(seen: tuple[Traffic, Storage]) -> None:
    _, storage = seen
    archive = StoredArchive(storage, open_version(storage, None, EvaluationManifest))
    file = archive.stored_runs[3].fragments[0].file.file
    content = storage.read(file)
    storage.write(file, content[:-9] + b"x" + content[-8:])
    try:
        with pytest.raises(ArchiveError, match="footer is not what was written"):
            scored(archive)
    finally:
        storage.write(file, content)


def test_what_is_spilled_is_read_by_one_request(seen: tuple[Traffic, Storage]) -> None:
    counted, storage = seen
    layout = Layout(buckets=4, rows_in_memory=SHAPE.rows)
    another = Storage(f"{storage.url}-spilled", dict(storage.options))
    write_runs(another, tables_of(SHAPE.blocks()), [SimulatedRun(SHAPE, 0)], Settings().evaluation, layout=layout)
    spilled = counted.of(".spill")
    assert [each.method for each in spilled if each.method in ("GET", "PUT")] == ["PUT", "GET"]


def test_a_folder_of_runs_that_are_known_is_only_listed(
    s3_server: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"evals-{uuid.uuid4().hex}"
    fsspec.filesystem("s3", **s3_server).mkdir(name)
    content = {"ref/x.ecf.xml": ECF, "ref/x.rttm": RTTM, "ref/x.kwlist.xml": QUERIES}
    content |= {f"runs/{system}.kwslist.xml": RUN.replace('"first"', f'"{system}"') for system in "abcdef"}
    root = f"s3://{name}"
    with traffic(s3_server["endpoint_url"]) as counted:
        monkeypatch.setitem(fsspec.config.conf, "s3", {**s3_server, "endpoint_url": counted.address})
        filesystem = fsspec.filesystem("s3")
        filesystem.pipe({f"{root}/{place}": each.encode() for place, each in content.items()})
        ingest = partial(sws.ingest, f"{root}/archive", f"{root}/ref", runs=f"{root}/runs")
        first = ingest()
        counted.requests.clear()
        assert ingest().runs == first.runs
        of_files = [each for part in ("/runs/", "/ref/") for each in counted.of(part) if each.method != "HEAD"]
        assert of_files == []
        assert len(counted.of("prefix=runs/")) <= 3
        counted.requests.clear()
        changed = content["runs/c.kwslist.xml"].replace('"0.9"', '"0.8"')  # as long, perhaps in the same second
        filesystem.pipe_file(f"{root}/runs/c.kwslist.xml", changed.encode())
        ingest(replace=True)
        assert {each.path.rsplit("/", 1)[-1].partition("?")[0] for each in counted.of("/runs/")} == {"c.kwslist.xml"}
