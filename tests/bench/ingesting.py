"""Files to a committed archive, over what must be done at least, over DuckDB and Polars, and on two workers.

Theirs for scale: `pyarrow.csv` makes columns of a text table and checks nothing; the compiled scan of XML makes the
columns that ingest makes of it; Parquet is read and written again. DuckDB and Polars turn a text table into Parquet
that is sorted by a bucket of the query, query and document, as an archive is. Every side has one thread.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

import swsdask as sws
from swsdask.archive.versions import BUCKETS, Layout
from swsdask.execution.open import open_executor
from swsdask.formats.runs.write import convert
from swsdask.model.settings import EngineSettings
from tests.bench.cost import Cost, cost, in_turn
from tests.bench.data import Data
from tests.bench.table import Row
from tests.bench.workers import Worked, peak_of_workers
from tests.bench.xml_rows import read, write_xml

ROWS = 2_000_000
FILES = 25


def rows(data: Data) -> Iterator[Row]:
    """CPU seconds of ingesting one file of each format, ours over theirs; wall-clock seconds of two workers."""
    n = data.rows(ROWS)
    reference, tsv = table_of_text(data.folder / "ingest", n)
    files = {ending: f"{tsv.removesuffix('tsv')}{ending}" for ending in ("tsv", "csv", "parquet", "kwslist.xml")}
    files["xml"] = files.pop("kwslist.xml")
    for ending in ("csv", "parquet"):
        convert(files["xml"], files[ending])
    floors = {
        "tsv": ("pyarrow.csv", _read_text, 1.6),
        "csv": ("pyarrow.csv", _read_text, 1.6),
        "xml": ("the compiled scan", read, 1.5),
        "parquet": ("pyarrow, read and written", _rewrite, 2.0),
    }
    ours: dict[str, Cost] = {}
    for ending, (over, work, most) in floors.items():
        ours[ending], theirs = in_turn((_ingested, reference, files[ending]), (work, files[ending]))
        speed = n / ours[ending].cpu / 1e6
        what = f"{ending.upper()} to archive, {n:,} detections: {speed:.1f} M rows/s"
        yield _row(what, ours[ending], over, theirs, most=most)
        if ending == "xml":
            yield Row("M rows/s and core, from XML", speed, "at least", 3.0, speed / 3.0, unit="M rows/s", least=1.0)
    for name, peer in (("DuckDB", _in_duckdb), ("Polars", _in_polars)):
        theirs = cost(peer, files["csv"], repeats=1)
        what = f"CSV to clustered Parquet, {n:,} detections"
        yield _row(what, ours["csv"], f"{name}, sorted", theirs, least=5.0, inverse=True)
    yield from _on_two_workers(reference, files["tsv"], n)


def _row(
    what: str,
    ours: Cost,
    over: str,
    theirs: Cost,
    *,
    least: float | None = None,
    most: float | None = None,
    inverse: bool = False,
) -> Row:
    ratio = theirs.cpu / ours.cpu if inverse else ours.cpu / theirs.cpu
    return Row(
        what, ours.cpu, over, theirs.cpu, ratio, least=least, most=most, peak=ours.peak, peak_of_theirs=theirs.peak
    )


def _on_two_workers(reference: str, file: str, n: int) -> Iterator[Row]:
    """Several files side by side, and one file that is cut."""
    one = repeated(file, FILES)
    folder = one.parent
    head, _, body = Path(file).read_bytes().partition(b"\n")
    many = [folder / f"system{number}.tsv" for number in range(FILES)]
    for number, each in enumerate(many):
        each.write_bytes(head + b"\n" + body.replace(b"system\t", b"system%d\t" % number))
    for what, files in {f"{FILES} files": many, "one file": [one]}.items():
        for kind in ("threads", "processes"):
            one, two = (
                cost(_on_workers, reference, [*map(str, files)], kind, workers, repeats=1).result for workers in (1, 2)
            )
            label = f"2 {kind}, {what}, {FILES * n:,} detections in TSV, wall-clock time"
            ratio = one.wall / two.wall
            yield Row(label, two.wall, "1", one.wall, ratio, least=1.7, peak=two.peak, peak_of_theirs=one.peak)
    shutil.rmtree(folder)


def table_of_text(folder: Path, n_rows: int) -> tuple[str, str]:
    """The folder of an evaluation, and a TSV of one system beside the XML that it is made from."""
    xml = write_xml(folder, n_rows)
    tsv = f"{xml.removesuffix('.kwslist.xml')}.tsv"
    convert(xml, tsv)
    return str(folder), tsv


def repeated(file: str, times: int) -> Path:
    """A text table with the rows of `file` again and again, in a folder of its own."""
    folder = Path(file).parent / "repeated"
    folder.mkdir()
    head, _, body = Path(file).read_bytes().partition(b"\n")
    with (folder / "one.tsv").open("wb") as together:
        together.write(head + b"\n")
        for _ in range(times):
            together.write(body)
    return folder / "one.tsv"


def _ingest(reference: str, files: list[str], executor: sws.Executor | None = None) -> None:
    archive = Path(files[0]).with_name("archive")
    shutil.rmtree(archive, ignore_errors=True)
    sws.ingest(archive, reference, runs=files, executor=executor)


def _ingested(reference: str, file: str) -> Callable[[], None]:
    pa.set_cpu_count(1)
    _ingest(reference, [file])
    return lambda: _ingest(reference, [file])


def _on_workers(
    reference: str, files: list[str], kind: Literal["threads", "processes"], workers: int
) -> Callable[[], Worked]:
    """Ingests on workers that have started and have ingested once before; the shorter of two times."""

    def step() -> Worked:
        walls = []
        with open_executor(EngineSettings(executor=kind, workers=workers)) as executor:
            for _ in range(3):
                began = time.perf_counter()
                _ingest(reference, files, executor)
                walls.append(time.perf_counter() - began)
            peak = peak_of_workers(executor, workers)
        return Worked(min(walls[1:]), peak)

    return step


def _read_text(file: str) -> Callable[[], int]:
    """Columns of the values that pyarrow sees in the text, in one thread."""
    parsing = pa_csv.ParseOptions(delimiter="\t" if file.endswith(".tsv") else ",")
    return lambda: pa_csv.read_csv(file, pa_csv.ReadOptions(use_threads=False), parsing).num_rows


def _rewrite(file: str) -> Callable[[], None]:
    """The table in one row group of every million rows, compressed as an archive is."""
    pa.set_cpu_count(1)

    def step() -> None:
        table = pq.read_table(file, use_threads=False)
        pq.write_table(table, f"{file}.again", compression=Layout.codec, row_group_size=Layout.rows_per_group)

    return step


def _in_duckdb(file: str) -> Callable[[], object]:
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    query = f"""
        COPY (SELECT * FROM read_csv('{file}') ORDER BY hash("query") % {BUCKETS}, "query", document)
        TO '{file}.duckdb' (FORMAT parquet, COMPRESSION lz4, ROW_GROUP_SIZE {Layout.rows_per_group})
    """
    return lambda: connection.execute(query).fetchall()


def _in_polars(file: str) -> Callable[[], None]:
    os.environ["POLARS_MAX_THREADS"] = "1"
    import polars as pl

    def step() -> None:
        bucket = pl.col("query").hash() % BUCKETS
        table = pl.scan_csv(file).sort(bucket, "query", "document")
        table.sink_parquet(f"{file}.polars", compression="lz4", row_group_size=Layout.rows_per_group)

    return step
