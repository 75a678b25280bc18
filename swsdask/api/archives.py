"""Validation of files; writing, verification and cleaning of archives."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import get_args

from swsdask.api.discovery_inputs import corpus_files, corpus_places
from swsdask.api.opening import check_place, given_tables, judged_files, reference_files, settings_layers
from swsdask.api.runs import Runs, given_runs
from swsdask.archive import cleaning
from swsdask.archive import verify as verification
from swsdask.archive.cache import known_sources
from swsdask.archive.change import ChangePolicy
from swsdask.archive.cleaning import Expired
from swsdask.archive.ingest import ingest as ingest_files
from swsdask.archive.storage import Storage
from swsdask.archive.store import StoredArchive, is_archive, open_archive
from swsdask.archive.validate import MOST_PROBLEMS, Report
from swsdask.archive.validate import validate as validate_files
from swsdask.archive.verify import Verified
from swsdask.archive.versions import Layout
from swsdask.discovery.corpus import check_together
from swsdask.execution.executor import Executor, Progress
from swsdask.execution.open import working
from swsdask.formats.discovery import CorpusFiles, roles
from swsdask.formats.find import find_reference
from swsdask.formats.in_memory import Judged, Table, check_files
from swsdask.formats.recognise import Format
from swsdask.formats.runs.encoding import read_encoding
from swsdask.model.discovery import Definition
from swsdask.model.errors import Problems, SettingsError, check_choice
from swsdask.model.layers import GivenSettings, build_settings, explicit_settings
from swsdask.places.reading import Location, as_path, locations


def ingest(
    archive: Location,
    reference: Location | None = None,
    *,
    ecf: Location | None = None,
    rttm: Location | None = None,
    queries: Location | Table | Iterable[str] | None = None,
    documents: Location | Table | None = None,
    occurrences: Location | Table | None = None,
    lexicon: Location | None = None,
    vocabulary: Location | None = None,
    qrels: Location | Judged | None = None,
    runs: Runs = None,
    preset: str | None = None,
    compat: str | None = None,
    settings: GivenSettings | None = None,
    frame_shift: float | None = None,
    negate_scores: bool = False,
    segments: Location | None = None,
    replace: bool = False,
    change_settings: bool = False,
    rehash: bool = False,
    buckets: int | None = None,
    codec: str = "lz4",
    executor: Executor | str | None = None,
    progress: Progress | None = None,
) -> StoredArchive:
    """Write a reference and runs into an archive, which is created if it does not exist.

    Parameters
    ----------
    archive : path or URL
        The archive.
    reference : path or URL, optional
        A directory with one ECF, one RTTM and one query list, or with tables, see `open`. A new archive needs a
        reference.
    ecf, rttm, queries : path or URL, optional
        The three files of a reference, instead of `reference`.
    documents, occurrences : DataFrame, Arrow table, list of dict, dict of columns, path or URL, optional
        Tables of a reference, see `open`. `queries` is then a table, ids or None.
    lexicon, vocabulary : path or URL, optional
        Files that add attributes to the queries, see `open`. The archive stores these attributes.
    qrels : path, URL, DataFrame or mapping, optional
        Judgments of documents, instead of a reference, see `open`. The collection of the archive consists of the judged
        documents and the documents of all its runs, so it grows with later runs.
    runs : path, URL, glob, DataFrame, iterable of these, or mapping, optional
        Files or directories with runs, or tables, as for `score`. A mapping gives the run of each system.
    preset, compat, settings : optional
        The settings, see `open`. A new archive stores them, and later runs are read with them.
    frame_shift : float, optional
        Seconds per frame, for tables whose times are frame numbers.
    negate_scores : bool, default False
        Negate the scores of tables, for tables whose scores are costs.
    segments : path or URL, optional
        Kaldi's ``segments`` file, for tables whose documents are utterances and whose times begin at the utterance.
    replace : bool, default False
        Replace runs of the archive that have the same name but different content.
    change_settings : bool, default False
        Replace the settings that the archive keeps with the given ones.
    rehash : bool, default False
        Read all files, even those that did not change since they were ingested.
    buckets : int, optional
        The number of parts into which a new archive divides its queries. Default: 64.
    codec : str, default "lz4"
        The compression of detections: lz4, zstd, snappy, gzip, brotli or none.
    executor : Executor or str, optional
        Where the work runs, see `cluster`. Default: the executor of the settings' ``[engine]``.
    progress : Progress, optional
        Receives the phases of the work.

    Returns
    -------
    StoredArchive
        The archive at its new version.

    Raises
    ------
    InputError
        Lists every problem of the files. Nothing is written.
    SettingsError
        A setting is unknown or malformed, or arguments conflict.
    ArchiveError
        The archive has a run with the same name but different content, or keeps different settings.

    Notes
    -----
    Either everything is committed or nothing. A run that the archive already has, with the same content, is left as it
    is. A file is not read again if its size, and its ETag or modification time, have not changed since it was ingested.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> archive = sws.ingest("archive", "demo/files", runs="demo/files/runs", preset="sws2013")
    >>> archive.version, [run.rows for run in archive.runs]
    (1, [243, 220, 234, 214, 131])
    """
    encoding = read_encoding(frame_shift, negate_scores, segments)
    check_place(archive)
    check_place(reference)
    url = as_path(archive)
    layers = settings_layers(preset, compat, settings, judged=qrels is not None)
    kept = open_archive(url).kept if is_archive(url) else None
    layers = layers if kept is None else layers.over(kept)
    resolved = layers.settings()
    in_tables = documents is not None or occurrences is not None
    given = in_tables or reference is not None or any((ecf, rttm, queries))
    if not given and (lexicon is not None or vocabulary is not None):
        raise SettingsError("lexicon and vocabulary need the files of a reference: they add attributes to its queries.")
    other_files = (reference, ecf, rttm, lexicon, vocabulary)
    of_tables = given_tables(documents, occurrences, queries, other_files) if in_tables else None
    others = (reference, ecf, rttm, queries, documents, occurrences)
    layout = Layout(buckets=buckets, codec=codec)
    known = known_sources(Storage(url), resolved.evaluation, encoding, rehash=rehash)
    found = given_runs(runs, judged=layers.judged, encoding=encoding, known=known)
    judged = None if qrels is None else judged_files(qrels, (), others)
    with working(resolved, executor, found.rows_about, progress) as opened:
        return ingest_files(
            url,
            of_tables or (reference_files(reference, ecf, rttm, queries, lexicon, vocabulary) if given else judged),
            found.sources,
            resolved.evaluation,
            policy=ChangePolicy(replace, layers, change_settings),
            layout=layout,
            executor=opened,
            progress=progress,
            known=known,
            unread=found.unread,
        )


def verify(
    archive: Location,
    *,
    repair: Location | None = None,
    adopt: bool = False,
    settings: GivenSettings | None = None,
    executor: Executor | str | None = None,
    progress: Progress | None = None,
) -> Verified:
    """Verify every file of an archive, of detections or of term discovery, by the hashes that it stores.

    Its history of nights is verified too. Damaged cache files (in `kept/`) are never used and can be removed.

    Parameters
    ----------
    archive : path or URL
        The archive. All its versions are verified.
    repair : path or URL, optional
        A copy of the archive. A damaged file is replaced with the file of the copy, if that one is undamaged.
    adopt : bool, default False
        Add hashes for the files of an archive that an earlier release wrote without them, if no file is damaged. This
        creates a new version.
    settings : mapping or Settings, optional
        Settings in the shape of a settings file, of which the table "engine" is used.
    executor : Executor or str, optional
        Where the files are read, see `cluster`. Default: the executor of the settings' ``[engine]``; without settings,
        this process reads one file after the other.
    progress : Progress, optional
        Receives the number of files done.

    Returns
    -------
    Verified
        The damaged files, and what was done.

    Raises
    ------
    ArchiveError
        There is no archive, or none of its manifests can be read.
    StoreError
        A file in a store cannot be read at present: permission denied or no connection.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.verify("demo/archive").damaged
    {}
    """
    with working(build_settings(explicit=explicit_settings(settings)), executor, 0, progress) as opened:
        return verification.verify(
            as_path(archive),
            repair=None if repair is None else as_path(repair),
            adopt=adopt,
            executor=opened,
            progress=progress,
        )


def vacuum(archive: Location, *, older_than_s: float = cleaning.DAY_S, dry_run: bool = False) -> list[str]:
    """Remove the files of an archive that belong to no version, left by interrupted writers.

    It is safe to run while others write.

    Parameters
    ----------
    archive : path or URL
        The archive, of detections or of term discovery.
    older_than_s : float, default 86400
        The time in seconds without a sign of life after which a writer counts as stopped.
    dry_run : bool, default False
        Remove nothing.

    Returns
    -------
    list of str
        The names of the files that were removed or, with `dry_run`, would be.

    Raises
    ------
    SettingsError
        `older_than_s` is NaN.
    ArchiveError
        There is no archive, or one of its versions cannot be read. Then nothing is removed.
    StoreError
        A version in a store cannot be read at present: permission denied or no connection. Then nothing is removed.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.vacuum("demo/archive", dry_run=True)
    []
    """
    return cleaning.vacuum(as_path(archive), older_than_s=older_than_s, dry_run=dry_run)


def expire(
    archive: Location, *, keep: int | None = None, older_than_s: float | None = None, dry_run: bool = False
) -> Expired:
    """Remove old versions of an archive, and the files that only they use. It is safe to run while others write.

    Parameters
    ----------
    archive : path or URL
        The archive, of detections or of term discovery.
    keep : int, optional
        The number of newest versions to keep, whatever their age. Default: 1.
    older_than_s : float, optional
        Keep versions that were committed at most this many seconds ago. Default: only `keep` decides.
    dry_run : bool, default False
        Remove nothing.

    Returns
    -------
    Expired
        The versions and the files that were removed or, with `dry_run`, would be.

    Raises
    ------
    SettingsError
        Neither `keep` nor `older_than_s` is given, or `older_than_s` is NaN.
    ArchiveError
        There is no archive, or one of its versions cannot be read. Then nothing is removed.
    StoreError
        A version in a store cannot be read at present: permission denied or no connection. Then nothing is removed.

    Notes
    -----
    The newest version always stays. Readers that have an expired version open may fail on their next read. The time of
    a commit is the modification time of the manifest.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.expire("demo/archive", keep=10, dry_run=True)
    Expired(versions=(), files=())
    """
    return cleaning.expire(as_path(archive), keep=keep, older_than_s=older_than_s, dry_run=dry_run)


def validate(
    paths: Location | Iterable[Location],
    reference: Location | None = None,
    *,
    phones: Location | None = None,
    words: Location | None = None,
    split: Location | None = None,
    folds: Location | None = None,
    within: Location | None = None,
    speakers: Location | None = None,
    definition: Definition | None = None,
    frame_shift: float | None = None,
    negate_scores: bool = False,
    segments: Location | None = None,
    preset: str | None = None,
    compat: str | None = None,
    settings: GivenSettings | None = None,
    executor: Executor | str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Check files of any supported format and report every problem in them.

    Parameters
    ----------
    paths : path, URL, glob, or iterable of these
        Files, or directories with files.
    reference : path or URL, optional
        The directory of a reference. It must contain the queries and documents of the runs.
    phones, words, split, folds, within, speakers : path or URL, optional
        The files of a corpus, see `discover`. They are checked against each other, and class files against them.
    definition : {"document", "tde2015", "tdev2"}, optional
        The definition by which the files of a corpus are checked. Default: "document".
    frame_shift, negate_scores, segments : optional
        How runs are encoded, as for `score`.
    preset, compat, settings : optional
        As for `open`. They determine whether the following are problems or only counted: unknown queries and documents
        of runs, detections outside the excerpts, and trials that a run has twice.
    executor : Executor or str, optional
        Where files are checked, see `cluster`. Default: the executor of the settings' ``[engine]``.
    progress : Progress, optional
        Receives the number of files done.

    Returns
    -------
    Report
        The files with their formats and counts, and the problems, ordered by file and line.

    Raises
    ------
    SettingsError
        A setting is unknown or malformed, or a corpus lacks `phones` or `words`. Problems of the files are reported,
        not raised.
    InputError
        The file of `segments` has problems.
    ClusterError
        The workers cannot be reached, were lost, or do not see a file.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> report = sws.validate("demo/files/runs/weak.kwslist.xml", "demo/files")
    >>> report.total
    0
    >>> report.files[-1].counts["rows"]
    131
    """
    encoding = read_encoding(frame_shift, negate_scores, segments)
    check_files(paths)
    if definition is not None:
        check_choice("definition", definition, get_args(Definition))
    named = corpus_places(phones, words, split, folds, within, speakers)
    corpus = corpus_files(named) if named else None
    of_folder = find_reference(as_path(reference)) if reference else None
    resolved = settings_layers(preset, compat, settings).settings()
    with working(resolved, executor, 0, progress) as opened:
        report = validate_files(locations(paths), of_folder, corpus, resolved.evaluation, opened, encoding, progress)
    faulty = {problem.file for problem in report.problems}
    classes = [each.file for each in report.files if each.format is Format.CLASSES and each.file not in faulty]
    if (classes or corpus is not None) and faulty.isdisjoint(roles(corpus) if corpus else ()):
        report = _check_corpus(report, corpus, classes, definition or "document")
    place = {file: number for number, file in enumerate(dict.fromkeys(each.file for each in report.problems))}
    in_order = sorted(report.problems, key=lambda each: (place[each.file], each.line is None, each.line or 0))
    return dataclasses.replace(report, problems=tuple(in_order))


def _check_corpus(report: Report, corpus: CorpusFiles | None, classes: list[str], definition: Definition) -> Report:
    """Add to a report the contradictions between well-formed files, and the counts of what a definition drops."""
    problems = Problems(MOST_PROBLEMS)
    dropped = check_together(corpus, classes, definition, problems)
    files = []
    for each in report.files:
        more = {f"fragments dropped: {reason}": count for reason, count in dropped.get(each.file, {}).items()}
        files.append(dataclasses.replace(each, counts=each.counts | more))
    return Report(tuple(files), (*report.problems, *problems), report.total + len(problems))
