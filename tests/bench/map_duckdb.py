"""MAP in DuckDB: equal scores at once, no interpolation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import duckdb

Systems = Mapping[str, Sequence[str]]

_PLAIN = """
WITH ranked AS (
    SELECT d.query, j.query IS NOT NULL AS relevant, count(*) OVER above AS retrieved, count(j.query) OVER above AS hits
    FROM read_parquet($files) d LEFT JOIN judgments j ON d.query = j.query AND d.document = j.document
    WINDOW above AS (PARTITION BY d.query ORDER BY d.score DESC)
),
"""

_AT_HITS = """
detections AS (SELECT query, document, score FROM read_parquet($files)),
rungs AS (
    SELECT query, score, count(*) AS new FROM detections JOIN judgments USING (query, document) GROUP BY query, score
),
slots AS (
    SELECT r.query, r.score, count(*) AS between
    FROM detections d ASOF JOIN rungs r ON d.query = r.query AND d.score >= r.score
    GROUP BY r.query, r.score
),
ranked AS (
    SELECT query, new, sum(between) OVER above AS retrieved, sum(new) OVER above AS hits
    FROM slots JOIN rungs USING (query, score)
    WINDOW above AS (PARTITION BY query ORDER BY score DESC)
),
"""

_MEAN = """
targets AS (SELECT query, count(*) AS n FROM judgments GROUP BY query),
areas AS (SELECT query, sum({new} * hits / retrieved) AS area FROM ranked GROUP BY query)
SELECT avg(coalesce(area, 0) / n) FROM targets LEFT JOIN areas USING (query)
"""


def plain(systems: Systems, judgments: str) -> Callable[[], dict[str, float]]:
    """MAP by system, from the rank of every document."""
    return _by_system(_PLAIN + _MEAN.format(new="relevant::INT"), systems, judgments)


def at_hits(systems: Systems, judgments: str) -> Callable[[], dict[str, float]]:
    """MAP by system, from the documents between the scores of hits."""
    return _by_system("WITH " + _AT_HITS + _MEAN.format(new="new"), systems, judgments)


def _by_system(query: str, systems: Systems, judgments: str) -> Callable[[], dict[str, float]]:
    connection = duckdb.connect(config={"threads": 1})

    def step() -> dict[str, float]:
        connection.execute(f"CREATE OR REPLACE TABLE judgments AS FROM read_parquet('{judgments}')")
        found = {}
        for system, files in systems.items():
            mean = connection.execute(query, {"files": list(files)}).fetchone()
            assert mean is not None
            found[system] = mean[0]
        return found

    return step
