"""A night, step by step: look, ingest, score what is new, compare, commit, publish.

Until the night is committed to the history, nothing of it counts, and every step can be repeated: ingested runs and
computed counts are kept. The commit is one file. The history and the archive alone determine what is published, and
`latest.json`, which names the night, is written last. So wherever a night was interrupted, the next one ends with the
same bytes.

After a night, `notify` runs the command that the settings give.
"""

from __future__ import annotations

import logging
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date
from functools import cache

from swsdask import __version__
from swsdask.api.archives import ingest
from swsdask.api.manifest import signatures_of
from swsdask.api.opening import Evaluation, given_tables, judged_files, reference_files
from swsdask.api.opening import open as open_evaluation
from swsdask.api.runs import given_runs, with_runs
from swsdask.api.scoring import resolve_measures
from swsdask.archive.kept import KnownSources, known_sources
from swsdask.archive.storage import Storage
from swsdask.archive.store import is_archive
from swsdask.archive.versions import versions
from swsdask.execution.executor import Executor, Progress, SerialExecutor, or_unseen
from swsdask.execution.open import open_executor
from swsdask.formats.runs.encoding import Encoding
from swsdask.formats.runs.read import RunFile
from swsdask.model.errors import ArchiveError, InputError, counted
from swsdask.model.layers import build_settings, load_preset, overrides
from swsdask.model.leaderboard import GONE, NEW, REPLACED, SETTINGS, UNREAD, VERSION, Record, Refused
from swsdask.model.results import Result
from swsdask.nightly.board import is_published, publish
from swsdask.nightly.history import History, commit_night, read_history, remove_unfinished
from swsdask.nightly.inbox import Arrived, look
from swsdask.nightly.judging import Verdict, Workers, check_conditions, judged, report_of, stored
from swsdask.nightly.lease import NightLease, night_lease
from swsdask.nightly.settings import NightlyEvaluation

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
    storage = Storage(job.archive)
    past = read_history(storage)
    evaluation = _there(job)
    news, gone = _news(job, past, evaluation)
    known = _known(job, evaluation)
    lines = []
    if not _knows_reference(job, known):
        _read(job)
        lines = ["the reference will be ingested: it is new"]
        if known is not None:
            lines = ["the reference will be read: its files changed. With other content the night ends with an error"]
    lines += [f"{each.system}: {each.shown} {_how(each, past)}" for each in _unread(news, known, past)]
    lines += [f"{url}, which was refused, is gone" for url in gone]
    if evaluation is not None:
        due = _due(job, evaluation, past)
        if due or lines:
            check_conditions(job, evaluation)
        lines += [f"{system}: will be scored, {why}" for system, why in due.items()]
    if past.last is not None and evaluation is not None and not is_published(job, past, by_this_release=not lines):
        lines.insert(0, f"night {past.last.number}: will be published again")
    return [f"{job.name}: {line}" for line in lines or ["nothing is new"]]


def _how(arrived: Arrived, past: History) -> str:
    before = past.stamps.get(arrived.shown)
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
        renewing = _Renewing(lease, or_unseen(progress))
        workers = _workers(job, renewing, stack)
        remove_unfinished(storage)
        past = read_history(storage)
        LOG.info("looking for runs", extra={"evaluation": job.name, "phase": "look"})
        there = _there(job)
        if kept := _only_kept(job, there):
            LOG.warning(
                "settings that the archive keeps and the file does not give: %s", kept, extra={"evaluation": job.name}
            )
        news, gone = _news(job, past, there)
        known = _known(job, there)
        with_reference = not _knows_reference(job, known)
        unread = _unread(news, known, past)
        still_refused = _still_refused(news, unread, known, past)
        refused = _ingest_or_refuse(job, unread, past, renewing, workers, with_reference=with_reference)
        evaluation = _opened(job) if there is None or unread or with_reference else there
        due = _due(job, evaluation, past)
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
            record, rows = _new_record(
                job, evaluation, past, stamps, sources, refused, due, notes, today, renewing, workers
            )
            lease.check()
            if past.last is not None and there is not None and not is_published(job, past, by_this_release=False):
                shown = publish(job, past, _report(job, there, past, renewing, workers), began)
                missed = Outcome(job, past.last, shown)
            if not commit_night(storage, record, rows):
                raise ArchiveError(f"{job.archive}: another process has committed night {record.number}.")
            past = read_history(storage)
        elif known is not None:
            urls = {each.shown: each.url for each in news}
            known.remember_refused(
                {RunFile(urls[each.url], each.system): each.problems for each in refused if not each.unread}
            )
        if record is None or is_published(job, past):
            return Outcome(job)
        LOG.info("publishing", extra={"evaluation": job.name, "phase": "publish"})
        latest = publish(job, past, _report(job, evaluation, past, renewing, workers), began)
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


def _workers(job: NightlyEvaluation, progress: Progress, stack: ExitStack) -> Workers:
    """Return a function that opens the executor of a night: one for all steps, opened on first use, closed by `stack`.

    Without a cluster it returns None: each step chooses by the amount of work.
    """

    @cache
    def opened() -> Executor | None:
        if not job.cluster:
            return None
        engine = build_settings(explicit=_explicit(job)).engine
        return stack.enter_context(open_executor(engine, progress=progress))

    return opened


