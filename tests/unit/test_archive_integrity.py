"""Damage of an archive changes no number: it is refused with the file named; hashes, verification, repair, adoption."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import swsdask as sws
from swsdask.archive import local
from swsdask.archive.change import leased
from swsdask.archive.ingest import write_runs
from swsdask.archive.storage import Storage
from swsdask.archive.store import open_archive
from swsdask.archive.versions import CACHE, table_name
from swsdask.model.errors import ArchiveError
from swsdask.model.settings import EvaluationSettings
from swsdask.simulate.evaluation import simulate, write
from tests.archives import source, without_hashes
from tests.faults.damage import exchanged, files_of, flipped, is_right, try_hostile
from tests.faults.hostile import cases
from tests.faults.samples import IDENTICAL, MEASURES, REFUSED, Sample, discovery, evaluation, rows, text

FLIPS = 40


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sample]:
    folder = tmp_path_factory.mktemp("samples")
    return {"evaluation": evaluation(folder / "evaluation"), "discovery": discovery(folder / "discovery")}


@pytest.fixture(params=["evaluation", "discovery"])
def sample(samples: dict[str, Sample], request: pytest.FixtureRequest) -> Sample:
    return samples[request.param]


@pytest.fixture
def copied(tmp_path: Path) -> Callable[[Sample], Path]:
    return lambda sample: Path(shutil.copytree(sample.folder, tmp_path / "copy"))


def test_a_flipped_bit_changes_nothing_or_is_refused(sample: Sample, copied: Callable[[Sample], Path]) -> None:
    copy = copied(sample)
    found = [flipped(sample, copy, seed) for seed in range(FLIPS)]
    assert [(str(file), outcome) for file, outcome in found if not is_right(file, outcome)] == []
    assert sum(outcome.kind == REFUSED for _, outcome in found) > FLIPS / 2


def test_exchanged_files_and_row_groups_are_refused(
    samples: dict[str, Sample], copied: Callable[[Sample], Path]
) -> None:
    copy = copied(samples["evaluation"])
    for what, file in exchanged(copy):
        outcome = samples["evaluation"].outcome(copy)
        assert (outcome.kind, file in outcome.message) == (REFUSED, True), what


def test_a_file_that_is_cut_short_while_it_is_read_is_refused(
    samples: dict[str, Sample], copied: Callable[[Sample], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mapped file would end the process (SIGBUS)."""
    copy = copied(samples["evaluation"])
    read = local.OpenFile.read

    def cut_then_read(file: local.OpenFile, offset: int, length: int) -> object:
        for fragment in copy.glob("detections/**/*.parquet"):
            os.truncate(fragment, 100)
        return read(file, offset, length)

    monkeypatch.setattr(local.OpenFile, "read", cut_then_read)
    for verify in (True, False):
        with pytest.raises(ArchiveError, match=r"/detections/.*\.parquet"):
            sws.score(sws.open(copy, verify=verify), ["atwv"], cache=False)


@pytest.mark.parametrize("part", range(4))
def test_hostile_archives_are_refused(tmp_path: Path, part: int) -> None:
    """Some of the cases of `make faults`."""
    for number in range(part, len(list(cases())), 32):
        kind, message = try_hostile(str(tmp_path), number)
        assert kind in (REFUSED, IDENTICAL), message


def test_verify_lists_what_is_damaged_and_repairs_it(
    sample: Sample, copied: Callable[[Sample], Path], tmp_path: Path
) -> None:
    copy = copied(sample)
    files = files_of(copy)
    for file in files:
        whole = (copy / file).read_bytes()
        (copy / file).write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        assert list(sws.verify(copy).damaged) == [str(file)]
        (copy / file).write_bytes(whole)
    assert sws.verify(copy) == sws.Verified(len(files), 0, {})
    for file in files:
        (copy / file).write_bytes(b"nothing")
    found = sws.verify(copy, repair=sample.folder)
    assert sorted(found.repaired) == [str(file) for file in files]
    assert not found.damaged
    assert all((copy / file).read_bytes() == (sample.folder / file).read_bytes() for file in files)


@pytest.fixture
def of_files(tmp_path: Path) -> Path:
    """An archive that keeps statistics, results, and what it knows of the files that it was made from."""
    write(simulate(1, hours=0.3, n_queries=8), tmp_path / "files")
    sws.ingest(tmp_path / "archive", tmp_path / "files", runs=tmp_path / "files" / "runs", preset="sws2013")
    sws.score(tmp_path / "archive", MEASURES)
    return tmp_path / "archive"


