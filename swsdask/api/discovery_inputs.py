"""Inputs of term discovery: files, or an archive that is read or written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol

from swsdask.api.runs import by_system
from swsdask.archive.change import ChangePolicy
from swsdask.archive.discovery import StoredDiscovery, StoredSystem, is_discovery, open_discovery, read_stored_classes
from swsdask.archive.discovery import ingest_discovery as ingest_tables
from swsdask.archive.storage import Storage
from swsdask.archive.stored_tables import Verification
from swsdask.archive.versions import manifest_name
from swsdask.discovery.corpus import build_corpus, build_fragments, read_fragments, system_of
from swsdask.execution.executor import Executor, Progress
from swsdask.execution.open import working
from swsdask.formats.discovery import ClassFile, CorpusFiles, CorpusTables, read_corpus_files
from swsdask.formats.files import file_size, noted
from swsdask.formats.find import find_classes
from swsdask.model.discovery import Corpus, Definition, DiscoverySettings, Fragments
from swsdask.model.errors import InputError, Problems, SettingsError
from swsdask.model.layers import GivenSettings, Layers, Settled, explicit_settings, merge_layers
from swsdask.model.wording import choices
from swsdask.places.reading import Location, Pipe, as_path, is_folder, locations, readable

Classes = Location | Iterable[Location] | Mapping[str, Location] | None
"""Class files, folders, globs or URLs; a mapping from system to file; or names of systems of an archive, None: all."""

BYTES_PER_ROW = 24
"""The approximate size of a phone, a word or a fragment in its file, for estimates of the work."""


@dataclass(frozen=True)
class UnreadSystem:
    """A system of about `rows` fragments. `read` reads them from `source` in any process.

    `read` raises `InputError` with every problem of the fragments, `ArchiveError` for a damaged archive.
    """

    system: str
    source: str
    rows: int
    read: Callable[[Corpus], Fragments]

    def __str__(self) -> str:
        return f"system {self.system}: {self.source}"


class DiscoveryInputs(Protocol):
    """A corpus, and the systems that were run on it."""

    @property
    def tables(self) -> CorpusTables:
        """The corpus before any definition applies. Raises `InputError` with every problem of its files."""
        ...

    @property
    def systems(self) -> Sequence[UnreadSystem]:
        """The systems in the order of scoring."""
        ...

    @property
    def places(self) -> Sequence[str]:
        """The paths and URLs that the readers of systems must be able to see."""
        ...

    @property
    def phones_about(self) -> int:
        """The approximate number of phones."""
        ...

    @property
    def verification(self) -> Verification | None:
        """Whether files of an archive are verified by hashes; None without an archive."""
        ...

    def settle(self, given: Layers) -> Settled:
        """Return the settings that the given layers yield. Raises `SettingsError` with their problems."""
        ...


@dataclass(frozen=True)
class FromFiles:
    """`DiscoveryInputs` of files."""

    corpus_files: CorpusFiles
    classes: Mapping[str, str]

    @cached_property
    def tables(self) -> CorpusTables:
        """The tables, read on first use. Class files that cannot be opened are reported together with problems."""
        problems = Problems()
        with noted(problems):
            tables = read_corpus_files(self.corpus_files)
        with noted(problems):
            _ = self.systems
        problems.raise_if_any()
        return tables

    @cached_property
    def systems(self) -> Sequence[UnreadSystem]:
        """Each reads its class file, which does not stay in memory. Rows are estimated from the size of the file.

        Raises `InputError` for every class file that cannot be opened.
        """
        problems, systems = Problems(), []
        for system, url in self.classes.items():
            with noted(problems):
                rows, read = file_size(url) // BYTES_PER_ROW, partial(read_fragments, url, system=system)
                systems.append(UnreadSystem(system, url, rows, read))
        problems.raise_if_any()
        return systems

    @property
    def places(self) -> Sequence[str]:
        """The class files. Other processes of this machine see pipes too."""
        return [url for url in self.classes.values() if not isinstance(url, Pipe)]

    @property
    def phones_about(self) -> int:
        """Estimated from the size of the file."""
        return file_size(self.corpus_files.phones) // BYTES_PER_ROW

    @property
    def verification(self) -> None:
        """Files have no hashes."""
        return None

    def settle(self, given: Layers) -> Settled:
        """Return the given layers."""
        return Settled.of_files(given)


@dataclass(frozen=True)
class FromArchive:
    """`DiscoveryInputs` of an archive, with some of its systems."""

    archive: StoredDiscovery
    stored: Sequence[StoredSystem]

    @property
    def tables(self) -> CorpusTables:
        """The tables, read on first use."""
        return self.archive.tables

    @property
    def systems(self) -> Sequence[UnreadSystem]:
        """Each reads its tables, which do not stay in memory."""
        storage, verify = self.archive.storage, self.archive.verify
        return [
            UnreadSystem(
                each.system, each.read_from, each.n_fragments, partial(_stored_fragments, storage, each, verify)
            )
            for each in self.stored
        ]

    @property
    def places(self) -> Sequence[str]:
        """The manifest of the version."""
        return [self.archive.storage.place(manifest_name(self.archive.version))]

    @property
    def phones_about(self) -> int:
        """The count of the archive."""
        return len(self.tables.phones)

    @property
    def verification(self) -> Verification:
        """The verification of the archive."""
        return self.archive.verification

    def settle(self, given: Layers) -> Settled:
        """Return the given layers over those that the archive keeps."""
        return Settled.of_archive(given, self.archive.kept)


def _stored_fragments(storage: Storage, stored: StoredSystem, verify: bool, corpus: Corpus) -> Fragments:
    return build_fragments(read_stored_classes(storage, stored, verify=verify), corpus, system=stored.system)


def discovery_inputs(
    classes: Classes, archive: Location | None, corpus: Mapping[str, str], *, verify: bool = True
) -> DiscoveryInputs:
    """Return the inputs from an archive and names of its systems, or from class files and the files of a corpus.

    `corpus` are the `corpus_places`. Raises `SettingsError` if both are given, or neither.
    """
    if archive is not None:
        if corpus:
            raise SettingsError(f"An archive has its corpus: leave {', '.join(corpus)} out.")
        return _from_archive(open_discovery(as_path(archive), verify=verify), classes)
    files = class_files(classes)
    if not files:
        raise SettingsError("No class file to score.")
    return FromFiles(corpus_files(corpus), files)


def discovery_layers(definition: Definition | None, n_folds: int | None, settings: GivenSettings | None) -> Layers:
    """Return the given layers of settings; `definition` and `n_folds` override `settings`."""
    arguments = {"definition": definition, "n_folds": n_folds}
    chosen = {name: value for name, value in arguments.items() if value is not None}
    return Layers(explicit=merge_layers(explicit_settings(settings), {"discovery": chosen} if chosen else {}))


def corpus_places(
    phones: Location | None,
    words: Location | None,
    split: Location | None,
    folds: Location | None,
    within: Location | None,
    speakers: Location | None,
) -> dict[str, str]:
    """Return the given files of a corpus by their roles, as paths or URLs that can be read."""
    roles = {"phones": phones, "words": words, "split": split, "folds": folds, "within": within, "speakers": speakers}
    return {role: readable(place) for role, place in roles.items() if place is not None}


def corpus_files(named: Mapping[str, str]) -> CorpusFiles:
    """Return the files of a corpus by role. Raises `SettingsError` without phones and words."""
    if not {"phones", "words"} <= named.keys():
        raise SettingsError("A corpus needs the alignments of phones and of words.")
    if {"within", "speakers"} <= named.keys():
        raise SettingsError("Within and speakers both define the folds within talkers: give one.")
    return CorpusFiles(**named)


def corpus_under(tables: CorpusTables, settings: DiscoverySettings) -> Corpus:
    """Return the corpus under a definition.

    Raises `SettingsError` if `n_folds` or `fold_by` is set and has no effect.
    """
    if settings.chosen_folds and tables.folds is not None:
        raise SettingsError(f"A fold file defines the folds: leave {settings.chosen_folds[0]} out.")
    return build_corpus(
        tables, settings.definition, readings=settings.readings, fold_by=settings.fold_by, n_folds=settings.n_folds
    )


def class_files(given: Classes) -> dict[str, str]:
    """Return the file of each system.

    Raises `SettingsError` for two systems of one name and for an archive, `InputError` for a path without class files.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {system: readable(_place(url)) for system, url in by_system(given).items()}
    if isinstance(given, str | os.PathLike) or not isinstance(given, Iterable) or hasattr(given, "columns"):
        given = [_place(given)]  # a table would give the names of its columns
    given = [_place(each) for each in given]
    files: dict[str, str] = {}
    places = locations(given)
    for place in places:
        if is_folder(place) and is_discovery(place):
            raise SettingsError(
                f"{place} is an archive of term discovery: give it by the option archive, not as a class file."
            )
    for url in find_classes(places):
        system = system_of(url)
        if files.setdefault(system, url) != url:
            both = f"{files[system]} and {url} are both of {system!r}."
            raise SettingsError(f"{both} Give each as NAME=FILE (in Python {{name: file}}).")
    return files


