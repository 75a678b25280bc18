"""Occurrences of queries in the words of a transcript, by the gap rule of NIST's evaluations.

The words of a (document, channel, speaker) are taken in order of their start (equal starts: as in the file); a record
that repeats another counts once. An occurrence begins at a word that matches the query's first word and whose subtype
is neither `frag` nor `fp`; each next word of the query must be the very next word there, with next.start - current.end
<= find gap, in exact ticks; the gap may be negative. The occurrence lasts from the start of its first word to
the end of its last. Occurrences of one query that overlap all count.

Text is compared code point by code point, without Unicode normalization: a list and an RTTM that write an accented
letter in two ways do not match. `compareNormalize="lowercase"` in the query list's header folds the case of both sides,
word by word; any other value, or none, compares exactly. Ids are never folded.

The filters (KWSEval's text pre-filters) split every word of both sides into units; each unit then counts as a word. A
unit gets a share of its word's time in proportion to its number of characters (code points); its edges are rounded half
to even to ticks.

- `deletehyphens`: hyphens ("-") are removed first, so that the parts of "twenty-one" are joined to "twentyone"; a
  word of hyphens only is left out.
- `charsplit`: every character is a unit.
- `charsplit` with `notascii`: every character outside ASCII is a unit, and so is every run of ASCII characters.
  `notascii` alone changes nothing.

QUIRK, under `compat = "kwseval"`: a repeated record counts as another word. The units of a word have equal shares of
its time, in whole milliseconds. The next word is found by position: record n of a speaker in the file is followed by
word n + 1 of the speaker in order of time. In a file in order of time, that is the next word. The first word of a query
is compared as above; later words are compared without case, whatever the list says. Case is folded letter by letter, so
a capital sigma at the end of a word becomes the small sigma that is not final. The filters are KWSEval's own. Without
`charsplit` the others do nothing. `notascii` joins ASCII characters again in two passes over the whole text, which also
joins ASCII words of a query ("ab cd" becomes "abc d"). `deletehyphens` then replaces every hyphen by a blank, so that
the parts of "twenty-one" are separate words.

QUIRK, under `compat = "stdeval"`: words stay in the order of the file, a repeated record counts as another word, and
fragments may begin an occurrence. No occurrence of a query overlaps another. A failed attempt hides other possible
starts within it: the search continues at the word that does not match, or after the word that comes too late. The case
of the 26 letters of ASCII is folded, whatever the list says: "é" differs from "É".

QUIRK, under `compat = "mediaeval"`: texts are ignored. An occurrence of a query is a word that equals the query's id
exactly, whatever its subtype.

If a table gives the occurrences, each becomes a word of its own (`formats.reference.table`), and every rule finds them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate
from string import ascii_lowercase, ascii_uppercase
from typing import NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.archive.protocols import COUNT_REPEATED, FindRule
from swsdask.formats.reference.nist_xml import has_tokens
from swsdask.model.errors import InputError, Problem
from swsdask.model.schemas import FOUND_OCCURRENCES
from swsdask.model.trials import F64, I64, Bool
from swsdask.model.units import TICKS_PER_SECOND

LOWERCASE = "lowercase"

_CHARACTER = re.compile(r".", re.DOTALL)
_ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_ASCII_APART = re.compile(r"([\x01-\x7f])\s+([\x01-\x7f])")
_ASCII_RUN_OR_CHARACTER = re.compile(r"[\x00-\x7f]+|.", re.DOTALL)


def compare_normalize(queries: pa.Table) -> str:
    """Return how text is compared according to the header of a query list: "lowercase", or "" for exactly.

    Raises `InputError` for a value that is neither.
    """
    value: str = (queries.schema.metadata or {}).get(b"compareNormalize", b"").decode()
    if value not in ("", LOWERCASE):
        expected = f'compareNormalize="{LOWERCASE}" or compareNormalize=""'
        raise InputError(
            Problem("query list", None, expected, f'compareNormalize="{value}"', "Correct the list's header.")
        )
    return value


def units(word: str, normalize: str, text_filters: Sequence[str]) -> list[str]:
    """Return the units into which a word is split for comparison, in order; none if the filters remove all of it."""
    if normalize == LOWERCASE:
        word = word.lower()
    if "deletehyphens" in text_filters:
        word = word.replace("-", "")
    if "charsplit" not in text_filters:
        return [word] if word else []
    pattern = _ASCII_RUN_OR_CHARACTER if "notascii" in text_filters else _CHARACTER
    return pattern.findall(word)


def spelled(text: str, normalize: str, rule: FindRule) -> list[tuple[str, str]]:
    """The units of a query's text or of a word, each in two forms: as first unit of an occurrence and as a later one.

    The words of a query are separated by white space.
    """
    if rule.finder == "mediaeval":
        return [(text, text)]
    if rule.finder == "kwseval":
        split = kwseval_units(text, rule.text_filters)
        return [(_perl_lower(unit) if normalize == LOWERCASE else unit, unit.casefold()) for unit in split]
    if rule.finder == "stdeval":
        normalize, text = "", text.translate(_ASCII_LOWER)
    return [(unit, unit) for word in text.split() for unit in units(word, normalize, rule.text_filters)]


def _perl_lower(text: str) -> str:
    return "".join(map(str.lower, text))


def kwseval_read(text: str) -> str:
    """Return a query's text as KWSEval reads it: `&`, `<` and `>` stay escapes of XML, which no word of an RTTM has."""
    return escape(text)


