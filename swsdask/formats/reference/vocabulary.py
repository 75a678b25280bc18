"""What a lexicon or a text says of the queries of a list: how many phones they have, and which are out of vocabulary.

What is found becomes attributes of the queries, `n_phones` and `oov`, so an archive keeps it and conditions can be made
of it, without the file. The attribute `oov` of the list is replaced.

A lexicon has a word and its phones on a line, with blanks between them (CMUdict, Kaldi's lexicon.txt); or a word and
its pronunciations with tabs between them, each of phones with blanks between them (Babel's, without a romanised form).
Of several pronunciations of a word the first counts, on whatever line; `WORD(2)` is a pronunciation of WORD. A
probability behind the word (a number up to 1 with a decimal point, Kaldi's lexiconp.txt) is passed over, and so are
lines that begin with `;;;` and the marks of stress, syllables and boundaries `"`, `%`, `.` and `#`.

The number of phones of a query is that of all its words. A query is out of vocabulary iff one of its words is not in
the text or, without a text, in the lexicon; words are compared without case where the list compares so
(`compareNormalize`). A query with a word that is not in the lexicon has no number of phones. A text is words with
blanks between them, on whatever lines: what a recogniser's language model was trained on, or a list of words.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa

from swsdask.formats.files import noted, read_lines
from swsdask.formats.reference.queries import texts_of
from swsdask.model.errors import Problems
from swsdask.model.schemas import QUERIES

PHONES, OOV = "n_phones", "oov"

_MARKS = frozenset('"%.#')
_VARIANT = re.compile(r"(?<=.)\(\d+\)$")
_PROBABILITY = re.compile(r"[01]?\.\d*(e-?\d+)?|1\.0*")


def described(queries: pa.Table, lexicon: str | None, vocabulary: str | None, problems: Problems) -> pa.Table:
    """The queries with what a lexicon and a text say of them as attributes; faults are added to `problems`."""
    header = queries.schema.metadata or {}
    folded: Callable[[str], str] = str.lower if header.get(b"compareNormalize") == b"lowercase" else str
    phones = None if lexicon is None else _read_lexicon(lexicon, folded, problems)
    texts = texts_of(queries)
    searched = {word for text in texts for word in folded(text).split()}
    known = phones if vocabulary is None else _read_words(vocabulary, searched, folded, problems)
    if not any(texts):
        where = lexicon or vocabulary or ""
        problems.add(where, None, "queries with texts", "a list without", "Leave the lexicon and the vocabulary out.")
    rows = []
    for pairs, text in zip(queries["attributes"].to_pylist(), texts, strict=True):
        attributes = dict(pairs)
        words = folded(text).split()
        if known is not None and words:
            attributes = {name: value for name, value in attributes.items() if name.lower() != OOV}
            attributes[OOV] = "false" if all(word in known for word in words) else "true"
        if phones is not None and words:
            attributes.pop(PHONES, None)
            if all(word in phones for word in words):
                attributes[PHONES] = str(sum(phones[word] for word in words))
        rows.append(list(attributes.items()))
    place = QUERIES.names.index("attributes")
    return queries.set_column(place, QUERIES.field(place), pa.array(rows, QUERIES.field(place).type))


def _read_lexicon(url: str, folded: Callable[[str], str], problems: Problems) -> dict[str, int]:
    """The number of phones of every word."""
    found: dict[str, int] = {}
    with noted(problems):
        for lines in read_lines(url):
            for number, line in enumerate(lines.data.decode().split("\n"), lines.first):
                if not line.strip() or line.startswith(";;;"):
                    continue
                word, *others = [field.strip() for field in line.split("\t" if "\t" in line else None)]
                phones = others[0].split() if "\t" in line else others
                if phones and _PROBABILITY.fullmatch(phones[0]):
                    phones = phones[1:]
                count = sum(phone not in _MARKS for phone in phones)
                if not word or not count:
                    problems.add(url, number, "a word and its phones", line.strip()[:40], "Give the word its phones.")
                found.setdefault(folded(_VARIANT.sub("", word)), count)
        if not found:
            problems.add(url, 1, "at least one word with its phones", "none", "Give a lexicon.")
    return found


def _read_words(url: str, searched: set[str], folded: Callable[[str], str], problems: Problems) -> set[str]:
    """The searched words that a text has."""
    found: set[str] = set()
    empty = True
    with noted(problems):
        for lines in read_lines(url):
            words = folded(lines.data.decode()).split()
            found |= searched.intersection(words)
            empty = empty and not words
        if empty:
            problems.add(url, 1, "at least one word", "none", "Give a text, or a list of words.")
    return found
