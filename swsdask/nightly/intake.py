"""Intake: the news in an inbox, which a night ingests or refuses.

A file is news if a night has not examined it as it is. A run with problems is refused, and never stops the others;
neither does a run that can be ingested, but that scoring refuses under the settings of the night: it is set aside.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from swsdask.api.archives import ingest
from swsdask.api.opening import Evaluation, given_tables, judged_files, reference_files
from swsdask.api.runs import given_runs, with_runs
from swsdask.archive.cache import KnownSources, known_sources
from swsdask.archive.nights import History
from swsdask.execution.executor import SerialExecutor
from swsdask.formats.runs.encoding import Encoding
from swsdask.formats.runs.read import RunFile
from swsdask.model.errors import InputError
from swsdask.model.leaderboard import GONE, UNREAD, Refused
from swsdask.model.wording import counted
from swsdask.nightly.inbox import Arrived, look
from swsdask.nightly.night import Night, stored_archive
from swsdask.nightly.settings import NightlyEvaluation

LOG = logging.getLogger("swsdask.nightly")


class News(NamedTuple):
    """The files in an inbox, those that are news, and the files that were refused and are gone."""

    files: list[Arrived]
    news: list[Arrived]
    gone: list[str]


def look_for_news(night: Night, existing: Evaluation | None) -> News:
    """Look for the files in the inbox. Those are news that changed since a night last examined them.

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
    return News(arrived, news, sorted(past.refused.keys() - {each.shown for each in arrived}))


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


@dataclass(frozen=True)
class Intake:
    """The findings of a night about the files in its inbox.

    Parameters
    ----------
    examined : sequence of Arrived
        The files that it examined, except those that stay refused as they were recorded.
    ingested : sequence of Arrived
        Those of them with sound runs.
    refused : sequence of Refused
        The refused runs, by ingesting and by scoring.
    gone : sequence of str
        The files that were refused before, and are no longer there.
    whole : sequence of str
        The files that were refused before, and are sound now.
    notes : sequence of str
        Notes for the record.
    """

    examined: Sequence[Arrived]
    ingested: Sequence[Arrived]
    refused: Sequence[Refused]
    gone: Sequence[str]
    whole: Sequence[str]
    notes: Sequence[str]

    @property
    def stamps(self) -> dict[str, str]:
        """The stamps to record."""
        found = {each.shown: each.stamp for each in self.examined} | dict.fromkeys(self.gone, GONE)
        return found | {each.url: UNREAD for each in self.refused if each.unread}

    def is_news(self, past: History) -> bool:
        """Return whether another file is refused than before, or for other problems, or is refused no longer."""
        before = {(each.url, each.problems) for each in past.refused.values()}
        return bool(self.gone or self.whole) or any((each.url, each.problems) not in before for each in self.refused)


def take_stock(
    night: Night,
    inbox: News,
    refused: Sequence[Refused],
    still_refused: Sequence[Arrived],
    unscored: Mapping[str, InputError],
    scored: Collection[str],
    signatures: Mapping[str, str],
) -> Intake:
    """Return the findings of a night, after ingesting has `refused` some runs, and scoring has refused others.

    `still_refused` are files that are refused as before. The systems in `unscored` are refused by scoring with their
    `signatures`, those in `scored` are scored.
    """
    before = night.past.refused
    as_before = [
        each
        for each in without(inbox.news, refused)
        if each.shown in before and before[each.shown].signature == signatures.get(each.system)
    ]
    examined = without(inbox.news, [*still_refused, *as_before])
    broken = [each for each in before.values() if not each.signature]
    files = {each.system: each for each in without([*examined, *without(inbox.files, [*inbox.news, *broken])], refused)}
    every, notes = list(refused), []
    for system, error in unscored.items():
        problems = tuple(str(problem) for problem in error.problems[:SHOWN])
        if system in files:
            every.append(Refused(files[system].shown, system, problems, error.total, signature=signatures[system]))
            LOG.warning("refused: %s", problems[0], extra={"evaluation": night.job.name, "system": system})
        else:  # it is not in the inbox, or its file there is broken now, and the archive has an earlier one
            notes.append(f"{system} cannot be scored: {problems[0]}")
    others = without(inbox.files, [*examined, *broken])
    examined += [each for each in others if each.shown in before and each.system in scored]
    ingested = without(examined, every)
    whole = [each.shown for each in ingested if each.shown in before]
    notes += [f"Refused before, ingested now: {url}" for url in whole]
    for note in notes:
        LOG.warning(note, extra={"evaluation": night.job.name})
    return Intake(examined, ingested, every, inbox.gone, whole, notes)
