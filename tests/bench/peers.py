"""MTWV over the same number in Polars and in DuckDB.

Theirs is a plain query: detections join occurrences, one to one by the best score through window functions, then a
cumulative sum of the weights of all detections in order of falling score, where equal scores enter together. It works
on one system at a time and in one thread, which costs them least. Beside it stands the same with the sweep of this
package, over the scores of hits alone. Their alignment is greedy, so the number may differ from ours: the table shows
by how much.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from swsdask.archive.reference import build_reference
from swsdask.archive.store import open_archive
from tests.bench import in_duckdb, in_polars
from tests.bench.cost import cost
from tests.bench.data import Archived, Data
from tests.bench.scoring import score, settings
from tests.bench.table import Row


def rows(data: Data) -> Iterator[Row]:
    """CPU seconds of MTWV of all systems: theirs over ours."""
    archive = data.ten_systems
    targets, weights = _tables(archive, data.folder)
    ours = cost(score, archive.url, ("mtwv",), {})
    peers: tuple[tuple[str, Callable[..., Callable[[], dict[str, float]]]], ...] = (
        ("Polars, plain query", in_polars.plain),
        ("Polars, hit scores", in_polars.at_hits),
        ("DuckDB, plain query", in_duckdb.plain),
        ("DuckDB, hit scores", in_duckdb.at_hits),
    )
    for over, work in peers:
        theirs = cost(work, archive.files, targets, weights, repeats=1)
        difference = max(abs(ours.result[system] - theirs.result[system]) for system in ours.result)
        yield Row(
            f"MTWV of {archive.rows:,} detections; theirs differs by {difference:.1g}",
            ours.cpu,
            over,
            theirs.cpu,
            theirs.cpu / ours.cpu,
            least=4.0,
            peak=ours.peak,
            peak_of_theirs=theirs.peak,
        )


def _tables(archive: Archived, folder: Path) -> tuple[str, str]:
    """What a query needs of the reference, as Parquet files: occurrences with their windows, and weights of queries.

    Accepting a hit adds `gain` to TWV, accepting a false alarm takes `alarm` from it.
    """
    evaluation = settings({}).evaluation
    reference = build_reference(open_archive(archive.url), evaluation)
    whole = reference.conditions[0]
    n_act = reference.condition_targets(whole)
    query = np.flatnonzero(whole.queries)
    beta = evaluation.operating_point.resolve(int(n_act.sum()), whole.n_trials).beta
    weights = {
        "query": query.astype(np.int32),
        "gain": 1 / (len(query) * n_act[query]),
        "alarm": beta / (len(query) * (whole.n_trials - n_act[query])),
    }
    targets = {
        "occurrence": np.arange(len(reference.query), dtype=np.int32),
        "query": reference.query,
        "document": reference.document,
        "channel": reference.channel,
        "opens": 2 * (reference.start - reference.rule.tolerance),
        "closes": 2 * (reference.end + reference.rule.tolerance),
    }
    names = str(folder / "targets.parquet"), str(folder / "weights.parquet")
    for name, table in zip(names, (targets, weights), strict=True):
        pq.write_table(pa.table(table), name)
    return names
