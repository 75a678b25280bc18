"""NIST's XML of an evaluation: the ECF, and lists of queries.

ECF: which parts of which recordings are evaluated (NIST's experiment control file).

Query lists: `kwlist` (keyword search) and the older `termlist`; a query, a keyword and a term are the same.

A lexicon or a text determines the number of phones of queries, and which are out of vocabulary. These become the
attributes `n_phones` and `oov` of the queries, so an archive stores them and conditions can use them without the file.
The attribute `oov` of the list is replaced.

A lexicon has a word and its phones on a line, with blanks between them (CMUdict, Kaldi's lexicon.txt); or a word and
its pronunciations with tabs between them, each of phones with blanks between them (Babel's, without a romanised form).
The first of several pronunciations of a word counts, on any line; `WORD(2)` is a pronunciation of WORD. A probability
after the word (a number up to 1 with a decimal point, Kaldi's lexiconp.txt) is ignored, and so are lines that begin
with `;;;` and the marks of stress, syllables and boundaries `"`, `%`, `.` and `#`.

The number of phones of a query is that of all its words. A query is out of vocabulary iff one of its words is not in
the text or, without a text, in the lexicon; words are compared without case if the list says so
(`compareNormalize`). A query with a word that is not in the lexicon has no number of phones. A text has words separated
by blanks, on any lines: the training text of a language model, or a list of words.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from swsdask.formats.files import noted, noted_at, open_bytes, open_once
from swsdask.formats.recognise import Format, expect
from swsdask.formats.text import declared_encoding, known_encoding, read_blocks, read_lines, utf8_blocks
from swsdask.formats.values import FormatError, joined_names, read_channel, read_document, read_interval, shown
from swsdask.formats.xml_stream import End, Start, read_elements
from swsdask.model.errors import InputError, Problems
from swsdask.model.schemas import DOCUMENTS, QUERIES
from swsdask.model.units import id_fault

_ROOT = ("ecf",)
_EXCERPT = ("ecf", "excerpt")
_NEEDED = ("audio_filename", "channel", "tbeg", "dur")


def read_ecf(url: str, problems: Problems) -> pa.Table:
    """Return the evaluated excerpts (`model.schemas.DOCUMENTS`), in file order. Problems are added to `problems`.

    Times in ticks; start and end are each rounded once, half to even, and `rounded` in the metadata counts those that
    were. An excerpt without `language` or `source_type` has the value of the root element. Excerpts may overlap. The
    root's `source_signal_duration` is ignored, since it is often wrong, and so are unknown attributes.
    """
    excerpts = _ExcerptReader(url, problems)
    with noted(problems), open_once(url) as url:
        expect(url, Format.ECF)
        root: dict[str, str] = {}
        for event in read_elements(url):
            if isinstance(event, End):
                if event.path in (_ROOT, _EXCERPT) and event.text.strip():
                    problems.add(url, event.line, "no text in an ECF", shown(event.text), "Take it out.")
            elif event.path == _ROOT:
                root = event.attributes
            elif event.path == _EXCERPT:
                excerpts.add(event.line, {**root, **event.attributes})
            elif len(event.path) == len(_EXCERPT):
                problems.add(url, event.line, "an excerpt", f"the element {event.path[-1]!r}", "Correct or remove it.")
        if not excerpts.seen:
            problems.add(url, 1, "at least one excerpt", "none", "List what was evaluated.")
    return excerpts.table()


class _ExcerptReader:
    """A reader of excerpts: the number `seen`, and the rows of valid ones."""

    def __init__(self, url: str, problems: Problems) -> None:
        self.seen = 0
        self._url = url
        self._problems = problems
        self._rows: list[tuple[str, int, int, int, str, str]] = []
        self._rounded = 0
        self._names: dict[str, None] = {}

    def add(self, line: int, attributes: dict[str, str]) -> None:
        """Add an excerpt, or note its problems."""
        self.seen += 1
        before = len(self._problems)
        missing = [name for name in _NEEDED if name not in attributes]
        if missing:
            found = f"an excerpt without {', '.join(missing)}"
            self._problems.add(self._url, line, f"the attributes {', '.join(_NEEDED)}", found, "Give what is missing.")
            return
        filename, channel_text, start, duration = (attributes[name] for name in _NEEDED)
        with noted_at(self._problems, self._url, line):
            document = read_document(filename)
        with noted_at(self._problems, self._url, line):
            channel = read_channel(channel_text)
        with noted_at(self._problems, self._url, line):
            span = read_interval(start, duration)
            if span.start == span.end:
                raise FormatError(
                    "a duration of more than 0 seconds", shown(duration), "Correct or remove the excerpt."
                )
        if len(self._problems) == before:
            kind, language = attributes.get("source_type", ""), attributes.get("language", "")
            self._rows.append((document, channel, span.start, span.end, kind, language))
            self._rounded += span.rounded
            self._names[filename] = None

    def table(self) -> pa.Table:
        """Return the valid excerpts."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(DOCUMENTS)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, DOCUMENTS, strict=True)]
        metadata = {"rounded": str(self._rounded), **joined_names(self._names)}
        return pa.Table.from_arrays(arrays, schema=DOCUMENTS.with_metadata(metadata))


