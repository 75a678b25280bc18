"""A synthetic corpus of term discovery and the classes that systems find in it, from a seed; written as official files.

Words come from a lexicon with Zipf's frequencies; some phones of words are replaced. Pauses are gaps between phones.
Times are whole milliseconds. A system finds word tokens, shifts their edges, mistakes some, and puts the tokens of a
word, or of several words that it confuses, into classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.discovery import ALIGNMENT, CLASSES, FRAGMENTS, SPEAKERS, STRETCHES
from swsdask.model.trials import I32, I64, Bool

_TICKS_PER_MS = 10
_PHONES_PER_WORD = np.array([1, 2, 3, 4, 5, 6, 7, 8])
_WORD_LENGTHS = np.array([0.03, 0.17, 0.25, 0.22, 0.14, 0.1, 0.06, 0.03])
_N_LABELS = 40
_OTHERWISE = 0.04
_PAUSE_AFTER = 0.15
_LEAD_IN_MS = 500


@dataclass(frozen=True)
class Discoverer:
    """The quality of a simulated system.

    `found` is the share of the word tokens of three phones and more that it finds, `jitter_ms` the standard deviation
    of its edges, `mistaken` the share of its fragments at random places, `words_per_class` the number of words that it
    puts into one class, `most_members` the number of fragments after which it begins another class of the same words,
    `giant` the share of its fragments in the first class, which has no limit.
    """

    name: str
    found: float = 0.2
    jitter_ms: float = 20.0
    mistaken: float = 0.1
    words_per_class: int = 1
    most_members: int = 100
    giant: float = 0.0


DISCOVERERS = (
    Discoverer("careful", found=0.08, jitter_ms=8, mistaken=0.02, most_members=20),
    Discoverer("pairs", found=0.15, jitter_ms=25, mistaken=0.3, most_members=2),
    Discoverer("dense", found=0.9, jitter_ms=30, mistaken=0.2, words_per_class=3, most_members=300),
    Discoverer("giant", found=0.3, jitter_ms=25, mistaken=0.2, giant=0.1),
)


@dataclass(frozen=True, eq=False)
class SimulatedCorpus:
    """The tables of a corpus, each in the schema of `model.discovery` of its kind.

    `word_type`, int32 [n_words], is the number of each word in the lexicon, whose spellings are the labels of `words`;
    `word_phones`, int64 [n_words], is its number of phones.
    """

    seed: int
    phones: pa.Table
    words: pa.Table
    split: pa.Table
    speakers: pa.Table
    word_type: I32
    word_phones: I64


@dataclass(frozen=True, eq=False)
class SimulatedClasses:
    """The classes and fragments that a system found: tables in the schemas `CLASSES` and `FRAGMENTS`."""

    system: str
    classes: pa.Table
    fragments: pa.Table


def simulate_corpus(
    seed: int,
    *,
    n_phones: int,
    phones_per_file: int = 4_000,
    files_per_speaker: int = 4,
    n_words: int = 5_000,
) -> SimulatedCorpus:
    """Make a corpus of at most `n_phones` phones, with as many whole words as fit, at least one.

    `n_words` is the size of the lexicon.
    """
    rng = np.random.default_rng([seed, 0])
    length, spelled = _lexicon(n_words, rng)
    word_type, n_in_word = _spoken_words(n_phones, length, rng)
    last = np.cumsum(n_in_word)
    first = last - n_in_word
    label = spelled[np.repeat(word_type, n_in_word), np.arange(last[-1]) - np.repeat(first, n_in_word)]
    otherwise = np.flatnonzero(rng.random(len(label)) < _OTHERWISE)
    label[otherwise] = rng.integers(0, _N_LABELS, len(otherwise))

    duration = np.clip(np.exp(rng.normal(4.3, 0.45, len(label))), 20, 400).astype(np.int64)
    pause = np.where(rng.random(len(first)) < _PAUSE_AFTER, rng.integers(150, 1_500, len(first)), 0)
    new_file = np.diff(first // phones_per_file, prepend=-1) != 0
    file_of_word = np.cumsum(new_file) - 1
    gap_before = np.zeros(len(label), np.int64)
    gap_before[first[1:]] = pause[:-1]
    end = np.cumsum(duration + gap_before)
    origin = (end - duration)[first[new_file]] - _LEAD_IN_MS
    file = np.repeat(file_of_word, n_in_word)
    end = (end - origin[file]) * _TICKS_PER_MS
    start = end - duration * _TICKS_PER_MS

    file_names = [f"s{number // files_per_speaker:04d}-{number:06d}" for number in range(len(origin))]
    begins = new_file | np.concatenate(([True], pause[:-1] > 0))
    ends = np.concatenate((begins[1:], [True]))
    return SimulatedCorpus(
        seed=seed,
        phones=_table(ALIGNMENT, _coded(file, file_names), start, end, _coded(label, _names("p", _N_LABELS))),
        words=_table(
            ALIGNMENT,
            _coded(file_of_word, file_names),
            start[first],
            end[last - 1],
            _coded(word_type, _names("word", n_words)),
        ),
        split=_table(
            STRETCHES,
            _coded(file_of_word[begins], file_names),
            start[first[begins]],
            end[last[ends] - 1],
            np.zeros(np.count_nonzero(begins), np.int32),
        ),
        speakers=_table(SPEAKERS, pa.array(file_names), pa.array([name.partition("-")[0] for name in file_names])),
        word_type=word_type,
        word_phones=n_in_word,
    )


def simulate_classes(corpus: SimulatedCorpus, system: Discoverer, number: int = 0) -> SimulatedClasses:
    """Simulate the classes that a system finds in a corpus; `number` makes systems of the same quality differ."""
    rng = np.random.default_rng([corpus.seed, 1, number])
    token = np.flatnonzero((corpus.word_phones >= 3) & (rng.random(len(corpus.word_type)) < system.found))
    kind = (corpus.word_type[token] // system.words_per_class).astype(np.int64)
    mistaken = rng.random(len(token)) < system.mistaken
    token[mistaken] = rng.integers(0, len(corpus.word_type), np.count_nonzero(mistaken))
    in_giant = rng.random(len(token)) < system.giant
    file = corpus.words["file"].combine_chunks()
    start, end = (_shifted(corpus.words[name].to_numpy()[token], system.jitter_ms, rng) for name in ("start", "end"))
    start = np.maximum(start, 0)
    end = np.maximum(end, start + _TICKS_PER_MS)

    cluster = _classes(kind, in_giant, system.most_members, rng)
    order = np.lexsort((rng.random(len(token)), cluster))
    cluster = cluster[order]
    sizes = np.bincount(cluster)
    names = pa.array(np.arange(1, len(sizes) + 1)).cast(pa.string())
    lines = np.concatenate(([0], np.cumsum(sizes + 2)))[:-1] + 1
    codes = file.indices.to_numpy()[token[order]]
    fragments = [cluster.astype(np.int32), pa.DictionaryArray.from_arrays(pa.array(codes), file.dictionary)]
    line = lines[cluster] + 1 + np.arange(len(cluster)) - (np.cumsum(sizes) - sizes)[cluster]
    return SimulatedClasses(
        system.name,
        pa.table([names, lines], schema=CLASSES),
        pa.table([*fragments, start[order].astype(np.int32), end[order].astype(np.int32), line], schema=FRAGMENTS),
    )


def _lexicon(n_words: int, rng: np.random.Generator) -> tuple[I64, I32]:
    """Return the number of phones of each word and its phones, int32 [n_words, most phones].

    Frequent words are short.
    """
    length = np.sort(rng.choice(_PHONES_PER_WORD, n_words, p=_WORD_LENGTHS))
    length = length[np.argsort(np.arange(n_words) + rng.normal(0, n_words, n_words), kind="stable")]
    share = 1 / (np.arange(_N_LABELS) + 5.0)
    spelled = rng.choice(_N_LABELS, (n_words, int(_PHONES_PER_WORD[-1])), p=share / share.sum())
    return length, spelled.astype(np.int32)


def _spoken_words(n_phones: int, length: I64, rng: np.random.Generator) -> tuple[I32, I64]:
    """Words in the order in which they are spoken, and the numbers of their phones, at most `n_phones` together."""
    ends = np.cumsum(1 / (np.arange(len(length)) + 2.0))
    n_most = 1 + n_phones // int(length.min())
    n_likely = 1 + int(1.05 * n_phones / np.average(length, weights=np.diff(ends, prepend=0.0)))
    word = np.searchsorted(ends / ends[-1], rng.random(min(n_most, n_likely)), "right").clip(max=len(length) - 1)
    within = np.cumsum(length[word]) <= n_phones
    within[0] = True
    word = word[within]
    return word.astype(np.int32), length[word]


def _classes(kind: I64, in_giant: Bool, most_members: int, rng: np.random.Generator) -> I64:
    """Return the class of each fragment, numbered without gaps in random order; 0 is the giant's."""
    order = np.argsort(kind, kind="stable")
    ordered = kind[order]
    place = np.arange(len(kind)) - np.searchsorted(ordered, ordered)
    new = (place % most_members == 0).astype(np.int64)
    found = np.empty(len(kind), np.int64)
    found[order] = np.cumsum(new) - 1
    number = rng.permutation(int(new.sum()))[found] + 1 if len(kind) else found
    number[in_giant] = 0
    _, dense = np.unique(number, return_inverse=True)
    return dense.astype(np.int64)


