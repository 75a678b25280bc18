"""A night, step by step: look, ingest, score what is new, compare, commit, publish.

Until the night is committed to the history nothing of it counts, and every step can be done again: what is ingested
already is there, what is counted already is kept. The commit is one file. What is published follows from the history
and the archive alone, and `latest.json`, which names the night, is written last; so whatever a night was cut off at,
the next one ends with the same bytes.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow.compute as pc

from swsdask import __version__
from swsdask.api.ingesting import ingest
from swsdask.api.manifest import manifest_of
from swsdask.api.opening import Evaluation
from swsdask.api.opening import open as open_evaluation
from swsdask.api.scoring import requested
from swsdask.archive.storage import Storage
from swsdask.archive.store import is_archive
from swsdask.execution.executor import Progress, Unseen
from swsdask.model.errors import ArchiveError, InputError
from swsdask.model.nights import NEW, REPLACED, SETTINGS, VERSION, Record, Refused
from swsdask.nightly.board import is_published, publish
from swsdask.nightly.history import History, commit_night, read_history
from swsdask.nightly.inbox import Arrived, look
from swsdask.nightly.judging import Verdict, judged, report_of, stored
from swsdask.nightly.lease import NightLease, night_lease
from swsdask.nightly.settings import NightlyEvaluation

LOG = logging.getLogger("swsdask.nightly")


@dataclass(frozen=True)
class Outcome:
    """What became of a night: its record and `latest.json`, if it was committed or published now."""

    evaluation: NightlyEvaluation
    record: Record | None = None
    latest: bytes = b""


def plan_night(asked: NightlyEvaluation) -> list[str]:
    """What a night would do, in lines. Nothing is written, and no file of a run is opened."""
    storage = Storage(asked.archive)
    past = read_history(storage)
    news = _news(asked, past)
    lines = [f"{each.system}: {each.url} is {'changed' if each.url in past.stamps else 'new'}" for each in news]
    if is_archive(asked.archive):
        due = _due(asked, _opened(asked), past)
        lines += [f"{system}: to be scored, {why}" for system, why in due.items()]
    if not lines and past.last is not None and not is_published(asked.out, past.last):
        lines = [f"night {past.last.number}: to be published again"]
    return [f"{asked.name}: {line}" for line in lines or ["nothing is new"]]


def run_night(asked: NightlyEvaluation, today: date, progress: Progress | None = None) -> Outcome:
    """Do a night of one evaluation.

    Parameters
    ----------
    asked : NightlyEvaluation
        The evaluation.
    today : date
        The date that the night is called by, unless the night before has a later one.
    progress : Progress, optional
        Receives the phases of the work.

    Returns
    -------
    Outcome
        The night's record; None if nothing was new.

    Raises
    ------
    BusyError
        Another process that is alive works at it.
    InputError
        The inbox or the reference cannot be read. Runs with problems are refused and raise nothing.
    ArchiveError
        The archive cannot be read or written, or was made with another reference.
    SettingsError
        A setting or measure is unknown, or a gate needs a test that its measure does not have.
    """
    storage = Storage(asked.archive)
    storage.check_writable()
    with night_lease(storage) as lease:
        told = _Renewing(lease, progress or Unseen())
        past = read_history(storage)
        LOG.info("looking for runs", extra={"evaluation": asked.name, "phase": "look"})
        news = _news(asked, past)
        refused = _take_in(asked, news, told) if news or not is_archive(asked.archive) else []
        evaluation = _opened(asked)
        due = _due(asked, evaluation, past)
        known = {(each.url, each.problems) for each in past.refused.values()}
        record = past.last
        if due or any((each.url, each.problems) not in known for each in refused):
            record, rows = _new_record(asked, evaluation, past, news, refused, due, today, told)
            lease.check()
            if not commit_night(storage, record, rows):
                raise ArchiveError(f"{asked.archive}: another process has committed night {record.number}.")
            past = read_history(storage)
        if record is None or is_published(asked.out, record):
            return Outcome(asked)
        LOG.info("publishing", extra={"evaluation": asked.name, "phase": "publish"})
        return Outcome(asked, record, publish(asked, past, report_of(asked, evaluation, past, told)))


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


def _news(asked: NightlyEvaluation, past: History) -> list[Arrived]:
    return [each for each in look(asked.inbox, asked.pattern) if past.stamps.get(each.url) != each.stamp]


def _engine(asked: NightlyEvaluation) -> dict[str, object]:
    return {"engine": {"executor": asked.cluster}} if asked.cluster else {}


def _opened(asked: NightlyEvaluation) -> Evaluation:
    explicit = {**asked.given_settings, **_engine(asked)}
    return open_evaluation(asked.archive, preset=asked.preset, compat=asked.compat, settings=explicit)


def _take_in(asked: NightlyEvaluation, news: list[Arrived], progress: Progress) -> list[Refused]:
    """Ingest what arrived, and set aside what has problems."""
    waiting = {each.url: each for each in news}
    refused = []
    while True:
        try:
            ingest(
                asked.archive,
                asked.reference,
                ecf=asked.ecf,
                rttm=asked.rttm,
                queries=asked.queries,
                runs={each.system: each.url for each in waiting.values()},
                preset=asked.preset,
                compat=asked.compat,
                settings={**asked.given_settings, **_engine(asked)},
                replace_runs=True,
                change_settings=True,
                progress=progress,
            )
        except InputError as error:
            faulty = _by_run(error, waiting)
            if not faulty:
                raise
            for url, problems in faulty.items():
                run = waiting.pop(url)
                refused.append(Refused(url, run.system, tuple(problems[:SHOWN]), len(problems)))
                LOG.warning("refused: %s", problems[0], extra={"evaluation": asked.name, "system": run.system})
        else:
            return sorted(refused, key=lambda each: each.url)


SHOWN = 5
"""So many problems of a refused run are kept."""


def _by_run(error: InputError, waiting: Mapping[str, Arrived]) -> dict[str, list[str]]:
    """The problems by the runs that they are of."""
    found: dict[str, list[str]] = {}
    for problem in error.problems:
        for url in problem.file.split(", "):
            beside = next((each for each in waiting if url == each or url.startswith(each.rsplit(".", 1)[0])), None)
            if beside is not None:
                found.setdefault(beside, []).append(str(problem))
    return found


def _due(asked: NightlyEvaluation, evaluation: Evaluation, past: History) -> dict[str, str]:
    """The systems that stand otherwise than the archive has them, each with the reason."""
    found = {}
    for run in evaluation.archive.runs:
        there = past.standings.get(run.system)
        signature = _signature(asked, evaluation, run.system)
        if there is None:
            found[run.system] = NEW
        elif there.content != run.content:
            found[run.system] = REPLACED
        elif there.signature != signature:
            same_version = there.signature.split()[:2] == signature.split()[:2]
            found[run.system] = SETTINGS if same_version else VERSION
    return found


def _signature(asked: NightlyEvaluation, evaluation: Evaluation, system: str) -> str:
    """What the numbers of a system mean: the signature of scoring it alone."""
    names, _, settings = requested(asked.scored, evaluation.settings)
    signature: str = manifest_of(evaluation.archive, [system], settings, names, list(asked.by))["signature"]
    return signature


def _new_record(
    asked: NightlyEvaluation,
    evaluation: Evaluation,
    past: History,
    news: Sequence[Arrived],
    refused: Sequence[Refused],
    due: Mapping[str, str],
    today: date,
    progress: Progress,
) -> tuple[Record, list[dict[str, Any]]]:
    """The record and the rows of tonight."""
    number = 1 if past.last is None else past.last.number + 1
    day, notes = today.isoformat(), []
    if past.last is not None and day < past.last.date:
        notes.append(f"The clock says {day}, but night {past.last.number} was {past.last.date}, which counts on.")
        LOG.warning(notes[-1], extra={"evaluation": asked.name})
        day = past.last.date
    runs = {run.system: run for run in evaluation.archive.runs}
    rows: list[dict[str, Any]] = []
    verdict = Verdict((), (), ())
    if due:
        verdict, result = judged(asked, evaluation, past, due, progress)
        rows = [
            {**row, "content": runs[row["system"]].content, "signature": _signature(asked, evaluation, row["system"])}
            for row in result.table.filter(pc.is_null(result.table["query"])).drop_columns(["query"]).to_pylist()
            if row["system"] in due
        ]
    record = Record(
        number,
        day,
        stored(evaluation).version,
        __version__,
        stamps={each.url: each.stamp for each in news},
        refused=tuple(refused),
        moves=verdict.moves,
        gates=verdict.gates,
        notes=(*notes, *verdict.notes),
        rows=sum(runs[name].rows for name, why in due.items() if why in (NEW, REPLACED)),
    )
    return record, rows