_BLANKS = re.compile(r"[ \t\r\n]+")
_NORMALIZATIONS = ("", "lowercase")


_TOKEN_PLANES = (15, 16, *range(4, 14))
"""The planes of Unicode with private characters, then those without characters."""

_PLANE = 1 << 16
_TOKENS_PER_PLANE = _PLANE - 2  # the last two code points are none
MOST_TOKENS = len(_TOKEN_PLANES) * _TOKENS_PER_PLANE
_LEAST_TOKEN = chr(min(_TOKEN_PLANES) * _PLANE)


def token(number: int) -> str:
    """Return the text of query `number` if occurrences are given: a character that no text has.

    No filter and no case folding changes or splits it, so the term finder finds exactly these occurrences.
    """
    plane, place = divmod(number, _TOKENS_PER_PLANE)
    return chr(_TOKEN_PLANES[plane] * _PLANE + place)


def has_tokens(queries: pa.Table) -> bool:
    """Return whether the texts of queries (`model.schemas.QUERIES`) are tokens."""
    return any(text[:1] >= _LEAST_TOKEN for text in queries["text"].to_pylist())


def texts_of(queries: pa.Table) -> list[str]:
    """Return the texts of queries (`model.schemas.QUERIES`), "" for none.

    For given occurrences, for judgments, and if every text of a list is the id, the text is the attribute `text`.
    """
    texts: list[str] = queries["text"].to_pylist()
    if texts != queries["query"].to_pylist() and not has_tokens(queries):
        return texts
    return [dict(pairs).get("text", "") for pairs in queries["attributes"].to_pylist()]


class _Dialect(NamedTuple):
    """The names of a list's elements below the root, and of the attribute with the id."""

    query: str
    identifier: str
    text: str
    info: str


_DIALECTS = {
    "kwlist": _Dialect("kw", "kwid", "kwtext", "kwinfo"),
    "termlist": _Dialect("term", "termid", "termtext", "terminfo"),
}


def read_queries(url: str, problems: Problems) -> pa.Table:
    """Return the queries (`model.schemas.QUERIES`), in file order. Problems are added to `problems`.

    `attributes` holds the names and values of kwinfo or terminfo, and the query element's own attributes other than its
    id, as text. The attributes of the root element are the metadata of the table. Blanks around a text are dropped, and
    those within are reduced to single blanks; texts and ids are otherwise unchanged. Unknown elements within a query
    are ignored.
    """
    header: dict[str, str] = {}
    queries = _Queries(url, problems)
    with noted(problems), open_once(url) as url:
        expect(url, Format.QUERIES)
        for event in read_elements(url):
            if len(event.path) == 1 and isinstance(event, Start):
                header = event.attributes
                queries.dialect = _DIALECTS[event.path[0]]
                _check_normalization(url, event.line, header, problems)
            elif isinstance(event, Start):
                queries.start(event)
            else:
                queries.end(event)
        if not queries.lines:
            problems.add(url, 1, "at least one query", "none", "List what was searched.")
    return queries.table(header)


def spoken_encoding(queries: pa.Table, url: str, rttm: str) -> str:
    """Return the encoding of the RTTM beside a query list that was read from `url`, as Python's codecs name it.

    It is what the list's attribute `encoding` says (KWSEval). Without one it is UTF-8, unless the RTTM is not UTF-8 and
    the list's XML declaration names another encoding: STDEval's lists declare it only there.
    """
    said = (queries.schema.metadata or {}).get(b"encoding", b"").decode()
    if said:
        return known_encoding(said)
    try:
        with open_bytes(url) as source:
            declared = declared_encoding(next(read_blocks(source)))
        return "utf-8" if declared.startswith("utf") or _is_utf8(rttm) else declared
    except (InputError, FormatError):
        return "utf-8"  # the readers of the files report their problems


def _is_utf8(url: str) -> bool:
    try:
        with open_bytes(url) as source:
            deque(utf8_blocks(read_blocks(source), xml=False), maxlen=0)
    except FormatError:
        return False
    return True


