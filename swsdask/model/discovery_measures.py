"""The table of measures of term discovery: headings, and what each means; `discovery.measures` has the formulas.

A family has a precision, a recall and their harmonic mean, the F-score.
"""

from __future__ import annotations

from collections.abc import Iterator

from swsdask.model.measures import Description

COUNTS = {"n_classes": "Classes", "n_fragments": "Fragments", "n_words": "Words", "n_pairs": "Pairs"}
"""Measures that count, and their headings."""

SINGLE = {"ned": "NED", "coverage": "Coverage"}
"""Measures of one number, and their headings."""

FAMILIES = {
    "matching": "Matching",
    "grouping": "Grouping",
    "type": "Type",
    "token": "Token",
    "boundary": "Boundary",
}
"""Families of a precision, a recall and an F-score, and their headings."""

ENDINGS = {"precision": "P", "recall": "R", "f_score": "F"}
WORDS = {"precision": "precision", "recall": "recall", "f_score": "F-score"}

ABOUT = {
    "ned": "Mean normalised edit distance of the pairs: 0 is best",
    "coverage": "Share of the discoverable phones that is covered",
    "matching": "Pairs of fragments and their parts, against all pairs with equal transcriptions",
    "grouping": "Classes against equal transcriptions: purity and inverse purity",
    "type": "Word types found, against the lexicon",
    "token": "Fragments against word tokens",
    "boundary": "Fragment boundaries against word boundaries",
}

_COUNTED = {
    "n_classes": "Classes that a system found",
    "n_fragments": "Distinct fragments that a system found",
    "n_words": "Distinct transcriptions of fragments",
    "n_pairs": "Pairs of fragments that NED averages",
}
_FORMULAS = {
    "ned": "mean over pairs of distance / length",
    "f_score": "2 precision recall / (precision + recall)",
}


def _rows() -> Iterator[Description]:
    for name, heading in COUNTS.items():
        yield Description(name, heading, _COUNTED[name], 0, span="0 ..")
    for name, heading in SINGLE.items():
        direction = -1 if name == "ned" else 1
        yield Description(name, heading, ABOUT[name], 3, direction, span="0 .. 1", formula=_FORMULAS.get(name, ""))
    for family, heading in FAMILIES.items():
        for ending, word in WORDS.items():
            formula = _FORMULAS.get(ending, "")
            title = f"{ABOUT[family]}: {word}"
            yield Description(f"{family}_{ending}", f"{heading} {word}", title, 3, 1, span="0 .. 1", formula=formula)


DISCOVERY = tuple(_rows())
"""Every measure of term discovery."""
