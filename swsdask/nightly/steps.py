"""A night, step by step: look, ingest, score what is new, compare, commit, publish.

A night has no effect until it is committed to the history, and every step can be repeated: ingested runs stay in the
archive, and counted statistics in its cache. The commit is one file. The history and the archive alone determine what
is published, and `latest.json`, which names the night, is written last. So wherever a night was interrupted, the next
one ends with the same bytes.

After a night, `notify` runs the command that the settings give.
"""

from __future__ import annotations

import logging
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date

from swsdask import __version__
from swsdask.api.archives import ingest
from swsdask.api.opening import Evaluation, given_tables, judged_files, reference_files
from swsdask.api.runs import given_runs, with_runs
from swsdask.archive.cache import KnownSources, known_sources
from swsdask.archive.nights import commit_night, read_history, remove_unfinished
from swsdask.archive.storage import Storage
from swsdask.archive.versions import versions
from swsdask.execution.executor import Progress, SerialExecutor, or_unseen
from swsdask.formats.runs.encoding import Encoding
from swsdask.formats.runs.read import RunFile
from swsdask.model.errors import ArchiveError, InputError
from swsdask.model.layers import build_settings, load_preset, overrides
from swsdask.model.leaderboard import GONE, NEW, REPLACED, SETTINGS, UNREAD, VERSION, Record, Refused
from swsdask.model.results import Result
from swsdask.model.wording import counted
from swsdask.nightly.board import is_published, publish
from swsdask.nightly.inbox import Arrived, look
from swsdask.nightly.lease import NightLease, night_lease
from swsdask.nightly.night import Night, stored_archive
from swsdask.nightly.settings import NightlyEvaluation
from swsdask.nightly.verdict import Verdict, check_conditions, score_and_compare, score_report

LOG = logging.getLogger("swsdask.nightly")


@dataclass(frozen=True)
class Outcome:
    """The outcome of a night: its record and `latest.json`, if it was committed or published now.

    `missed` is the outcome of the previous night, if that was committed earlier but published only now.
    """

    evaluation: NightlyEvaluation
    record: Record | None = None
    latest: bytes = b""
    missed: Outcome | None = None


def plan_night(job: NightlyEvaluation) -> list[str]:
    """List the steps that a night would take. Nothing is written, and no file of a run is opened.

    Raises
    ------
    InputError
        The inbox, or a new or changed reference, cannot be read.
    ArchiveError
        The archive cannot be read.
    SettingsError
        A key of `by` is unknown, or a gate has a condition that is not scored.
    """
    past = read_history(Storage(job.archive))
    night = Night(job, past, or_unseen(None), ExitStack())
    evaluation = night.open_existing()
    news, gone = _look_for_news(night, evaluation)
    known = _read_known(night, evaluation)
    lines = []
    if not _knows_reference(job, known):
        night.read_reference()
        lines = ["the reference will be ingested: it is new"]
        if known is not None:
            lines = ["the reference will be read: its files changed. With other content the night ends with an error"]
    lines += [f"{each.system}: {each.shown} {_how(each, night)}" for each in _select_unread(night, news, known)]
    lines += [f"{url}, which was refused, is gone" for url in gone]
    if evaluation is not None:
        due = _due(night, evaluation)
        if due or lines:
            check_conditions(job, evaluation)
        lines += [f"{system}: will be scored, {why}" for system, why in due.items()]
    if past.last is not None and evaluation is not None and not is_published(job, past, by_this_release=not lines):
        lines.insert(0, f"night {past.last.number}: will be published again")
    return [f"{job.name}: {line}" for line in lines or ["nothing is new"]]


def _how(arrived: Arrived, night: Night) -> str:
    before = night.past.stamps.get(arrived.shown)
    if not before:
        return "is new"
    return "is now the file of this system" if before == arrived.stamp else "may have changed"


