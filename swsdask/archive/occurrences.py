"""Where the queries were spoken: the words of the RTTM become occurrences by the gap rule of NIST's evaluations.

The words of a (document, channel, speaker) are taken in order of their start (equal starts: as in the file). An
occurrence begins at a word that matches the query's first word and whose subtype is neither `frag` nor `fp`; each
next word of the query must be the very next word there, with next.start - current.end <= find gap, in exact ticks,
inclusive; a negative gap is fine. The occurrence lasts from the start of its first word to the end of its last.
Occurrences of one query that overlap all count. How text is compared and filtered: `archive.text`.

A word that the filters cut into units gives each the share of its time that its characters have, edges rounded half
to even to ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from swsdask.archive.text import compare_normalize, query_units, units
from swsdask.model.finding import FindRule
from swsdask.model.schemas import FOUND_OCCURRENCES
from swsdask.model.trials import I64, Bool

FINDER_VERSION = 2
"""Of the rules above. A change that finds other occurrences counts it up, so that stored ones are found again."""

CANNOT_START = ("frag", "fp")

_NOWHERE = np.zeros(0, np.int64)


class _Units(NamedTuple):
    """The units of the words in order of (document, channel, speaker, start).

    `row` is the word in the table `words`, `text` the code of the unit's text; times are ticks.
    """

    row: I64
    track: I64
    text: I64
    start: I64
    end: I64
    can_start: Bool


class _Spellings(NamedTuple):
    """Every distinct word cut into units: those of word i are numbers first[i] to first[i + 1] - 1.

    `text` is the code of each unit's text, `begins` and `ends` count the characters of its word before it and up to its
    end, `length` those of the whole word.
    """

    first: I64
    text: I64
    begins: I64
    ends: I64
    length: I64


def finder_of(rule: FindRule) -> str:
    """Whose rule finds occurrences, and its version."""
    return f"{rule.finder} {FINDER_VERSION}"


def find_occurrences(words: pa.Table, queries: pa.Table, rule: FindRule) -> pa.Table:
    """The occurrences (`model.schemas.FOUND_OCCURRENCES`), sorted by (query, document, channel, start, end).

    `words` and `queries` are tables of `model.schemas`. A query without text has none. Every query costs time in
    proportion to the places of its first word.
    """
    find_gap, text_filters, _ = rule
    normalize = compare_normalize(queries)
    texts = [query_units(text, normalize, text_filters) for text in queries["text"].to_pylist()]
    code: dict[str, int] = {}
    spoken = _in_order(words, normalize, text_filters, code)
    follows = (spoken.track[1:] == spoken.track[:-1]) & (spoken.start[1:] - spoken.end[:-1] <= find_gap)
    places = _places(spoken, {code[text[0]] for text in texts if text and text[0] in code})
    query: list[I64] = [_NOWHERE]
    first: list[I64] = [_NOWHERE]
    last: list[I64] = [_NOWHERE]
    for number, text in enumerate(texts):
        wanted = [code.get(unit, -1) for unit in text]
        at = places.get(wanted[0], _NOWHERE) if wanted else _NOWHERE
        for step, unit in enumerate(wanted[1:]):
            at = at[at + step < len(follows)]
            at = at[follows[at + step] & (spoken.text[at + step + 1] == unit)]
        query.append(np.full(len(at), number, np.int64))
        first.append(at)
        last.append(at + len(text) - 1)
    return _table(words, spoken, np.concatenate(query), np.concatenate(first), np.concatenate(last))


def _in_order(words: pa.Table, normalize: str, text_filters: Sequence[str], code: dict[str, int]) -> _Units:
    """The units of all words; `code` gets the codes of their texts."""
    distinct, word = _coded(words["word"])
    spelling = _spellings([units(each, normalize, text_filters) for each in distinct], code)
    subtypes, subtype = _coded(words["subtype"])
    can_start = np.array([name not in CANNOT_START for name in subtypes], bool)[subtype]
    start = words["start"].to_numpy().astype(np.int64)
    duration = words["end"].to_numpy().astype(np.int64) - start
    track = _track(words)

    in_order = np.lexsort((start, track))
    count = np.diff(spelling.first)[word[in_order]]
    row = np.repeat(in_order, count)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    unit = spelling.first[word[row]] + nth
    return _Units(
        row=row,
        track=track[row],
        text=spelling.text[unit],
        start=start[row] + _share(duration[row], spelling.begins[unit], spelling.length[unit]),
        end=start[row] + _share(duration[row], spelling.ends[unit], spelling.length[unit]),
        can_start=can_start[row],
    )


def _spellings(cut_up: Sequence[Sequence[str]], code: dict[str, int]) -> _Spellings:
    text = [code.setdefault(unit, len(code)) for word in cut_up for unit in word]
    ends = [edge for word in cut_up for edge in accumulate(map(len, word))]
    lengths = [len(unit) for word in cut_up for unit in word]
    whole = [total for word in cut_up for total in [sum(map(len, word))] * len(word)]
    first = [0, *accumulate(map(len, cut_up))]
    columns = [np.array(column, np.int64) for column in (first, text, ends, lengths, whole)]
    return _Spellings(columns[0], columns[1], columns[2] - columns[3], columns[2], columns[4])


def _share(duration: I64, part: I64, whole: I64) -> I64:
    """The `part`/`whole` of each duration, rounded half to even: exact, and the duration itself for the whole."""
    share, rest = np.divmod(duration * part, whole)
    up: Bool = (2 * rest > whole) | ((2 * rest == whole) & (share % 2 == 1))
    rounded: I64 = share + up
    return rounded


def _track(words: pa.Table) -> I64:
    """One number per (document, channel, speaker)."""
    _, document = _coded(words["document"])
    speakers, speaker = _coded(words["speaker"])
    channel = words["channel"].to_numpy().astype(np.int64) + 128
    track: I64 = (document * 256 + channel) * len(speakers) + speaker
    return track


def _coded(column: pa.ChunkedArray) -> tuple[list[str], I64]:
    """The distinct strings of a column and its codes, int64."""
    encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    codes: I64 = encoded.indices.to_numpy().astype(np.int64)
    return encoded.dictionary.to_pylist(), codes


def _places(spoken: _Units, wanted: set[int]) -> dict[int, I64]:
    """Where an occurrence may begin, by the code of its first unit."""
    at = np.flatnonzero(spoken.can_start & np.isin(spoken.text, list(wanted)))
    at = at[np.argsort(spoken.text[at], kind="stable")]
    codes, starts = np.unique(spoken.text[at], return_index=True)
    return dict(zip(codes.tolist(), np.split(at, starts[1:]), strict=False))


def _table(words: pa.Table, spoken: _Units, query: I64, first: I64, last: I64) -> pa.Table:
    row = spoken.row[first]
    found = pa.table(
        {
            "query": query.astype(np.int32),
            "document": words["document"].take(pa.array(row)),
            "channel": words["channel"].to_numpy()[row],
            "start": spoken.start[first].astype(np.int32),
            "end": spoken.end[last].astype(np.int32),
            "first_word_end": spoken.end[first].astype(np.int32),
            "last_word_start": spoken.start[last].astype(np.int32),
            "speaker": words["speaker"].take(pa.array(row)),
        }
    )
    return found.sort_by([(name, "ascending") for name in FOUND_OCCURRENCES.names]).cast(FOUND_OCCURRENCES)
