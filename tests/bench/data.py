"""Archives of simulated detections, made once per run in a temporary folder."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from swsdask.archive.cells import hash_parts
from swsdask.archive.change import ADD_ONLY, Lease, leased
from swsdask.archive.fragments import write_fragment
from swsdask.archive.ingest import begin, write_runs
from swsdask.archive.protocols import Run
from swsdask.archive.reference_tables import ReferenceTables
from swsdask.archive.storage import Storage
from swsdask.archive.store import open_archive
from swsdask.archive.stored_tables import Fragment, StoredFile, StoredRun
from swsdask.archive.versions import BUCKETS, Layout, fragment_name
from swsdask.model.errors import Problems
from swsdask.model.schemas import SEGMENTS, RunHeader, RunPiece
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Detections, ScoreRange
from tests.archives import Made
from tests.bench.cost import Cost, cost
from tests.bench.detections import DetectionBlocks, detections

SEED = 20130


@dataclass(frozen=True)
class Shape:
    """How large an evaluation is, and each of its systems."""

    rows: int
    n_occurrences: int = 10_000
    n_documents: int = 1000
    n_queries: int = 500
    shares: tuple[float, ...] | None = None
    rows_per_block: int = 5_000_000

    def blocks(self) -> DetectionBlocks:
        """The evaluation and its detections, block by block."""
        return detections(
            SEED, n_rows=self.rows, **{name: value for name, value in vars(self).items() if name != "rows"}
        )


@dataclass(frozen=True)
class SimulatedRun(Made):
    """A source of the detections of one system."""

    shape: Shape
    number: int

    @property
    def file(self) -> str:
        """There is none."""
        return f"simulated system {self.number}"

    @property
    def system(self) -> str:
        """Its name."""
        return f"system{self.number:02d}"

    def read(self, problems: Problems) -> Iterator[RunPiece]:
        """The detections, a piece per block."""
        blocks = self.shape.blocks()
        queries = tuple(blocks.queries["query"].to_pylist())
        documents = tuple(dict.fromkeys(blocks.documents["document"].to_pylist()))
        for number in range(len(blocks)):
            rows = blocks.block(number, self.number)
            yield RunPiece(
                header=RunHeader(self.system),
                file=self.file,
                queries=queries,
                query_lines=(None,) * len(queries),
                documents=documents,
                document_lines=(None,) * len(documents),
                **{
                    name: getattr(rows, name)
                    for name in ("query", "document", "channel", "start", "duration", "score", "decision")
                },
            )


class Data:
    """Where benches find their data. `fraction` scales every number of rows."""

    def __init__(self, folder: Path, fraction: float) -> None:
        self.folder = folder
        self.fraction = fraction

    def rows(self, count: int) -> int:
        """A number of rows, scaled."""
        return round(count * self.fraction)

    @cached_property
    def ten_systems(self) -> Archived:
        """An archive of ten systems, five million detections each, as the product's writer makes it."""
        return self.written("ten-systems", Shape(self.rows(5_000_000)), 10)

    def written(self, name: str, shape: Shape, n_systems: int) -> Archived:
        """An archive of some systems, through the product's own writer."""
        url = str(self.folder / name)
        return Archived(url, shape.rows * n_systems, cost(_write, url, shape, n_systems, repeats=1))

    def laid(self, name: str, shape: Shape) -> Archived:
        """An archive of one system whose blocks are laid straight into its files, as the writer would have them."""
        url = str(self.folder / name)
        return Archived(url, shape.rows, cost(_lay, url, shape, repeats=1))


@dataclass(frozen=True)
class Archived:
    """An archive, how many detections it holds, and what writing it cost (making the detections included)."""

    url: str
    rows: int
    writing: Cost

    @property
    def files(self) -> dict[str, list[str]]:
        """The files of detections, by system."""
        return {
            stored.run.system: [f"{self.url}/{fragment.file.file}" for fragment in stored.fragments]
            for stored in open_archive(self.url).stored_runs
        }

    def remove(self) -> None:
        """Give the disk space back."""
        shutil.rmtree(self.url)


def _write(url: str, shape: Shape, n_systems: int) -> Callable[[], None]:
    tables = tables_of(shape.blocks())
    sources = [SimulatedRun(shape, number) for number in range(n_systems)]

    def write() -> None:
        write_runs(Storage(url, {}), tables, sources, EvaluationSettings())

    return write


def _lay(url: str, shape: Shape) -> Callable[[], None]:
    def lay() -> None:
        blocks = shape.blocks()
        layout = Layout()
        storage = Storage(url, {})
        fragments: list[Fragment] = []
        lowest, highest = float("inf"), float("-inf")
        with leased(storage) as lease:
            change = begin(lease, tables_of(blocks), EvaluationSettings(), layout, ADD_ONLY)
            for number, rows in enumerate(blocks):
                lowest, highest = min(lowest, float(rows.score.min())), max(highest, float(rows.score.max()))
                fragments.append(_fragment(lease, rows, number, layout))
            run = Run(
                system="system00",
                content="simulated",
                rows=int(blocks.rows.sum()),
                has_decisions=True,
                scores=ScoreRange(None, (lowest, highest)),
            )
            change.commit({run.system: StoredRun(run, tuple(fragments))})

    return lay


def _fragment(lease: Lease, rows: Detections, number: int, layout: Layout) -> Fragment:
    content, groups = write_fragment(rows, layout.rows_per_group, layout.codec)
    name = fragment_name("simulated", 0, BUCKETS - 1, number, lease.writer)
    lease.storage.write(name, content)
    return Fragment(StoredFile.of(name, content), tuple(groups), hash_parts(content))


def tables_of(blocks: DetectionBlocks) -> ReferenceTables:
    """The reference that simulated detections are of."""
    return ReferenceTables(blocks.documents, blocks.queries, blocks.words, SEGMENTS.empty_table())
