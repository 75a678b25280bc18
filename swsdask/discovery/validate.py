"""Files of term discovery checked against each other, as scoring by a definition would."""

from __future__ import annotations

from collections.abc import Iterable

from swsdask.discovery.corpus import build_corpus
from swsdask.discovery.fragments import build_fragments, kept_classes
from swsdask.errors import Problems
from swsdask.formats.class_file import read_classes
from swsdask.formats.corpus_files import CorpusFiles, read_corpus_files
from swsdask.formats.noting import noted
from swsdask.model.corpus import Corpus, Definition


def check_together(
    corpus_files: CorpusFiles | None, class_files: Iterable[str], definition: Definition, problems: Problems
) -> dict[str, dict[str, int]]:
    """Check a corpus and class files, each of them well-formed; what is wrong is added to `problems`.

    Without a corpus, only the names of classes are. Gives the fragments that the definition drops, by reason and file.
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
    """None if it is faulty: then nothing can be said of what it does not have."""
    with noted(problems):
        return build_corpus(read_corpus_files(files), definition, most_problems=problems.limit)
    return None
