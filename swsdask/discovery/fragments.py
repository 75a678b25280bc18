"""Fragments of a system that a definition admits, and the check of its files.

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
after its onset, and any number of fields but three, are format errors in every definition.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable

import numpy as np
import pyarrow as pa

from swsdask.discovery.corpus import build_corpus
from swsdask.discovery.placing import UNKNOWN, note_unknown, numbers_of, rounding_note, rows_in_order
from swsdask.formats.discovery.corpus import ClassFile, CorpusFiles, read_classes, read_corpus_files
from swsdask.formats.files import noted
from swsdask.model.corpus import Corpus, Definition, Fragments
from swsdask.model.errors import MOST_KEPT, Problems
from swsdask.model.trials import Bool
from swsdask.model.units import id_fault

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
    """The name of a system by its class file: the file's, without .gz and the like, .classes, .class, .disc or .txt."""
    name = url.rsplit("/", 1)[-1]
    return _SYSTEM.sub("", name) or name


def build_fragments(file: ClassFile, corpus: Corpus, *, system: str, most_problems: int = MOST_KEPT) -> Fragments:
    """The fragments of a class file that was read.

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
    """Whether each class counts, bool per class; repeated ones are noted, or (tde2015) replace the earlier."""
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


def _notes(file: ClassFile, definition: Definition) -> list[str]:
    notes = []
    if note := rounding_note(file.fragments, file.url):
        notes.append(note)
    if definition == "tdev2" and not file.ends_blank:
        notes.append(f"{file.url}: no empty line at the end; the tool tdev2 refuses the file.")
    return notes


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
    """The corpus; None if it has problems, since unknown files cannot be determined then."""
    with noted(problems):
        return build_corpus(read_corpus_files(files), definition, most_problems=problems.limit)
    return None
