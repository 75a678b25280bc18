"""Archives on storage: what is written, how it is cut and encoded, and what is read back."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import swsdask as sws
from swsdask.archive import store
from swsdask.archive.cells import StoredCell
from swsdask.archive.cleaning import vacuum
from swsdask.archive.ingest import write_runs
from swsdask.archive.memory import read_into_memory
from swsdask.archive.occurrences import finder_of
from swsdask.archive.protocols import FindRule, Run
from swsdask.archive.reference import build_reference
from swsdask.archive.storage import Storage
from swsdask.archive.store import is_archive, open_archive
from swsdask.archive.versions import Layout, buckets_of
from swsdask.model.errors import ArchiveError, InputError, SettingsError
from swsdask.model.schemas import RunHeader
from swsdask.model.settings import EvaluationSettings
from tests.archives import (
    COLUMNS,
    SETTINGS,
    TABLES,
    Pieces,
    Row,
    as_rows,
    detections,
    excerpt,
    piece,
    queries,
    rewritten,
    rows,
    source,
    tables,
    without_hashes,
    write,
)
from tests.engines import Seen


@pytest.fixture(params=["local", "memory"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "archive") if request.param == "local" else f"memory://{tmp_path}/archive"


def test_what_is_written_is_read_back(url: str) -> None:
    header = RunHeader("a", (-60.0, 60.0), {"language": "x"})
    sources = [Pieces((piece(rows(300), header=header, rounded=3),)), source(rows(200, 1), "b"), source([], "empty")]
    memory = read_into_memory(TABLES, sources, SETTINGS)
    write(url, *sources)
    archive = open_archive(url)
    assert (archive.version, [run.system for run in archive.runs]) == (1, ["a", "b", "empty"])
    assert archive.runs == memory.runs
    assert archive.inputs == memory.inputs
    for name in ("documents", "queries", "words", "segments"):
        assert getattr(archive, name).to_pylist() == getattr(TABLES, name).to_pylist()
        assert getattr(archive, name).schema.metadata == getattr(TABLES, name).schema.metadata
    for system in ("a", "b", "empty"):
        assert sorted(as_rows(detections(archive, system))) == sorted(as_rows([memory.detections[system]]))
    assert build_reference(archive, SETTINGS).targets.tolist() == build_reference(memory, SETTINGS).targets.tolist()


def test_occurrences_are_stored_and_found_again_by_another_rule(url: str) -> None:
    archive = write(url)
    stored = archive.occurrences(FindRule(5000))
    assert stored.to_pylist() == read_into_memory(TABLES, [], SETTINGS).occurrences(FindRule(5000)).to_pylist()
    assert stored.num_rows == 2
    archive.storage.remove(archive.manifest.tables["words"].file)
    assert open_archive(url).occurrences(FindRule(5000)).num_rows == 2
    with pytest.raises(ArchiveError, match="found none"):
        open_archive(url).occurrences(FindRule(30))


UNORDERED = """LEXEME a 1 30 0.5 x lex s1 <NA>
LEXEME a 1 1 0.5 z lex s1 <NA>
LEXEME a 1 3 0.5 y lex s1 <NA>
"""
OVERLAPPING = """LEXEME a 1 16 1 zx lex s1 <NA>
LEXEME a 1 16.2 0.2 yz lex s1 <NA>
LEXEME a 1 30 0.5 x lex s1 <NA>
"""


@pytest.mark.parametrize(
    ("compat", "rttm", "finds", "text_filters"),
    [
        ("kwseval", UNORDERED, "x y", []),
        ("stdeval", UNORDERED, "x z", []),
        ("none", OVERLAPPING, "x y", ["charsplit"]),
    ],
)
def test_an_occurrence_that_ends_before_it_starts_is_no_damage(
    tmp_path: Path, compat: str, rttm: str, finds: str, text_filters: list[str]
) -> None:
    """An archive with such an occurrence is scored as the files are."""
    folder, archive = tmp_path, tmp_path / "archive"
    (folder / "ref.rttm").write_text(rttm)
    (folder / "ecf.xml").write_text(
        '<ecf source_signal_duration="100" language="english" version="1">'
        '<excerpt audio_filename="a.sph" channel="1" tbeg="0" dur="100" source_type="bnews"/></ecf>'
    )
    (folder / "kwlist.xml").write_text(
        '<kwlist ecf_filename="e" version="1" language="english" encoding="UTF-8" compareNormalize="">'
        f'<kw kwid="K0"><kwtext>{finds}</kwtext></kw><kw kwid="K1"><kwtext>x</kwtext></kw></kwlist>'
    )
    run = folder / "run.tsv"
    run.write_text(
        "query\tdocument\tstart\tduration\tscore\tdecision\nK0\ta\t16.5\t0.2\t0.5\tYES\nK1\ta\t30\t0.5\t1\tYES\n"
    )
    reference = {"ecf": folder / "ecf.xml", "rttm": folder / "ref.rttm", "queries": folder / "kwlist.xml"}
    asked = {"evaluation": {"find_gap_s": 2, "text_filters": text_filters}}
    options: dict[str, Any] = {"preset": "openkws13", "compat": compat, "settings": asked}
    sws.ingest(archive, **reference, **options, runs={"s": run})
    found = sws.open(archive).table("occurrences")
    assert any(row["end"] < row["start"] for row in found.to_pylist())
    of_files = sws.score(sws.open(**reference, **options), runs={"s": run}, alignment=True)
    of_archive = sws.score(archive, alignment=True)
    for table in ("scores", "curves", "alignment"):
        assert repr(of_files.to_arrow(table).to_pylist()) == repr(of_archive.to_arrow(table).to_pylist())
    assert sws.verify(archive).damaged == {}

    without_hashes(archive)
    (file,) = (archive / "tables").glob("occurrences-*")
    sound = pq.read_table(file)
    for column, value, told in (
        ("first_word_end", 299_999, "first_word_end before start in a row"),
        ("last_word_start", 305_001, "end before last_word_start in a row"),
        ("end", 1, "end before last_word_start in a row"),
    ):
        rows = sound.to_pylist()
        rows[-1][column] = value
        pq.write_table(pa.Table.from_pylist(rows, sound.schema), file)
        with pytest.raises(ArchiveError, match=told):
            sws.score(archive, cache=False)


def test_another_gap_gives_other_occurrences(url: str) -> None:
    assert write(url).occurrences(FindRule(30)).num_rows == 1


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
def test_fragments_are_encoded_sorted_and_cut_between_pairs(tmp_path: Path, codec: str) -> None:
    layout = Layout(buckets=4, rows_per_group=60, rows_per_fragment=250, rows_in_memory=100, codec=codec)
    archive = write(str(tmp_path), source(rows(1000)), layout=layout)
    (stored,) = archive.stored_runs
    assert len(stored.fragments) > 4
    seen: set[tuple[int, int]] = set()
    for fragment in stored.fragments:
        assert fragment.file.file.startswith(f"detections/{stored.run.content}/")
        file = pq.ParquetFile(tmp_path / fragment.file.file)
        assert [file.metadata.row_group(g).num_rows for g in range(file.num_row_groups)] == list(fragment.groups)
        for group in range(file.num_row_groups):
            metadata = file.metadata.row_group(group)
            encodings = {metadata.column(i).path_in_schema: metadata.column(i).encodings for i in range(8)}
            assert "DELTA_BINARY_PACKED" in encodings["start"]
            assert "DELTA_BINARY_PACKED" in encodings["duration"]
            assert "BYTE_STREAM_SPLIT" in encodings["score"]
            assert all("RLE_DICTIONARY" in encodings[n] for n in ("query", "document", "channel", "decision", "inside"))
            assert all(metadata.column(i).is_stats_set for i in range(8))
            assert all(metadata.column(i).compression == codec.upper() for i in range(8))
            table = file.read_row_group(group).to_pydict()
            pairs = list(zip(table["query"], table["document"], strict=True))
            keys = list(zip(*(table[n] for n in COLUMNS[:5]), [-s for s in table["score"]], strict=True))
            assert keys == sorted(keys)
            assert seen.isdisjoint(pairs)
            seen.update(pairs)
    assert sum(sum(fragment.groups) for fragment in stored.fragments) == 1000


def test_small_runs_have_one_file(tmp_path: Path) -> None:
    archive = write(str(tmp_path), source(rows(500)))
    assert [len(stored.fragments) for stored in archive.stored_runs] == [1]


def test_one_query_and_one_document_hold_everything(url: str) -> None:
    layout = Layout(buckets=3, rows_per_group=50, rows_per_fragment=100, rows_in_memory=70)
    one_query, one_pair = rows(700, queries_used=1), rows(400, queries_used=1, documents_used=1)
    archive = write(url, source(one_query), source(one_pair, "b"), layout=layout)
    memory = read_into_memory(TABLES, [source(one_query), source(one_pair, "b")], SETTINGS)
    assert len(archive.stored_runs[0].fragments) == 3
    assert [fragment.groups for fragment in archive.stored_runs[1].fragments] == [(400,)]
    for system in ("a", "b"):
        assert as_rows(detections(archive, system)) == as_rows([memory.detections[system]])


def test_cells_are_whole_row_groups_up_to_the_rows_of_a_task(url: str) -> None:
    layout = Layout(buckets=4, rows_per_group=60, rows_per_fragment=250)
    archive = write(url, source(rows(1000)), layout=layout)
    for rows_per_task in (1, 100, 130, 10**6):
        cells = list(archive.cells("a", rows_per_task))
        assert sum(cell.rows for cell in cells) == 1000
        assert all(cell.rows <= rows_per_task or rows_per_task == 1 for cell in cells)
        assert [cell.rows for cell in cells] == [len(cell.read([])) for cell in cells]
    assert len(list(archive.cells("a", 10**6))) == 1
    with pytest.raises(ArchiveError, match="no run of 'z'; there are: a"):
        list(archive.cells("z", 1))


def test_cells_are_small_picklable_and_read_only_what_is_asked(url: str) -> None:
    archive = write(url, source(rows(300)))
    (cell,) = archive.cells("a", 10**6)
    assert isinstance(cell, StoredCell)
    pickled = pickle.dumps(cell)
    assert len(pickled) < 1000
    read = pickle.loads(pickled).read(["decision"])
    assert read.start is None
    assert (read.query.dtype, read.score.dtype, read.decision.dtype) == (np.int32, np.float64, np.int8)
    assert read.query.flags.c_contiguous
    assert read.decision.tolist() == [1] * 300
    assert url in cell.source


def test_constant_columns_are_filled_without_being_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = write(str(tmp_path), source(rows(300, queries_used=1)))
    asked: list[str] = []
    read_row_group = pq.ParquetFile.read_row_group

    def spy(self: pq.ParquetFile, i: int, columns: list[str], **more: Any) -> Any:
        asked.extend(columns)
        return read_row_group(self, i, columns=columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", spy)
    read = detections(archive, "a")
    assert set(asked) == {"document", "start", "duration", "score", "inside"}
    memory = read_into_memory(TABLES, [source(rows(300, queries_used=1))], SETTINGS)
    assert as_rows(read) == as_rows([memory.detections["a"]])


def test_the_bucket_of_a_query_is_stable() -> None:
    """A changed hash makes other buckets than those of archives that are there: then HASH_VERSION must change too."""
    assert buckets_of(["q1", "q2", "SWS-0001", "été"], 64).tolist() == [13, 0, 21, 21]


def test_a_repeated_ingest_is_nothing(url: str) -> None:
    write(url, source(rows(300)))
    before = Storage(url).files(below=True)
    again = write(url, Pieces((piece(rows(300)[200:], first_line=9), piece(rows(300)[:200])), "elsewhere.xml"))
    assert again.version == 1
    assert Storage(url).files(below=True) == before


def test_a_changed_run_is_an_error_unless_it_is_to_be_replaced(url: str) -> None:
    write(url, source(rows(300)), source(rows(50), "b"))
    with pytest.raises(ArchiveError, match="a run of 'a' with other content is there"):
        write(url, source(rows(299)), source(rows(10), "c"))
    assert [run.system for run in open_archive(url).runs] == ["a", "b"]
    assert write(url, source(rows(299)), replace=True).version == 2
    assert [run.rows for run in open_archive(url).runs] == [299, 50]
    assert [run.rows for run in open_archive(url, 1).runs] == [300, 50]
    assert len(detections(open_archive(url, 1), "a")[0]) == 300


def test_another_reference_is_an_error(url: str) -> None:
    write(url, source(rows(30)))
    other = tables([excerpt("d0", 0, 901)], queries({"q0": "w"}))
    with pytest.raises(ArchiveError, match="found one that differs in ecf, rttm, queries"):
        write_runs(Storage(url), other, [], SETTINGS)
    assert write_runs(Storage(url), None, [source(rows(20), "b")], SETTINGS).version == 2


@pytest.mark.parametrize("is_there", [True, False])
def test_wrong_input_changes_nothing(url: str, is_there: bool) -> None:
    if is_there:
        write(url, source(rows(30)))
    before = Storage(url).files(below=True)
    with pytest.raises(InputError) as caught:
        write(url, Pieces((piece(rows(5), "b"),), "b", wrong=(4,)), source([("nope", "d0", 1, 0, 1, 0.5, 1)], "c"))
    assert [problem.line for problem in caught.value.problems] == [4, 2]
    assert Storage(url).files(below=True) == before


def test_problems_beyond_those_kept_are_counted(url: str) -> None:
    with pytest.raises(InputError) as caught:
        write(url, Pieces((piece(rows(5)),), wrong=tuple(range(1, 1501))), Pieces((), "b.tsv", wrong=(7,)))
    assert caught.value.total == 1501


def test_the_folder_that_is_missing_above_an_archive_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "elsewhere"
    with pytest.raises(ArchiveError, match=rf"versions found: none: there is no folder {missing}\. Ingest first"):
        open_archive(str(missing / "archive"))


def test_no_archive(url: str) -> None:
    assert not is_archive(url)
    with pytest.raises(ArchiveError, match="versions found: none"):
        open_archive(url)
    with pytest.raises(ArchiveError, match="Give ECF"):
        write_runs(Storage(url), None, [source(rows(3))], SETTINGS)
    write(url)
    assert is_archive(url)
    with pytest.raises(ArchiveError, match=r"manifest-00000007.json; versions found: 1. Name one of these"):
        open_archive(url, 7)


@pytest.mark.parametrize("table", ["documents", "occurrences", "runs", None])
def test_lost_and_damaged_files_are_reported_with_what_to_do(tmp_path: Path, table: str | None) -> None:
    archive = write(str(tmp_path), source(rows(300)))

    def read() -> None:
        opened = open_archive(str(tmp_path))
        for name in ("documents", "queries", "words", "segments", "runs"):
            getattr(opened, name)
        opened.occurrences(FindRule(opened.manifest.find_gap, opened.manifest.text_filters))
        detections(opened, "a")

    read()
    (cell,) = archive.cells("a", 1000)
    file = tmp_path / (archive.manifest.tables[table].file if table else cell.groups[0][0])
    whole = file.read_bytes()
    remedy = (
        r"Restore it from a copy of the archive \(`swsdask verify ARCHIVE --repair COPY`\), or ingest the reference "
    )
    remedy += r"and the runs into a new one\.$"
    for damaged in (whole[: len(whole) // 2], b"PAR1 no more", b""):
        file.write_bytes(damaged)
        with pytest.raises(ArchiveError, match=rf"{file.name}: expected a Parquet file.*; found one .*{remedy}"):
            read()
    file.unlink()
    with pytest.raises(
        ArchiveError, match=rf"{file.name}: expected a Parquet file.*; found none\. .*open the archive again\. {remedy}"
    ):
        read()


def test_vacuum_removes_what_no_version_names(url: str) -> None:
    write(url, source(rows(300)))
    write(url, source(rows(20)), replace=True)
    storage = Storage(url)
    before = storage.files(below=True)
    for name in ("detections/ab/orphan.parquet", "tables/orphan.parquet", "temporary/ab/orphan.arrow", "notes.txt"):
        storage.write(name, b"x")
    removed = vacuum(url, older_than_s=0)
    assert removed == ["detections/ab/orphan.parquet", "tables/orphan.parquet", "temporary/ab/orphan.arrow"]
    assert storage.files(below=True) == sorted([*before, "notes.txt"])
    assert [len(detections(open_archive(url, version), "a")[0]) for version in (1, 2)] == [300, 20]


def test_progress_reports_what_was_done(url: str) -> None:
    seen = Seen()
    layout = Layout(buckets=4, rows_per_group=5, rows_per_fragment=10)
    write(url, source(rows(30)), source(rows(20), "b"), layout=layout, progress=seen)
    assert [phase for phase, *_ in seen.phases] == ["reading runs", "writing runs"]
    assert seen.phases[1] == ["writing runs", 50, 50]


class Backwards:
    """An executor that takes the items from the last to the first."""

    workers = 1

    def share(self, value: Any) -> Any:
        return pickle.dumps(value)

    def check(self, places: Sequence[str]) -> None:
        """Every place is in sight."""

    def map(self, function, items, shared=None, *, label=str, done=None, name="map"):
        found = []
        for item in reversed(list(items)):
            found.append(pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(item)), pickle.loads(shared)))
            if done:
                done(item)
        return reversed(found)


def test_an_executor_changes_nothing(tmp_path: Path) -> None:
    sources = [source(rows(300)), Pieces((piece(rows(100, 1)),), "a.tsv"), source(rows(20), "b")]
    layout = Layout(buckets=4, rows_per_group=30, rows_per_fragment=60)
    here = write(str(tmp_path / "here"), *sources, layout=layout)
    there = write(str(tmp_path / "there"), *sources, layout=layout, executor=Backwards())
    assert here.runs == there.runs
    for system in ("a", "b"):
        assert as_rows(detections(here, system)) == as_rows(detections(there, system))


def test_ids_are_never_in_paths(tmp_path: Path) -> None:
    hostile = "../../x"
    archive = write(str(tmp_path / "archive"), Pieces((piece(rows(30), hostile),)))
    assert [run.system for run in archive.runs] == [hostile]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["archive"]


def test_a_manifest_cannot_lead_out_of_the_archive(tmp_path: Path) -> None:
    write(str(tmp_path / "archive"))
    manifest = tmp_path / "archive" / "manifest-00000001.json"
    for hostile in ("../secret.parquet", "/etc/passwd", "tables/../../secret"):
        rewritten(manifest, lambda said, to=hostile: said["tables"]["documents"].update(file=to))
        with pytest.raises(ArchiveError, match="leads out of the archive"):
            _ = open_archive(str(tmp_path / "archive")).documents


def test_a_manifest_cannot_have_more_buckets_than_an_archive(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="buckets is 1048577; expected a whole number, from 1 to 1,048,576"):
        Layout(buckets=(1 << 20) + 1)
    write(str(tmp_path / "archive"))
    for buckets in (0, (1 << 20) + 1, 10**30):
        rewritten(tmp_path / "archive/manifest-00000001.json", lambda said, to=buckets: said.update(buckets=to))
        with pytest.raises(ArchiveError, match="not a manifest of an archive: buckets"):
            open_archive(str(tmp_path / "archive"))


def test_runs_survive_a_round_trip_with_odd_values(url: str) -> None:
    undecided: list[Row] = [(*row[:6], -1) for row in rows(5)]
    odd: list[Row] = [("q1", "dé", 1, 0, 1, 1e-300, -1), ("q&", "d0", 1, 0, 1, 5e300, -1)]
    sources = [Pieces((piece([*odd, *undecided], "sys <1> é", header=RunHeader("sys <1> é", None, {"k=": "v\n"})),))]
    settings = EvaluationSettings(unknown_documents="outside", unknown_queries="drop")
    write_runs(Storage(url), TABLES, sources, settings)
    (run,) = open_archive(url).runs
    assert isinstance(run, Run)
    assert (run,) == read_into_memory(TABLES, sources, settings).runs
    assert (run.unknown_documents, run.unknown_queries, run.has_decisions) == ({"dé": 1}, {"q&": 1}, False)


def test_occurrences_of_an_earlier_rule_are_found_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = write(url)
    stored = open_archive(url)
    rule = FindRule(5000)
    assert stored.manifest.finder == finder_of(rule)
    monkeypatch.setattr(store, "find_occurrences", lambda *_: "found again")
    assert stored.occurrences(rule).equals(written.occurrences(rule))
    assert stored.occurrences(rule._replace(find_gap=4999)) == "found again"
    assert stored.occurrences(rule._replace(finder="kwseval")) == "found again"
    monkeypatch.setattr(store, "finder_of", lambda rule: "another")
    assert stored.occurrences(rule) == "found again"
