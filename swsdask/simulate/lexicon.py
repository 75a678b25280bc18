"""Made-up words: a lexicon per language, spelled from the language's own syllables."""

from __future__ import annotations

import numpy as np

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
    """How many syllables the word of each frequency rank has, the same in every language: frequent words are short."""
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
