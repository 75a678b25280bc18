"""Formats of runs in text whose lines are detections, without names of columns: Kaldi's, CTMs, and TREC's runs.

Kaldi's form: query, document, start, end and score. A CTM: document, channel (a number, or A and B), start, duration,
query and score.

TREC's runs: lines `query Q0 document rank score tag`, separated by blanks. A run's name is its tag. Rank and `Q0` are
ignored, but a rank must be a whole number or `-`. If the first line has values after the tag, those of all lines are
ignored, as in trec_eval, and the header's attribute `ignored_columns` says so. Where judgments do not say that a run is
TREC's, the second value of the first line must be `Q0` or a whole number. No pair of query and document may occur
twice. A document's id is its whole name, with directories and endings. A line that begins with `#`, in a run also after
blanks, is a comment, as in trec_eval 10.

The first line of a file may fit two formats: `301 1 1001 1 2.5 7` is a CTM's and TREC's. The file then has the first
format in `LINE_FORMATS` that at least half of the lines at its beginning fit: words that are numbers and last whole
seconds are rare. The name of a CTM, `*.ctm`, counts before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.formats.runs.encoding import PLAIN, Encoding
from swsdask.formats.runs.gathering import Batch, Gathering
from swsdask.formats.runs.table import Separated, with_times
from swsdask.formats.text import Lines, read_lines
from swsdask.formats.values import CHANNELS, FormatError, is_number, read_header, shown
from swsdask.model.errors import Problems
from swsdask.model.schemas import WITHOUT_CHANNELS, WITHOUT_TIMES, RunPiece

BLANKS = " \t\r\f\v"
"""The blanks that separate values: those of ASCII. Others, such as a no-break space, are part of an id."""

_BLANKS = re.compile(f"[{BLANKS}]+")
_COMMENT = re.compile(rb"^[ \t]*;;.*$", re.MULTILINE)
_TREC_COMMENT = re.compile(rb"^[ \t\r\f\v]*#.*$", re.MULTILINE)
_QRELS_COMMENT = re.compile(rb"^#.*$", re.MULTILINE)
_UNEVEN_BLANKS = re.compile(rb"[\t\r\f\v]|  | $|^ ", re.MULTILINE)


@dataclass(frozen=True)
class LineFormat:
    """A format of runs whose lines have the same values in the same order. Lines that begin with `;;` are comments.

    Parameters
    ----------
    value : str
        Its name in messages.
    recognises : callable
        Whether a line, which is neither blank nor a comment, is of the format.
    columns : tuple of str
        The values of a line, named as the columns of a table (`formats.runs.table`); others are ignored. A channel may
        be A or B.
    delimiter : str
        What separates values; a blank is any number of blanks.
    endings : tuple of str
        The endings of such files' names, for files whose content is ambiguous.
    given : str
        How to give such a file where another one is expected.
    encoded : bool
        Whether times may be frames, scores costs and documents utterances.
    """

    value: str
    recognises: Callable[[str], bool]
    columns: tuple[str, ...]
    delimiter: str = " "
    endings: tuple[str, ...] = ()
    given: str = "as a run"
    encoded: bool = True

    def read(
        self, file: str, problems: Problems, rows_per_piece: int, system: str | None, encoding: Encoding = PLAIN
    ) -> Iterator[RunPiece]:
        """Yield the pieces of a run. Problems are added to `problems`."""
        lacking = {} if "channel" in self.columns else {WITHOUT_CHANNELS: "true"}
        try:
            header = read_header({**lacking, **encoding.attributes}, file, system)
        except FormatError as fault:
            problems.add(file, None, fault.expected, fault.found, fault.remedy)
            return
        gathering = Gathering(header, True, file, problems, rows_per_piece)
        columns = {name: place for place, name in enumerate(self.columns)}
        lines = Separated(problems, self.delimiter, len(columns), columns, form=" ".join(self.columns))
        blocks = _without(_COMMENT, read_lines(file))
        plain = with_even_blanks(blocks) if self.delimiter == " " else blocks
        yield from gathering.pieces(encoding.decode(_with_numbered_channels(batch)) for batch in lines.batches(plain))


def _without(comment: re.Pattern[bytes], blocks: Iterator[Lines]) -> Iterator[Lines]:
    """Yield the lines, with comments emptied."""
    for block in blocks:
        yield Lines(block.first, comment.sub(b"", block.data)) if comment.search(block.data) else block


def read_qrels_lines(file: str) -> Iterator[Lines]:
    """Return the lines of qrels, with even blanks and with comments emptied."""
    return with_even_blanks(_without(_QRELS_COMMENT, read_lines(file)))


def with_even_blanks(blocks: Iterator[Lines]) -> Iterator[Lines]:
    """Yield the lines with one blank between values and none around them."""
    for block in blocks:
        if _UNEVEN_BLANKS.search(block.data):
            yield Lines(block.first, b"\n".join(b" ".join(line.split()) for line in block.data.split(b"\n")))
        else:
            yield block


def _with_numbered_channels(batch: Batch) -> Batch:
    """Rename the channels A and B to 1 and 2."""
    if "channel" not in batch.columns:
        return batch
    column = batch.columns["channel"]
    names = pa.array([CHANNELS.get(name, name) for name in column.dictionary.to_pylist()], pa.string())
    channel = pa.DictionaryArray.from_arrays(column.indices, names)
    return batch._replace(columns={**batch.columns, "channel": channel})


def values_of(line: str) -> list[str]:
    """Return the values of a line."""
    return _BLANKS.split(line.strip(BLANKS))


def _is_kaldis(line: str) -> bool:
    fields = values_of(line)
    return len(fields) == len(KALDI.columns) and all(map(is_number, fields[2:]))


def has_scores(ctm: str) -> bool:
    """Return whether the words of a CTM have scores, by its first line; a run needs them."""
    lines = (line for block in _without(_COMMENT, read_lines(ctm)) for line in block.data.split(b"\n"))
    first = next(filter(None, map(bytes.split, lines)), [])
    return len(first) >= len(CTM.columns)


_CHANNEL = re.compile("[0-9]+|[AB]")
_SECONDS = re.compile(r"[0-9]*\.?[0-9]+")


def _is_ctm(line: str) -> bool:
    """Return whether a line is of a CTM. In a reference, types and speakers may follow the score."""
    fields = values_of(line)
    if not 5 <= len(fields) <= 8:
        return False
    return _CHANNEL.fullmatch(fields[1]) is not None and all(map(_SECONDS.fullmatch, fields[2:4]))


KALDI = LineFormat("results in Kaldi's form", _is_kaldis, ("query", "document", "start", "end", "score"))
CTM = LineFormat(
    "words with times (a CTM)",
    _is_ctm,
    ("document", "channel", "start", "duration", "query", "score"),
    endings=(".ctm",),
    given="with --rttm, or as a run",
)


_COLUMNS = ("query", "Q0", "document", "rank", "score", "system")
_ITERATION = re.compile("Q?[0-9]+", re.IGNORECASE)
_RANK = r"^([+-]?[0-9]{1,18}(\.0*)?|-)$"


def _is_trec(line: str) -> bool:
    fields = values_of(line)
    if len(fields) < len(_COLUMNS):
        return False
    _, iteration, _, rank, score, *_ = fields
    return _ITERATION.fullmatch(iteration) is not None and re.match(_RANK, rank) is not None and is_number(score)


class _TrecRun(LineFormat):
    """Runs of judged documents."""

    def read(
        self, file: str, problems: Problems, rows_per_piece: int, system: str | None, encoding: Encoding = PLAIN
    ) -> Iterator[RunPiece]:
        """Yield the pieces of a run; a detection of a document starts at 0 and has no duration."""
        blocks = with_even_blanks(_without(_TREC_COMMENT, read_lines(file)))
        begin = next(blocks)
        more = begin.data.lstrip(b"\n").partition(b"\n")[0].count(b" ") >= len(_COLUMNS)
        ignored = {"ignored_columns": "after the tag"} if more else {}
        try:
            header = read_header({WITHOUT_TIMES: "true", **ignored, **encoding.attributes}, file, system)
        except FormatError as fault:
            problems.add(file, None, fault.expected, fault.found, fault.remedy)
            return
        gathering = Gathering(header, system is not None, file, problems, rows_per_piece, judged=True)
        unread = ("Q0",) if system is None else ("Q0", "system")
        columns = {name: at for at, name in enumerate(_COLUMNS) if name not in unread}
        form = "query Q0 document rank score tag"
        lines = Separated(problems, " ", len(_COLUMNS), columns, form=form, more=more)
        once = Once("a document once for a query")
        yield from gathering.pieces(_run_batches(chain((begin,), blocks), lines, once))
        once.note(file, problems)


TREC = _TrecRun("a TREC run", _is_trec, _COLUMNS, encoded=False)
LINE_FORMATS = (KALDI, TREC, CTM)
"""The formats, in the order in which they are tried."""


def _run_batches(blocks: Iterator[Lines], lines: Separated, once: Once) -> Iterator[Batch]:
    for batch in lines.batches(blocks):
        good = good_rows(batch, "rank", _RANK, "a whole number or - as rank")
        once.take(good)
        yield with_times(good._replace(columns={name: c for name, c in good.columns.items() if name != "rank"}))


def good_rows(batch: Batch, name: str, pattern: str, expected: str) -> Batch:
    """Return the rows whose column `name` has the form of `pattern`; the others are unread."""
    column = batch.columns[name].cast(pa.string())
    fine = pc.match_substring_regex(column, pattern).to_numpy(zero_copy_only=False)
    if fine.all() or batch.lines is None:
        return batch
    faults = [
        (int(batch.lines[row]), FormatError(expected, shown(column[row].as_py()), "Correct the line."))
        for row in np.flatnonzero(~fine).tolist()
    ]
    columns = {name: column.filter(pa.array(fine)) for name, column in batch.columns.items()}
    return Batch(columns, batch.lines[fine], unread=(*batch.unread, *faults))


_MOST = np.iinfo(np.int64).max


class Once:
    """Finds pairs of query and document that occur more than once."""

    def __init__(self, expected: str) -> None:
        self._expected = expected
        self._codes: tuple[dict[str, int], dict[str, int], dict[str, int]] = ({}, {}, {})
        self._keys: list[np.ndarray] = []
        self._lines: list[np.ndarray] = []

    def take(self, batch: Batch) -> None:
        """Take in the rows of a batch."""
        system, query, document = (
            self._coded(batch.columns, name, codes)
            for name, codes in zip(("system", "query", "document"), self._codes, strict=True)
        )
        self._keys.append(np.stack([system << 32 | query, document]))
        self._lines.append(np.zeros(len(query), np.int64) if batch.lines is None else batch.lines)

    def _coded(self, columns: Mapping[str, pa.Array], name: str, codes: dict[str, int]) -> np.ndarray:
        if name not in columns:
            return np.zeros(len(columns["query"]), np.int64)
        encoded = columns[name]
        if not pa.types.is_dictionary(encoded.type):
            encoded = pc.dictionary_encode(encoded)
        own = [codes.setdefault(each, len(codes)) for each in encoded.dictionary.to_pylist()]
        return np.array(own, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)] if own else np.zeros(0, np.int64)

    def _come_again(self, keys: np.ndarray) -> bool:
        """Return whether any pair occurs again. This takes an eighth of the time of finding the pairs."""
        n_documents = max(len(self._codes[2]), 1)
        if int(keys[0].max(initial=0)) >= _MOST // n_documents:
            return True
        pairs = np.sort(keys[0] * n_documents + keys[1])
        return bool((pairs[1:] == pairs[:-1]).any())

    def note(self, file: str, problems: Problems) -> None:
        """Add a problem for each pair that occurs again, with its line."""
        if not self._keys:
            return
        keys, lines = np.concatenate(self._keys, axis=1), np.concatenate(self._lines)
        if not self._come_again(keys):
            return
        order = np.lexsort((lines, keys[1], keys[0]))
        again = order[1:][(keys[:, order[1:]] == keys[:, order[:-1]]).all(axis=0)]
        queries, documents = list(self._codes[1]), list(self._codes[2])
        for row in again[np.argsort(lines[again])].tolist():
            query, document = queries[int(keys[0, row]) & 0xFFFFFFFF], documents[int(keys[1, row])]
            found = f"query {shown(query)} and document {shown(document)} again"
            problems.add(file, int(lines[row]), self._expected, found, "Keep one of them.")
