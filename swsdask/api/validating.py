"""Validation of files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from swsdask.api.discovery_inputs import corpus_files
from swsdask.archive.validate import MOST_PROBLEMS, Report
from swsdask.archive.validate import validate as validate_files
from swsdask.execution.executor import Executor
from swsdask.execution.open import working
from swsdask.formats.discovery import CorpusFiles, roles
from swsdask.formats.find import find_reference
from swsdask.formats.sniff import Format
from swsdask.model.discovery import Definition
from swsdask.model.errors import Problems
from swsdask.model.layers import Layers, load_preset
from swsdask.places.reading import Location, locations, readable


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
    definition: Definition = "document",
    preset: str | None = None,
    compat: str | None = None,
    settings: Mapping[str, object] | None = None,
    executor: Executor | str | None = None,
) -> Report:
    """Check files of any supported format and report everything that is wrong with them.

    Parameters
    ----------
    paths : path, URL, glob, or iterable of these
        Files, or directories with files.
    reference : path or URL, optional
        The directory of a reference. Queries and documents of runs must be its own.
    phones, words, split, folds, within, speakers : path or URL, optional
        The files of a corpus, see `discover`. They are checked against each other, and class files against them.
    definition : {"document", "tde2015", "tdev2"}, default "document"
        The definition by which the files of a corpus are checked.
    preset, compat, settings : optional
        As for `open`. They say whether unknown queries and documents of runs are problems, or are counted, and whether
        detections outside the excerpts and trials that a run has twice are.
    executor : Executor or str, optional
        Where files are checked, see `cluster`. Default: what the settings' ``[engine]`` says.

    Returns
    -------
    Report
        The files with their formats and counts, and the problems, file by file and by line.

    Raises
    ------
    SettingsError
        A setting is unknown or malformed, or a corpus lacks `phones` or `words`. Problems of the files are reported,
        not raised.
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
    given = {"phones": phones, "words": words, "split": split, "folds": folds, "within": within, "speakers": speakers}
    named = {role: readable(place) for role, place in given.items() if place is not None}
    corpus = corpus_files(named) if named else None
    of_folder = find_reference(os.fspath(reference)) if reference else None
    resolved = Layers(load_preset(preset) if preset else None, compat, settings or {}).settings()
    with working(resolved, executor, 0, None) as workers:
        report = validate_files(locations(paths), of_folder, corpus, resolved.evaluation, workers)
    faulty = {problem.file for problem in report.problems}
    classes = [each.file for each in report.files if each.format is Format.CLASSES and each.file not in faulty]
    if (classes or corpus is not None) and faulty.isdisjoint(roles(corpus) if corpus else ()):
        report = _together(report, corpus, classes, definition)
    place = {file: number for number, file in enumerate(dict.fromkeys(each.file for each in report.problems))}
    in_order = sorted(report.problems, key=lambda each: (place[each.file], each.line is None, each.line or 0))
    return replace(report, problems=tuple(in_order))


def _together(report: Report, corpus: CorpusFiles | None, classes: list[str], definition: Definition) -> Report:
    """Add the problems between well-formed files, and the counts of what a definition drops, to a report."""
    from swsdask.discovery.corpus import check_together

    problems = Problems(MOST_PROBLEMS)
    dropped = check_together(corpus, classes, definition, problems)
    files = []
    for each in report.files:
        more = {f"fragments dropped: {reason}": count for reason, count in dropped.get(each.file, {}).items()}
        files.append(replace(each, counts=each.counts | more))
    return Report(tuple(files), (*report.problems, *problems), report.total + len(problems))
