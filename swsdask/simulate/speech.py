"""Synthetic speech, queries for what is said in it, and the detections of synthetic systems.

Recordings have turns of speakers with words, whose frequencies follow Zipf's law.

Words are invented: each language has a lexicon, spelled from its own syllables. Speech is made as one long sequence,
which is then divided into the channels of the recordings. All times are whole milliseconds.

Queries have one to three words. Detections of systems are hits and false alarms with scores and decisions.
Scores are first well-calibrated log-likelihood ratios. A system finds the share `found` of the occurrences,
and their scores are normal with mean `mean` and standard deviation `spread`. Then false alarms must have the density
found * exp(-score) * normal(score); its integral over an interval of scores, times the number of non-target trials, is
their number. Only detections with a score of at least `pruning` are kept. The system reports scale * score + shift,
plus an offset that differs from query to query, which the system knows when it decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdask.model.schemas import DETECTIONS
from swsdask.model.trials import F64, I8, I32, I64, Bool
from swsdask.model.units import TICKS_PER_SECOND

_SOUNDS = {
    "albanian": ("b d dh gj k l ll m nj p q r sh t th v xh z zh", "a e ë i o u y"),
    "basque": ("b d g h k l m n p r s t ts tx tz x z", "a e i o u ai au"),
    "czech": ("b c č d h ch k l m n p r ř s š t v z ž", "a á e ě i í o u ů"),
    "english": ("b ch d f g h j k l m n p r s sh st t tr w", "a e i o u ea oo"),
    "isixhosa": ("b c dl gc hl kh l m mb n nd ng ph q s th tsh w x xh y z", "a e i o u"),
    "isizulu": ("b c dl gq hl k l m mb nc nd ng ph q s sh th v w y z", "a e i o u"),
    "romanian": ("b c d f g j l m n p r s ș t ț v z", "a ă â e i o u ea"),
    "sepedi": ("b d f g hl k kg l m n ng p ph r s š t th tl ts w y", "a e i o ô"),
    "setswana": ("b d f g j k kg l m n ng p ph r s t th tlh ts w y", "a e i o u"),
}

LANGUAGES = tuple(_SOUNDS)
"""The languages of a simulated evaluation: those of the SWS 2013 data."""


def syllable_counts(n_words: int, rng: np.random.Generator) -> list[int]:
    """Return the number of syllables of the word of each frequency rank: frequent words are short."""
    mean = 0.4 + 0.3 * np.log(np.arange(n_words) + 2.0)
    counts: list[int] = np.clip(1 + rng.poisson(mean), 1 + (np.arange(n_words) >= 20), 6).tolist()
    return counts


def spell(syllables: list[int], rng: np.random.Generator) -> list[str]:
    """The words of all languages, one language after the other, one word per entry of `syllables`: lower case, all
    different, also between languages. Some words get more syllables to make them different.
    """
    words: dict[str, None] = {}
    for onsets, vowels in _SOUNDS.values():
        sounds = [onset + vowel for onset in onsets.split() for vowel in vowels.split()]
        drawn = rng.integers(len(sounds), size=(len(syllables), max(syllables))).tolist()
        for count, numbers in zip(syllables, drawn, strict=True):
            word = "".join(sounds[number] for number in numbers[:count])
            while word in words:
                word += sounds[int(rng.integers(len(sounds)))]
            words[word] = None
    return list(words)


VOCABULARY = 2500
"""The number of spoken words per language; each language has as many words that are not spoken."""

FILLED_PAUSE, FRAGMENT = -1, -2
"""Codes of records that are not words and cannot start an occurrence."""


@dataclass(frozen=True, eq=False)
class Recordings:
    """The documents. Every one is evaluated from `lead_in` to its end; `length` counts from the recording's start.

    `track_*` are one entry per channel of a document, in the order of the documents.
    """

    ids: tuple[str, ...]
    language: I32
    conversation: Bool
    n_speakers: I64
    lead_in: I64
    length: I64
    track_document: I32
    track_channel: I8


@dataclass(frozen=True, eq=False)
class SpokenWords:
    """Everything said, sorted by (document, channel, start): one entry per record.

    `word` numbers the words of all languages together; `turn` counts stretches of speech without a longer pause.
    """

    document: I32
    channel: I8
    speaker: I32
    turn: I64
    start: I64
    end: I64
    word: I64


def make_recordings(hours: float, rng: np.random.Generator) -> Recordings:
    """Return documents that together have `hours` evaluated hours (channels of one recording count once).

    About one recording in four is a telephone conversation, and half of these have two channels. One in twenty starts
    with a lead-in that is not evaluated.
    """
    total = round(hours * 3_600_000)
    n = max(len(LANGUAGES), round(hours * 60))
    conversation = rng.random(n) < 0.25
    share = np.where(conversation, 120.0, 40.0) * (0.25 + rng.gamma(3.0, 0.25, n))
    ends = np.round(np.cumsum(share) / share.sum() * total).astype(np.int64)
    evaluated = np.diff(ends, prepend=0)
    lead_in = np.where(rng.random(n) < 0.05, rng.integers(2_000, 9_000, n), 0)
    language = rng.permutation(np.arange(n) % len(LANGUAGES)).astype(np.int32)
    two_channels = conversation & (rng.random(n) < 0.5)
    track_document = np.repeat(np.arange(n, dtype=np.int32), 1 + two_channels)
    return Recordings(
        ids=tuple(f"{LANGUAGES[code][:4]}_{number:04d}" for number, code in enumerate(language.tolist(), 1)),
        language=language,
        conversation=conversation,
        n_speakers=np.where(conversation, 1, rng.integers(1, 4, n)),
        lead_in=lead_in,
        length=lead_in + evaluated,
        track_document=track_document,
        track_channel=(1 + np.r_[0, track_document[1:] == track_document[:-1]]).astype(np.int8),
    )


def make_lexicon(rng: np.random.Generator) -> tuple[list[str], I64]:
    """Return the spelling of every word of every language, and the number of its syllables.

    The word of rank r in language k has the code 2 * VOCABULARY * k + r; ranks from VOCABULARY on are never spoken.
    """
    syllables = syllable_counts(2 * VOCABULARY, rng)
    return spell(syllables, rng), np.tile(np.array(syllables, np.int64), len(LANGUAGES))


def talk(recordings: Recordings, syllables: I64, rng: np.random.Generator) -> SpokenWords:
    """Simulate the words of all recordings: close together, with pauses between turns and a few disfluencies."""
    track_length = recordings.length[recordings.track_document]
    track_end = np.cumsum(track_length)
    n = int(track_end[-1] // 250) + 100
    frequency = 1.0 / (np.arange(VOCABULARY) + 2.7)
    rank = np.searchsorted(np.cumsum(frequency) / frequency.sum(), rng.random(n)).clip(0, VOCABULARY - 1)
    duration = (110 + 95 * syllables[rank] * rng.lognormal(0.0, 0.22, n)).astype(np.int64)
    gap = np.where(rng.random(n) < 0.7, 0, rng.exponential(60.0, n)).astype(np.int64)
    new_turn = rng.random(n) < 1 / 18
    gap[new_turn] += (250 + rng.exponential(700.0, int(new_turn.sum()))).astype(np.int64)
    end = np.cumsum(gap + duration)
    start = end - duration
    track = np.searchsorted(track_end, start, "right").clip(0, len(track_end) - 1)
    whole = (end <= track_end[track]) & (start < track_end[-1])
    track, start, end, rank, new_turn = (column[whole] for column in (track, start, end, rank, new_turn))

    document = recordings.track_document[track]
    turn = np.cumsum(new_turn | (np.diff(track, prepend=-1) != 0)) - 1
    speaker = rng.integers(0, 1_000_000, int(turn[-1]) + 1)[turn] % recordings.n_speakers[document]
    speaker += recordings.track_channel[track] - 1
    word = rank + 2 * VOCABULARY * recordings.language[document].astype(np.int64)
    disfluency = rng.random(len(word))
    word[disfluency < 0.02] = FILLED_PAUSE
    word[disfluency > 0.995] = FRAGMENT
    offset = (track_end - track_length)[track]
    return SpokenWords(
        document=document,
        channel=recordings.track_channel[track],
        speaker=speaker.astype(np.int32),
        turn=turn,
        start=start - offset,
        end=end - offset,
        word=word,
    )


FIND_GAP_MS = 500
"""The longest pause between two words of one occurrence."""


@dataclass(frozen=True, eq=False)
class Queries:
    """The query list: the codes of each query's words, its language, and whether it is out of vocabulary."""

    words: tuple[tuple[int, ...], ...]
    language: I64
    oov: Bool