def _shifted(ticks: I32, jitter_ms: float, rng: np.random.Generator) -> I64:
    return ticks + np.round(rng.normal(0.0, jitter_ms, len(ticks))).astype(np.int64) * _TICKS_PER_MS


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def _coded(codes: I32 | I64, names: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names, pa.string()))


def _table(schema: pa.Schema, *columns: pa.Array | I32 | I64) -> pa.Table:
    """Return a table of some columns and of line numbers, one line per row."""
    lines = np.arange(1, len(columns[0]) + 1)
    return pa.table([pa.array(c).cast(f.type) for c, f in zip((*columns, lines), schema, strict=True)], schema=schema)


_TICK_DIGITS = 4


def write_corpus(corpus: SimulatedCorpus, directory: Path) -> None:
    """Write `sim.phn`, `sim.wrd`, `sim.split` and `sim.speakers`. Raises `OSError` if that fails."""
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / "sim.phn", _rows(corpus.phones, "label"))
    _write(directory / "sim.wrd", _rows(corpus.words, "label"))
    _write(directory / "sim.split", _rows(corpus.split))
    speakers = corpus.speakers
    _write(directory / "sim.speakers", [pc.binary_join_element_wise(speakers["file"], speakers["speaker"], " ")])


def write_classes(found: SimulatedClasses, directory: Path) -> None:
    """Write `SYSTEM.classes`, with an empty line after every class. Raises `OSError` if that fails."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = [chunk for column in _rows(found.fragments) for chunk in column.chunks]
    cluster = found.fragments["cluster"].to_numpy()
    sizes = np.bincount(cluster, minlength=len(found.classes))
    members = pa.chunked_array(rows, pa.string()).combine_chunks()
    headers = pc.binary_join_element_wise("Class", found.classes["class"].combine_chunks(), " ")
    texts = pa.concat_arrays([headers, members, pa.array([""], pa.string())])
    n_classes = len(headers)
    first = np.cumsum(sizes) - sizes
    place = np.full(len(texts) - 1 + n_classes, len(texts) - 1)
    place[first + 2 * np.arange(n_classes)] = np.arange(n_classes)
    place[np.arange(len(members)) + 2 * cluster.astype(np.int64) + 1] = n_classes + np.arange(len(members))
    _write(directory / f"{found.system}.classes", [texts.take(pa.array(place))])


def _rows(table: pa.Table, *others: str) -> Iterable[pa.ChunkedArray]:
    """Yield the rows of a table as lines, some at a time."""
    for batch in table.to_batches(max_chunksize=1 << 20):
        part = pa.Table.from_batches([batch])
        columns = [_text(part["file"]), _seconds(part["start"]), _seconds(part["end"])]
        yield pc.binary_join_element_wise(*columns, *(_text(part[name]) for name in others), " ")


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())


def _seconds(ticks: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times in seconds with all digits of a tick."""
    whole = pc.divide(ticks, 10**_TICK_DIGITS)
    part = pc.subtract(ticks, pc.multiply(whole, 10**_TICK_DIGITS))
    return pc.binary_join_element_wise(_text(whole), pc.utf8_lpad(_text(part), _TICK_DIGITS, "0"), ".")


def _write(path: Path, lines: Iterable[pa.ChunkedArray | pa.Array]) -> None:
    with path.open("wb") as file:
        for column in lines:
            for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
                ended = pc.binary_join_element_wise(chunk, "\n", "")
                _, offsets, text = ended.buffers()
                edges = np.frombuffer(offsets, np.int32, len(ended) + 1, ended.offset * 4)
                file.write(text[edges[0] : edges[-1]])