def kwseval_units(text: str, text_filters: Sequence[str]) -> list[str]:
    """Split a text as KWSEval's filters do."""
    if "charsplit" in text_filters:
        text = " ".join(text)
        if "notascii" in text_filters:
            text = _ASCII_APART.sub(r"\1\2", _ASCII_APART.sub(r"\1\2", text))
        if "deletehyphens" in text_filters:
            text = text.replace("-", " ")
    return text.split()


def kwseval_text(text: str, text_filters: Sequence[str]) -> str:
    """Return a query's text as KWSEval shows it, after its filters."""
    read = kwseval_read(text)
    return " ".join(kwseval_units(read, text_filters)) if "charsplit" in text_filters else read


FINDER_VERSION = 6
"""The version of the rules above. Increment it with a change that finds other occurrences: stored ones are replaced."""

CANNOT_START = ("frag", "fp")
_ANY_STARTS = ("stdeval", "mediaeval")

_NOWHERE = np.zeros(0, np.int64)

_MOST_BYTES = 2**31 - 1
"""The capacity of an Arrow array of strings."""


class _Units(NamedTuple):
    """The units of the words, grouped by (document, channel, speaker).

    `row` is the word in the table `words`; `text` and `later` are the codes of the unit's text as the first one of an
    occurrence and as a later one; `following` is the unit that follows (-1: none). Times are in ticks.
    """

    row: I64
    text: I64
    later: I64
    start: I64
    end: I64
    can_start: Bool
    following: I64


class _Spellings(NamedTuple):
    """Every distinct word, split into units: word i has the units first[i] to first[i + 1] - 1.

    `text` and `later` are the codes of each unit's text. `begins` is the number of characters of the word before the
    unit, `ends` the number up to its end, `length` the number in the whole word.
    """

    first: I64
    text: I64
    later: I64
    begins: I64
    ends: I64
    length: I64


def finder_of(rule: FindRule) -> str:
    """Return the name of the rule that finds occurrences, and its version."""
    return f"{rule.finder} {FINDER_VERSION}"


def find_occurrences(words: pa.Table, queries: pa.Table, rule: FindRule) -> pa.Table:
    """Return the occurrences (`model.schemas.FOUND_OCCURRENCES`), sorted by (query, document, channel, start, end).

    `words` and `queries` are tables of `model.schemas`. A query without text has none. The time for a
    query is proportional to the number of places of its first word. Raises `InputError` if there are so many that a
    column of their documents would not fit into an Arrow array.
    """
    spoken, query, first, last = _find_units(words, queries, rule)
    _check_size(words, spoken.row[first], queries, query)
    return _table(words, spoken, query, first, last)


def find_detections(words: pa.Table, scores: F64, queries: pa.Table, rule: FindRule) -> pa.Table:
    """Return the detections of a system that searches its own transcript, as the table of a run.

    `words` is the transcript, `scores` has the score of each row. Queries are found by our own rule, whatever
    `rule.finder` says. The score of a detection is the lowest score of its words, so any increasing function of the
    words' scores gives the same ranking.
    """
    spoken, query, first, last = _find_units(words, queries, rule._replace(finder="own"))
    of_units = scores[spoken.row]
    score = of_units[first]
    for later in range(1, int((last - first).max(initial=0)) + 1):
        score = np.minimum(score, of_units[np.minimum(first + later, last)])
    row = pa.array(spoken.row[first])
    columns = {
        "query": queries["query"].take(pa.array(query)),
        "document": words["document"].take(row),
        "channel": words["channel"].take(row),
        "start": spoken.start[first] / TICKS_PER_SECOND,
        "duration": (spoken.end[last] - spoken.start[first]) / TICKS_PER_SECOND,
        "score": score,
    }
    return pa.table(columns)


