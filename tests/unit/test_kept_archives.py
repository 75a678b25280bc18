"""Archives that the lowest and the newest versions of the libraries wrote are read here, whatever is installed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import swsdask as sws
from tests.kept_archives import ARCHIVES, CORPUS, discovery_numbers, evaluation_numbers, write

KEPT = sorted(folder.name for folder in ARCHIVES.iterdir() if (folder / "numbers.json").is_file())


def numbers_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "numbers.json").read_text())
    return found


def test_the_lowest_and_the_newest_versions_have_written_one() -> None:
    majors = {int(numbers_of(ARCHIVES / name)["written by"]["pyarrow"].partition(".")[0]) for name in KEPT}
    assert min(majors) == 18
    assert max(majors) > 18


@pytest.fixture(params=KEPT)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy: scoring keeps its statistics in an archive."""
    return Path(shutil.copytree(ARCHIVES / request.param, tmp_path / request.param))


def test_an_archive_is_read_and_gives_its_numbers(folder: Path) -> None:
    said = numbers_of(folder)
    for _ in range(2):
        assert evaluation_numbers(folder) == said["detections"]
    assert discovery_numbers(folder) == said["discovery"]
    for kind in ("detections", "discovery"):
        assert sws.verify(folder / kind, executor="threads").damaged == {}


def test_an_archive_takes_in_another_run(folder: Path) -> None:
    archive = sws.ingest(folder / "detections", runs={"third": CORPUS / "run.tsv"})
    numbers = evaluation_numbers(folder)
    third = {what.replace("third", "second"): value for what, value in numbers.items() if what.startswith("third ")}
    assert archive.version == 2
    assert third == {what: value for what, value in numbers_of(folder)["detections"].items() if what.startswith("s")}
    assert numbers == numbers_of(folder)["detections"] | {
        what: value for what, value in numbers.items() if what.startswith("third ")
    }


def test_the_archives_of_these_versions_give_the_same_numbers(tmp_path: Path) -> None:
    write(tmp_path / "now")
    now = numbers_of(tmp_path / "now")
    for name in KEPT:
        assert now | {"written by": None} == numbers_of(ARCHIVES / name) | {"written by": None}


def test_files_without_hashes_get_them(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(ARCHIVES / "first", tmp_path / "first"))
    for kind in ("detections", "discovery"):
        found = sws.verify(folder / kind, adopt=True)
        assert (found.damaged, found.without_hash > 0, found.adopted) == ({}, True, 2)
        assert sws.verify(folder / kind).without_hash == 0
    assert evaluation_numbers(folder) == numbers_of(folder)["detections"]
    assert discovery_numbers(folder) == numbers_of(folder)["discovery"]


def test_occurrences_without_speakers_are_found_again(tmp_path: Path) -> None:
    """The archives of the first day of 0.1.0 have them, and no finder."""
    folder = Path(shutil.copytree(ARCHIVES / "first", tmp_path / "first"))
    (table,) = (folder / "detections" / "tables").glob("occurrences-*")
    occurrences = pq.ParquetFile(table).read()
    pq.write_table(occurrences.drop_columns("speaker").slice(1), table)
    manifest = folder / "detections" / "manifest-00000001.json"
    said = json.loads(manifest.read_text())
    assert said.pop("finder")
    manifest.write_text(json.dumps(said))
    assert sws.verify(folder / "detections").damaged == {}
    assert evaluation_numbers(folder) == numbers_of(folder)["detections"]