def _check_normalization(url: str, line: int, header: dict[str, str], problems: Problems) -> None:
    """Check the value by which KWSEval compares text: "lowercase", or empty for exactly."""
    value = header.get("compareNormalize", "")
    if value not in _NORMALIZATIONS:
        remedy = "Write lowercase to fold case, or leave it empty to compare exactly."
        problems.add(url, line, 'compareNormalize="lowercase" or ""', shown(value), remedy)


@dataclass
class _Query:
    """A query without its end tag so far. `name` and `value` are those of its latest attr element.

    `right` is whether its id is valid.
    """

    identifier: str
    line: int
    attributes: dict[str, str]
    right: bool
    texts: list[str] = field(default_factory=list)
    name: str | None = None
    value: str | None = None


class _Queries:
    """The queries read so far. `lines` says where the first query of an id begins."""

    def __init__(self, url: str, problems: Problems) -> None:
        self.dialect = _DIALECTS["kwlist"]
        self.lines: dict[str, int] = {}
        self._url = url
        self._problems = problems
        self._query = _Query("", 0, {}, right=False)
        self._rows: list[tuple[str, str, list[tuple[str, str]]]] = []

    def start(self, event: Start) -> None:
        """Handle the start tag of an element below the root."""
        names = self.dialect
        match event.path[1:]:
            case (names.query,):
                self._query = self._opened(event)
            case (_,):
                expected, found = f"the element {names.query!r}", f"the element {event.path[-1]!r}"
                self._note(event.line, expected, found, "Correct or remove it.")
            case (names.query, names.info, "attr"):
                self._query.name = self._query.value = None

    def end(self, event: End) -> None:
        """Handle an end tag."""
        names, query = self.dialect, self._query
        match event.path[1:]:
            case (names.query, names.text):
                query.texts.append(_BLANKS.sub(" ", event.text).strip(" "))
            case (names.query, names.info, "attr", "name"):
                query.name = event.text.strip()
            case (names.query, names.info, "attr", "value"):
                query.value = event.text.strip()
            case (names.query, names.info, "attr"):
                self._close_attribute(event.line)
            case (names.query,):
                self._close()
        if event.path[1:] in ((), (names.query,), (names.query, names.info)) and event.text.strip():
            self._note(event.line, f"text only within {names.text}", shown(event.text), "Correct or remove it.")

    def table(self, header: dict[str, str]) -> pa.Table:
        """Return the valid queries."""
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(QUERIES)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, QUERIES, strict=True)]
        return pa.Table.from_arrays(arrays, schema=QUERIES.with_metadata(header))

    def _opened(self, event: Start) -> _Query:
        before = len(self._problems)
        attributes = dict(event.attributes)
        identifier = attributes.pop(self.dialect.identifier, "")
        wrong = id_fault(identifier)
        if wrong:
            self._note(event.line, f"a query id ({self.dialect.identifier})", wrong, "Give the query a plain id.")
        elif identifier in self.lines:
            found = f"the id {identifier!r} of line {self.lines[identifier]} again"
            self._note(event.line, "one query of an id", found, "Remove one of the two, or give it another id.")
        self.lines.setdefault(identifier, event.line)
        return _Query(identifier, event.line, attributes, right=len(self._problems) == before)

    def _close_attribute(self, line: int) -> None:
        query = self._query
        if not query.name or query.value is None:
            self._note(line, "a name and a value in attr", "an attr without", "Give both, or remove it.")
        elif query.attributes.setdefault(query.name, query.value) != query.value:
            found = f"{shown(query.attributes[query.name])} and {shown(query.value)}"
            self._note(line, f"one value of {shown(query.name)} for a query", found, "Leave one of them.")

    def _close(self) -> None:
        query, names = self._query, self.dialect
        if len(query.texts) != 1 or not query.texts[0]:
            found = f"{len(query.texts)} of them" if len(query.texts) > 1 else "none"
            self._note(query.line, f"one {names.text} with the query's text", found, "Say what the query searches.")
        elif query.right:
            self._rows.append((query.identifier, query.texts[0], list(query.attributes.items())))

    def _note(self, line: int, expected: str, found: str, remedy: str) -> None:
        self._problems.add(self._url, line, expected, found, remedy)


PHONES, OOV = "n_phones", "oov"

_MARKS = frozenset('"%.#')
_VARIANT = re.compile(r"(?<=.)\(\d+\)$")
_PROBABILITY = re.compile(r"[01]?\.\d*(e-?\d+)?|1\.0*")


def described(queries: pa.Table, lexicon: str | None, vocabulary: str | None, problems: Problems) -> pa.Table:
    """Add attributes from a lexicon and a text to queries. Problems are added to `problems`."""
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
    """Return the number of phones of every word."""
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
    """Return the searched words that a text has."""
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
