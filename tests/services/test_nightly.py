"""Nights in real stores: killed and raced as `make nights` does it on a disk, with the numbers of a disk."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

import swsdask as sws
from swsdask.archive.nights import read_history
from swsdask.archive.storage import Storage
from swsdask.nightly.inbox import look
from tests.faults.nights import NOTHING, WORKED, Place, main, night, prepare
from tests.services.stores import Store
from tests.whole_flow import put

KILLS, RACES = 3, 1


def test_nights_that_are_killed_and_nights_of_two_hosts(store: Store) -> None:
    assert main(KILLS, RACES, f"{store.root}/{uuid4().hex}") == (KILLS + RACES, [])


def test_the_same_numbers_from_an_inbox_that_is_a_bucket(tmp_path: Path, store: Store) -> None:
    url = f"{store.root}/{uuid4().hex}"
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, place in ((here, Place(str(here / "made"))), (there, Place(f"{url}/made"))):
        folder.mkdir()
        prepare(folder, place)
        assert night(folder) == WORKED
    put(there / "inbox", f"{url}/inbox")
    shutil.rmtree(there / "inbox")
    settings = there / "nightly.toml"
    settings.write_text(settings.read_text().replace('["inbox"]', f'["{url}/inbox"]'))
    for _ in range(2):
        assert night(there) in (WORKED, NOTHING)
    assert night(there) == NOTHING
    ours, theirs = (sws.history(f"{place}/made/archive").drop(columns="version") for place in (here, url))
    assert theirs[theirs["night"] <= 2].equals(ours)
    refused = read_history(Storage(f"{url}/made/archive")).refused
    assert [each.split("://")[-1].split("inbox/")[1] for each in refused] == ["calibrated/run.kwslist.xml"] * len(
        refused
    )


def test_what_arrives_in_a_bucket(tmp_path: Path, store: Store) -> None:
    url = f"{store.root}/{uuid4().hex}/inbox"
    part = pa.table({"query": ["K1"], "document": ["a"], "start": [0.5], "duration": [0.5], "score": [1.0]})
    tables = {"a/day=1/part.0.parquet", "a/day=2/part.0.parquet", "b/2026.parquet/part.0.parquet", "c.parquet"}
    for name in (*tables, ".d/run.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(part, tmp_path / name)
    put(tmp_path, url)
    found = {"a": "a", "b": "b/2026.parquet", "c": "c.parquet"}
    assert {each.system: each.url.split("/inbox/")[1] for each in look([url])} == found
    assert [each.system for each in look([f"{url}/c.parquet"])] == ["c"]
    assert look([url]) == look([url])