def _news(job: NightlyEvaluation, past: History, there: Evaluation | None) -> tuple[list[Arrived], list[str]]:
    """The files that changed since a night last examined them, and the refused files that are gone.

    An unchanged file is news too if it is now the file of its system: a later one is gone, or the name is new. So is a
    file that a night ingested into a version that the archive no longer has.
    """
    held = past if there is None else past.until(stored(there).version)
    arrived = look(job.inbox, job.pattern)

    def is_news(each: Arrived) -> bool:
        if held.stamps.get(each.shown) != each.stamp:
            return True
        another = each.system not in past.standings or held.sources.get(each.system, each.shown) != each.shown
        return another and each.shown not in past.refused

    news = list(filter(is_news, arrived))
    return news, sorted(past.refused.keys() - {each.shown for each in arrived})


def _there(job: NightlyEvaluation) -> Evaluation | None:
    """Open the archive as it is; None if there is none."""
    return _opened(job) if is_archive(job.archive) else None


def _known(job: NightlyEvaluation, there: Evaluation | None) -> KnownSources | None:
    """Return the known sources of the existing archive; None without one.

    They include the files that an interrupted night ingested, and files that were only copied or touched since.
    """
    return None if there is None else known_sources(Storage(job.archive), there.settings.evaluation, Encoding())


def _knows_reference(job: NightlyEvaluation, known: KnownSources | None) -> bool:
    """Whether the archive was made from the current reference. Raises `InputError` for a folder that lacks a file.

    Whether a file that is given by name exists is checked when the reference is read (`_read`).
    """
    if known is None:
        return False
    if job.qrels is not None:
        return known.has_reference(judged_files(job.qrels, (), ()))
    if job.documents is not None:
        return known.has_reference(given_tables(job.documents, job.occurrences, job.queries, ()))
    named = (job.reference, job.ecf, job.rttm, job.queries, job.lexicon, job.vocabulary)
    return known.has_reference(reference_files(*named))


def _unread(news: Sequence[Arrived], known: KnownSources | None, past: History) -> list[Arrived]:
    """Select the files that the archive does not know, except those that it knows as refused for their old problems."""
    if known is None:
        return list(news)
    files = {RunFile(each.url, each.system): each for each in news}
    refused = {url: each.problems for url, each in past.refused.items()}
    return [files[file] for file in known.parted([*files])[0] if known.refused(file) != refused.get(files[file].shown)]


def _explicit(job: NightlyEvaluation) -> dict[str, object]:
    """The settings, and where the work runs."""
    engine = {"engine": {"executor": job.cluster}} if job.cluster else {}
    return {**job.given_settings, **engine}


def _only_kept(job: NightlyEvaluation, there: Evaluation | None) -> str:
    """The settings that apply because the archive keeps them, and the file of the night does not give them."""
    if there is None or there.judged:
        return ""
    own = build_settings(None if job.preset is None else load_preset(job.preset), job.compat, _explicit(job))
    return ", ".join(f"{each.setting}={each.used}" for each in overrides(own, there.settings))


def _opened(job: NightlyEvaluation, version: int | None = None) -> Evaluation:
    return open_evaluation(job.archive, version=version, preset=job.preset, compat=job.compat, settings=_explicit(job))


def _read(job: NightlyEvaluation) -> Evaluation:
    """The evaluation of the reference's files."""
    places = job.reference_places
    return open_evaluation(
        places.pop("reference", None),
        **places,
        preset=job.preset,
        compat=job.compat,
        settings=_explicit(job),
    )


def _still_refused(
    news: Sequence[Arrived], unread: Sequence[Arrived], known: KnownSources | None, past: History
) -> list[Arrived]:
    """Select the files that stay refused without being read again: they were only copied or touched."""
    if known is None:
        return []
    rest = [each for each in _without(news, unread) if each.shown in past.refused]
    return [each for each in rest if known.refused(RunFile(each.url, each.system)) == past.refused[each.shown].problems]


def _ingest_or_refuse(
    job: NightlyEvaluation,
    news: Sequence[Arrived],
    past: History,
    progress: Progress,
    workers: Workers,
    *,
    with_reference: bool,
) -> list[Refused]:
    """Ingest the new runs. Runs with problems are refused and returned.

    Runs that were refused before are first validated one by one. If ingesting the others fails, they are too.

    The reference is read only if `with_reference`; it must then be that of the archive.
    """
    refused = _refusals(job, [each for each in news if each.shown in past.refused])
    good = _without(news, refused)
    if good or with_reference:
        try:
            _ingest(job, good, progress, workers, with_reference=with_reference)
        except InputError as error:
            more = _refusals(job, good)
            if not more and not error.transient:
                raise
            _ingest(job, _without(good, more), progress, workers, with_reference=with_reference)
            refused += more
    return sorted(refused, key=lambda each: each.url)