@dataclass(frozen=True, eq=False)
class SpokenQueries:
    """The occurrences of queries, sorted by (query, document, channel, start, end)."""

    query: I32
    document: I32
    channel: I8
    start: I64
    end: I64
    first_word_end: I64
    last_word_start: I64


def choose(n_queries: int, words: SpokenWords, rng: np.random.Generator) -> tuple[Queries, SpokenWords]:
    """Choose queries, and insert queries of several words into the speech, where they would be rare by chance.

    About 55 % have one word, 30 % two, 15 % three; one in twelve is never said. Words that are never said are out of
    vocabulary; the rarer the words of another query, the more likely it is out of vocabulary.
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


def find(queries: Queries, words: SpokenWords) -> SpokenQueries:
    """Return every place where a query was spoken: its words in a row, of one speaker, at most `FIND_GAP_MS` apart."""
    rows = np.lexsort((words.start, words.speaker, words.channel, words.document))
    by = SpokenWords(**{name: column[rows] for name, column in vars(words).items()})
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
    return SpokenQueries(
        query=query_number.astype(np.int32),
        document=by.document[first],
        channel=by.channel[first],
        start=by.start[first],
        end=by.end[last],
        first_word_end=by.end[first],
        last_word_start=by.start[last],
    )


def _spoken_by_frequency(words: SpokenWords) -> list[I64]:
    """Return the codes of the words of each language, the most frequent first. Every language has some, said or not."""
    counts = np.bincount(words.word[words.word >= 0], minlength=2 * VOCABULARY * len(LANGUAGES))
    by_language = counts.reshape(len(LANGUAGES), 2 * VOCABULARY)[:, :VOCABULARY]
    return [
        2 * VOCABULARY * k + np.argsort(-row, kind="stable")[: max(int((row > 0).sum()), 60)]
        for k, row in enumerate(by_language)
    ]


def _say(
    query: tuple[int, ...], language: int, times: int, said: I64, words: SpokenWords, rng: np.random.Generator
) -> None:
    """Replace words by a query, at up to `times` random places within turns of its language."""
    starts = rng.integers(0, len(said) - len(query), 40 * times + 20)
    span = starts[:, None] + np.arange(len(query))
    fits = (said[span] // (2 * VOCABULARY) == language).all(axis=1)
    fits &= words.turn[starts] == words.turn[starts + len(query) - 1]
    for start in starts[fits][:times].tolist():
        said[start : start + len(query)] = query


TICKS_PER_MS = TICKS_PER_SECOND // 1000
_NORMAL = NormalDist()
_PLACE = ("duration", "start", "channel", "document", "query")
SCORE_UNIT = 1e-4
"""Scores have four decimals."""


@dataclass(frozen=True)
class SystemModel:
    """A simulated system; see the module's docstring. `threshold` is for reported scores minus the query's offset."""

    name: str
    found: float
    mean: float
    spread: float
    pruning: float
    scale: float = 1.0
    shift: float = 0.0
    query_spread: float = 0.0
    threshold: float = 4.2


SYSTEMS = (
    SystemModel("calibrated", found=0.62, mean=7.6, spread=2.0, pruning=-0.8),
    SystemModel("overconfident", found=0.60, mean=7.5, spread=2.0, pruning=1.8, scale=1.4, shift=1.5),
    SystemModel("keyword-specific", found=0.52, mean=7.3, spread=2.0, pruning=2.2, query_spread=2.0),
    SystemModel("middling", found=0.45, mean=7.0, spread=2.2, pruning=2.0, scale=0.5, threshold=2.1),
    SystemModel("weak", found=0.30, mean=6.5, spread=2.5, pruning=2.8, threshold=3.4),
)
"""Five systems: a good one whose threshold is right, and whose scores go down to about the log-likelihood ratio of what
it leaves out, so that imputed trials cost little; an equally good one that accepts too much; one with a threshold
per query; a middling and a weak one. The right threshold is SWS 2013's, log(66.66) = 4.2."""


