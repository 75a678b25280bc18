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
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date

from swsdask import __version__
from swsdask.api.opening import Evaluation
from swsdask.archive.nights import commit_night, read_history, remove_unfinished
from swsdask.archive.storage import Storage
from swsdask.archive.versions import versions
from swsdask.execution.executor import Progress, or_unseen
from swsdask.formats.runs.read import RunFile
from swsdask.model.errors import ArchiveError
from swsdask.model.layers import build_settings, load_preset, overrides
from swsdask.model.leaderboard import NEW, REPLACED, SETTINGS, VERSION, Record
from swsdask.model.results import Result
from swsdask.nightly.board import is_published, publish
from swsdask.nightly.inbox import Arrived
from swsdask.nightly.intake import (
    Intake,
    ingest_or_refuse,
    knows_reference,
    look_for_news,
    read_known,
    select_still_refused,
    select_unread,
    take_stock,
)
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
    inbox = look_for_news(night, evaluation)
    known = read_known(night, evaluation)
    lines = []
    if not knows_reference(job, known):
        night.read_reference()
        lines = ["the reference will be ingested: it is new"]
        if known is not None:
            lines = ["the reference will be read: its files changed. With other content the night ends with an error"]
    lines += [f"{each.system}: {each.shown} {_how(each, night)}" for each in select_unread(night, inbox.news, known)]
    lines += [f"{url}, which was refused, is gone" for url in inbox.gone]
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
        inbox = look_for_news(night, existing)
        known = read_known(night, existing)
        with_reference = not knows_reference(job, known)
        with_settings = existing is not None and bool(existing.overridden)
        unread = select_unread(night, inbox.news, known)
        still_refused = select_still_refused(night, inbox.news, unread, known)
        refused = ingest_or_refuse(night, unread, with_reference=with_reference, with_settings=with_settings)
        changed = unread or with_reference or with_settings
        evaluation = night.open_archive() if existing is None or changed else existing
        due = _due(night, evaluation)
        verdict = score_and_compare(night, evaluation, due) if due else Verdict()
        scored = {system: why for system, why in due.items() if system not in verdict.refused}
        intake = take_stock(night, inbox, refused, still_refused, verdict.refused, scored, night.signatures(evaluation))
        record, missed = past.last, None
        if scored or intake.is_news(past):
            record, rows = _new_record(night, evaluation, scored, verdict, today, intake)
            lease.check()
            if past.last is not None and existing is not None and not is_published(job, past, by_this_release=False):
                shown = publish(job, past, _report(night, existing), began)
                missed = Outcome(job, past.last, shown)
            if not commit_night(storage, record, rows):
                raise ArchiveError(f"{job.archive}: another process has committed night {record.number}.")
            night.past = read_history(storage, past)
        elif known is not None:
            urls = {each.shown: each.url for each in inbox.news}
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


def _list_only_kept(night: Night, existing: Evaluation | None) -> str:
    """List the settings that apply because the archive keeps them, and the file of the night does not give them."""
    if existing is None or existing.judged:
        return ""
    preset = None if night.job.preset is None else load_preset(night.job.preset)
    own = build_settings(preset, night.job.compat, night.given_settings)
    return ", ".join(f"{each.setting}={each.used}" for each in overrides(own, existing.settings))


def _due(night: Night, evaluation: Evaluation) -> dict[str, str]:
    """Return the systems to score, because their standing differs from the archive; each with the reason.

    Those that scoring has refused with the same signature are left out.
    """
    found = {}
    signatures = night.signatures(evaluation)
    refused = {each.system: each.signature for each in night.past.refused.values()}
    for run in evaluation.archive.runs:
        standing, signature = night.past.standings.get(run.system), signatures[run.system]
        if refused.get(run.system) == signature:
            continue
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
    scored: Mapping[str, str],
    verdict: Verdict,
    today: date,
    intake: Intake,
) -> tuple[Record, list[dict[str, object]]]:
    """Return the record of this night, and its rows: the numbers of the systems in `scored`."""
    last = night.past.last
    day = today.isoformat()
    late = []
    if last is not None and day < last.date:
        late = [f"The clock says {day}, but night {last.number} was on {last.date}: that date is used."]
        day = last.date
    runs = {run.system: run for run in evaluation.archive.runs}
    rows: list[dict[str, object]] = []
    if verdict.result is not None:
        signatures = night.signatures(evaluation)
        rows = [
            {**row, "content": runs[row["system"]].content, "signature": signatures[row["system"]]}
            for row in verdict.result.overall.drop_columns(["query"]).to_pylist()
            if row["system"] in scored
        ]
    for note in (*late, *verdict.gates):
        LOG.warning(note, extra={"evaluation": night.job.name})
    record = Record(
        1 if last is None else last.number + 1,
        day,
        stored_archive(evaluation).version,
        __version__,
        stamps=intake.stamps,
        sources={each.system: each.shown for each in intake.ingested},
        refused=tuple(intake.refused),
        moves=verdict.moves,
        gates=verdict.gates,
        notes=(*intake.notes, *late, *verdict.notes),
        rows=sum(runs[name].rows for name, why in scored.items() if why in (NEW, REPLACED)),
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
