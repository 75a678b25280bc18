"""Corpora of term discovery, read from files."""

from __future__ import annotations

from swsdask.discovery.corpus import build_corpus
from swsdask.formats.discovery import CorpusFiles, read_corpus_files
from swsdask.model.discovery import DEFAULT_FOLDS, Corpus, Definition


def read_corpus(
    phones: str,
    words: str,
    definition: Definition,
    *,
    split: str | None = None,
    folds: str | None = None,
    within: str | None = None,
    speakers: str | None = None,
    n_folds: int = DEFAULT_FOLDS,
) -> Corpus:
    """Read a corpus from files (paths or URLs, plain or compressed).

    `phones` and `words` are alignments, `split` the stretches of speech, `folds` a fold file, `within` a fold file for
    the folds within talkers, `speakers` a speaker map. Without `within` the speaker map gives the folds within talkers:
    one per speaker, of whole files, by name. Raises `InputError` with every problem of the files.
    """
    tables = read_corpus_files(CorpusFiles(phones, words, split, folds, within, speakers))
    return build_corpus(tables, definition, n_folds=n_folds)
