"""Reading a list of detections in XML, over a plain lxml loop that builds the same columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from swsdask.archive.fragments import detections_as_table
from swsdask.formats.runs.read import read_run
from swsdask.model.errors import Problems
from swsdask.model.schemas import SEGMENTS
from swsdask.simulate.evaluation import SimulatedEvaluation, write
from tests.bench.cost import cost
from tests.bench.data import SEED, Data
from tests.bench.detections import detections
from tests.bench.in_lxml import read_with_lxml
from tests.bench.table import Row


def rows(data: Data) -> Iterator[Row]:
    """CPU seconds of one large list: theirs over ours."""
    n = data.rows(2_000_000)
    file = write_xml(data.folder / "xml", n)
    ours = cost(read, file)
    theirs = cost(read_with_lxml, file, repeats=1)
    if ours.result != theirs.result:
        raise ValueError(f"{file}: read as {ours.result}, with lxml as {theirs.result}")
    yield Row(
        f"XML, {n:,} detections: {n / ours.cpu / 1e6:.1f} M rows/s",
        ours.cpu,
        "lxml iterparse",
        theirs.cpu,
        theirs.cpu / ours.cpu,
        least=8.0,
        peak=ours.peak,
        peak_of_theirs=theirs.peak,
    )


def write_xml(folder: Path, n_rows: int, **shape: int) -> str:
    """Simulated detections of one system as official files; the run's file."""
    blocks = detections(SEED, n_rows=n_rows, rows_per_block=n_rows, **shape)
    evaluation = SimulatedEvaluation(
        blocks.documents,
        blocks.queries,
        blocks.words,
        SEGMENTS.empty_table(),
        blocks.occurrences,
        {"system": detections_as_table(blocks.block(0))},
    )
    write(evaluation, folder)
    return str(folder / "runs" / "system.kwslist.xml")


def read(file: str) -> Callable[[], tuple[int, float]]:
    """Reads a run; how many rows there are, and the sum of all columns of numbers."""

    def step() -> tuple[int, float]:
        problems = Problems()
        count, total = 0, 0.0
        for piece in read_run(file, problems):
            count += len(piece)
            for column in (piece.channel, piece.start, piece.duration, piece.score, piece.decision):
                total += float(column.sum())
        problems.raise_if_any()
        return count, round(total, 3)

    return step
