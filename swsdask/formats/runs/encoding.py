"""Tables with times in frames or within utterances, or with costs as scores, such as those of Kaldi's kws-search.

kws-search writes lines "query utterance first-frame end-frame cost", where the cost is -log p. Kaldi's file `segments`
places utterances in recordings: lines "utterance recording start end", in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.formats.files import noted
from swsdask.formats.runs.gathering import Batch
from swsdask.formats.text import read_lines
from swsdask.formats.values import BLANKS, NUMBER, FormatError, shown
from swsdask.model.errors import Problems, SettingsError
from swsdask.model.trials import F64
from swsdask.places.reading import Location, readable

_TIMES = ("start", "duration", "end")
_DIGITS = 9
"""The decimals of seconds to which times are rounded."""

NEGATED = "negated_scores"
ENCODING_ATTRIBUTES = ("frame_shift", NEGATED, "utterances")
"""The attributes of a run's header that record an encoding."""


@dataclass(frozen=True)
class Encoding:
    """The units of a table's times and scores, and the kind of its documents.

    `frame_shift` is the number of seconds per frame, None for times in seconds; `negated` scores are costs.
    `utterances` maps the names of utterances to the recording and the start in it in seconds; None if documents are
    recordings.
    """

    frame_shift: float | None = None
    negated: bool = False
    utterances: Mapping[str, tuple[str, float]] | None = None

    def __post_init__(self) -> None:
        shift = self.frame_shift
        if shift is not None and not (isinstance(shift, int | float) and 0 < shift < 1e3):
            raise SettingsError(f"expected a frame shift in seconds, e.g. 0.01; found {shift!r}.")
        if not isinstance(self.negated, bool):
            raise SettingsError(f"negate_scores is {self.negated!r}; expected True or False.")

    def __bool__(self) -> bool:
        return self.frame_shift is not None or self.negated or self.utterances is not None

    @property
    def attributes(self) -> dict[str, str]:
        """The attributes of a run's header that record it."""
        shift = None if self.frame_shift is None else repr(self.frame_shift)
        values = (shift, "yes" if self.negated else None, None if self.utterances is None else "yes")
        return {name: value for name, value in zip(ENCODING_ATTRIBUTES, values, strict=True) if value is not None}

    def decode(self, batch: Batch) -> Batch:
        """Decode rows: recordings, times in seconds within them, and scores that rise with confidence."""
        columns = dict(batch.columns)
        faulty: tuple[tuple[int, FormatError], ...] = ()
        starts = np.zeros(len(columns["query"]))
        if self.utterances is not None:
            columns["document"], starts, faulty = _in_recordings(columns["document"], self.utterances)
        if self.frame_shift is not None or self.utterances is not None:
            for name in (name for name in _TIMES if name in columns):
                later = starts if name != "duration" else np.zeros(len(starts))
                columns[name] = _in_seconds(columns[name], self.frame_shift or 1.0, later)
        if self.negated:
            columns["score"] = _negative(columns["score"])
        return batch._replace(columns=columns, faulty=faulty)


PLAIN = Encoding()


def read_encoding(frame_shift: float | None, negate_scores: bool, segments: Location | None) -> Encoding:
    """Return the encoding that arguments of public functions describe.

    Raises `InputError` for a faulty file of segments.
    """
    return Encoding(frame_shift, negate_scores, None if segments is None else _read_segments(readable(segments)))


def _read_segments(url: str) -> dict[str, tuple[str, float]]:
    """Return the recording of every utterance, and where in it the utterance starts."""
    problems = Problems()
    found: dict[str, tuple[str, float]] = {}
    with noted(problems):
        for lines in read_lines(url):
            for number, line in enumerate(lines.data.decode().split("\n"), lines.first):
                fields = line.split()
                if not fields:
                    continue
                plain = len(fields) >= 4 and NUMBER.fullmatch(fields[2]) and not fields[2].startswith("-")
                place = (fields[1], float(fields[2])) if plain else None
                if place is None:
                    remedy = "Give Kaldi's file segments, with times in seconds."
                    problems.add(url, number, "an utterance: name recording start end", shown(line), remedy)
                elif found.setdefault(fields[0], (fields[1], float(fields[2]))) != (fields[1], float(fields[2])):
                    problems.add(
                        url, number, "each utterance once", shown(fields[0]), "Which one is it? Leave one out."
                    )
        if not found:
            problems.add(url, 1, "at least one utterance", "none", "Give Kaldi's file segments.")
    problems.raise_if_any()
    return found


def _in_recordings(
    column: pa.Array, utterances: Mapping[str, tuple[str, float]]
) -> tuple[pa.Array, F64, tuple[tuple[int, FormatError], ...]]:
    """Return the recordings of a column of utterances, where each row's utterance starts, and the rows of unknown ones.

    Null values stay null, and are reported later.
    """
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
    names = [str(name) for name in coded.dictionary.to_pylist()]
    places = [utterances.get(name.strip(BLANKS)) for name in names]
    known = np.array([place is not None for place in places] + [True])
    faulty = [(row, _unknown(names[codes[row]])) for row in np.flatnonzero(~known[codes]).tolist()]
    starts = np.array([0.0 if place is None else place[1] for place in places] + [0.0])[codes]
    recordings = pa.array([name if place is None else place[0] for name, place in zip(names, places, strict=True)])
    merged = recordings.cast(pa.string()).dictionary_encode()
    of_codes = pc.take(merged.indices, pa.array(codes, mask=codes < 0))
    return pa.DictionaryArray.from_arrays(of_codes, merged.dictionary), starts, tuple(faulty)


def _unknown(name: str) -> FormatError:
    return FormatError("an utterance of the file of segments", shown(name), "Give the segments of this run.")


def _in_seconds(column: pa.Array, shift: float, starts: F64) -> pa.Array:
    """Numbers of frames as seconds after `starts`; text that is not a number is kept, and reported later."""
    try:
        frames = column.cast(pa.float64())
    except pa.ArrowInvalid:
        texts = zip(column.to_pylist(), starts.tolist(), strict=True)
        return pa.array([_time(text, shift, start) for text, start in texts], pa.string())
    missing = pc.is_null(frames).to_numpy(zero_copy_only=False)
    seconds = frames.to_numpy(zero_copy_only=False) * shift + starts
    return pa.array(np.round(seconds, _DIGITS), mask=missing)


def _time(text: str | None, shift: float, start: float) -> str | None:
    plain = "" if text is None else text.strip(BLANKS)
    if not NUMBER.fullmatch(plain):
        return text
    return str(Decimal(plain) * Decimal(repr(shift)) + Decimal(repr(start)))


def _negative(column: pa.Array) -> pa.Array:
    """Return the negated numbers, with all of their digits."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return pc.negate(column)
    plain = pc.ascii_ltrim(pc.ascii_trim(column, BLANKS), "+")
    positive = pc.ascii_ltrim(plain, "-")
    return pc.if_else(
        pc.starts_with(plain, "-"), pc.utf8_slice_codeunits(plain, 1), pc.binary_join_element_wise("-", positive, "")
    )
