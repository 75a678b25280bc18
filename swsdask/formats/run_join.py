"""The pieces of one run as one piece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from swsdask.formats.run_values import FormatError
from swsdask.model.runs import RunPiece


def join_pieces(pieces: Iterable[RunPiece]) -> RunPiece:
    """All pieces of a run, one at least, as one; every id is in its dictionaries once, in the order they came.

    Raises `FormatError` for pieces of several systems.
    """
    parts = list(pieces)
    systems = list(dict.fromkeys(piece.header.system for piece in parts))
    if len(systems) > 1:
        raise FormatError("rows of one system", f"rows of {systems[0]!r} and {systems[1]!r}", "Write them one by one.")
    attributes = {name: value for piece in parts for name, value in piece.header.attributes.items()}
    query, queries, query_lines = _joined([(piece.query, piece.queries, piece.query_lines) for piece in parts])
    document, documents, document_lines = _joined(
        [(piece.document, piece.documents, piece.document_lines) for piece in parts]
    )
    return RunPiece(
        header=replace(parts[0].header, attributes=attributes),
        file=parts[0].file,
        queries=queries,
        query_lines=query_lines,
        documents=documents,
        document_lines=document_lines,
        query=query,
        document=document,
        channel=np.concatenate([piece.channel for piece in parts]),
        start=np.concatenate([piece.start for piece in parts]),
        duration=np.concatenate([piece.duration for piece in parts]),
        score=np.concatenate([piece.score for piece in parts]),
        decision=np.concatenate([piece.decision for piece in parts]),
        rounded=sum(piece.rounded for piece in parts),
        listed=tuple(dict.fromkeys(query for piece in parts for query in piece.listed)),
    )


def _joined(
    columns: Sequence[tuple[NDArray[np.int32], tuple[str, ...], tuple[int | None, ...]]],
) -> tuple[NDArray[np.int32], tuple[str, ...], tuple[int | None, ...]]:
    """Columns of codes with dictionaries of their own as one column with one dictionary, and its lines."""
    codes: dict[str, int] = {}
    lines: dict[str, int | None] = {}
    joined = []
    for column, names, first_lines in columns:
        recode = np.array([codes.setdefault(name, len(codes)) for name in names], np.int32)
        joined.append(recode[column])
        lines = {**dict(zip(reversed(names), reversed(first_lines), strict=True)), **lines}
    return np.concatenate(joined), tuple(codes), tuple(lines[name] for name in codes)
