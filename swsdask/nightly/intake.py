"""Intake: the news in an inbox, which a night ingests or refuses.

A file is news if a night has not examined it as it is. A run with problems is refused, and never stops the others;
neither does a run that can be ingested, but that scoring refuses under the settings of the night: it is set aside.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from swsdask.api.archives import ingest
from swsdask.api.opening import Evaluation, given_tables, judged_files, reference_files
from swsdask.api.runs import given_runs, with_runs
from swsdask.archive.cache import KnownSources, known_sources
from swsdask.execution.executor import SerialExecutor
from swsdask.formats.runs.encoding import Encoding
from swsdask.formats.runs.read import RunFile
from swsdask.model.errors import InputError
from swsdask.model.leaderboard import Refused
from swsdask.model.wording import counted
from swsdask.nightly.inbox import Arrived, look
from swsdask.nightly.night import Night, stored_archive
from swsdask.nightly.settings import NightlyEvaluation

LOG = logging.getLogger("swsdask.nightly")


def look_for_news(night: Night, existing: Evaluation | None) -> tuple[list[Arrived], list[Arrived], list[str]]:
    """Look for all files, those that changed since a night last examined them, and the refused files that are gone.

    An unchanged file is news too if it is now the file of its system: a later one is gone, or the name is new. So is a
    file that a night ingested into a version that the archive no longer has.
    """
    past = night.past
    held = past if existing is None else past.until(stored_archive(existing).version)
    arrived = look(night.job.inbox, night.job.pattern)

    def is_news(each: Arrived) -> bool:
        if held.stamps.get(each.shown) != each.stamp:
            return True
        another = each.system not in past.standings or held.sources.get(each.system, each.shown) != each.shown
        return another and each.shown not in past.refused

    news = list(filter(is_news, arrived))
    return arrived, news, sorted(past.refused.keys() - {each.shown for each in arrived})


def read_known(night: Night, existing: Evaluation | None) -> KnownSources | None:
    """Read the known sources of the existing archive; None without one.

    They include the files that an interrupted night ingested, and files that were only copied or touched since.
    """
    return None if existing is None else known_sources(night.storage, existing.settings.evaluation, Encoding())


def knows_reference(job: NightlyEvaluation, known: KnownSources | None) -> bool:
    """Return whether the archive was made from the current reference.

    Raises `InputError` for a folder that lacks a file.

    Whether a file that is given by name exists is checked when the reference is read.
    """
    if known is None:
        return False
    if job.qrels is not None:
        return known.has_reference(judged_files(job.qrels, (), ()))
    if job.documents is not None:
        return known.has_reference(given_tables(job.documents, job.occurrences, job.queries, ()))
    named = (job.reference, job.ecf, job.rttm, job.queries, job.lexicon, job.vocabulary)
    return known.has_reference(reference_files(*named))


def select_unread(night: Night, news: Sequence[Arrived], known: KnownSources | None) -> list[Arrived]:
    """Select the files that the archive does not know, except those that it knows as refused for their old problems."""
    if known is None:
        return list(news)
    files = {RunFile(each.url, each.system): each for each in news}
    refused = {url: each.problems for url, each in night.past.refused.items()}
    return [files[file] for file in known.parted([*files])[0] if known.refused(file) != refused.get(files[file].shown)]


def select_still_refused(
    night: Night, news: Sequence[Arrived], unread: Sequence[Arrived], known: KnownSources | None
) -> list[Arrived]:
    """Select the files that stay refused without being read again: they were only copied or touched."""
    if known is None:
        return []
    before = night.past.refused
    rest = [each for each in without(news, unread) if each.shown in before]
    return [each for each in rest if known.refused(RunFile(each.url, each.system)) == before[each.shown].problems]


def ingest_or_refuse(
    night: Night, news: Sequence[Arrived], *, with_reference: bool, with_settings: bool
) -> list[Refused]:
    """Ingest the new runs. Runs with problems are refused and returned.

    Runs that were refused before are first validated one by one. If ingesting the others fails, those that the error
    names are validated and the rest is ingested; if that fails too, all are validated.

    The reference is read only if `with_reference`; it must then be that of the archive. `with_settings`: the settings
    of the night are not those that the archive keeps, which are replaced even if no run is ingested.
    """
    refused = _refusals(night, [each for each in news if each.shown in night.past.refused])
    good = without(news, refused)
    if good or with_reference or with_settings:
        try:
            _ingest(night, good, with_reference=with_reference)
        except InputError as error:
            refused += _ingest_sound(night, good, error, with_reference=with_reference)
    return sorted(refused, key=lambda each: each.url)


def _ingest_sound(night: Night, news: Sequence[Arrived], error: InputError, *, with_reference: bool) -> list[Refused]:
    """Ingest the runs without problems after ingesting all raised `error`; return the others."""
    named = {problem.file for problem in error.problems}
    refused = _refusals(night, [each for each in news if each.url in named])
    if refused:
        try:
            _ingest(night, without(news, refused), with_reference=with_reference)
        except InputError as again:
            error = again
        else:
            return refused
    more = _refusals(night, without(news, refused))
    if not more and not error.transient:
        raise error
    refused += more
    _ingest(night, without(news, refused), with_reference=with_reference)
    return refused


def without(news: Sequence[Arrived], others: Sequence[Arrived | Refused]) -> list[Arrived]:
    """Return the files of `news` that are not among others."""
    left_out = {each.shown if isinstance(each, Arrived) else each.url for each in others}
    return [each for each in news if each.shown not in left_out]


def _ingest(night: Night, news: Sequence[Arrived], *, with_reference: bool) -> None:
    job = night.job
    archive = ingest(
        job.archive,
        **(job.reference_places if with_reference else {}),
        runs={each.system: each.url for each in news},
        **night.opening,
        replace=True,
        change_settings=True,
        executor=night.executor,
        progress=night.progress,
    )
    rows = {run.system: run.rows for run in archive.runs}
    for each in news:
        of_run = {"evaluation": job.name, "system": each.system, "phase": "ingest", "rows": rows[each.system]}
        LOG.info("read %s", counted(rows[each.system], "detections"), extra=of_run)


SHOWN = 5
"""The maximum number of problems of a refused run that are kept."""


def _refusals(night: Night, news: Sequence[Arrived]) -> list[Refused]:
    """Read each run into memory and validate it by itself; return those that have problems."""
    if not news:
        return []
    reference = night.open_existing() or night.read_reference()
    found = []
    for arrived in news:
        try:
            runs = given_runs({arrived.system: arrived.url}, judged=reference.judged)
            with with_runs(reference, runs, SerialExecutor()):
                pass
        except InputError as error:
            problems = tuple(str(problem) for problem in error.problems[:SHOWN])
            LOG.warning("refused: %s", problems[0], extra={"evaluation": night.job.name, "system": arrived.system})
            found.append(Refused(arrived.shown, arrived.system, problems, error.total, error.transient))
    return found


def as_refused(
    night: Night, arrived: Sequence[Arrived], errors: Mapping[str, InputError]
) -> tuple[list[Refused], list[str]]:
    """Return the runs of the archive that scoring refused, and notes on those that are not in the inbox.

    The former are tried again every night, but logged only when they or their problems are new.
    """
    files = {each.system: each.shown for each in arrived}
    refused, notes = [], []
    for system, error in errors.items():
        problems = tuple(str(problem) for problem in error.problems[:SHOWN])
        extra = {"evaluation": night.job.name, "system": system}
        if system not in files:
            notes.append(f"{system} cannot be scored: {problems[0]}")
            LOG.warning(notes[-1], extra=extra)
            continue
        refused.append(Refused(files[system], system, problems, error.total))
        if night.past.refused.get(files[system]) != refused[-1]:
            LOG.warning("refused: %s", problems[0], extra=extra)
    return refused, notes