@dataclass(frozen=True, eq=False)
class DetectionTask:
    """The task of all systems: the speech, how hard each occurrence is, and how hard each query is."""

    recordings: Recordings
    occurrences: SpokenQueries
    hardness: F64
    query_ease: F64
    query_duration: F64
    n_nontargets: float


def detect(task: DetectionTask, model: SystemModel, rng: np.random.Generator) -> pa.Table:
    """Return the detections of one system: a table of `model.schemas.DETECTIONS`, in its canonical order."""
    n_queries = len(task.query_ease)
    found = np.clip(model.found * (1 + 0.35 * task.query_ease), 0.02, 0.97)
    mean = model.mean + 0.6 * task.query_ease + rng.normal(0.0, 0.3, n_queries)
    query_number = rng.normal(0.0, model.query_spread, n_queries) if model.query_spread else np.zeros(n_queries)

    hits = _hits(task, model, found, mean, rng)
    false_alarms = _false_alarms(task, model, found, mean, rng)
    again = _beside(hits, 0.07, rng), _beside(false_alarms, 0.05, rng)
    query, track, start, duration, score = (np.concatenate(c) for c in zip(hits, false_alarms, *again, strict=True))
    kept = score >= model.pruning
    query, track, start, duration, score = (column[kept] for column in (query, track, start, duration, score))

    document = task.recordings.track_document[track]
    length = task.recordings.length[document]
    start = np.clip(start, 0, length - 100)
    duration = np.clip(duration, 60, length - start)
    own = query_number[query]
    reported = np.round((model.scale * score + model.shift + own) / SCORE_UNIT) / round(1 / SCORE_UNIT)
    decision = (reported - own >= model.threshold).astype(np.int8)
    columns: dict[str, NDArray[np.generic]] = {
        "query": query,
        "document": document,
        "channel": task.recordings.track_channel[track],
        "start": start * TICKS_PER_MS,
        "duration": duration * TICKS_PER_MS,
        "score": reported,
        "decision": decision,
        "inside": start >= task.recordings.lead_in[document],
    }
    keys: list[NDArray[np.generic]] = [decision, -reported, *(columns[name] for name in _PLACE)]
    order = np.lexsort(keys)
    return pa.table({f.name: pa.array(columns[f.name][order]).cast(f.type) for f in DETECTIONS}, schema=DETECTIONS)


