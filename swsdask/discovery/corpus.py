"""The corpus, and the fragments of a system, under a definition: tables of files, checked, sorted and numbered.

In every definition: the lines of an alignment may be in any order, and a repeated line counts once, with a note. Phones
of one file must not overlap, and every file that is named must have phones, except in a speaker map, which may list
other files. Words may overlap. Times finer than a tick are rounded and counted.

- `document`: without a fold file the corpus is divided into `n_folds` parts of nearly equal duration
  (`discovery.placing.equal_parts`), of whole files, or, with `fold_by` "time", cut anywhere between phones
  (`discovery.placing.parts_of_time`).
- `tde2015`: phones whose edges are close but not equal are an error, as in tde; "close" is
  |a - b| <= 1e-8 + 1e-5 |b| in seconds, with a the end of one phone and b the start of the next. Without a fold file,
  folds are those of `document` (tde has no default).
- `tdev2`: one fold, the whole corpus: fold files and speakers are ignored. Words labelled SIL are dropped with their
  boundaries, as tdev2 does on reading.

Only `tde2015` uses stretches of speech.

| case | `document` | `tde2015` | `tdev2` |
|---|---|---|---|
| a class is identified by | its number | its number and text (QUIRK) | its number |
| a repeated class | error | replaces the earlier one, whose rows count as "replaced class" (QUIRK) | error |
| a number that is not an integer | allowed | error | allowed |
| a file without phones | error | the row is dropped as "unknown file" (QUIRK) | error |
| no empty line at the end | allowed | allowed | allowed with a note: tdev2 refuses it |
| a class without fragments | a class without rows | the same | the same |
| a fragment twice in a class | two rows | the same | the same |

The number of a class is the first word after `Class`; only tde2015 requires a number. A fragment whose offset is not
after its onset, and any number of fields other than three, are format errors in every definition.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import fields
from functools import lru_cache, wraps
from threading import Lock
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.discovery.placing import (
    UNKNOWN,
    equal_parts,
    first_rows,
    in_seconds,
    note_unknown,
    numbers_of,
    parts_of_time,
    rounding_notes,
    rows_in_order,
    sorted_numbers,
    stretches_of,
    whole_files,
)
from swsdask.formats.discovery import ClassFile, CorpusFiles, CorpusTables, read_classes, read_corpus_files
from swsdask.formats.files import noted
from swsdask.model.discovery import (
    DEFAULT_FOLDS,
    DEFAULT_READINGS,
    MAX_FOLDS,
    Corpus,
    Definition,
    Folds,
    Fragments,
    Readings,
    Tokens,
)
from swsdask.model.errors import MOST_KEPT, Problems, SettingsError
from swsdask.model.results import Note
from swsdask.model.trials import I32, I64, Bool
from swsdask.model.units import TICKS_PER_SECOND, id_fault
from swsdask.model.wording import counted
from swsdask.places.reading import before_query

SILENCE = "SIL"
NOISE = "SPN"

ALL = "all"
WITHIN_TALKER = "within_talker"

_CORPORA = 2
"""The number of corpora whose results are cached."""

Found = TypeVar("Found")


def per_corpus(find: Callable[[Corpus], Found]) -> Callable[[Corpus], Found]:
    """Cache the results of a function of a corpus, per process. One thread computes, the others wait for it."""
    cached, lock = lru_cache(_CORPORA)(find), Lock()

    @wraps(find)
    def locked(corpus: Corpus) -> Found:
        with lock:
            return cached(corpus)

    return locked


def build_corpus(
    tables: CorpusTables,
    definition: Definition,
    *,
    readings: Readings = DEFAULT_READINGS,
    fold_by: Literal["file", "time"] = "file",
    n_folds: int = DEFAULT_FOLDS,
    most_problems: int = MOST_KEPT,
) -> Corpus:
    """Build the corpus from tables under a definition.

    Raises `InputError` with every problem of the tables, of which it keeps `most_problems`, and `SettingsError` if
    `n_folds` is less than 1.
    """
    if not 1 <= n_folds <= MAX_FOLDS:
        raise SettingsError(f"expected from 1 to {MAX_FOLDS} folds; found {n_folds}.")
    problems = Problems(most_problems)
    notes = [*_rounded_notes(tables), *_exchanged_note(tables)]
    files, file = sorted_numbers(tables.phones["file"])
    phones, line = _tokens(tables.phones, file, len(files), tables.files.phones, notes)
    _check_apart(phones, line, files, tables.files.phones, problems)
    if definition == "tde2015":
        _check_touching(phones, line, files, tables.files.phones, problems)
    words = _words(tables, definition, files, notes, problems)
    speech = None
    if tables.split is not None:
        stretches = stretches_of(tables.split, files, tables.files.split or "", problems)
        if definition == "tde2015":
            speech = stretches
        else:
            notes.append(f"The stretches of speech are ignored: {definition} does not use them.")
    if definition == "tdev2":
        ignored = [name for name in ("folds", "within", "speakers") if getattr(tables, name) is not None]
        if ignored:
            notes.append(f"Ignored: {', '.join(ignored)}. tdev2 scores the corpus as a whole.")
        folds: tuple[Folds, ...] = (Folds(ALL, (ALL,), whole_files(np.zeros(len(files), np.int16))),)
    else:
        folds = _folds(tables, phones, files, n_folds, fold_by, notes, problems)
    problems.raise_if_any()
    return Corpus(
        definition=definition,
        files=files,
        phones=phones,
        words=words,
        segment=_segments(phones),
        silence=np.array([label == SILENCE for label in phones.labels], np.bool_),
        noise=np.array([label == NOISE for label in phones.labels], np.bool_),
        speech=speech,
        folds=folds,
        notes=tuple(notes),
        readings=readings,
    )


def _rounded_notes(tables: CorpusTables) -> Iterator[str]:
    for field in fields(tables):
        table = getattr(tables, field.name)
        if isinstance(table, pa.Table):
            yield from (f"{getattr(tables.files, field.name)}: {note.text}" for note in rounding_notes(table))


def _words(
    tables: CorpusTables, definition: Definition, files: tuple[str, ...], notes: list[str], problems: Problems
) -> Tokens:
    table = tables.words
    if definition == "tdev2":
        spoken = pc.not_equal(table["label"].cast(pa.string()), SILENCE)
        if dropped := len(table) - (pc.sum(spoken).as_py() or 0):
            notes.append(f"{counted(dropped, 'words')} labelled {SILENCE} dropped, as in tdev2.")
            table = table.filter(spoken)
    file = numbers_of(table["file"], files)
    note_unknown(table, file, tables.files.words, problems)
    words, _ = _tokens(table, file, len(files), tables.files.words, notes)
    return words


def _tokens(table: pa.Table, file: I32, n_files: int, url: str, notes: list[str]) -> tuple[Tokens, I64]:
    """Return the sorted rows of an alignment without repeats, and the line of each row in the file."""
    labels, label = sorted_numbers(table["label"])
    start, end = table["start"].to_numpy(), table["end"].to_numpy()
    order = rows_in_order(file, start, end, label)
    again = np.logical_and.reduce([np.diff(column[order]) == 0 for column in (file, start, end, label)])
    if repeated := int(np.count_nonzero(again)):
        notes.append(f"{url}: {counted(repeated, 'repeated lines')} counted once.")
        order = order[np.append(True, ~again)]
    tokens = Tokens(file[order], start[order], end[order], label[order], labels, first_rows(file[order], n_files))
    return tokens, table["line"].to_numpy()[order]


def _exchanged_note(tables: CorpusTables) -> list[str]:
    """A note if phones and words seem to be exchanged: there are more words than phones, and they are shorter."""
    phones, words = tables.phones, tables.words
    if len(words) <= len(phones):
        return []
    shorter, longer = (np.median(table["end"].to_numpy() - table["start"].to_numpy()) for table in (words, phones))
    if shorter >= longer:
        return []
    sizes = f"{counted(len(words), 'words')} are more than the {counted(len(phones), 'phones')}, and shorter"
    return [f"{sizes}: were {tables.files.phones} (phones) and {tables.files.words} (words) exchanged?"]


def _check_apart(phones: Tokens, line: I64, files: tuple[str, ...], url: str, problems: Problems) -> None:
    overlapping = (phones.file[1:] == phones.file[:-1]) & (phones.start[1:] < phones.end[:-1])
    for row in np.flatnonzero(overlapping).tolist():
        first, second = _named(phones, line, row), _named(phones, line, row + 1)
        expected = "phones that do not overlap"
        found = f"in {files[phones.file[row]]!r} {second} after {first}"
        problems.add(url, int(max(line[row], line[row + 1])), expected, found, "Correct one of the two.")


def _check_touching(phones: Tokens, line: I64, files: tuple[str, ...], url: str, problems: Problems) -> None:
    """Report phones that nearly touch: tde takes edges that are close by the defaults of `numpy.isclose` as equal."""
    end, start = phones.end[:-1] / TICKS_PER_SECOND, phones.start[1:] / TICKS_PER_SECOND
    close = (phones.start[1:] > phones.end[:-1]) & (np.abs(end - start) <= 1e-8 + 1e-5 * start)
    for row in np.flatnonzero(close & (phones.file[1:] == phones.file[:-1])).tolist():
        first, second = _named(phones, line, row), _named(phones, line, row + 1)
        expected = "phones that touch, or are further apart (tde2015)"
        found = f"in {files[phones.file[row]]!r} {second} close after {first}"
        problems.add(url, int(max(line[row], line[row + 1])), expected, found, "Make the two edges equal.")


def _named(phones: Tokens, line: I64, row: int) -> str:
    times = f"{in_seconds(int(phones.start[row]))} to {in_seconds(int(phones.end[row]))}"
    return f"{phones.labels[phones.label[row]]} (line {line[row]}, {times})"


def _segments(phones: Tokens) -> I32:
    breaks = (phones.file[1:] != phones.file[:-1]) | (phones.start[1:] != phones.end[:-1])
    return np.concatenate((np.zeros(min(1, len(phones)), np.int32), np.cumsum(breaks, dtype=np.int32)))


def _folds(
    tables: CorpusTables,
    phones: Tokens,
    files: tuple[str, ...],
    n_folds: int,
    fold_by: Literal["file", "time"],
    notes: list[str],
    problems: Problems,
) -> tuple[Folds, ...]:
    return tuple(
        folds
        for folds in (
            _folds_of_all(tables, phones, files, n_folds, fold_by, notes, problems),
            _folds_within_talker(tables, files, notes, problems),
        )
        if folds
    )


def _folds_of_all(
    tables: CorpusTables,
    phones: Tokens,
    files: tuple[str, ...],
    n_folds: int,
    fold_by: Literal["file", "time"],
    notes: list[str],
    problems: Problems,
) -> Folds:
    if tables.folds is not None:
        return _from_file(ALL, tables.folds, files, tables.files.folds or "", problems)
    if fold_by == "time":
        stretches = parts_of_time(phones, len(files), n_folds)
        return Folds(ALL, _numbers(int(stretches.fold.max(initial=0)) + 1), stretches)
    until = np.concatenate(([0], np.cumsum(phones.end - phones.start, dtype=np.int64)))
    part = equal_parts(np.diff(until[phones.first]), n_folds)
    n_parts = int(part.max()) + 1
    if n_parts < n_folds:
        notes.append(f"{counted(n_parts, 'folds')} instead of {n_folds}, one for each file.")
    return Folds(ALL, _numbers(n_parts), whole_files(part))


def _folds_within_talker(
    tables: CorpusTables, files: tuple[str, ...], notes: list[str], problems: Problems
) -> Folds | None:
    if tables.within is not None:
        return _from_file(WITHIN_TALKER, tables.within, files, tables.files.within or "", problems)
    if tables.speakers is None:
        return None
    url = tables.files.speakers or ""
    speaker_of = dict(zip(tables.speakers["file"].to_pylist(), tables.speakers["speaker"].to_pylist(), strict=True))
    others = len(speaker_of.keys() - set(files))
    if others:
        notes.append(f"{url}: {counted(others, 'files')} without phones ignored.")
    for file in files:
        if file not in speaker_of:
            problems.add(url, None, "a speaker for every file with phones", f"none for {file!r}", "Add a line for it.")
    names = tuple(sorted({speaker_of[file] for file in files if file in speaker_of}))
    if len(names) > MAX_FOLDS:
        problems.add(url, None, f"at most {MAX_FOLDS} speakers", f"{len(names)}", "Score the corpus in parts.")
    number = {name: place for place, name in enumerate(names)}
    fold = np.array([number.get(speaker_of.get(file, ""), -1) for file in files])
    return Folds(WITHIN_TALKER, names, whole_files(fold.astype(np.int16)))


def _from_file(condition: str, table: pa.Table, files: tuple[str, ...], url: str, problems: Problems) -> Folds:
    n_folds = (pc.max(table["fold"]).as_py() or 0) + 1
    return Folds(condition, _numbers(n_folds), stretches_of(table, files, url, problems))


def _numbers(n_folds: int) -> tuple[str, ...]:
    return tuple(str(number) for number in range(1, n_folds + 1))


UNKNOWN_FILE = "unknown file"
REPLACED_CLASS = "replaced class"

_SYSTEM = re.compile(r"(?:\.(?:classes|class|disc|txt))?(?:\.(?:gz|zst|bz2|xz|zip))?$", re.IGNORECASE)
_WHOLE = re.compile(r"[0-9]+")


def read_fragments(url: str, corpus: Corpus, *, system: str | None = None) -> Fragments:
    """Read the fragments of a class file (path or URL, plain or compressed) that the corpus's definition admits.

    The system is named after the file (`system_of`) unless `system` is given. Raises `InputError` with every problem of
    the file.
    """
    problems = Problems()
    name = system or system_of(url)
    if wrong := id_fault(name):
        problems.add(url, None, "the name of a system", wrong, "Rename it.")
    file = read_classes(url, problems)
    problems.raise_if_any()
    return build_fragments(file, corpus, system=name)


def system_of(url: str) -> str:
    """The name of the system of a class file: the file name without .classes, .class, .disc or .txt, or .gz etc."""
    name = before_query(url)[0].rsplit("/", 1)[-1]
    return _SYSTEM.sub("", name) or name


def build_fragments(file: ClassFile, corpus: Corpus, *, system: str, most_problems: int = MOST_KEPT) -> Fragments:
    """Return the fragments of a class file that was read.

    Raises `InputError` with every problem, of which it keeps `most_problems`.
    """
    problems = Problems(most_problems)
    kept = kept_classes(file, corpus.definition, problems)
    cluster = file.fragments["cluster"].to_numpy()
    in_corpus = numbers_of(file.fragments["file"], corpus.files)
    if corpus.definition != "tde2015":
        note_unknown(file.fragments, in_corpus, file.url, problems)
    problems.raise_if_any()
    replaced, unknown = ~kept[cluster], in_corpus == UNKNOWN
    dropped = {
        REPLACED_CLASS: int(np.count_nonzero(replaced)),
        UNKNOWN_FILE: int(np.count_nonzero(unknown & ~replaced)),
    }
    rows = np.flatnonzero(~replaced & ~unknown)
    new = np.cumsum(kept, dtype=np.int32) - np.int32(1)
    cluster, in_corpus = new[cluster[rows]], in_corpus[rows]
    start, end = (file.fragments[name].to_numpy()[rows] for name in ("start", "end"))
    order = rows_in_order(cluster, in_corpus, start, end)
    return Fragments(
        system=system,
        classes=tuple(file.classes["class"].filter(pa.array(kept)).to_pylist()),
        cluster=cluster[order],
        file=in_corpus[order],
        start=start[order],
        end=end[order],
        dropped={reason: count for reason, count in dropped.items() if count},
        notes=tuple(_notes(file, corpus.definition)),
    )


def kept_classes(file: ClassFile, definition: Definition, problems: Problems) -> Bool:
    """Return whether each class counts, bool [n_classes].

    A repeated class is a problem or (tde2015) replaces the earlier.
    """
    names, lines = file.classes["class"].to_pylist(), file.classes["line"].to_pylist()
    kept = np.ones(len(names), np.bool_)
    seen: dict[Hashable, int] = {}
    for row, (name, line) in enumerate(zip(names, lines, strict=True)):
        number, _, text = name.partition(" ")
        if definition == "tde2015" and not _WHOLE.fullmatch(number):
            expected = "a whole number after Class (tde2015)"
            problems.add(file.url, line, expected, repr(number), "Number the classes.")
            continue
        key: Hashable = (int(number), text) if definition == "tde2015" else number
        earlier = seen.get(key)
        seen[key] = row
        if earlier is None:
            continue
        if definition == "tde2015":
            kept[earlier] = False
        else:
            found = f"class {number} again, first at line {lines[earlier]}"
            problems.add(file.url, line, "every class once", found, "Merge the two or renumber one.")
    return kept


def _notes(file: ClassFile, definition: Definition) -> Iterator[Note]:
    yield from rounding_notes(file.fragments)
    if definition == "tdev2" and not file.ends_blank:
        text = "no empty line at the end; the tool tdev2 refuses the file."
        yield Note(text, text)


def check_together(
    corpus_files: CorpusFiles | None, class_files: Iterable[str], definition: Definition, problems: Problems
) -> dict[str, dict[str, int]]:
    """Check a corpus and class files, each of them well-formed, against each other; add problems to `problems`.

    Without a corpus, only the names of classes are checked. Returns the counts of fragments that the definition drops,
    by file and reason.
    """
    corpus = None
    if corpus_files is not None:
        corpus = _corpus(corpus_files, definition, problems)
    dropped: dict[str, dict[str, int]] = {}
    for url in class_files:
        file = read_classes(url, problems)
        if corpus is None:
            kept_classes(file, definition, problems)
            continue
        with noted(problems):
            dropped[url] = dict(build_fragments(file, corpus, system=url, most_problems=problems.limit).dropped)
    return dropped


def _corpus(files: CorpusFiles, definition: Definition, problems: Problems) -> Corpus | None:
    """Return the corpus; None if it has problems, because it then cannot be known which files are unknown."""
    with noted(problems):
        return build_corpus(read_corpus_files(files), definition, most_problems=problems.limit)
    return None
