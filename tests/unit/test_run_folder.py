"""Folders of Parquet files as runs: one table, however it is divided, with the rows and the faults of its files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import swsdask as sws
from swsdask.execution.executor import SerialExecutor
from swsdask.formats.runs.parquet import parts_of
from swsdask.formats.runs.read import RunFile
from swsdask.model.errors import InputError, Problems
from swsdask.model.system_rows import SystemRows
from swsdask.nightly.inbox import look
from swsdask.places import stamps
from tests.small_evaluation import ECF, QUERIES, RTTM

ROWS = 24
TABLE = pa.table(
    {
        "query": [f"K{row % 2 + 1}" for row in range(ROWS)],
        "document": ["a"] * ROWS,
        "start": [row / 2 for row in range(ROWS)],
        "duration": [0.5] * ROWS,
        "score": [row / 8 for row in range(ROWS)],
        "decision": [row % 3 == 0 for row in range(ROWS)],
    }
)
BY_SYSTEM = TABLE.append_column("system", [["a" if row < 8 else "b" for row in range(ROWS)]])


def parts(folder: Path, name: str = "part.{}.parquet", table: pa.Table = TABLE, n: int = 12) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(n):
        begin, end = number * ROWS // n, (number + 1) * ROWS // n
        pq.write_table(table.slice(begin, end - begin), folder / name.format(number))
    return str(folder)


def rows(place: str, **options: Any) -> list[tuple[str, float]]:
    problems = Problems()
    pieces = list(RunFile(place, **options).read(problems))
    problems.raise_if_any()
    return [(piece.header.system, score) for piece in pieces for score in piece.score.tolist()]


WHOLE = [("run", row / 8) for row in range(ROWS)]


def test_the_rows_are_those_of_the_files_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = parts(tmp_path / "run.parquet")
    assert [Path(part).name for part in parts_of(folder)][9:] == [
        "part.9.parquet",
        "part.10.parquet",
        "part.11.parquet",
    ]
    assert rows(folder) == WHOLE
    assert rows(f"{folder}/") == WHOLE
    assert rows(folder, system="other") == [("other", score) for _, score in WHOLE]


def test_what_is_written_beside_parts_is_no_part(tmp_path: Path) -> None:
    folder = parts(tmp_path / "run.parquet")
    for name in ("_SUCCESS", "_metadata", ".part.0.parquet.crc"):
        (tmp_path / "run.parquet" / name).write_bytes(b"")
    (tmp_path / "run.parquet/_temporary").mkdir()
    pq.write_table(TABLE, tmp_path / "run.parquet/_temporary/part.0.parquet")
    assert rows(folder) == WHOLE


def test_folders_with_a_value_are_columns(tmp_path: Path) -> None:
    ds.write_dataset(
        BY_SYSTEM, tmp_path / "all", format="parquet", partitioning=["system", "query"], partitioning_flavor="hive"
    )
    assert sorted(rows(str(tmp_path / "all"))) == sorted(
        zip(BY_SYSTEM["system"].to_pylist(), BY_SYSTEM["score"].to_pylist(), strict=True)
    )
    assert sorted(rows(str(tmp_path / "all/system=b"))) == [("b", row / 8) for row in range(8, ROWS)]
    piece, *_ = RunFile(str(tmp_path / "all")).read(Problems())
    assert set(piece.queries) <= {"K1", "K2"}


def test_values_of_folders_are_text_unchanged(tmp_path: Path) -> None:
    parts(tmp_path / "run.parquet/query=007", table=TABLE.drop_columns(["query"]), n=1)
    parts(tmp_path / "run.parquet/query=a%2Fb", table=TABLE.drop_columns(["query"]), n=1)
    queries = {query for piece in RunFile(str(tmp_path / "run.parquet")).read(Problems()) for query in piece.queries}
    assert queries == {"007", "a/b"}
    parts(tmp_path / "run.parquet/query=__HIVE_DEFAULT_PARTITION__", table=TABLE.drop_columns(["query"]), n=1)
    with pytest.raises(InputError, match="expected a query; found a row without query in row 1"):
        rows(str(tmp_path / "run.parquet"))


@pytest.mark.parametrize("n_parts", [2, 3, 5, 12, 40])
@pytest.mark.parametrize("table", [TABLE, BY_SYSTEM])
def test_parts_that_are_read_elsewhere_are_the_whole(tmp_path: Path, table: pa.Table, n_parts: int) -> None:
    folder = parts(tmp_path / "run.parquet", table=table)
    parts(tmp_path / "run.parquet", "part.3{}.parquet", table.slice(0, 0), n=2)
    divided = RunFile(folder).parts(n_parts)
    assert 2 <= len(divided) <= n_parts
    problems = Problems()
    read = [(piece.header.system, score) for part in divided for piece in part.read(problems) for score in piece.score]
    assert not problems
    assert read == rows(folder)


def test_a_named_run_that_names_systems_is_not_divided(tmp_path: Path) -> None:
    folder = parts(tmp_path / "run.parquet", table=BY_SYSTEM)
    assert len(RunFile(folder, "named").parts(4)) == 1
    with pytest.raises(InputError, match="expected a table of one system; found a row of 'b' too in row 1"):
        rows(folder, system="named")
    assert len(RunFile(parts(tmp_path / "other.parquet"), "named").parts(4)) == 4


def faulty(folder: str, name: str, change: Callable[[pa.Table], pa.Table]) -> str:
    file = f"{folder}/{name}"
    pq.write_table(change(pq.read_table(file)), file)
    return file


def test_a_problem_names_the_file_and_its_row(tmp_path: Path) -> None:
    folder = parts(tmp_path / "run.parquet", n=6)
    missing = pa.array([1.0, None, 3.0, 4.0])
    file = faulty(folder, "part.4.parquet", lambda table: table.set_column(4, "score", missing))
    with pytest.raises(InputError) as raised:
        rows(folder)
    assert str(raised.value).startswith(f"{file}: expected a score; found a row without score in row 2.")


def test_all_files_have_the_same_columns(tmp_path: Path) -> None:
    folder = parts(tmp_path / "run.parquet", n=6)
    file = faulty(folder, "part.2.parquet", lambda table: table.drop_columns(["decision"]))
    with pytest.raises(InputError) as raised:
        rows(folder)
    assert str(raised.value) == (
        f"{file}: expected the columns query, document, start, duration, score, decision, as in the first file; "
        "found query, document, start, duration, score. Write all files of a table with the same columns."
    )


@pytest.mark.parametrize("log", ["_delta_log/0.json", ".hoodie/0.commit", "metadata/v1.metadata.json"])
def test_a_table_whose_log_says_which_files_count_is_refused(tmp_path: Path, reference: str, log: str) -> None:
    """Its folder keeps files that are in it no longer: their rows would be scored too."""
    folder = parts(tmp_path / "run.parquet")
    (tmp_path / "run.parquet" / log).parent.mkdir()
    (tmp_path / "run.parquet" / log).write_text("{}")
    for refused in (lambda: rows(folder), lambda: scores(reference, folder)):
        with pytest.raises(InputError) as raised:
            refused()
        assert str(raised.value) == (
            f"{folder}/{log}: expected a folder in which all Parquet files count; found a table of Delta Lake, Hudi or "
            "Iceberg. Write the rows that it has now as Parquet, to a file or another folder."
        )


@pytest.mark.parametrize("column", ["decision", "start"])
def test_files_that_are_read_elsewhere_have_these_columns_too(tmp_path: Path, column: str) -> None:
    folder = parts(tmp_path / "run.parquet")
    for number in range(6, 12):
        faulty(folder, f"part.{number}.parquet", lambda table: table.drop_columns([column]))
    divided = RunFile(folder).parts(2)
    assert len(divided) == 2
    problems = Problems()
    for part in divided:
        list(part.read(problems))
    assert f"{folder}/part.6.parquet: expected the columns" in str(next(iter(problems)))


def test_the_metadata_of_parts_say_nothing(tmp_path: Path) -> None:
    folder = parts(tmp_path / "run.parquet")
    for number in (0, 7):
        faulty(folder, f"part.{number}.parquet", lambda table: table.replace_schema_metadata({"system_id": "other"}))
    assert rows(folder) == WHOLE


def test_a_damaged_first_file_is_a_problem_however_it_is_divided(tmp_path: Path) -> None:
    folder = parts(tmp_path / "run.parquet")
    (tmp_path / "run.parquet/part.0.parquet").write_bytes(b"PAR1")
    assert len(RunFile(folder).parts(3)) == 1
    with pytest.raises(InputError, match=r"part\.0\.parquet: expected whole Parquet data"):
        rows(folder)


@pytest.mark.parametrize("name", ["notes.txt", "part.90.parquet"])
def test_a_file_that_is_no_part_is_a_problem_and_not_passed_over(tmp_path: Path, name: str) -> None:
    folder = parts(tmp_path / "run.parquet", n=6)
    (tmp_path / "run.parquet" / name).write_bytes(b"not Parquet")
    with pytest.raises(InputError, match=rf"{name}: expected whole Parquet data"):
        rows(folder)


def test_a_folder_without_parquet_files_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "run.parquet").mkdir()
    (tmp_path / "run.parquet/run.csv").write_text("query,document,start,duration,score\n")
    with pytest.raises(InputError, match=r"expected a file; found a folder\. Name a file in it\."):
        rows(str(tmp_path / "run.parquet"))


@pytest.fixture
def reference(tmp_path: Path) -> str:
    folder = tmp_path / "reference"
    folder.mkdir()
    for name, content in {"x.ecf.xml": ECF, "x.rttm": RTTM, "x.kwlist.xml": QUERIES}.items():
        (folder / name).write_text(content)
    return str(folder)


def scored(reference: str, runs: Any, **options: Any) -> SystemRows:
    return sws.score(reference, runs=runs, executor=SerialExecutor(), **options).score_rows


def scores(reference: str, runs: Any, **options: Any) -> bytes:
    return b"".join(scored(reference, runs, **options).parts())


@pytest.mark.parametrize("buckets", [None, 3])
def test_numbers_are_those_of_one_file(tmp_path: Path, reference: str, buckets: int | None) -> None:
    pq.write_table(TABLE, tmp_path / "run.parquet")
    expected = scores(reference, str(tmp_path / "run.parquet"))
    folder = parts(tmp_path / "parts", "{}.parquet")
    assert scores(reference, {"run": folder}, buckets=buckets) == expected
    faulty(folder, "7.parquet", lambda table: table.set_column(4, "score", pa.array([-1.0] * 2)))
    assert scores(reference, {"run": folder}, buckets=buckets) != expected
    (tmp_path / "run.parquet").unlink()
    parts(tmp_path / "run.parquet")
    assert scores(reference, tmp_path / "run.parquet", buckets=buckets) == expected


@pytest.mark.parametrize(
    "name", ["part.{}.parquet", "part-0000{}-c0ffee.snappy.parquet", "part-{}.parquet", "{}.parquet"]
)
def test_the_names_of_parts_say_that_a_folder_is_one_table(tmp_path: Path, reference: str, name: str) -> None:
    folder = parts(tmp_path / "detections", name, BY_SYSTEM)
    if name == "{}.parquet":
        with pytest.raises(InputError, match="the parts of one run in Parquet by their folder, as NAME=FOLDER"):
            scores(reference, folder)
        (tmp_path / "detections/_SUCCESS").touch()
    assert scored(reference, folder).systems == ["a", "b"]


def test_a_folder_of_runs_may_have_tables_that_are_folders(tmp_path: Path, reference: str) -> None:
    parts(tmp_path / "runs/a.parquet")
    pq.write_table(TABLE, tmp_path / "runs/b.parquet")
    (tmp_path / "runs/apart").mkdir()
    for runs in ("runs", "runs/*.parquet"):
        assert scored(reference, str(tmp_path / runs)).systems == ["a", "b"]


class LazyFrame:
    """As lazy tables are: they write themselves, and export nothing."""

    def __iter__(self) -> Iterator[str]:
        return iter(TABLE.column_names)

    def to_parquet(self, folder: str) -> None:
        """Write it."""


@pytest.mark.parametrize("runs", [LazyFrame(), [LazyFrame()], {"run": LazyFrame()}])
def test_a_table_that_is_still_to_be_computed_is_to_be_written_first(reference: str, runs: Any) -> None:
    with pytest.raises(
        InputError, match=r"a LazyFrame of tests that is still to be computed\. Write it as Parquet and give"
    ):
        scored(reference, runs)


def test_a_reference_may_be_such_a_folder(tmp_path: Path) -> None:
    words = pa.table({"query": ["q1", "q2"], "document": ["d1", "d1"], "start": [1.0, 2.0], "duration": [0.5, 0.5]})
    (tmp_path / "words.parquet").mkdir()
    for number in range(2):
        pq.write_table(words.slice(number, 1), tmp_path / f"words.parquet/part.{number}.parquet")
    documents = pa.table({"document": ["d1"], "duration": [60.0]})
    first, second = (
        sws.open(documents=documents, occurrences=occurrences).archive.words
        for occurrences in (words, str(tmp_path / "words.parquet"))
    )
    assert len(first) == 2
    assert first.equals(second)


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "SETTLED_S", 0.0)


def ingested(archive: Path, reference: str, folder: str, **options: Any) -> str:
    sws.ingest(str(archive), reference, runs={"a": folder}, **options)
    (run,) = sws.open(str(archive)).archive.runs
    return run.content


@pytest.mark.usefixtures("settled")
def test_a_folder_is_ingested_again_when_one_of_its_files_changes(tmp_path: Path, reference: str) -> None:
    folder, archive = parts(tmp_path / "a.parquet", n=6), tmp_path / "archive"
    first = ingested(archive, reference, folder)
    assert ingested(archive, reference, folder) == first
    faulty(folder, "part.3.parquet", lambda table: table.slice(1))
    with pytest.raises(sws.ArchiveError, match="--replace"):
        ingested(archive, reference, folder)
    second = ingested(archive, reference, folder, replace=True)
    (tmp_path / "a.parquet/part.5.parquet").unlink()
    third = ingested(archive, reference, folder, replace=True)
    assert len({first, second, third}) == 3
    whole = parts(tmp_path / "whole")
    assert ingested(archive, reference, whole, replace=True) == first


@pytest.mark.usefixtures("settled")
def test_a_table_that_is_a_folder_arrives_as_one_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder, other = parts(tmp_path / "inbox/a.parquet", n=3), parts(tmp_path / "inbox/b", n=3)
    pq.write_table(TABLE, tmp_path / "inbox/c.parquet")
    caplog.set_level(logging.WARNING)
    for inbox in (f"{tmp_path}/inbox", f"{tmp_path}/inbox/*/*.parquet"):
        arrived = {each.system: each for each in look([inbox])}
        assert arrived["a"].url == folder
        assert arrived["b"].url == other
        assert set(arrived) == {"a", "b", "c"} - ({"c"} if "*" in inbox else set())
    before = {each.system: each.stamp for each in look([f"{tmp_path}/inbox"])}
    faulty(folder, "part.1.parquet", lambda table: table.slice(1))
    after = {each.system: each.stamp for each in look([f"{tmp_path}/inbox"])}
    assert [system for system in before if before[system] != after[system]] == ["a"]
    assert not caplog.messages
    (tmp_path / "inbox/a.parquet/part.3.parquet").symlink_to(tmp_path / "inbox/c.parquet")
    assert [each.system for each in look([f"{tmp_path}/inbox"])] == ["b", "c"]
    assert caplog.messages[-1].startswith("skipped, a table with links or special files")


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("place", ["inbox", "inbox/*", "inbox/*/*/*.parquet"])
def test_a_divided_table_arrives_as_one_run(tmp_path: Path, place: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    for name in ("a", "b.parquet"):
        for day in (1, 2):
            (folder := tmp_path / f"inbox/{name}/day={day}").mkdir(parents=True)
            pq.write_table(TABLE.slice(10 * day, 10), folder / "part.0.parquet")
    found = look([f"{tmp_path}/{place}"])
    assert [(each.system, each.url) for each in found] == [
        ("a", f"{tmp_path}/inbox/a"),
        ("b", f"{tmp_path}/inbox/b.parquet"),
    ]
    pq.write_table(TABLE, tmp_path / "inbox/a/day=2/part.1.parquet")
    assert [each == again for each, again in zip(found, look([f"{tmp_path}/{place}"]), strict=True)] == [False, True]
    assert not caplog.messages
    (tmp_path / "inbox/a/day=2/part.2.parquet").symlink_to(tmp_path / "inbox/a/day=2/part.1.parquet")
    assert [each.system for each in look([f"{tmp_path}/{place}"])] == ["b"]
    assert caplog.messages[-1] == f"skipped, a table with links or special files: {tmp_path}/inbox/a"


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("rest", ["", "/*.parquet"])
def test_an_inbox_that_is_named_as_a_part_of_a_table_is_none(tmp_path: Path, rest: str) -> None:
    (folder := tmp_path / "runs/date=2026-11-29").mkdir(parents=True)
    for name in ("a", "b"):
        pq.write_table(TABLE, folder / f"{name}.parquet")
    assert [each.system for each in look([f"{folder}{rest}"])] == ["a", "b"]


@pytest.mark.usefixtures("settled")
def test_folders_of_systems_may_be_named_as_parts(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (folder := tmp_path / f"inbox/system={name}").mkdir(parents=True)
        pq.write_table(TABLE, folder / "run.parquet")
    assert [each.system for each in look([f"{tmp_path}/inbox"])] == ["system=a", "system=b"]


@pytest.mark.usefixtures("settled")
def test_a_table_in_the_folder_of_its_system_arrives(tmp_path: Path) -> None:
    table = parts(tmp_path / "inbox/mine/2026-11-29.parquet", n=3)
    (found,) = look([f"{tmp_path}/inbox"])
    assert (found.system, found.url) == ("mine", table)


def test_calibrated_scores_of_a_folder_are_one_file(tmp_path: Path, reference: str) -> None:
    folder = parts(tmp_path / "runs/a.parquet")
    fitted = sws.calibrate(reference, folder, method="pav")
    (applied,) = sws.apply_calibration(fitted, folder, tmp_path / "out")
    assert applied.rows == ROWS
    assert pq.read_table(tmp_path / "out/a.parquet").num_rows == ROWS


def test_in_a_store(tmp_path: Path, reference: str) -> None:
    expected = scores(reference, parts(tmp_path / "run.parquet"))
    filesystem = fsspec.filesystem("memory")
    for url in ("memory://folders/run.parquet", "memory://folders/detections"):
        filesystem.put(str(tmp_path / "run.parquet"), url, recursive=True)
        given = url if url.endswith(".parquet") else {"run": url}
        assert scores(reference, given) == expected
    filesystem.put(str(tmp_path / "run.parquet"), "memory://folders/v1.2", recursive=True)
    assert scores(reference, {"run": "memory://folders/v1.2"}) == expected
    (tmp_path / "run.parquet/part.1.parquet").unlink()
    filesystem.rm("/folders/run.parquet/part.1.parquet")
    assert scores(reference, "memory://folders/run.parquet") == scores(reference, str(tmp_path / "run.parquet"))
    filesystem.rm("/folders", recursive=True)
