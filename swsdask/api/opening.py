"""Opening an evaluation: the reference that runs are scored against, and the settings."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

import pyarrow as pa

from swsdask.api.manifest import changed_settings
from swsdask.api.runs import Runs, given_runs
from swsdask.archive.decoded import DETECTED, REFERENCE, decode_detections, reference_table
from swsdask.archive.memory import MemoryArchive
from swsdask.archive.protocols import Archive, FindRule
from swsdask.archive.reference_files import read_reference, reference_of_tables, search_transcript
from swsdask.archive.reference_tables import JudgedFiles, ReferenceTables
from swsdask.archive.store import find_archive
from swsdask.archive.stored_tables import verification_notes
from swsdask.formats.find import ReferenceFiles, find_reference
from swsdask.formats.in_memory import Judged, Table, by_pair
from swsdask.model.errors import SettingsError, check_whole
from swsdask.model.layers import GivenSettings, Layers, Override, Settled, explicit_settings, load_preset
from swsdask.model.schemas import RunSource
from swsdask.model.settings import Settings
from swsdask.model.wording import choices, counted, listed
from swsdask.places.reading import Location, as_path, readable


@dataclass(frozen=True, eq=False)
class Evaluation:
    """An evaluation: a reference, and the settings with which runs are scored against it.

    `open` returns one.

    Attributes
    ----------
    archive : Archive
        The tables of the reference, and the runs of an archive.
    settings : Settings
        The settings of scoring. Those that can change a number are in ``settings.evaluation``.
    files : ReferenceFiles or None
        The files of the reference; None for an archive and for judgments.
    overridden : tuple of Override
        The settings that differ from those that the archive keeps.
    notes : tuple of str
        Notes on the settings, to be shown with results.
    judged : bool
        Whether the reference consists of judgments of documents. Tables of runs then need no times.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.open("demo/files", preset="sws2013")
    <Evaluation: 69 excerpts, 20 queries, 0 runs; outside=false_alarm p_target=0.00015 c_miss=100.0 c_fa=1.0>
    >>> sws.open("demo/archive").systems
    ('calibrated', 'keyword-specific', 'middling', 'overconfident', 'weak')
    """

    archive: Archive
    settings: Settings
    files: ReferenceFiles | None = field(default=None, repr=False)
    overridden: tuple[Override, ...] = field(default=(), repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    judged: bool = field(default=False, repr=False)

    @classmethod
    def of(cls, archive: Archive, settled: Settled, files: ReferenceFiles | None = None) -> Self:
        """Return an evaluation of an archive with its settled settings."""
        return cls(archive, settled.settings, files, settled.overridden, settled.notes, settled.judged)

    def __repr__(self) -> str:
        excerpts, queries = self.archive.documents.num_rows, self.archive.queries.num_rows
        held = f"{counted(excerpts, 'excerpts')}, {counted(queries, 'queries')}, {counted(len(self.systems), 'runs')}"
        return f"<Evaluation: {held}; {changed_settings(self.settings)}>"

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems whose runs are in the archive."""
        return tuple(run.system for run in self.archive.runs)

    def table(self, name: str, systems: str | Iterable[str] | None = None) -> pa.Table:
        """Return a table with ids and seconds: documents, queries, occurrences, judgments or detections.

        Parameters
        ----------
        name : {"documents", "queries", "occurrences", "judgments", "detections"}
            The name of the table. It has the columns that `open` and `score` accept, so it can be given to them again;
            `swsdask.archive.decoded` describes them. For judged documents, occurrences are the relevant documents, and
            judgments have the grades: give judgments to `open` as ``qrels``. Attributes of queries are columns, whose
            names `open` reads in lower case.
        systems : str or iterable of str, optional
            For detections: the systems. Default: every system.

        Returns
        -------
        pyarrow.Table
            The whole table in memory. For a large archive, `detections` yields the detections batch by batch.

        Raises
        ------
        SettingsError
            There is no such table or system.
        ArchiveError
            The archive cannot be read.

        Examples
        --------
        With the files of ``swsdask demo --hours 1 --queries 20``:

        >>> import swsdask as sws
        >>> evaluation = sws.open("demo/archive")
        >>> evaluation.table("occurrences").column_names
        ['query', 'document', 'channel', 'start', 'end', 'speaker']
        >>> evaluation.table("detections", systems="weak").num_rows
        131
        """
        if name == "detections":
            return self.detections(systems).read_all()
        if systems is not None:
            raise SettingsError(f"systems={systems!r} goes with the table detections.")
        if name not in REFERENCE:
            raise SettingsError(f"table {name!r} is unknown. There are: {', '.join(REFERENCE)}, detections.")
        return reference_table(self.archive, name, FindRule.of(self.settings.evaluation))

    def search(self, transcript: Location) -> pa.Table:
        r"""Search a transcript with scores for the texts of the queries, as a system with a speech recogniser does.

        Parameters
        ----------
        transcript : path or URL
            A CTM whose lines have a score: ``file channel start duration word score``.

        Returns
        -------
        pyarrow.Table
            The detections: query, document, channel, start, duration, score. Words are compared as in the reference.
            Consecutive words of a query may be up to ``find_gap_s`` apart. The score of a detection is the lowest score
            of its words. `score` accepts the table as a run.

        Raises
        ------
        InputError
            Lists every problem of the transcript.

        Examples
        --------
        For queries without texts, the ids are the texts:

        >>> import pathlib
        >>> import swsdask as sws
        >>> spoken = [{"query": "good morning", "document": "a", "start": 1.0, "duration": 0.9}]
        >>> evaluation = sws.open(documents=[{"document": "a", "duration": 60.0}], occurrences=spoken)
        >>> pathlib.Path("asr.ctm").write_text("a 1 1.1 0.4 good 0.8\na 1 1.5 0.5 morning 0.9\n")
        45
        >>> detections = evaluation.search("asr.ctm")
        >>> detections.to_pylist()[0]["score"]
        0.8
        >>> float(sws.score(evaluation, "stwv", runs={"asr": detections}).scores["value"][0])
        1.0
        """
        return search_transcript(readable(transcript), self.archive.queries, FindRule.of(self.settings.evaluation))

    def detections(self, systems: str | Iterable[str] | None = None) -> pa.RecordBatchReader:
        """Return the detections of runs in the archive as a stream of Arrow record batches, with ids and seconds.

        Parameters
        ----------
        systems : str or iterable of str, optional
            The systems. Default: every system.

        Returns
        -------
        pyarrow.RecordBatchReader
            The columns are system, query, document, channel, start, duration, score and decision. Each batch is read
            when it is requested, so memory stays flat. The stream can be read once.

        Raises
        ------
        SettingsError
            The archive has no run of a system.
        ArchiveError
            The archive cannot be read.

        Examples
        --------
        DuckDB, Polars and other libraries that accept Arrow can query them. With the files of ``swsdask demo --hours 1
        --queries 20``, the queries with the most detections:

        >>> import duckdb
        >>> import swsdask as sws
        >>> detections = sws.open("demo/archive").detections()
        >>> duckdb.sql("SELECT query, count(*) AS n FROM detections GROUP BY ALL ORDER BY n DESC LIMIT 2").fetchall()
        [('sim-0011', 150), ('sim-0002', 77)]
        """
        held = dict.fromkeys(self.systems)
        named = held if systems is None else [systems] if isinstance(systems, str) else systems
        wanted = list(dict.fromkeys(named))
        missing = [system for system in wanted if system not in held]
        if missing:
            raise SettingsError(f"no run of {listed(missing)}. There are: {choices(held, missing[0])}.")
        rows = self.settings.engine.rows_per_task
        return pa.RecordBatchReader.from_batches(DETECTED, decode_detections(self.archive, wanted, rows))


