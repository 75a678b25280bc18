"""An archive in a store: what scoring it requests, and what a request of 30 ms costs; and archives of many versions.

The store is moto's server of S3, behind the proxy of `tests.traffic`, both in this process: what is timed runs in
another. Seconds are wall-clock where a row says so. The same column chunks are also read by the clients that there are
for Python, which get the same ranges.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import fsspec
import pyarrow.parquet as pq

import swsdask as sws
from swsdask.archive.cells import chunk_range
from swsdask.archive.reference import build_reference
from swsdask.archive.store import open_archive
from swsdask.archive.versions import manifest_name
from swsdask.model.settings import EvaluationSettings
from swsdask.statistics.alignment import trial_columns
from tests.bench.cost import Cost, cost
from tests.bench.data import Data, Shape
from tests.bench.table import Row
from tests.traffic import traffic

ROWS, SYSTEMS = 500_000, 10
SMALL_ROWS, MANY_SYSTEMS = 100_000, 40
DELAY_S = 0.03
MEASURES = ["mtwv"]
"""It needs two rounds: trials, then queries and scores."""

VERSIONS = 10_000
MB = 1e6

Client = Literal["s3fs", "obstore", "pyarrow"]
Ranges = dict[str, list[tuple[int, int]]]


@dataclass(frozen=True)
class Needed:
    """What scoring must read: ranges (offset, length) of column chunks by file, for each round."""

    rounds: tuple[Ranges, ...]

    @property
    def size(self) -> int:
        """The bytes of all rounds."""
        return sum(length for of_round in self.rounds for ranges in of_round.values() for _, length in ranges)


def rows(data: Data) -> Iterator[Row]:
    """Bytes, requests and time of a score, the clients beside one another, and the opening of an old archive."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    archive = data.written("distant", Shape(data.rows(ROWS)), SYSTEMS)
    needed = _needed(archive.url)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    options = {"endpoint_url": f"http://{host}:{port}", "key": "x", "secret": "x"}
    filesystem = fsspec.filesystem("s3", **options)
    filesystem.mkdir("evals")
    filesystem.put(archive.url, "evals/archive", recursive=True)
    small = data.written("distant-many", Shape(data.rows(SMALL_ROWS)), MANY_SYSTEMS)
    filesystem.put(small.url, "evals/many", recursive=True)
    small.remove()
    what = f"{MEASURES[0]} of {SYSTEMS} systems of {data.rows(ROWS):,} detections in a store"
    size, in_files = needed.size, sum(len(of_round) for of_round in needed.rounds)
    found: dict[float, Cost] = {}
    for delay_s in (0.0, DELAY_S):
        with traffic(options["endpoint_url"], delay_s) as seen:
            found[delay_s] = cost(_scored, "archive", MEASURES, {**options, "endpoint_url": seen.address}, repeats=3)
            requests, down = len(seen.requests) / 4, sum(each.down for each in seen.of("/detections/")) / 4
        late = f"{what}, {1000 * delay_s:.0f} ms a request"
        yield Row(f"{late}, received", down / MB, "columns x rounds", size / MB, down / size, unit="MB", most=1.1)
        yield Row(f"{late}, requests", requests, "files x rounds", in_files, requests / in_files, unit="requests")
    near, far = found.values()
    both = {"peak": far.peak, "peak_of_theirs": near.peak}
    yield Row(f"{what}, 30 ms a request, wall", far.wall, "0 ms", near.wall, far.wall / near.wall, most=1.3, **both)
    yield Row(f"{what}, 30 ms a request, CPU", far.cpu, "0 ms", near.cpu, far.cpu / near.cpu, **both)
    with traffic(options["endpoint_url"], DELAY_S) as seen:
        cost(_planned, {**options, "endpoint_url": seen.address}, repeats=1)
    before = "requests in sequence before the first system is"
    yield Row(f"{before} read", seen.in_sequence, "limit", 3, seen.in_sequence / 3, unit="requests", most=1.0)
    whole: dict[float, Cost] = {}
    for delay_s in (0.0, DELAY_S):
        with traffic(options["endpoint_url"], delay_s) as seen:
            whole[delay_s] = cost(_scored, "many", None, {**options, "endpoint_url": seen.address}, repeats=5)
    all_of_many = f"all measures of {MANY_SYSTEMS} systems of {data.rows(SMALL_ROWS):,} detections in a store"
    many_near, many_far = whole.values()
    ratio = many_far.wall / many_near.wall
    both = {"peak": many_far.peak, "peak_of_theirs": many_near.peak}
    yield Row(f"{all_of_many}, 30 ms a request, wall", many_far.wall, "0 ms", many_near.wall, ratio, most=1.3, **both)
    local = cost(_scored_here, archive.url)
    both = {"peak": near.peak, "peak_of_theirs": local.peak}
    yield Row(f"{what}, CPU", near.cpu, "on a disk", local.cpu, near.cpu / local.cpu, **both)
    clients = {name: cost(_fetched, name, options, needed) for name in ("s3fs", "obstore", "pyarrow")}
    for name, each in clients.items():
        megabytes = f"the same {size / MB:.0f} MB by {name}"
        theirs = clients["s3fs"]
        both = {"peak": each.peak, "peak_of_theirs": theirs.peak}
        yield Row(f"{megabytes}, CPU", each.cpu, "s3fs", theirs.cpu, each.cpu / theirs.cpu, **both)
        yield Row(f"{megabytes}, wall", each.wall, "s3fs", theirs.wall, each.wall / theirs.wall, **both)
    server.stop()
    _age(archive.url)
    opening = cost(_opened, archive.url, repeats=9)
    what = f"opening the newest of {VERSIONS:,} versions"
    yield Row(f"{what}, CPU", opening.cpu, "limit", 0.05, opening.cpu / 0.05, most=1.0, peak=opening.peak)
    yield Row(f"{what}, wall", opening.wall, "limit", 0.05, opening.wall / 0.05, peak=opening.peak)
    archive.remove()