def _without(news: Sequence[Arrived], others: Sequence[Arrived | Refused]) -> list[Arrived]:
    left_out = {each.shown if isinstance(each, Arrived) else each.url for each in others}
    return [each for each in news if each.shown not in left_out]


def _ingest(
    job: NightlyEvaluation,
    news: Sequence[Arrived],
    progress: Progress,
    workers: Workers,
    *,
    with_reference: bool,
) -> None:
    archive = ingest(
        job.archive,
        **(job.reference_places if with_reference else {}),
        runs={each.system: each.url for each in news},
        preset=job.preset,
        compat=job.compat,
        settings=_explicit(job),
        replace_runs=True,
        change_settings=True,
        executor=workers(),
        progress=progress,
    )
    rows = {run.system: run.rows for run in archive.runs}
    for each in news:
        of_run = {"evaluation": job.name, "system": each.system, "phase": "ingest", "rows": rows[each.system]}
        LOG.info("read %s", counted(rows[each.system], "detections"), extra=of_run)


SHOWN = 5
"""The maximum number of problems of a refused run that are kept."""


def _refusals(job: NightlyEvaluation, news: Sequence[Arrived]) -> list[Refused]:
    """Read each run into memory and validate it by itself; return those that have problems."""
    if not news:
        return []
    reference = _there(job) or _read(job)
    found = []
    for arrived in news:
        try:
            runs = given_runs({arrived.system: arrived.url}, judged=reference.judged)
            with with_runs(reference, runs, SerialExecutor()):
                pass
        except InputError as error:
            problems = tuple(str(problem) for problem in error.problems[:SHOWN])
            LOG.warning("refused: %s", problems[0], extra={"evaluation": job.name, "system": arrived.system})
            found.append(Refused(arrived.shown, arrived.system, problems, error.total, error.transient))
    return found


def _due(job: NightlyEvaluation, evaluation: Evaluation, past: History) -> dict[str, str]:
    """The systems to score, because their standing differs from the archive; each with the reason."""
    found = {}
    signatures = _signatures(job, evaluation)
    for run in evaluation.archive.runs:
        there, signature = past.standings.get(run.system), signatures[run.system]
        if there is None:
            found[run.system] = NEW
        elif there.content != run.content:
            found[run.system] = REPLACED
        elif there.signature != signature:
            same_version = there.signature.split()[:2] == signature.split()[:2]
            found[run.system] = SETTINGS if same_version else VERSION
    return found


def _signatures(job: NightlyEvaluation, evaluation: Evaluation) -> dict[str, str]:
    """Return the signature of each system's numbers."""
    names, _, settings = resolve_measures(job.scored, evaluation.settings)
    return signatures_of(evaluation.archive, settings, names, job.by)


def _report(
    job: NightlyEvaluation, evaluation: Evaluation, past: History, progress: Progress, workers: Workers
) -> Result | None:
    """The report of the last night: of its version of the archive, and with its settings and release.

    None if nothing moved, or if these are no longer there.
    """
    last = past.last
    if last is None or not last.moves:
        return None
    if stored(evaluation).version != last.version and last.version in versions(Storage(job.archive)):
        evaluation = _opened(job, last.version)
    signatures = _signatures(job, evaluation) if stored(evaluation).version == last.version else {}
    if any(signatures.get(move.system) != past.standings[move.system].signature for move in last.moves):
        late = "night %d: published without a new report, because settings, swsdask or the archive have changed since"
        LOG.warning(late, last.number, extra={"evaluation": job.name})
        return None
    return report_of(job, evaluation, past, progress, workers)


def _new_record(
    job: NightlyEvaluation,
    evaluation: Evaluation,
    past: History,
    stamps: Mapping[str, str],
    sources: Mapping[str, str],
    refused: Sequence[Refused],
    due: Mapping[str, str],
    notes: Sequence[str],
    today: date,
    progress: Progress,
    workers: Workers,
) -> tuple[Record, list[dict[str, object]]]:
    """The record and the rows of this night."""
    number = 1 if past.last is None else past.last.number + 1
    day = today.isoformat()
    if past.last is not None and day < past.last.date:
        late = f"The clock says {day}, but night {past.last.number} was on {past.last.date}: that date is used."
        notes = [*notes, late]
        day = past.last.date
    runs = {run.system: run for run in evaluation.archive.runs}
    rows: list[dict[str, object]] = []
    verdict = Verdict((), (), ())
    if due:
        verdict, result = judged(job, evaluation, past, due, progress, workers)
        signatures = _signatures(job, evaluation)
        rows = [
            {**row, "content": runs[row["system"]].content, "signature": signatures[row["system"]]}
            for row in result.overall.drop_columns(["query"]).to_pylist()
            if row["system"] in due
        ]
    for said in (*notes, *verdict.gates):
        LOG.warning(said, extra={"evaluation": job.name})
    record = Record(
        number,
        day,
        stored(evaluation).version,
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
        except (OSError, subprocess.TimeoutExpired) as error:
            LOG.warning("notify: %s: %s", command[0], error)
            return False
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    if ended.returncode:
        LOG.warning("notify: %s ended with exit code %d: %s", command[0], ended.returncode, said[-1] if said else "")
    return ended.returncode == 0