def open(  # noqa: A001
    source: Location | None = None,
    *,
    ecf: Location | None = None,
    rttm: Location | None = None,
    queries: Location | Table | Iterable[str] | None = None,
    documents: Location | Table | None = None,
    occurrences: Location | Table | None = None,
    lexicon: Location | None = None,
    vocabulary: Location | None = None,
    qrels: Location | Judged | None = None,
    collection: Runs = None,
    preset: str | None = None,
    compat: str | None = None,
    settings: GivenSettings | None = None,
    version: int | None = None,
    verify: bool = True,
) -> Evaluation:
    """Open an evaluation: an archive, a reference in files or in tables, or judgments of documents.

    Parameters
    ----------
    source : path or URL, optional
        An archive, or a directory with one ECF, one RTTM and one query list, or with the tables ``documents.csv`` and
        ``occurrences.csv`` (or .tsv, .jsonl, .parquet).
    ecf, rttm, queries : path or URL, optional
        The three files of a reference, instead of `source`.
    documents, occurrences : DataFrame, Arrow table, list of dict, dict of columns, path or URL, optional
        A reference in tables, in memory or in files (CSV, TSV, JSON lines, Parquet). `documents` has the columns
        document and duration (or end), and may have channel, start, source_type and language. `occurrences` has query,
        document, start and duration (or end), and may have channel, speaker and grade. Times are in seconds. `queries`
        is then an iterable of ids, or a table with the column query, whose other columns are attributes. Default: the
        queries of the occurrences.
    lexicon, vocabulary : path or URL, optional
        A pronunciation lexicon, and a text such as the training text. They add attributes to the queries, for `by`:
        the number of phones, and whether a query is out of vocabulary. An archive stores these attributes: give the
        files when it is created.
    qrels : path, URL, DataFrame or mapping, optional
        Judgments of documents, instead of a reference: TREC's, a table with query, document and relevance, or
        ``{query: {document: relevance}}``.
    collection : path, URL, glob, iterable of these, or mapping, optional
        With `qrels`: more runs whose documents belong to the collection, judged or not. The documents of the runs that
        `score` reads always belong to it. For a `Scorer`, the collection is the judged documents and those of
        `collection`.
    preset : str, optional
        The name of a preset, or several, separated by commas; later ones take precedence. ``swsdask presets`` lists
        them.
    compat : {"none", "kwseval", "stdeval", "mediaeval"}, optional
        The official tool whose rules apply.
    settings : mapping, EvaluationSettings or Settings, optional
        Settings in the shape of a settings file, such as ``{"evaluation": {"trials": "segment"}}``; or an object, such
        as another evaluation's ``settings``, whose fields that were set apply.
    version : int, optional
        A version of an archive. Default: the newest.
    verify : bool, default True
        Verify the files that are read from an archive by the hashes that it stores.

    Returns
    -------
    Evaluation
        The reference in memory, or the archive, with its settings.

    Raises
    ------
    InputError
        Lists every problem of the reference files.
    SettingsError
        A setting or preset is unknown or malformed, or arguments conflict.
    ArchiveError
        The archive, or that version of it, cannot be read.

    Notes
    -----
    `settings` take precedence over `compat`, and `compat` over `preset`. An archive keeps the settings that it was
    created with: a `preset` given here replaces them, `compat` and `settings` apply on top, and `Evaluation.notes`
    lists the differences.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> evaluation = sws.open("demo/files", settings={"evaluation": {"tolerance_s": 0.25}})
    >>> evaluation.settings.evaluation.tolerance_s
    0.25

    With tables in memory:

    >>> spoken = [{"query": "good morning", "document": "a", "start": 1.0, "duration": 1.0}]
    >>> evaluation = sws.open(documents=[{"document": "a", "duration": 60.0}], occurrences=spoken)
    >>> found = [{"query": "good morning", "document": "a", "start": 1.2, "duration": 0.9, "score": 0.7}]
    >>> sws.score(evaluation, "mtwv", runs=found).scores["value"].tolist()
    [1.0]
    """
    check_place(source)
    layers = settings_layers(preset, compat, settings, judged=qrels is not None)
    version = None if version is None else check_whole("version", version, 1)
    place = None if source is None or qrels is not None else as_path(source)
    archive = None if place is None else find_archive(place, version, verify=verify)
    if archive is not None:
        if lexicon is not None or vocabulary is not None:
            raise SettingsError("lexicon and vocabulary can only be given when an archive is created.")
        if any(each is not None for each in (ecf, rttm, queries, documents, occurrences)):
            raise SettingsError(f"{place} is an archive with its own reference: remove the other reference arguments.")
        archive.fetch()
        evaluation = Evaluation.of(archive, Settled.of_archive(layers, archive.kept))
        return replace(evaluation, notes=(*evaluation.notes, *verification_notes(archive.verification)))
    settled = Settled.of_files(layers)
    if qrels is not None:
        others = (source, ecf, rttm, queries, documents, occurrences, lexicon, vocabulary, version)
        judged = judged_files(qrels, given_runs(collection, judged=True).sources, others)
        return Evaluation.of(MemoryArchive(read_reference(judged), (), {}), settled)
    if version is not None:
        raise SettingsError(f"version={version} needs an archive; {source} is not one.")
    if documents is not None or occurrences is not None:
        given = given_tables(documents, occurrences, queries, (source, ecf, rttm, lexicon, vocabulary))
    else:
        given = reference_files(source, ecf, rttm, queries, lexicon, vocabulary)
    files = given if isinstance(given, ReferenceFiles) else None
    return Evaluation.of(MemoryArchive(read_reference(given), (), {}), settled, files)


