"""MTWV in DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import duckdb

Systems = Mapping[str, Sequence[str]]

_HITS = """
WITH detections AS (
    SELECT query, document, channel, start, duration, score, file_index, file_row_number
    FROM read_parquet($files, file_row_number = true)
),
hits AS (
    SELECT d.query, d.score
    FROM detections d
    JOIN targets t ON d.query = t.query AND d.document = t.document AND d.channel = t.channel
        AND 2 * d.start + d.duration BETWEEN t.opens AND t.closes
    QUALIFY row_number() OVER (PARTITION BY t.occurrence ORDER BY d.score DESC) = 1
        AND row_number() OVER (PARTITION BY d.file_index, d.file_row_number ORDER BY d.score DESC) = 1
),
"""

_PLAIN = """
steps AS (
    SELECT score, -alarm AS step FROM detections JOIN weights USING (query)
    UNION ALL
    SELECT score, gain + alarm FROM hits JOIN weights USING (query)
),
by_score AS (SELECT score, sum(step) AS step FROM steps GROUP BY score)
SELECT max(total) FROM (SELECT sum(step) OVER (ORDER BY score DESC) AS total FROM by_score)
"""

_AT_HITS = """
rungs AS (SELECT score, sum(gain + alarm) AS step FROM hits JOIN weights USING (query) GROUP BY score),
alarms AS (
    SELECT r.score, -sum(alarm) AS step
    FROM detections d JOIN weights USING (query) ASOF JOIN rungs r ON d.score >= r.score
    GROUP BY r.score
)
SELECT max(total) FROM (
    SELECT sum(r.step + a.step) OVER (ORDER BY r.score DESC) AS total FROM rungs r JOIN alarms a USING (score)
)
"""


def plain(systems: Systems, targets: str, weights: str) -> Callable[[], dict[str, float]]:
    """MTWV by system, from a cumulative sum over all detections."""
    return _by_system(_HITS + _PLAIN, systems, targets, weights)


def at_hits(systems: Systems, targets: str, weights: str) -> Callable[[], dict[str, float]]:
    """MTWV by system, from the false alarms between the scores of hits."""
    return _by_system(_HITS + _AT_HITS, systems, targets, weights)


def _by_system(query: str, systems: Systems, targets: str, weights: str) -> Callable[[], dict[str, float]]:
    connection = duckdb.connect(config={"threads": 1})

    def step() -> dict[str, float]:
        for name, file in (("targets", targets), ("weights", weights)):
            connection.execute(f"CREATE OR REPLACE TABLE {name} AS FROM read_parquet('{file}')")
        found = {}
        for system, files in systems.items():
            best = connection.execute(query, {"files": list(files)}).fetchone()
            assert best is not None
            found[system] = max(0.0, best[0])
        return found

    return step
