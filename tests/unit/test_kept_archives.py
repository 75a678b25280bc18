"""Archives that the lowest and the newest versions of the libraries wrote are read here, whatever is installed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

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


@pytest.mark.parametrize("name", KEPT)
def test_an_archive_is_read_and_gives_its_numbers(name: str) -> None:
    folder = ARCHIVES / name
    said = numbers_of(folder)
    assert evaluation_numbers(folder) == said["detections"]
    assert discovery_numbers(folder) == said["discovery"]
    for kind in ("detections", "discovery"):
        assert sws.verify(folder / kind).damaged == {}


@pytest.mark.parametrize("name", KEPT)
def test_an_archive_takes_in_another_run(name: str, tmp_path: Path) -> None:
    shutil.copytree(ARCHIVES / name, tmp_path / name)
    archive = sws.ingest(tmp_path / name / "detections", runs={"third": CORPUS / "run.tsv"})
    numbers = evaluation_numbers(tmp_path / name)
    third = {what.replace("third", "second"): value for what, value in numbers.items() if what.startswith("third ")}
    assert archive.version == 2
    assert third == {what: value for what, value in numbers.items() if what.startswith("second ")}
    assert third == {
        what: value for what, value in numbers_of(ARCHIVES / name)["detections"].items() if what.startswith("second ")
    }


def test_the_archives_of_these_versions_give_the_same_numbers(tmp_path: Path) -> None:
    write(tmp_path / "now")
    now = numbers_of(tmp_path / "now")
    for name in KEPT:
        assert now | {"written by": None} == numbers_of(ARCHIVES / name) | {"written by": None}