def as_evaluation(given: Evaluation | Location) -> Evaluation:
    """Return the given evaluation, or the one at a path or URL, opened with its own settings."""
    return given if isinstance(given, Evaluation) else open(given)


def settings_layers(
    preset: str | None, compat: str | None, explicit: GivenSettings | None, *, judged: bool = False
) -> Layers:
    """Return the given layers of settings. Raises `SettingsError` for an unknown preset or a wrong type."""
    return Layers(None if preset is None else load_preset(preset), compat, explicit_settings(explicit), judged)


def check_place(source: object) -> None:
    """Raise `SettingsError` for anything but a path or URL, such as a table."""
    if not isinstance(source, str | os.PathLike | None):
        raise SettingsError(
            f"expected a path or URL; found the type {type(source).__name__}. Tables are given by "
            "name: documents, occurrences and perhaps queries, or qrels."
        )


def judged_files(qrels: Location | Judged, runs: Iterable[RunSource], others: Iterable[object]) -> JudgedFiles:
    """Judgments as a reference, with the runs of its collection. Raises `SettingsError` where `others` are given."""
    if any(other is not None for other in others):
        raise SettingsError("qrels are a complete reference: do not give another one.")
    judgments = readable(qrels) if isinstance(qrels, str | os.PathLike) else by_pair(qrels, "qrels", "relevance")
    return JudgedFiles(judgments, tuple(sorted(runs, key=lambda run: run.file)))


