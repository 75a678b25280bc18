"""How an archive's files are named.

    manifest-00000001.json         one per committed version; the highest is the archive
    tables/NAME-TOKEN.parquet      documents, queries, words, segments, occurrences, runs
    detections/CONTENT/FIRST-LAST-PART-TOKEN.parquet
                                   rows of the run with that content hash, of the buckets FIRST to LAST
    temporary/TOKEN/               rows on their way into their buckets; gone when an ingest ends

A query's bucket is a hash of its id modulo the number of buckets. No id stands in a path; tokens are random, so that
no file is ever written twice. Row groups are cut only where the (query, document) changes.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import xxhash

from swsdask.model.trials import I64

FORMAT_VERSION = 1
HASH_VERSION = 1
"""The hash of `bucket_of`: xxh3_64 of the id's UTF-8 bytes, seed 0."""

BUCKETS = 64
"""Query buckets of a new archive, unless others are asked for."""

TEMPORARY = "temporary"
TABLES = "tables"
DETECTION_FILES = "detections"

_MANIFEST = re.compile(r"manifest-(\d{8})\.json")


@dataclass(frozen=True)
class Layout:
    """How an archive's files are cut and encoded. It never changes a number.

    `buckets` counts for a new archive (None: `BUCKETS`), which keeps them; asking another number of an archive is an
    error. A fragment has about `rows_per_fragment` rows, which are sorted in memory; a row group at most
    `rows_per_group`; `rows_in_memory` are gathered before they are spilled. `codec` is lz4 or zstd.
    """

    buckets: int | None = None
    rows_per_group: int = 1_000_000
    rows_per_fragment: int = 8_000_000
    rows_in_memory: int = 2_000_000
    codec: str = "lz4"


def manifest_name(version: int) -> str:
    """The file of a version's manifest."""
    return f"manifest-{version:08d}.json"


def manifest_version(name: str) -> int | None:
    """The version whose manifest a file is, or None."""
    found = _MANIFEST.fullmatch(name)
    return int(found[1]) if found else None


def new_token() -> str:
    """A part of a file name that no other file has."""
    return secrets.token_hex(8)


def table_name(table: str) -> str:
    """A new file name for a table."""
    return f"{TABLES}/{table}-{new_token()}.parquet"


def fragment_name(content: str, first: int, last: int, part: int) -> str:
    """A new file name for rows of a run, of the buckets `first` to `last`."""
    return f"{DETECTION_FILES}/{content}/{first:05d}-{last:05d}-{part:05d}-{new_token()}.parquet"


def buckets_of(query_ids: Iterable[str], buckets: int) -> I64:
    """The bucket of every query, 0 to `buckets` - 1. `HASH_VERSION` names the hash."""
    return np.array([xxhash.xxh3_64_intdigest(identifier.encode()) % buckets for identifier in query_ids], np.int64)