def _place(given: object) -> Location:
    if not isinstance(given, str | os.PathLike):
        raise SettingsError("Classes are given by their files: paths or URLs, or a mapping from system to file.")
    return given


def _from_archive(archive: StoredDiscovery, wanted: Classes) -> FromArchive:
    there = {each.system: each for each in archive.systems}
    if not there:
        raise SettingsError(f"{archive.storage.url}: the archive has no systems. Ingest class files first.")
    if wanted is None:
        return FromArchive(archive, list(there.values()))
    if isinstance(wanted, Mapping):
        raise SettingsError("With an archive, give the names of its systems. Ingest files first.")
    names = locations(wanted)
    missing = [name for name in names if name not in there]
    if missing:
        raise SettingsError(f"{missing[0]} is not a system of the archive: {choices(there, missing[0])}.")
    return FromArchive(archive, [there[name] for name in dict.fromkeys(names)])


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
    n_folds: int | None = None,
    definition: Definition | None = None,
    settings: GivenSettings | None = None,
    replace: bool = False,
    change_settings: bool = False,
    executor: Executor | str | None = None,
    progress: Progress | None = None,
) -> StoredDiscovery:
    """Write a corpus and the classes that systems found in it into an archive of term discovery.

    Parameters
    ----------
    archive : path or URL
        The archive, which is created if it does not exist.
    classes : path, URL, glob, iterable of these, or mapping, optional
        Class files, or directories with them. A mapping gives the file of each system.
    phones, words : path or URL, optional
        The alignments of phones and words. A new archive needs both. They cannot be changed later.
    split, folds, within, speakers : path or URL, optional
        The other files of a corpus, see `discover`.
    n_folds, definition : optional
        The number of folds without a fold file, and the definition; the archive keeps both. See `discover`.
    settings : mapping or Settings, optional
        The settings that the archive keeps, in the shape of a settings file with tables "discovery" and "engine".
    replace : bool, default False
        Replace systems of the archive that have the same name but different content.
    change_settings : bool, default False
        Replace the settings that the archive keeps with the given ones.
    executor : Executor or str, optional
        Where class files are read and written, see `cluster`. Default: the executor of the settings' ``[engine]``.
    progress : Progress, optional
        Receives the phases of the work and the number of systems done.

    Returns
    -------
    StoredDiscovery
        The archive at its new version.

    Raises
    ------
    InputError
        Lists every problem of the files under the definition that the archive keeps. Nothing is written.
    SettingsError
        A setting is unknown or malformed, or `phones` or `words` are missing.
    ArchiveError
        The archive has a different corpus, a system with the same name but different content, or different settings.

    Notes
    -----
    Either everything is committed or nothing. A system that the archive already has, with the same content, is left as
    it is.

    Examples
    --------
    With the files of ``swsdask simulate discovery --phones 2000 --out corpus``:

    >>> import swsdask as sws
    >>> archive = sws.ingest_discovery("discovery", "corpus", phones="corpus/sim.phn", words="corpus/sim.wrd")
    >>> archive.version, [system.n_fragments for system in archive.systems]
    (1, [37, 341, 112, 58])
    """
    named = corpus_places(phones, words, split, folds, within, speakers)
    files = class_files(classes)
    tables = read_corpus_files(corpus_files(named)) if named else None
    before = open_discovery(as_path(archive)) if is_discovery(as_path(archive)) else None
    layers = discovery_layers(definition, n_folds, settings)
    if before is not None and before.kept is not None:
        layers = layers.over(before.kept)
    corpus = before.tables if tables is None and before is not None else tables
    check = None if corpus is None else partial(_check_classes, corpus_under(corpus, layers.settings().discovery))
    sizes: dict[str, int] = {}
    for url in files.values():
        with suppress(InputError):  # The reading task reports this problem together with those of the other files.
            sizes[url] = file_size(url)
    with working(layers.settings(), executor, sum(sizes.values()) // BYTES_PER_ROW, progress) as opened:
        opened.check([url for url in sizes if not isinstance(url, Pipe)])
        return ingest_tables(
            as_path(archive),
            tables,
            files,
            policy=ChangePolicy(replace, layers, change_settings),
            check=check,
            executor=opened,
            progress=progress,
        )


def _check_classes(corpus: Corpus, file: ClassFile, system: str) -> None:
    build_fragments(file, corpus, system=system)