def run_night(job: NightlyEvaluation, today: date, progress: Progress | None = None, wait_s: float = 0.0) -> Outcome:
    """Run one night of an evaluation.

    Parameters
    ----------
    job : NightlyEvaluation
        The evaluation.
    today : date
        The date of the night, unless the previous night has a later one.
    progress : Progress, optional
        Receives the phases of the work.
    wait_s : float, default 0.0
        The number of seconds to wait for another process that works on the evaluation.

    Returns
    -------
    Outcome
        The night's record; None if nothing was new.

    Raises
    ------
    BusyError
        Another process works on the evaluation, or was killed and its lease has not expired, for longer than `wait_s`.
    InputError
        The inbox or the reference cannot be read. Runs with problems are refused and raise nothing.
    ArchiveError
        The archive cannot be read or written, or was made with another reference.
    SettingsError
        A setting or measure is unknown, or a gate needs a test that its measure does not have.
    """
    began = time.monotonic()
    storage = Storage(job.archive)
    storage.check_writable()
    with night_lease(storage, wait_s) as lease, ExitStack() as stack:
        remove_unfinished(storage)
        night = Night(job, read_history(storage), _Renewing(lease, or_unseen(progress)), stack)
        past = night.past
        LOG.info("looking for runs", extra={"evaluation": job.name, "phase": "look"})
        existing = night.open_existing()
        if kept := _list_only_kept(night, existing):
            LOG.warning(
                "settings that the archive keeps and the file does not give: %s", kept, extra={"evaluation": job.name}
            )
        news, gone = _look_for_news(night, existing)
        known = _read_known(night, existing)
        with_reference = not _knows_reference(job, known)
        with_settings = existing is not None and bool(existing.overridden)
        unread = _select_unread(night, news, known)
        still_refused = _select_still_refused(night, news, unread, known)
        refused = _ingest_or_refuse(night, unread, with_reference=with_reference, with_settings=with_settings)
        changed = unread or with_reference or with_settings
        evaluation = night.open_archive() if existing is None or changed else existing
        due = _due(night, evaluation)
        before = {(each.url, each.problems) for each in past.refused.values()}
        ingested = _without(_without(news, refused), still_refused)
        whole = [each.shown for each in ingested if each.shown in past.refused]
        record, missed = past.last, None
        if due or gone or whole or any((each.url, each.problems) not in before for each in refused):
            looked_into = _without(news, still_refused)  # these stay as they were recorded
            stamps = {**{each.shown: each.stamp for each in looked_into}, **dict.fromkeys(gone, GONE)}
            stamps |= {each.url: UNREAD for each in refused if each.unread}
            sources = {each.system: each.shown for each in ingested}
            notes = [f"Refused before, ingested now: {url}" for url in whole]
            record, rows = _new_record(night, evaluation, due, today, stamps, sources, refused, notes)
            lease.check()
            if past.last is not None and existing is not None and not is_published(job, past, by_this_release=False):
                shown = publish(job, past, _report(night, existing), began)
                missed = Outcome(job, past.last, shown)
            if not commit_night(storage, record, rows):
                raise ArchiveError(f"{job.archive}: another process has committed night {record.number}.")
            night.past = read_history(storage, past)
        elif known is not None:
            urls = {each.shown: each.url for each in news}
            known.remember_refused(
                {RunFile(urls[each.url], each.system): each.problems for each in refused if not each.unread}
            )
        if record is None or is_published(job, night.past):
            return Outcome(job)
        LOG.info("publishing", extra={"evaluation": job.name, "phase": "publish"})
        latest = publish(job, night.past, _report(night, evaluation), began)
        return Outcome(job, record, latest, missed)


class _Renewing:
    """Progress that renews the lease."""

    def __init__(self, lease: NightLease, shown: Progress) -> None:
        self._lease = lease
        self._shown = shown

    def begin(self, phase: str, rows: int) -> None:
        """Begin a phase."""
        self._lease.renew()
        self._shown.begin(phase, rows)

    def advance(self, rows: int) -> None:
        """Advance in it."""
        self._lease.renew()
        self._shown.advance(rows)