def _find_units(words: pa.Table, queries: pa.Table, rule: FindRule) -> tuple[_Units, I64, I64, I64]:
    """Return the units of the words; and the query, the first unit and the last unit of every occurrence."""
    normalize = compare_normalize(queries)
    said = queries["query" if rule.finder == "mediaeval" and not has_tokens(queries) else "text"].to_pylist()
    if rule.finder == "kwseval":
        said = [kwseval_read(text) for text in said]
    texts = [spelled(text, normalize, rule) for text in said]
    code: dict[str, int] = {}
    spoken = _units(words, normalize, rule, code)
    places = _places(spoken, {code[text[0][0]] for text in texts if text and text[0][0] in code})
    query: list[I64] = [_NOWHERE]
    first: list[I64] = [_NOWHERE]
    last: list[I64] = [_NOWHERE]
    for number, text in enumerate(texts):
        at = places.get(code.get(text[0][0], -1), _NOWHERE) if text else _NOWHERE
        later = [code.get(unit, -1) for _, unit in text[1:]]
        begins, ends = (_without_overlap if rule.finder == "stdeval" else _all)(at, later, spoken, rule.find_gap)
        query.append(np.full(len(begins), number, np.int64))
        first.append(begins)
        last.append(ends)
    return spoken, np.concatenate(query), np.concatenate(first), np.concatenate(last)


def _all(at: I64, later: Sequence[int], spoken: _Units, find_gap: int) -> tuple[I64, I64]:
    """Return the first and the last units of all occurrences that begin at the places `at`."""
    first = last = at
    for unit in later:
        following = spoken.following[last]
        goes_on = (following >= 0) & (spoken.later[following] == unit)
        goes_on &= spoken.start[following] - spoken.end[last] <= find_gap
        first, last = first[goes_on], following[goes_on]
    return first, last