def given_tables(
    documents: Location | Table | None,
    occurrences: Location | Table | None,
    queries: Location | Table | Iterable[str] | None,
    others: Iterable[object],
) -> ReferenceFiles | ReferenceTables:
    """Return the reference tables: their paths, or their contents if any of them is in memory.

    Raises `SettingsError` if one is missing, or if `others` are given too, and `InputError` with every problem of
    tables in memory.
    """
    if documents is None:
        raise SettingsError("occurrences need documents, a table of document and duration: durations give the trials.")
    if occurrences is None:
        raise SettingsError("documents need occurrences, a table of query, document, start and duration.")
    if any(other is not None for other in others):
        raise SettingsError("documents and occurrences are a whole reference: remove the other reference arguments.")
    recorded = readable(documents) if isinstance(documents, str | os.PathLike) else documents
    spoken = readable(occurrences) if isinstance(occurrences, str | os.PathLike) else occurrences
    listed = readable(queries) if isinstance(queries, str | os.PathLike) else queries
    if isinstance(recorded, str) and isinstance(spoken, str) and (listed is None or isinstance(listed, str)):
        return ReferenceFiles(recorded, spoken, listed, tables=True)
    return reference_of_tables(recorded, spoken, listed)


def reference_files(
    source: Location | None,
    ecf: Location | None,
    rttm: Location | None,
    queries: Location | Table | Iterable[str] | None,
    lexicon: Location | None = None,
    vocabulary: Location | None = None,
) -> ReferenceFiles:
    """Return the files of a reference, from its folder or by name.

    Raises `SettingsError` unless exactly one is given.
    """
    if queries is not None and not isinstance(queries, str | os.PathLike):
        raise SettingsError("queries in memory go with documents and occurrences in memory.")
    if source is not None and not any((ecf, rttm, queries)):
        files = find_reference(as_path(source))
    elif source is None and ecf and rttm and queries:
        files = ReferenceFiles(readable(ecf), readable(rttm), readable(queries))
    else:
        raise SettingsError("Give a reference directory, or all three of ecf, rttm and queries.")
    if files.tables and (lexicon is not None or vocabulary is not None):
        raise SettingsError("lexicon and vocabulary go with NIST's files: give attributes as columns of the queries.")
    said = [None if file is None else readable(file) for file in (lexicon, vocabulary)]
    return replace(files, lexicon=said[0], vocabulary=said[1])