def _look_for_news(night: Night, existing: Evaluation | None) -> tuple[list[Arrived], list[str]]:
    """Look for the files that changed since a night last examined them, and the refused files that are gone.

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
    return news, sorted(past.refused.keys() - {each.shown for each in arrived})


def _read_known(night: Night, existing: Evaluation | None) -> KnownSources | None:
    """Read the known sources of the existing archive; None without one.

    They include the files that an interrupted night ingested, and files that were only copied or touched since.
    """
    return None if existing is None else known_sources(night.storage, existing.settings.evaluation, Encoding())


def _knows_reference(job: NightlyEvaluation, known: KnownSources | None) -> bool:
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


def _select_unread(night: Night, news: Sequence[Arrived], known: KnownSources | None) -> list[Arrived]:
    """Select the files that the archive does not know, except those that it knows as refused for their old problems."""
    if known is None:
        return list(news)
    files = {RunFile(each.url, each.system): each for each in news}
    refused = {url: each.problems for url, each in night.past.refused.items()}
    return [files[file] for file in known.parted([*files])[0] if known.refused(file) != refused.get(files[file].shown)]


def _list_only_kept(night: Night, existing: Evaluation | None) -> str:
    """List the settings that apply because the archive keeps them, and the file of the night does not give them."""
    if existing is None or existing.judged:
        return ""
    preset = None if night.job.preset is None else load_preset(night.job.preset)
    own = build_settings(preset, night.job.compat, night.given_settings)
    return ", ".join(f"{each.setting}={each.used}" for each in overrides(own, existing.settings))


def _select_still_refused(
    night: Night, news: Sequence[Arrived], unread: Sequence[Arrived], known: KnownSources | None
) -> list[Arrived]:
    """Select the files that stay refused without being read again: they were only copied or touched."""
    if known is None:
        return []
    before = night.past.refused
    rest = [each for each in _without(news, unread) if each.shown in before]
    return [each for each in rest if known.refused(RunFile(each.url, each.system)) == before[each.shown].problems]


def _ingest_or_refuse(
    night: Night, news: Sequence[Arrived], *, with_reference: bool, with_settings: bool
) -> list[Refused]:
    """Ingest the new runs. Runs with problems are refused and returned.

    Runs that were refused before are first validated one by one. If ingesting the others fails, those that the error
    names are validated and the rest is ingested; if that fails too, all are validated.

    The reference is read only if `with_reference`; it must then be that of the archive. `with_settings`: the settings
    of the night are not those that the archive keeps, which are replaced even if no run is ingested.
    """
    refused = _refusals(night, [each for each in news if each.shown in night.past.refused])
    good = _without(news, refused)
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
            _ingest(night, _without(news, refused), with_reference=with_reference)
        except InputError as again:
            error = again
        else:
            return refused
    more = _refusals(night, _without(news, refused))
    if not more and not error.transient:
        raise error
    refused += more
    _ingest(night, _without(news, refused), with_reference=with_reference)
    return refused


def _without(news: Sequence[Arrived], others: Sequence[Arrived | Refused]) -> list[Arrived]:
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


def _due(night: Night, evaluation: Evaluation) -> dict[str, str]:
    """Return the systems to score, because their standing differs from the archive; each with the reason."""
    found = {}
    signatures = night.signatures(evaluation)
    for run in evaluation.archive.runs:
        standing, signature = night.past.standings.get(run.system), signatures[run.system]
        if standing is None:
            found[run.system] = NEW
        elif standing.content != run.content:
            found[run.system] = REPLACED
        elif standing.signature != signature:
            same_version = standing.signature.split()[:2] == signature.split()[:2]
            found[run.system] = SETTINGS if same_version else VERSION
    return found


def _report(night: Night, evaluation: Evaluation) -> Result | None:
    """Score the report of the last night: of its version of the archive, and with its settings and release.

    Returns None if nothing moved, or if these are no longer there.
    """
    last = night.past.last
    if last is None or not last.moves:
        return None
    if stored_archive(evaluation).version != last.version and last.version in versions(night.storage):
        evaluation = night.open_archive(last.version)
    signatures = night.signatures(evaluation) if stored_archive(evaluation).version == last.version else {}
    if any(signatures.get(move.system) != night.past.standings[move.system].signature for move in last.moves):
        late = "night %d: published without a new report, because settings, swsdask or the archive have changed since"
        LOG.warning(late, last.number, extra={"evaluation": night.job.name})
        return None
    return score_report(night, evaluation)


def _new_record(
    night: Night,
    evaluation: Evaluation,
    due: Mapping[str, str],
    today: date,
    stamps: Mapping[str, str],
    sources: Mapping[str, str],
    refused: Iterable[Refused],
    notes: Sequence[str],
) -> tuple[Record, list[dict[str, object]]]:
    """Score what is due; return the record and the rows of this night."""
    last = night.past.last
    day = today.isoformat()
    if last is not None and day < last.date:
        late = f"The clock says {day}, but night {last.number} was on {last.date}: that date is used."
        notes = [*notes, late]
        day = last.date
    runs = {run.system: run for run in evaluation.archive.runs}
    rows: list[dict[str, object]] = []
    verdict = Verdict((), (), ())
    if due:
        verdict, result = score_and_compare(night, evaluation, due)
        signatures = night.signatures(evaluation)
        rows = [
            {**row, "content": runs[row["system"]].content, "signature": signatures[row["system"]]}
            for row in result.overall.drop_columns(["query"]).to_pylist()
            if row["system"] in due
        ]
    for note in (*notes, *verdict.gates):
        LOG.warning(note, extra={"evaluation": night.job.name})
    record = Record(
        1 if last is None else last.number + 1,
        day,
        stored_archive(evaluation).version,
        __version__,
        stamps=dict(stamps),
        sources=dict(sources),
        refused=tuple(refused),
        moves=verdict.moves,
        gates=verdict.gates,
        notes=(*notes, *verdict.notes),
        rows=sum(runs[name].rows for name, why in due.items() if why in (NEW, REPLACED)),
    )
    return record, rows


PATIENCE_S = 60.0


def notify(command: Sequence[str], latest: bytes) -> bool:
    """Run a command with `latest.json` on its standard input; return whether it succeeded. The night counts anyway."""
    with tempfile.TemporaryFile() as errors:  # not a pipe, which processes that the command leaves behind keep open
        try:
            ended = subprocess.run(
                command, input=latest, stdout=subprocess.DEVNULL, stderr=errors, timeout=PATIENCE_S, check=False
            )
        except OSError as error:
            LOG.warning("notify: %s: %s", command[0], error)
            return False
        except subprocess.TimeoutExpired:  # its text has the arguments, which may be secret
            LOG.warning("notify: %s did not end within %g seconds", command[0], PATIENCE_S)
            return False
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
    if ended.returncode:
        LOG.warning("notify: %s ended with exit code %d: %s", command[0], ended.returncode, lines[-1] if lines else "")
    return ended.returncode == 0