def test_verify_lists_damage_of_what_is_kept_which_is_made_again(of_files: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(of_files, tmp_path / "other"))
    expected = text(sws.score(of_files, MEASURES))
    files = sorted(path.relative_to(of_files) for path in (of_files / CACHE).rglob("*.*"))
    assert {file.name.partition("-")[0] for file in files} >= {"results", "Counts", "sources.json"}
    chance = random.Random(0)
    for file in files:
        whole = (of_files / file).read_bytes()
        for place in chance.sample(range(len(whole)), 5):
            damaged = bytearray(whole)
            damaged[place] ^= 1 << chance.randrange(8)
            (of_files / file).write_bytes(damaged)
            assert list(sws.verify(of_files).damaged) == [str(file)]
            assert sws.verify(of_files, repair=other).repaired == (str(file),)
            assert (of_files / file).read_bytes() == whole
    for file in files:
        (of_files / file).write_bytes((of_files / file).read_bytes()[:-1])
    found = sws.verify(of_files)
    assert sorted(found.damaged) == [str(file) for file in files]
    assert all("made again when it is needed: remove it" in said for said in found.damaged.values())
    assert text(sws.score(of_files, MEASURES)) == expected


def test_what_is_kept_is_written_in_one_step(of_files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that is killed while it writes leaves no file that `verify` would call damaged."""
    shutil.rmtree(of_files / CACHE)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("swsdask.archive.local.os.replace", killed)
    monkeypatch.setattr(Path, "unlink", killed)
    with pytest.raises(KeyboardInterrupt):
        sws.score(of_files, MEASURES)
    monkeypatch.undo()
    (unfinished,) = (of_files / CACHE).rglob("*.*")
    assert not sws.verify(of_files).damaged
    assert sws.vacuum(of_files, older_than_s=-10) == [str(unfinished.relative_to(of_files))]


def test_a_copy_that_is_damaged_too_repairs_nothing(
    sample: Sample, copied: Callable[[Sample], Path], tmp_path: Path
) -> None:
    copy = copied(sample)
    other = Path(shutil.copytree(sample.folder, tmp_path / "other"))
    file = next(file for file in files_of(copy) if file.name.startswith("words"))
    for folder, content in ((copy, b"x"), (other, b"y")):
        (folder / file).write_bytes(content)
    found = sws.verify(copy, repair=other)
    assert (list(found.damaged), found.repaired) == ([str(file)], ())
    assert (copy / file).read_bytes() == b"x"
    with pytest.raises(ArchiveError, match=r"nowhere: expected a copy of the archive; found none\."):
        sws.verify(copy, repair=tmp_path / "nowhere")


def test_an_archive_without_hashes_is_read_with_a_note_and_adopts_them(
    sample: Sample, copied: Callable[[Sample], Path]
) -> None:
    copy = copied(sample)
    without_hashes(copy)
    outcome = sample.outcome(copy)
    assert outcome.kind == IDENTICAL
    assert "carry no hashes" in " ".join(notes_of(copy))
    found = sws.verify(copy)
    assert found.without_hash
    assert found.adopted is None
    assert sws.verify(copy, adopt=True).adopted == 3
    assert "carry no hashes" not in " ".join(notes_of(copy))
    assert sample.outcome(copy).kind == IDENTICAL
    assert [is_right(*flipped(sample, copy, seed)) for seed in range(10)] == [True] * 10
    adopted = sws.verify(copy, adopt=True)
    assert (adopted.without_hash, adopted.adopted, adopted.damaged) == (0, None, {})
    later = json.loads((copy / "manifest-00000003.json").read_bytes())["tables"]
    for name, stored in later.items():
        whole = (copy / stored["file"]).read_bytes()
        (copy / stored["file"]).write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
        assert list(sws.verify(copy).damaged) == [stored["file"]], name
        (copy / stored["file"]).write_bytes(whole)


def notes_of(folder: Path) -> tuple[str, ...]:
    if (folder / "detections").exists():
        return sws.open(folder).notes
    return sws.discover(archive=folder, measures="coverage").notes


def test_damage_is_not_adopted(samples: dict[str, Sample], copied: Callable[[Sample], Path]) -> None:
    copy = copied(samples["evaluation"])
    dict(cases())["query = -1 in row 17, without hashes"](copy)
    found = sws.verify(copy, adopt=True)
    assert found.adopted is None
    assert [name.split("/")[0] for name in found.damaged] == ["detections"]


def test_verification_can_be_left_out_and_results_say_so(
    samples: dict[str, Sample], copied: Callable[[Sample], Path]
) -> None:
    copy = copied(samples["evaluation"])
    assert sws.score(sws.open(copy), ["atwv"]).manifest["run"]["verification"] == "on"
    stored = open_archive(str(copy)).manifest.tables["words"]
    file = copy / stored.file
    file.write_bytes(file.read_bytes() + b"PAR1")
    with pytest.raises(ArchiveError, match=f"{file.name}: .* bytes instead of {stored.size:,}"):
        sws.open(copy).archive.words  # noqa: B018
    unverified = sws.open(copy, verify=False)
    with pytest.raises(ArchiveError, match="cannot be read"):
        unverified.archive.words  # noqa: B018
    shutil.copy(samples["evaluation"].folder / stored.file, file)
    assert sws.score(sws.open(copy, verify=False), ["atwv"]).manifest["run"]["verification"] == "off"


def test_a_manifest_says_what_its_name_says(samples: dict[str, Sample], copied: Callable[[Sample], Path]) -> None:
    copy = copied(samples["evaluation"])
    shutil.copy(copy / "manifest-00000001.json", copy / "manifest-00000003.json")
    with pytest.raises(ArchiveError, match=r"manifest-00000003.json: .* found that of version 1"):
        open_archive(str(copy))
    said = json.loads((copy / "manifest-00000002.json").read_bytes())
    assert all(set(each) == {"file", "size", "hash"} for each in said["tables"].values())


def test_a_folder_in_place_of_a_manifest_is_refused(sample: Sample, copied: Callable[[Sample], Path]) -> None:
    """The version before is another archive."""
    copy = copied(sample)
    (copy / "manifest-00000002.json").unlink()
    (copy / "manifest-00000002.json").mkdir()
    outcome = sample.outcome(copy)
    assert (outcome.kind, "manifest-00000002.json" in outcome.message) == (REFUSED, True)


def test_vacuum_leaves_the_files_of_a_writer_at_work(sample: Sample, copied: Callable[[Sample], Path]) -> None:
    copy = copied(sample)
    before = files_of(copy)
    storage = Storage(str(copy))
    table = write_of_nothing(storage, "0" * 16)
    with leased(storage) as lease:
        ours = write_of_nothing(storage, lease.writer)
        assert sws.vacuum(copy, dry_run=True) == [table]
        assert sws.vacuum(copy) == [table]
        assert sws.vacuum(copy) == []
        assert (copy / ours).exists()
        lease.check()
        assert sorted(sws.vacuum(copy, older_than_s=-10)) == sorted([ours, f"{lease.folder}/lease"])
        with pytest.raises(ArchiveError, match="Nothing was committed"):
            lease.check()
    assert files_of(copy) == before
    assert sample.outcome(copy).kind == IDENTICAL


def write_of_nothing(storage: Storage, writer: str) -> str:
    name = table_name("orphan", writer)
    storage.write(name, b"")
    return name


def test_vacuum_takes_what_writers_left(sample: Sample, copied: Callable[[Sample], Path]) -> None:
    copy = copied(sample)
    before = files_of(copy)
    left = [
        "manifest-00000009.json.0123456789abcdef.part",
        "probe-0123456789abcdef",
        "tables/old-0123456789abcdef.parquet",
    ]
    for name in (*left, "notes.txt"):
        (copy / name).write_bytes(b"x")
    (copy / "detections" / "empty").mkdir(parents=True)
    outside = copy.parent / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"x")
    (copy / "tables" / "link").symlink_to(outside)
    assert sws.vacuum(copy) == []
    assert sws.vacuum(copy, older_than_s=-10) == sorted([*left, "tables/link"])
    assert files_of(copy) == sorted([*before, Path("notes.txt")])
    assert not (copy / "detections" / "empty").exists()
    assert (outside / "kept").exists()


def test_vacuum_removes_nothing_where_a_version_cannot_be_read(
    sample: Sample, copied: Callable[[Sample], Path]
) -> None:
    copy = copied(sample)
    write_of_nothing(Storage(str(copy)), "0" * 16)
    before = files_of(copy)
    (copy / "manifest-00000001.json").write_bytes(b"{")
    with pytest.raises(ArchiveError, match=r"manifest-00000001.json"):
        sws.vacuum(copy)
    assert files_of(copy) == before


def test_a_commit_that_the_storage_fails_after_is_reported(
    samples: dict[str, Sample], copied: Callable[[Sample], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied(samples["evaluation"])
    ours = [source(rows(50, 9), "c")]

    def fail(path: str, sync: Callable[[str], None] = local.sync) -> None:
        if path == str(copy):
            raise OSError(errno.EIO, "Input/output error")
        sync(path)

    monkeypatch.setattr(local, "sync", fail)
    with pytest.raises(ArchiveError, match=r"version 3 was committed and can be read.*Input/output error"):
        write_runs(Storage(str(copy)), None, ours, EvaluationSettings())
    monkeypatch.undo()
    assert [run.system for run in open_archive(str(copy)).runs] == ["a", "b", "c"]
    assert sws.vacuum(copy, older_than_s=-10) == []


def test_what_a_committed_writer_cannot_remove_is_no_failure(
    samples: dict[str, Sample], copied: Callable[[Sample], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = copied(samples["evaluation"])

    def fail(path: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(local, "remove", fail)
    assert write_runs(Storage(str(copy)), None, [source(rows(50, 9), "c")], EvaluationSettings()).version == 3
    monkeypatch.undo()
    assert len(sws.vacuum(copy, older_than_s=-10)) > 0
    assert sws.verify(copy).damaged == {}
