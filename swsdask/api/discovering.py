"""Scoring term discovery."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

from swsdask.api.discovery_inputs import (
    Classes,
    UnreadSystem,
    corpus_places,
    corpus_under,
    discovery_inputs,
    discovery_layers,
)
from swsdask.api.manifest import circumstances, discovery_manifest, discovery_provenance
from swsdask.archive.stored_tables import verification_notes
from swsdask.discovery.measures import DiscoveryMeasure, select
from swsdask.discovery.placing import locate
from swsdask.discovery.score import (
    CountedDiscovery,
    Details,
    FragmentSource,
    Placed,
    fragment_notes,
    meaning,
    needed,
    word_notes,
)
from swsdask.execution.executor import Executor, Progress, SerialExecutor, Unseen, or_unseen
from swsdask.execution.open import working
from swsdask.measures.names import as_names, requested_names
from swsdask.model.discovery import Corpus, Definition
from swsdask.model.layers import GivenSettings
from swsdask.model.results import Result, note_lines
from swsdask.model.wording import counted
from swsdask.places.reading import Location
from swsdask.scoring.rounds import SYSTEMS, ResultTables, Statistics, score_systems


def discover(
    classes: Classes = None,
    *,
    archive: Location | None = None,
    phones: Location | None = None,
    words: Location | None = None,
    split: Location | None = None,
    folds: Location | None = None,
    within: Location | None = None,
    speakers: Location | None = None,
    n_folds: int | None = None,
    definition: Definition | None = None,
    measures: str | Iterable[str] | None = None,
    settings: GivenSettings | None = None,
    executor: Executor | str | None = None,
    verify: bool = True,
    progress: Progress | None = None,
) -> Result:
    """Score term discovery: the classes of fragments that systems found in a corpus.

    Parameters
    ----------
    classes : path, URL, glob, iterable of these, or mapping, optional
        Class files, or directories with them. A mapping gives the file of each system. With `archive`: names of its
        systems. Default: every system of the archive.
    archive : path or URL, optional
        An archive of term discovery with the corpus and the systems, instead of files.
    phones, words : path or URL, optional
        The alignments of phones and words. Required without `archive`.
    split : path or URL, optional
        The stretches of speech to which "tde2015" clips fragments.
    folds : path or URL, optional
        The folds of the condition "all". Default: `n_folds` nearly equal parts of whole files.
    within : path or URL, optional
        The folds of the condition "within_talker".
    speakers : path or URL, optional
        The speaker of each file, instead of `within`. It determines the folds of "within_talker".
    n_folds : int, optional
        The number of folds without `folds`; 1 scores the corpus as a whole. Default: the setting of the archive, or 10.
    definition : {"document", "tde2015", "tdev2"}, optional
        The definition of the measures: that of the measures document, of the official tool of 2015, or of the official
        tool of 2017 and 2020. Default: the setting of the archive, or "document".
    measures : str or iterable of str, optional
        Names of measures. The name of a family means its precision, recall and F-score. Default: every measure.
    settings : mapping or Settings, optional
        Settings in the shape of a settings file, with tables "discovery" and "engine".
    executor : Executor or str, optional
        Where the work runs, see `cluster`. Default: the executor of the settings' ``[engine]``. The numbers do not
        depend on it.
    verify : bool, default True
        Verify the files that are read from an archive by the hashes that it stores.
    progress : Progress, optional
        Receives the phases of the work and the number of rows done.

    Returns
    -------
    Result
        The conditions "all" and "within_talker" have the means over folds under the names of the measures, and the
        spread as ``NAME_std``, ``NAME_min`` and ``NAME_max``. Each fold is a condition too, such as "all/1".

    Raises
    ------
    InputError
        Lists every problem of the files.
    SettingsError
        A measure or setting is unknown, or arguments conflict.
    ArchiveError
        The archive cannot be read.
    ClusterError
        The workers cannot be reached, or were lost.

    Examples
    --------
    With the files of ``swsdask simulate discovery --phones 2000 --out corpus``:

    >>> import swsdask as sws
    >>> result = sws.discover("corpus", phones="corpus/sim.phn", words="corpus/sim.wrd", measures=["ned", "coverage"])
    >>> overall = result.scores[result.scores["condition"] == "all"]
    >>> overall.pivot(index="system", columns="measure", values="value").round(4)[["ned", "coverage"]]
    measure     ned  coverage
    system
    careful  0.1786    0.0309
    dense    0.6453    0.4904
    giant    0.7373    0.1077
    pairs    0.6625    0.0458
    """
    began = time.time()
    progress = or_unseen(progress)
    requested = requested_names(measures)
    named = corpus_places(phones, words, split, folds, within, speakers)
    inputs = discovery_inputs(classes, archive, named, verify=verify)
    settled = inputs.settle(discovery_layers(definition, n_folds, settings))
    definition = settled.settings.discovery.definition
    names, families = select(requested, definition)
    progress.begin("reading the corpus", 0)
    corpus = corpus_under(inputs.tables, settled.settings.discovery)
    notes = [
        meaning(corpus),
        *settled.notes,
        *verification_notes(inputs.verification),
        *corpus.notes,
        *word_notes(corpus),
    ]
    rows_about = inputs.phones_about + sum(each.rows for each in inputs.systems)
    with working(settled.settings, executor, rows_about, progress) as opened:
        opened.check(inputs.places)
        request = _Requested(names, families, settled.settings.engine.rows_per_task)
        tables = _score(inputs.systems, corpus, request, opened, progress)
        beside = circumstances(began, opened, inputs.verification, settled.overridden, tables.notes)
    details = cast("dict[str, Details]", tables.observed)
    runs = {system: each.run for system, each in details.items()}
    examples = {system: each.classes for system, each in details.items()}
    phones_file = os.path.basename(inputs.tables.files.phones)
    manifest = discovery_manifest(corpus, settled.settings.discovery, requested, runs, phones_file)
    on_systems = tuple(note_lines(tables.notes))
    return Result(
        score_rows=tables.scores,
        curve_rows=tables.curves,
        overall=tables.overall,
        manifest={**manifest, "classes": examples, **beside},
        notes=(*notes, *on_systems),
        system_notes=on_systems,
    )


FEW_FRAGMENTS = 500_000
"""A system with at most this many fragments is one task of a worker process, from reading its file to the numbers."""


class _Requested(NamedTuple):
    """The request for every system: the names of numbers, the objects that compute them, the steps of a task."""

    names: list[str]
    families: list[DiscoveryMeasure]
    work: int

    def counted(self, system: UnreadSystem, statistics: Statistics) -> CountedDiscovery:
        return CountedDiscovery(system.system, statistics, self.families, self.names)


def _score(
    systems: Sequence[UnreadSystem], corpus: Corpus, request: _Requested, executor: Executor, progress: Progress
) -> ResultTables:
    """Return the results of systems, in their order.

    Worker processes read small systems and return their results. A large system is read by one of them, whose
    neighbours fetch it from there to count its cells.
    """
    source = FragmentSource(corpus, _place, needed(request.families), executor, request.work)
    cut = [each for each in systems if executor.shares_memory or each.rows > FEW_FRAGMENTS]
    whole = [each for each in systems if not executor.shares_memory and each.rows <= FEW_FRAGMENTS]
    parts = [score_systems(cut, len(cut), source, request.counted, executor, progress)] if cut or not whole else []
    if whole:
        progress.begin(SYSTEMS, sum(each.rows for each in whole))
        shared = (*source.shared, executor.share(request))
        parts += executor.map(_score_whole, whole, shared, done=lambda each: progress.advance(each.rows), name=SYSTEMS)
    return ResultTables.joined(parts, [each.system for each in systems])


def _place(system: UnreadSystem, corpus: Corpus) -> Placed:
    """Read a system, and place its fragments."""
    fragments = system.read(corpus)
    found = locate(fragments, corpus)
    notes = (*fragments.notes, *fragment_notes(found, corpus))
    return Placed(found, notes, discovery_provenance(system.source, fragments, found, corpus))


def _score_whole(system: UnreadSystem, shared: tuple[Corpus, _Requested]) -> ResultTables:
    """Score one system here."""
    corpus, request = shared
    return _score([system], corpus, request, SerialExecutor(), Unseen())


def plan_discovery(
    classes: Classes = None,
    *,
    archive: Location | None = None,
    phones: Location | None = None,
    words: Location | None = None,
    split: Location | None = None,
    folds: Location | None = None,
    within: Location | None = None,
    speakers: Location | None = None,
    n_folds: int | None = None,
    definition: Definition | None = None,
    measures: str | Iterable[str] | None = None,
    settings: GivenSettings | None = None,
) -> str:
    """Check everything that `discover` would read, and report what it would do. Nothing is scored.

    Parameters
    ----------
    classes, archive, phones, words, split, folds, within, speakers, n_folds : optional
        The inputs, as for `discover`.
    definition, measures, settings : optional
        As for `discover`.

    Returns
    -------
    str
        Lines with the definition, the notes, the size of the corpus, its folds, the systems and the measures.

    Raises
    ------
    InputError, SettingsError, ArchiveError
        As `discover`.

    Examples
    --------
    With the files of ``swsdask simulate discovery --phones 2000 --out corpus``:

    >>> import swsdask as sws
    >>> plan = sws.plan_discovery("corpus", phones="corpus/sim.phn", words="corpus/sim.wrd", measures="ned")
    >>> print(plan.splitlines()[1])
    1 file, 1,999 phones, 624 words
    """
    inputs = discovery_inputs(classes, archive, corpus_places(phones, words, split, folds, within, speakers))
    settled = inputs.settle(discovery_layers(definition, n_folds, settings))
    definition = settled.settings.discovery.definition
    names, _ = select(as_names(measures), definition)
    corpus = corpus_under(inputs.tables, settled.settings.discovery)
    lines = [
        meaning(corpus),
        *settled.notes,
        f"{counted(len(corpus.files), 'files')}, {counted(len(corpus.phones), 'phones')}, "
        f"{counted(len(corpus.words), 'words')}",
        *(f"{each.condition}: {counted(len(each.names), 'folds')}" for each in corpus.folds),
        *corpus.notes,
        *word_notes(corpus),
    ]
    notes = {}
    for each in inputs.systems:
        placed = _place(each, corpus)
        found = placed.discovered
        lines.append(f"{each.system}: {counted(len(found.classes), 'classes')}, {counted(len(found), 'fragments')}")
        notes[each.system] = placed.notes
    lines.extend(note_lines(notes))
    return "\n".join([*lines, f"measures: {', '.join(names)}"])
