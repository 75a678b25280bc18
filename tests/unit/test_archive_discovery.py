"""Archives of term discovery: what is put in comes out, commits are whole, repeated ingests do nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from swsdask.archive import change
from swsdask.archive.change import ChangePolicy
from swsdask.archive.cleaning import vacuum
from swsdask.archive.discovery import content_of, ingest_discovery, open_discovery
from swsdask.archive.store import open_archive
from swsdask.discovery.corpus import build_corpus, build_fragments, read_fragments
from swsdask.formats.discovery import CorpusFiles, CorpusTables, read_corpus_files
from swsdask.model.errors import ArchiveError, InputError
from tests.archives import rewritten
from tests.discoveries import same
from tests.discovery_worlds import random_world

DEFINITIONS = ("document", "tde2015", "tdev2")


@pytest.fixture
def files(tmp_path: Path) -> CorpusFiles:
    return random_world(3).write(tmp_path)


@pytest.fixture
def corpus(files: CorpusFiles) -> CorpusTables:
    return read_corpus_files(files)


@pytest.fixture
def write_classes(tmp_path: Path) -> Callable[[str, int], str]:
    def write(name: str, seed: int) -> str:
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        random_world(seed).write(folder)
        return f"{folder}/w.classes"

    return write


def test_what_is_put_in_comes_out(
    tmp_path: Path, corpus: CorpusTables, write_classes: Callable[[str, int], str]
) -> None:
    url = f"{tmp_path}/archive"
    class_files = {"one": write_classes("one", 3), "two": write_classes("two", 4)}
    ingest_discovery(url, corpus, class_files)
    archive = open_discovery(url)
    assert archive.version == 1
    assert sorted(archive.inputs) == ["folds", "phones", "speakers", "split", "within", "words"]
    assert [each.system for each in archive.systems] == ["one", "two"]
    assert archive.tables.files == corpus.files
    for role in archive.inputs:
        assert getattr(archive.tables, role).equals(getattr(corpus, role), check_metadata=True)
    for definition in DEFINITIONS:
        read, stored = build_corpus(corpus, definition), build_corpus(archive.tables, definition)
        same(read, stored)
        assert read.notes == stored.notes
        for system, url in class_files.items():
            of_archive = build_fragments(archive.read_classes(system), stored, system=system)
            same(read_fragments(url, read, system=system), of_archive)


def test_an_archive_in_memory(corpus: CorpusTables, write_classes: Callable[[str, int], str]) -> None:
    stored = ingest_discovery("memory://discovery-archive", corpus, {"one": write_classes("one", 3)})
    assert stored.version == 1
    assert [each.system for each in open_discovery("memory://discovery-archive").systems] == ["one"]


def test_the_same_again_makes_no_version_and_no_file(
    tmp_path: Path, corpus: CorpusTables, write_classes: Callable[[str, int], str]
) -> None:
    url = f"{tmp_path}/archive"
    class_files = {"one": write_classes("one", 3)}
    ingest_discovery(url, corpus, class_files)
    before = sorted((tmp_path / "archive").rglob("*"))
    assert ingest_discovery(url, corpus, class_files).version == 1
    assert ingest_discovery(url, None, class_files).version == 1
    assert sorted((tmp_path / "archive").rglob("*")) == before


def test_systems_are_added_and_replaced_version_by_version(
    tmp_path: Path, corpus: CorpusTables, write_classes: Callable[[str, int], str]
) -> None:
    url = f"{tmp_path}/archive"
    one, other = write_classes("one", 3), write_classes("other", 4)
    ingest_discovery(url, corpus, {})
    assert open_discovery(url).systems == ()
    ingest_discovery(url, None, {"one": one})
    with pytest.raises(ArchiveError, match="a system 'one' with other content is there"):
        ingest_discovery(url, None, {"one": other})
    assert ingest_discovery(url, None, {"one": other}, policy=ChangePolicy(replace=True)).version == 3
    assert open_discovery(url).systems[0].read_from == other
    assert open_discovery(url, 2).systems[0].read_from == one
    with pytest.raises(ArchiveError, match="versions found: 1, 2, 3"):
        open_discovery(url, 9)


def test_an_archive_is_one_corpus(
    tmp_path: Path, corpus: CorpusTables, write_classes: Callable[[str, int], str]
) -> None:
    url = f"{tmp_path}/archive"
    ingest_discovery(url, corpus, {})
    write_classes("other", 5)
    other = read_corpus_files(CorpusFiles(f"{tmp_path}/other/w.phn", f"{tmp_path}/w.wrd"))
    with pytest.raises(ArchiveError, match=r"expected the corpus .* found one that differs in phones"):
        ingest_discovery(url, other, {})
    fewer = read_corpus_files(CorpusFiles(corpus.files.phones, corpus.files.words))
    assert ingest_discovery(url, fewer, {}).version == 1


def test_faults_of_all_class_files_are_reported_and_nothing_is_left(
    tmp_path: Path, corpus: CorpusTables, write_classes: Callable[[str, int], str]
) -> None:
    url = f"{tmp_path}/archive"
    ingest_discovery(url, corpus, {})
    before = sorted((tmp_path / "archive").rglob("*"))
    for name in ("a", "c"):
        (tmp_path / name).write_text("Class 1\ns0a 2 1\n\n")
    with pytest.raises(InputError) as caught:
        ingest_discovery(url, None, {"a": f"{tmp_path}/a", "b/": write_classes("b", 3), "c": f"{tmp_path}/c"})
    assert [problem.line for problem in caught.value.problems] == [2, None, 2]
    with pytest.raises(InputError):
        ingest_discovery(url, None, {"b": write_classes("b", 3), "c": f"{tmp_path}/c"})
    assert sorted((tmp_path / "archive").rglob("*")) == before
    assert open_discovery(url).version == 1


def test_without_an_archive_phones_and_words_are_needed(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match=r"found none\. Give phones and words"):
        ingest_discovery(f"{tmp_path}/archive", None, {})
    with pytest.raises(ArchiveError, match=r"expected an archive with manifest-00000001\.json or later"):
        open_discovery(f"{tmp_path}/archive")


def test_one_kind_of_archive_is_not_the_other(tmp_path: Path, corpus: CorpusTables) -> None:
    url = f"{tmp_path}/archive"
    ingest_discovery(url, corpus, {})
    with pytest.raises(ArchiveError, match="expected an archive of detections; found one of term discovery"):
        open_archive(url)
    manifest = tmp_path / "archive" / "manifest-00000001.json"
    rewritten(manifest, lambda said: said.update(kind="detections"))
    with pytest.raises(ArchiveError, match="expected an archive of term discovery; found one of detections"):
        open_discovery(url)


def test_a_system_that_is_not_there(tmp_path: Path, corpus: CorpusTables) -> None:
    stored = ingest_discovery(f"{tmp_path}/archive", corpus, {})
    with pytest.raises(ArchiveError, match="no system 'one'; there are: none"):
        stored.read_classes("one")


def test_the_loser_of_a_race_commits_on_top(
    tmp_path: Path,
    corpus: CorpusTables,
    write_classes: Callable[[str, int], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = f"{tmp_path}/archive"
    ingest_discovery(url, corpus, {})
    one, two = write_classes("one", 3), write_classes("two", 4)
    both_ready = threading.Barrier(2)
    commit, raced = change.commit, set[int]()

    def together(storage: object, manifest: object) -> bool:
        if threading.get_ident() not in raced:
            raced.add(threading.get_ident())
            both_ready.wait(30)
        return commit(storage, manifest)

    monkeypatch.setattr(change, "commit", together)
    writers = [
        threading.Thread(target=ingest_discovery, args=(url, None, {name: file}))
        for name, file in (("one", one), ("two", two))
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    archive = open_discovery(url)
    assert archive.version == 3
    assert [each.system for each in archive.systems] == ["one", "two"]


def test_vacuum_removes_what_no_version_names(tmp_path: Path, corpus: CorpusTables) -> None:
    url = f"{tmp_path}/archive"
    ingest_discovery(url, corpus, {})
    orphan = tmp_path / "archive" / "tables" / "fragments-0.parquet"
    orphan.write_bytes(b"left by a writer that was stopped")
    assert vacuum(url, older_than_s=0) == ["tables/fragments-0.parquet"]
    assert not orphan.exists()
    assert len(open_discovery(url).tables.phones) == len(corpus.phones)


def test_the_content_hash_is_of_what_is_said(tmp_path: Path) -> None:
    text = "s0a 0.1 0.2 a\ns0a 0.2 0.35 b\n"
    texts = {
        "plain": text,
        "spread": "\n\n" + text.replace(" ", "  \t").replace("0.2", "0.2000"),
        "label": text.replace("b", "c"),
        "time": text.replace("0.35", "0.36"),
        "file": text.replace("s0a", "s0b"),
    }
    hashes = {}
    for name, content in texts.items():
        (tmp_path / name).write_text(content)
        hashes[name] = content_of(read_corpus_files(CorpusFiles(f"{tmp_path}/{name}", f"{tmp_path}/{name}")).phones)
    assert hashes["plain"] == hashes["spread"]
    assert len(set(hashes.values())) == 4


def test_the_content_hash_knows_no_codes(corpus: CorpusTables) -> None:
    column = corpus.phones["label"].combine_chunks()
    names = ["never said", *reversed(column.dictionary.to_pylist())]
    codes = np.array([names.index(label) for label in column.to_pylist()], np.int32)
    coded_otherwise = pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names))
    place = corpus.phones.column_names.index("label")
    other = corpus.phones.set_column(place, corpus.phones.schema.field(place), coded_otherwise)
    assert content_of(other) == content_of(corpus.phones)