def columns_needed(url: str) -> list[int]:
    """The bytes of the column chunks that each round of MTWV reads, whatever the archive."""
    return [sum(length for ranges in of.values() for _, length in ranges) for of in _needed(url).rounds]


def _needed(url: str) -> Needed:
    """The column chunks of both rounds of MTWV, but those of one value, which nobody need read."""
    archive = open_archive(url)
    rule = build_reference(archive, EvaluationSettings()).rule
    rounds = []
    for columns in (("query", "score", *trial_columns(rule, 1, True)), ("query", "score")):
        ranges: Ranges = {}
        for stored in archive.stored_runs:
            for fragment in stored.fragments:
                metadata = pq.read_metadata(f"{url}/{fragment.file.file}")
                names = metadata.schema.names
                ranges[fragment.file.file] = [
                    chunk_range(metadata.row_group(group).column(names.index(name)))
                    for group in range(metadata.num_row_groups)
                    for name in dict.fromkeys(columns)
                    if not _is_constant(metadata.row_group(group).column(names.index(name)).statistics, name)
                ]
        rounds.append(ranges)
    return Needed(tuple(rounds))


def _is_constant(statistics: Any, name: str) -> bool:
    return name != "score" and statistics is not None and statistics.has_min_max and statistics.min == statistics.max


def _scored(name: str, measures: list[str] | None, options: dict[str, Any]) -> Callable[[], None]:
    from fsspec.config import conf

    from swsdask.archive import cells

    conf["s3"] = options
    sws.score(sws.open(f"s3://evals/{name}"), measures, cache=False)

    def step() -> None:
        cells._footers.clear()
        sws.score(sws.open(f"s3://evals/{name}"), measures, cache=False)

    return step


def _planned(options: dict[str, Any]) -> Callable[[], None]:
    """Read all tables of an archive, as is done before the first system is read. It is done once."""
    from fsspec.config import conf

    conf["s3"] = options
    sws.plan(sws.open("s3://evals/archive"), MEASURES)
    return lambda: None


def _scored_here(url: str) -> Callable[[], None]:
    def step() -> None:
        sws.score(sws.open(url), MEASURES, cache=False)

    return step


def _fetched(client: Client, options: dict[str, Any], needed: Needed) -> Callable[[], int]:
    """Every file's ranges together, file after file."""
    fetch = {"s3fs": _by_s3fs, "obstore": _by_obstore, "pyarrow": _by_pyarrow}[client](options)

    def step() -> int:
        return sum(fetch(file, ranges) for of_round in needed.rounds for file, ranges in of_round.items())

    return step


Fetch = Callable[[str, list[tuple[int, int]]], int]


def _by_s3fs(options: dict[str, Any]) -> Fetch:
    filesystem = fsspec.filesystem("s3", **options)

    def fetch(file: str, ranges: list[tuple[int, int]]) -> int:
        begins, ends = [begin for begin, _ in ranges], [begin + length for begin, length in ranges]
        return sum(map(len, filesystem.cat_ranges([f"evals/archive/{file}"] * len(ranges), begins, ends)))

    return fetch


def _by_obstore(options: dict[str, Any]) -> Fetch:
    from obstore.store import S3Store

    store = S3Store(
        "evals",
        endpoint=options["endpoint_url"],
        access_key_id=options["key"],
        secret_access_key=options["secret"],
        region="us-east-1",
        client_options={"allow_http": True},
    )

    def fetch(file: str, ranges: list[tuple[int, int]]) -> int:
        starts, lengths = [begin for begin, _ in ranges], [length for _, length in ranges]
        return sum(map(len, store.get_ranges(f"archive/{file}", starts=starts, lengths=lengths)))

    return fetch


def _by_pyarrow(options: dict[str, Any]) -> Fetch:
    from pyarrow.fs import S3FileSystem

    address = options["endpoint_url"].removeprefix("http://")
    filesystem = S3FileSystem(
        access_key=options["key"], secret_key=options["secret"], endpoint_override=address, scheme="http"
    )

    def fetch(file: str, ranges: list[tuple[int, int]]) -> int:
        with filesystem.open_input_file(f"evals/archive/{file}") as opened:
            return sum(len(opened.read_at(length, begin)) for begin, length in ranges)

    return fetch


def _age(url: str) -> None:
    """Give an archive many versions, which change nothing."""
    newest = open_archive(url).manifest
    for number in range(newest.version + 1, VERSIONS + 1):
        Path(url, manifest_name(number)).write_bytes(replace(newest, version=number).to_json())


def _opened(url: str) -> Callable[[], int]:
    return lambda: open_archive(url).version
