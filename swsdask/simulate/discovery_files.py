"""A simulated corpus and what systems found in it, as the official files: also those of ten million phones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.simulate.discovery_corpus import SimulatedClasses, SimulatedCorpus

_TICK_DIGITS = 4


def write_corpus(corpus: SimulatedCorpus, directory: Path) -> None:
    """Write `sim.phn`, `sim.wrd`, `sim.split` and `sim.speakers`. Raises `OSError` where that cannot be done."""
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / "sim.phn", _rows(corpus.phones, "label"))
    _write(directory / "sim.wrd", _rows(corpus.words, "label"))
    _write(directory / "sim.split", _rows(corpus.split))
    speakers = corpus.speakers
    _write(directory / "sim.speakers", [pc.binary_join_element_wise(speakers["file"], speakers["speaker"], " ")])


def write_classes(found: SimulatedClasses, directory: Path) -> None:
    """Write `SYSTEM.classes`, with an empty line behind every class. Raises `OSError` where that cannot be done."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = [chunk for column in _rows(found.fragments) for chunk in column.chunks]
    cluster = found.fragments["cluster"].to_numpy()
    sizes = np.bincount(cluster, minlength=len(found.classes))
    members = pa.chunked_array(rows, pa.string()).combine_chunks()
    headers = pc.binary_join_element_wise("Class", found.classes["class"].combine_chunks(), " ")
    texts = pa.concat_arrays([headers, members, pa.array([""], pa.string())])
    n_classes = len(headers)
    first = np.cumsum(sizes) - sizes
    place = np.full(len(texts) - 1 + n_classes, len(texts) - 1)
    place[first + 2 * np.arange(n_classes)] = np.arange(n_classes)
    place[np.arange(len(members)) + 2 * cluster.astype(np.int64) + 1] = n_classes + np.arange(len(members))
    _write(directory / f"{found.system}.classes", [texts.take(pa.array(place))])


def _rows(table: pa.Table, *others: str) -> Iterable[pa.ChunkedArray]:
    """The rows of a table as lines, some at a time."""
    for batch in table.to_batches(max_chunksize=1 << 20):
        part = pa.Table.from_batches([batch])
        columns = [_text(part["file"]), _seconds(part["start"]), _seconds(part["end"])]
        yield pc.binary_join_element_wise(*columns, *(_text(part[name]) for name in others), " ")


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())


def _seconds(ticks: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times in seconds with all digits of a tick."""
    whole = pc.divide(ticks, 10**_TICK_DIGITS)
    part = pc.subtract(ticks, pc.multiply(whole, 10**_TICK_DIGITS))
    return pc.binary_join_element_wise(_text(whole), pc.utf8_lpad(_text(part), _TICK_DIGITS, "0"), ".")


def _write(path: Path, lines: Iterable[pa.ChunkedArray | pa.Array]) -> None:
    with path.open("wb") as file:
        for column in lines:
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
                ended = pc.binary_join_element_wise(chunk, "\n", "")
                _, offsets, text = ended.buffers()
                edges = np.frombuffer(offsets, np.int32, len(ended) + 1, ended.offset * 4)
                file.write(text[edges[0] : edges[-1]])
