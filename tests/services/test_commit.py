"""The operation that commits stand on, on real servers: of many writers one wins, or the store is refused."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from uuid import uuid4

import pytest

from swsdask.archive.ingest import write_runs
from swsdask.archive.storage import Storage
from swsdask.archive.store import open_archive
from swsdask.model.errors import ArchiveError
from swsdask.model.settings import EvaluationSettings
from tests.archives import COLUMNS, TABLES, as_rows, rows, source
from tests.services.conftest import reached
from tests.services.stores import OVERWRITING, Store

NAMES, WRITERS = 20, 16


def test_of_many_writers_one_wins(store: Store) -> None:
    storage = Storage(f"{store.root}/{uuid4().hex}")
    storage.check_writable()

    def race(name_and_writer: tuple[int, int]) -> tuple[int, int] | None:
        name, writer = name_and_writer
        return name_and_writer if storage.write_new(f"name-{name}", b"%d" % writer) else None

    with ThreadPoolExecutor(WRITERS) as writers:
        won = [each for each in writers.map(race, product(range(NAMES), range(WRITERS))) if each]
    assert Counter(name for name, _ in won) == Counter(range(NAMES))
    assert [storage.read(f"name-{name}") for name, _ in won] == [b"%d" % writer for _, writer in won]


def test_writers_at_once_lose_nothing(store: Store) -> None:
    storage = Storage(f"{store.root}/{uuid4().hex}")
    write_runs(storage, TABLES, [source(rows(50), "first")], EvaluationSettings())

    def write(name: str) -> None:
        write_runs(storage, None, [source(rows(200), name)], EvaluationSettings())

    with ThreadPoolExecutor(4) as writers:
        list(writers.map(write, "abcd"))
    archive = open_archive(storage.url)
    assert [run.system for run in archive.runs] == ["a", "b", "c", "d", "first"]
    for name in "abcd":
        assert len(as_rows([cell.read(COLUMNS) for cell in archive.cells(name, 1000)])) == 200
    assert not [name for name in storage.files(below=True) if name.startswith(("temporary", "probe"))]


@pytest.mark.parametrize("name", OVERWRITING)
def test_a_store_that_overwrites_is_refused(
    name: str, started: dict[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = reached(started[name], monkeypatch)
    storage = Storage(f"{store.root}/{uuid4().hex}")
    with pytest.raises(ArchiveError, match=r"creates a file only if it does not exist .* found one that overwrites"):
        write_runs(storage, TABLES, [], EvaluationSettings())
    assert storage.files(below=True) == []
