"""What is searched: queries of one to three words, and where they were spoken."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swsdask.model.trials import I8, I32, I64, Bool
from swsdask.simulate.lexicon import LANGUAGES
from swsdask.simulate.speech import VOCABULARY, Words

FIND_GAP_MS = 500
"""The longest pause between two words of one occurrence."""


@dataclass(frozen=True, eq=False)
class Queries:
    """The query list: the codes of each query's words, its language, and whether it is out of vocabulary."""

    words: tuple[tuple[int, ...], ...]
    language: I64
    oov: Bool


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Where queries were spoken, sorted by (query, document, channel, start, end)."""

    query: I32
    document: I32
    channel: I8
    start: I64
    end: I64
    first_word_end: I64
    last_word_start: I64


def choose(n_queries: int, words: Words, rng: np.random.Generator) -> tuple[Queries, Words]:
    """Choose queries, and the speech with the longer ones said in it more often than chance would have them.

    About 55 % have one word, 30 % two, 15 % three; one in twelve is never said. Words nobody says are out of
    vocabulary, others the more often the rarer they are.
    """
    spoken = _spoken_by_frequency(words)
    said = words.word.copy()
    chosen: dict[tuple[int, ...], None] = {}
    language, oov = [], []
    while len(chosen) < n_queries:
        k = int(rng.integers(len(LANGUAGES)))
        length = int(rng.choice(3, p=(0.55, 0.3, 0.15))) + 1
        absent = rng.random() < 1 / 12
        depth = rng.random(length) ** 0.8
        ranks = np.exp(np.log(12) + depth * np.log(len(spoken[k]) / 12 * 0.8)).astype(np.int64)
        query = tuple(int(spoken[k][min(rank, len(spoken[k]) - 1)]) for rank in ranks)
        if absent and length == 1:
            query = (int(2 * VOCABULARY * k + rng.integers(VOCABULARY, 2 * VOCABULARY)),)
        if query in chosen:
            continue
        chosen[query] = None
        language.append(k)
        oov.append((absent and length == 1) or bool(rng.random() < 0.25 * depth.max()))
        if length > 1 and not absent:
            _say(query, k, 1 + int(rng.lognormal(1.5, 0.9)), said, words, rng)
    return Queries(tuple(chosen), np.array(language), np.array(oov)), replace(words, word=said)


def find(queries: Queries, words: Words) -> Occurrences:
    """Every place where a query was spoken: its words in a row, of one speaker, at most `FIND_GAP_MS` apart."""
    rows = np.lexsort((words.start, words.speaker, words.channel, words.document))
    by = Words(**{name: column[rows] for name, column in vars(words).items()})
    same = (np.diff(by.document) == 0) & (np.diff(by.channel) == 0) & (np.diff(by.speaker) == 0)
    follows = np.append(same & (by.start[1:] - by.end[:-1] <= FIND_GAP_MS), False)
    order = np.argsort(by.word, kind="stable")
    code = by.word[order]
    found = []
    for number, query in enumerate(queries.words):
        first = order[slice(*np.searchsorted(code, (query[0], query[0] + 1)))]
        last = first
        for word in query[1:]:
            going = follows[last]
            first, last = first[going], last[going] + 1
            right = by.word[last] == word
            first, last = first[right], last[right]
        found.append((np.full(len(first), number), first, last))
    query_number, first, last = (np.concatenate(column).astype(np.int64) for column in zip(*found, strict=True))
    sort = np.lexsort((by.end[last], by.start[first], by.channel[first], by.document[first], query_number))
    query_number, first, last = query_number[sort], first[sort], last[sort]
    return Occurrences(
        query=query_number.astype(np.int32),
        document=by.document[first],
        channel=by.channel[first],
        start=by.start[first],
        end=by.end[last],
        first_word_end=by.end[first],
        last_word_start=by.start[last],
    )


def _spoken_by_frequency(words: Words) -> list[I64]:
    """The codes of the words of each language, the most frequent first. Every language has some, said or not."""
    counts = np.bincount(words.word[words.word >= 0], minlength=2 * VOCABULARY * len(LANGUAGES))
    by_language = counts.reshape(len(LANGUAGES), 2 * VOCABULARY)[:, :VOCABULARY]
    return [
        2 * VOCABULARY * k + np.argsort(-row, kind="stable")[: max(int((row > 0).sum()), 60)]
        for k, row in enumerate(by_language)
    ]


def _say(query: tuple[int, ...], language: int, times: int, said: I64, words: Words, rng: np.random.Generator) -> None:
    """Put a query in place of what was said, at up to so many random places inside turns of its language."""
    starts = rng.integers(0, len(said) - len(query), 40 * times + 20)
    span = starts[:, None] + np.arange(len(query))
    fits = (said[span] // (2 * VOCABULARY) == language).all(axis=1)
    fits &= words.turn[starts] == words.turn[starts + len(query) - 1]
    for start in starts[fits][:times].tolist():
        said[start : start + len(query)] = query
