"""Writing term discovery into an archive."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from swsdask.api.discovery_inputs import Classes, class_files, corpus_files, discovery_layers
from swsdask.api.given import Location
from swsdask.archive.discovery import StoredDiscovery, is_discovery, open_discovery
from swsdask.archive.discovery_ingest import ingest_discovery as ingest_tables
from swsdask.discovery.corpus import build_corpus
from swsdask.engine.progress import Progress
from swsdask.formats.corpus_files import read_corpus_files
from swsdask.model.corpus import Definition


def ingest_discovery(
    archive: Location,
    classes: Classes = None,
    *,
    phones: Location | None = None,
    words: Location | None = None,
    split: Location | None = None,
    folds: Location | None = None,
    within: Location | None = None,
    speakers: Location | None = None,
    definition: Definition | None = None,
    settings: Mapping[str, Any] | None = None,
    replace_systems: bool = False,
    change_settings: bool = False,
    progress: Progress | None = None,
) -> StoredDiscovery:
    """Write a corpus (once) and what systems found into the archive at a path or URL; the new version.

    A new archive needs `phones` and `words`; an archive that is there has its corpus, and given again it must be the
    same. A new archive keeps `definition` and `settings`, and `discover` takes them from it; others, given later, are
    an `ArchiveError` unless `change_settings`, which makes the archive keep them.

    A system that is there already, with the same content, is left alone; one whose content differs is an `ArchiveError`
    unless `replace_systems`. Either everything is committed or nothing. Raises `InputError` with what is wrong in every
    definition.
    """
    roles = {"phones": phones, "words": words, "split": split, "folds": folds, "within": within, "speakers": speakers}
    named = {role: os.fspath(place) for role, place in roles.items() if place is not None}
    files = class_files(classes)
    tables = read_corpus_files(corpus_files(named)) if named else None
    if tables is not None:
        build_corpus(tables, "document")
    kept = open_discovery(os.fspath(archive)).kept if is_discovery(os.fspath(archive)) else None
    layers = discovery_layers(definition, settings)
    layers = layers if kept is None else layers.over(kept)
    layers.settings()
    told = None if progress is None else lambda label: progress.begin(label, 0)
    return ingest_tables(
        os.fspath(archive),
        tables,
        files,
        replace=replace_systems,
        keep=layers,
        change_settings=change_settings,
        progress=told,
    )
