"""MAP of judged documents over the same number in ranx, pytrec_eval, DuckDB and Polars, all from Parquet.

Every system scores every document for every query, and no two scores of a query are equal, so conventions for equal
scores make no difference. The others are given the fastest call that they have, work on one system at a time and in
one thread, which costs them least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.bench import map_duckdb, map_polars, map_pytrec, map_ranx
from tests.bench.cost import cost
from tests.bench.data import Data
from tests.bench.judged import Collection, judged_archive, judgments_file
from tests.bench.map_swsdask import mean_average_precision
from tests.bench.table import Row


def rows(data: Data) -> Iterator[Row]:
    """CPU seconds of MAP of all systems: theirs over ours."""
    collection = Collection(500, data.rows(10_000))
    archive = judged_archive(data.folder, collection, 10)
    judgments = judgments_file(data.folder, collection)
    ours = cost(mean_average_precision, archive.url)
    peers: tuple[tuple[str, Callable[..., Callable[[], dict[str, float]]], float], ...] = (
        ("Polars, ranks", map_polars.plain, 3.0),
        ("Polars, hit scores", map_polars.at_hits, 3.0),
        ("DuckDB, ranks", map_duckdb.plain, 3.0),
        ("DuckDB, hit scores", map_duckdb.at_hits, 3.0),
        ("ranx, sorted arrays", map_ranx.with_arrays, 3.0),
        ("pytrec_eval, dictionaries", map_pytrec.with_dictionaries, 20.0),
    )
    for over, work, least in peers:
        theirs = cost(work, archive.files, judgments, repeats=1)
        difference = max(abs(ours.result[system] - theirs.result[system]) for system in ours.result)
        yield Row(
            f"MAP of {archive.rows:,} scores of documents; theirs differs by {difference:.1g}",
            ours.cpu,
            over,
            theirs.cpu,
            theirs.cpu / ours.cpu,
            least=least,
            peak=ours.peak,
            peak_of_theirs=theirs.peak,
        )
    archive.remove()