def _without_overlap(at: I64, later: Sequence[int], spoken: _Units, find_gap: int) -> tuple[I64, I64]:
    """Do as `_all`, but go from one place to the next as STDEval does."""
    found = []
    free = 0
    for begin in at.tolist():
        if begin < free:
            continue
        reached, free = begin, begin + 1
        for unit in later:
            free = reached + 1
            if spoken.following[reached] < 0 or spoken.later[free] != unit:
                break
            if spoken.start[free] - spoken.end[reached] > find_gap:
                free += 1
                break
            reached = free
        else:
            found.append((begin, reached))
            free = reached + 1
    columns = np.array(found, np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


def _repeated(words: pa.Table, track: I64, start: I64, order: I64) -> I64:
    """Return the rows of the records that repeat another; `order` sorts all rows by (track, start)."""
    together = (np.diff(track[order]) == 0) & (np.diff(start[order]) == 0)
    pairs = np.flatnonzero(together)
    rows = np.unique(order[np.concatenate([pairs, pairs + 1])])
    numbered = words.take(pa.array(rows)).append_column("row", pa.array(rows))
    firsts = numbered.group_by(words.column_names).aggregate([("row", "min")])["row_min"].to_numpy()
    return np.setdiff1d(rows, firsts, assume_unique=True)


def _units(words: pa.Table, normalize: str, rule: FindRule, code: dict[str, int]) -> _Units:
    """Return the units of all words. Adds the codes of their texts to `code`."""
    distinct, word = _encode_column(words["word"])
    spelling = _spellings([spelled(each, normalize, rule) for each in distinct], code)
    subtypes, subtype = _encode_column(words["subtype"])
    can_start = np.array([name not in CANNOT_START or rule.finder in _ANY_STARTS for name in subtypes], bool)[subtype]
    start = words["start"].to_numpy().astype(np.int64)
    track = _track(words)

    if rule.finder in COUNT_REPEATED:
        in_order = np.argsort(track, kind="stable")
    else:
        in_order = np.lexsort((start, track))
        once = np.ones(len(start), bool)
        once[_repeated(words, track, start, in_order)] = False
        in_order = in_order[once[in_order]]
    count = np.diff(spelling.first)[word[in_order]]
    row = np.repeat(in_order, count)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    unit = spelling.first[word[row]] + nth
    duration = words["end"].to_numpy()[row] - start[row]
    in_time = np.arange(len(row))
    if rule.finder == "kwseval":
        begins, ends = _equal_shares(start[row], duration, nth, np.repeat(count, count))
        in_time = np.lexsort((begins, track[row]))
    else:
        begins = start[row] + _share(duration, spelling.begins[unit], spelling.length[unit])
        ends = start[row] + _share(duration, spelling.ends[unit], spelling.length[unit])
    goes_on = np.append(track[row][1:] == track[row][:-1], False)[: len(row)]
    return _Units(
        row=row,
        text=spelling.text[unit],
        later=spelling.later[unit],
        start=begins,
        end=ends,
        can_start=can_start[row],
        following=np.where(goes_on, np.append(in_time, -1)[1:], -1),
    )


def _spellings(cut_up: Sequence[Sequence[tuple[str, str]]], code: dict[str, int]) -> _Spellings:
    text = [code.setdefault(unit, len(code)) for word in cut_up for unit, _ in word]
    later = [code.setdefault(unit, len(code)) for word in cut_up for _, unit in word]
    ends = [edge for word in cut_up for edge in accumulate(len(unit) for unit, _ in word)]
    lengths = [len(unit) for word in cut_up for unit, _ in word]
    whole = [total for word in cut_up for total in [sum(len(unit) for unit, _ in word)] * len(word)]
    first = [0, *accumulate(map(len, cut_up))]
    columns = [np.array(column, np.int64) for column in (first, text, later, ends, lengths, whole)]
    return _Spellings(columns[0], columns[1], columns[2], columns[3] - columns[4], columns[3], columns[5])


def _equal_shares(start: I64, duration: I64, nth: I64, count: I64) -> tuple[I64, I64]:
    """Return the starts and ends of units in words of `count` units, as KWSEval prints and reads its doubles."""
    begins, ends = start.copy(), start + duration
    for unit in np.flatnonzero(count > 1).tolist():
        share = float(f"{duration[unit] / TICKS_PER_SECOND / count[unit]:.3f}")
        begin = float(f"{start[unit] / TICKS_PER_SECOND + share * nth[unit]:.3f}")
        begins[unit], ends[unit] = round(begin * TICKS_PER_SECOND), round((begin + share) * TICKS_PER_SECOND)
    return begins, ends


def _share(duration: I64, part: I64, whole: I64) -> I64:
    """The `part`/`whole` of each duration, rounded half to even: exact, and the duration itself for the whole."""
    shares = np.where((part == whole) & (part > 0), duration, 0)
    inner = np.flatnonzero((part > 0) & (part < whole))
    share, rest = np.divmod(duration[inner] * part[inner], whole[inner])
    up: Bool = (2 * rest > whole[inner]) | ((2 * rest == whole[inner]) & (share % 2 == 1))
    shares[inner] = share + up
    return shares


def _track(words: pa.Table) -> I64:
    """Number the triples (document, channel, speaker)."""
    _, document = _encode_column(words["document"])
    speakers, speaker = _encode_column(words["speaker"])
    channel = words["channel"].to_numpy().astype(np.int64) + 128
    track: I64 = (document * 256 + channel) * len(speakers) + speaker
    return track


def _encode_column(column: pa.ChunkedArray) -> tuple[list[str], I64]:
    """Return the distinct strings of a column and its codes, int64."""
    encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    codes: I64 = encoded.indices.to_numpy().astype(np.int64)
    return encoded.dictionary.to_pylist(), codes


def _places(spoken: _Units, wanted: set[int]) -> dict[int, I64]:
    """Return the places at which an occurrence may begin, by the code of its first unit."""
    at = np.flatnonzero(spoken.can_start & np.isin(spoken.text, list(wanted)))
    at = at[np.argsort(spoken.text[at], kind="stable")]
    codes, starts = np.unique(spoken.text[at], return_index=True)
    return dict(zip(codes.tolist(), np.split(at, starts[1:]), strict=False))


def _check_size(words: pa.Table, row: I64, queries: pa.Table, query: I64) -> None:
    lengths = pc.binary_length(words["document"]).to_numpy()
    if lengths[row].sum(dtype=np.int64) <= _MOST_BYTES:
        return
    counts = np.bincount(query)
    most = int(counts.argmax())
    name = queries["query"][most].as_py()
    expected = "fewer occurrences: the ids of their documents may have 2 GiB together"
    found = f"{len(row):,} occurrences, of which {counts[most]:,} of {name!r}"
    raise InputError(Problem("query list", None, expected, found, "Leave out the queries that occur everywhere."))


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
