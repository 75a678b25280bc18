"""Synthetic speech: recordings, who speaks when, and the words they say, with Zipf's law for how often.

Words are made up: a lexicon per language, spelled from the language's own syllables. Speech is laid on one long tape
that is then cut into the channels of the recordings. All times are whole milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swsdask.model.trials import I8, I32, I64, Bool

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
    different, also between languages. Some have a syllable more, so that they are.
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
"""Words per language that are spoken; each language has as many again that nobody says."""

FILLED_PAUSE, FRAGMENT = -1, -2
"""Codes of what is no word: such records cannot start an occurrence."""


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
class Words:
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


def record(hours: float, rng: np.random.Generator) -> Recordings:
    """Documents that together have `hours` evaluated hours (channels of one recording count once).

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


def lexicon(rng: np.random.Generator) -> tuple[list[str], I64]:
    """The spelling of every word of every language, and the number of its syllables.

    The word of rank r in language k has the code 2 * VOCABULARY * k + r; ranks from VOCABULARY on are never spoken.
    """
    syllables = syllable_counts(2 * VOCABULARY, rng)
    return spell(syllables, rng), np.tile(np.array(syllables, np.int64), len(LANGUAGES))


def talk(recordings: Recordings, syllables: I64, rng: np.random.Generator) -> Words:
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
    return Words(
        document=document,
        channel=recordings.track_channel[track],
        speaker=speaker.astype(np.int32),
        turn=turn,
        start=start - offset,
        end=end - offset,
        word=word,
    )