class _Drawn(NamedTuple):
    """Detections in the making; times in ms."""

    query: I64
    track: I64
    start: I64
    duration: I64
    score: F64


def _hits(task: DetectionTask, model: SystemModel, found: F64, mean: F64, rng: np.random.Generator) -> _Drawn:
    """Return detections of occurrences: hard ones are hard for every system. A few are badly placed."""
    occurrences = task.occurrences
    n = len(occurrences.query)
    luck = 0.75 * task.hardness + np.sqrt(1 - 0.75**2) * rng.normal(size=n)
    there = np.flatnonzero(_each(_NORMAL.cdf, luck) < found[occurrences.query])
    query = occurrences.query[there].astype(np.int64)
    score = mean[query] + model.spread * (rng.normal(size=len(there)) - 0.5 * task.hardness[there]) / np.sqrt(1.25)
    wide = np.where(rng.random(len(there)) < 0.03, 6.0, 1.0)
    start = occurrences.start[there] + np.round(rng.normal(0.0, 45.0, len(there)) * wide).astype(np.int64)
    end = occurrences.end[there] + np.round(rng.normal(0.0, 60.0, len(there)) * wide).astype(np.int64)
    return _Drawn(query, _track_of(task, there), start, np.maximum(end - start, 60), score)


def _false_alarms(task: DetectionTask, model: SystemModel, found: F64, mean: F64, rng: np.random.Generator) -> _Drawn:
    """Return detections at random places; their number and scores make the score a log-likelihood ratio."""
    centre = mean - model.spread**2
    below = _each(_NORMAL.cdf, (model.pruning - centre) / model.spread)
    density = found * np.exp(model.spread**2 / 2 - mean) * (1 - below)
    counts = rng.poisson(density * task.n_nontargets)
    query = np.repeat(np.arange(len(counts)), counts)
    uniform = rng.random(len(query))
    share = below[query] + (1 - below[query]) * uniform
    score = centre[query] + model.spread * _each(_NORMAL.inv_cdf, share)
    track_length = task.recordings.length[task.recordings.track_document]
    tape = np.cumsum(track_length)
    place = rng.integers(0, int(tape[-1]), len(query))
    track = np.searchsorted(tape, place, "right")
    duration = task.query_duration[query] * rng.lognormal(0.0, 0.2, len(query))
    return _Drawn(query, track, place - (tape - track_length)[track], duration.astype(np.int64), score)


def _beside(rows: _Drawn, share: float, rng: np.random.Generator) -> _Drawn:
    """Second detections that overlap a share of the given ones, nearly as good."""
    again = np.flatnonzero(rng.random(len(rows.query)) < share)
    n = len(again)
    duration = rows.duration[again]
    start = rows.start[again] + np.round(duration * rng.normal(0.0, 0.25, n)).astype(np.int64)
    duration = np.maximum(np.round(duration * rng.lognormal(0.0, 0.15, n)).astype(np.int64), 60)
    return _Drawn(rows.query[again], rows.track[again], start, duration, rows.score[again] - rng.exponential(1.0, n))


def _track_of(task: DetectionTask, occurrence: I64) -> I64:
    """Return the track in which each of the given occurrences lies."""
    tracks = task.recordings.track_document.astype(np.int64) * 8 + task.recordings.track_channel
    wanted = task.occurrences.document[occurrence].astype(np.int64) * 8 + task.occurrences.channel[occurrence]
    return np.searchsorted(tracks, wanted)


def _each(function: Callable[[float], float], column: F64) -> F64:
    return np.fromiter(map(function, column.tolist()), np.float64, len(column))
