"""Comparison of the systems that are new in a night with their baselines, and the gates that fail.

A new run is compared with its baseline, which is scored again with the same settings, so that the numbers are
comparable. Their difference is tested by resampling the queries. The p values of all pairs of a night are adjusted
together. The baseline of an earlier night is read from a version of the archive that has it; if all of them have
expired, a note says that nothing was compared. If a system is scored again because settings or the release changed, its
previous number is shown, and no gate applies. A run that scoring refuses under these settings is set aside: the others
are scored.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from swsdask.api.comparing import DEFAULT_MEASURES, sample_evaluation
from swsdask.api.opening import Evaluation
from swsdask.api.runs import given_runs
from swsdask.api.scoring import score
from swsdask.archive.nights import History, overall_numbers
from swsdask.archive.reference import build_references
from swsdask.archive.store import open_archive
from swsdask.archive.stored_tables import StoredRun
from swsdask.archive.versions import versions
from swsdask.comparison.compare import compare
from swsdask.comparison.gates import Gate, NumbersBySystem, failures
from swsdask.comparison.notes import NAMED, Least
from swsdask.measures.names import with_points
from swsdask.measures.resampling import NAMES
from swsdask.model.comparison import Comparison, Resampling
from swsdask.model.errors import InputError
from swsdask.model.leaderboard import NEW, REPLACED, Move, leaderboard_of
from swsdask.model.results import Result
from swsdask.model.settings import EvaluationSettings
from swsdask.model.wording import listed
from swsdask.nightly.night import Night, stored_archive
from swsdask.nightly.settings import NightlyEvaluation

LOG = logging.getLogger("swsdask.nightly")


@dataclass(frozen=True)
class Verdict:
    """The moves of systems, the failed gates as text, notes, the numbers, and the problems of systems without any.

    `result` is None if no system was scored.
    """

    moves: tuple[Move, ...] = ()
    gates: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    result: Result | None = None
    refused: Mapping[str, InputError] = field(default_factory=dict)


def score_and_compare(night: Night, evaluation: Evaluation, due: Mapping[str, str]) -> Verdict:
    """Score the systems in `due`, which has their reasons, and their baselines; compare them.

    Raises
    ------
    SettingsError
        If a gate needs a test that its measure does not have, or uses a condition that is not scored.
    """
    job = night.job
    wished = {system: _baseline(job, night.past, system, why) for system, why in due.items()}
    both = _with_earlier(night, night.past, evaluation, wished.values())
    baselines = {system: name if name in both.systems else None for system, name in wished.items()}
    notes = [
        f"{name!r} is in no version of the archive: nothing was compared with it."
        for name in dict.fromkeys(wished.values())
        if name not in (None, *both.systems)
    ]
    result, refused = _score_sound(night, both, due, baselines.values())
    if result is None:
        return Verdict(refused=refused)
    notes += [
        f"{name!r} cannot be scored with these settings: nothing was compared with it."
        for name in dict.fromkeys(baselines.values())
        if name in refused
    ]
    due = {system: why for system, why in due.items() if system not in refused}
    baselines = {system: None if baselines[system] in refused else baselines[system] for system in due}
    leading = next(iter(leaderboard_of(result.overall, job.scored).by), "")
    values = _values(result)
    before = overall_numbers(night.past.current())
    pairs = [(system, baseline) for system, baseline in baselines.items() if baseline is not None]
    by_value = [gate for gate in job.parsed_gates if gate.p_below is None]
    failed = failures(by_value, pairs, values, {})
    notes += _not_applied(job, pairs, values)
    p: dict[str, float] = {}
    found, untested = _compare_pairs(night, both, pairs, values, leading)
    notes += untested
    if found is not None:
        failed += found.failures
        of_leading = (row for row in found.difference_table.to_pylist() if row["measure"] == leading)
        p = {row["a"]: row["p_adjusted"] for row in of_leading if row["condition"] == "all"}
    for note in notes:
        LOG.warning(note, extra={"evaluation": job.name})
    numbers = values.get(("all", leading), {})
    moves = [
        Move(
            system,
            why,
            baselines[system],
            leading,
            numbers.get(system, math.nan),
            before.get((system, leading), math.nan)
            if baselines[system] is None
            else numbers.get(baselines[system] or "", math.nan),
            p.get(system, math.nan),
        )
        for system, why in due.items()
    ]
    return Verdict(tuple(moves), tuple(map(str, failed)), (*notes, *result.notes), result, refused)


def _score_sound(
    night: Night, evaluation: Evaluation, due: Mapping[str, str], baselines: Iterable[str | None]
) -> tuple[Result | None, dict[str, InputError]]:
    """Score systems and their baselines; return the result, and the problems of those that scoring refuses.

    Those are left out; the result is None if no system that is due is left.
    """
    left = list(dict.fromkeys([*due, *filter(None, baselines)]))
    where = {run.system: run.where for run in evaluation.archive.runs}
    refused: dict[str, InputError] = {}
    while not due.keys().isdisjoint(left):
        try:
            return _score_systems(night, evaluation, left), refused
        except InputError as error:
            own = {system: [problem for problem in error.problems if problem.file == where[system]] for system in left}
            faulty = [system for system in left if own[system]]
            if not faulty:
                raise
            # An earlier run of a system, its baseline, may have been read from the same file.
            faulty = [system for system in faulty if system in due] or faulty
            refused |= {system: InputError(*own[system]) for system in faulty}
            left = [system for system in left if system not in faulty]
    return None, refused


def _not_applied(job: NightlyEvaluation, pairs: Sequence[tuple[str, str]], values: NumbersBySystem) -> Iterator[str]:
    """Note the systems to which a gate does not apply, because their baseline does not have its measure."""
    for gate in job.parsed_gates:
        numbers = values.get((gate.condition, gate.measure), {})
        measured = {system for pair in pairs for system in pair if not math.isnan(numbers.get(system, math.nan))}
        without = [system for system, baseline in pairs if baseline not in measured]
        if without and (measured or gate.p_below is None):  # else `_compare_pairs` says so
            yield (
                f"gate {gate.text!r}: not applied to {listed(without, NAMED)}, whose baseline has no {gate.measure} in "
                f"the condition {gate.condition}."
            )


def _compare_pairs(
    night: Night, both: Evaluation, pairs: Sequence[tuple[str, str]], values: NumbersBySystem, leading: str
) -> tuple[Comparison | None, list[str]]:
    """Compare all pairs of the night by the leading measure and those of gates with p; None if no test is needed.

    The p values of all pairs are adjusted together: by max-t if Holm's adjustment makes even the smallest possible p
    too large for a gate. A measure that no compared system has is left out, and a note names the gates that use it.
    """
    gates = [gate for gate in night.job.parsed_gates if gate.p_below is not None]
    failures(gates, (), values, {})  # raises for a condition or a measure that is not scored
    if not pairs:
        return None, []
    systems = list(dict.fromkeys(name for pair in pairs for name in pair))

    def is_there(condition: str, measure: str) -> bool:
        numbers = values.get((condition, measure), {})
        return any(not math.isnan(numbers.get(system, math.nan)) for system in systems)

    left_out = [gate for gate in gates if not is_there(gate.condition, gate.measure)]
    gates = [gate for gate in gates if gate not in left_out]
    notes = [
        f"gate {gate.text!r}: not tested, and so passed, because no compared system has {gate.measure} in the "
        f"condition {gate.condition}."
        for gate in left_out
    ]
    by_default = leading in (*NAMES, *DEFAULT_MEASURES) and is_there("all", leading)
    tested = [*([leading] if by_default else []), *(gate.measure for gate in gates)]
    names, _ = with_points(list(dict.fromkeys(tested)), EvaluationSettings())
    if not names:
        return None, notes
    given = given_runs(systems, both.systems)
    _, samples, n_queries, _ = sample_evaluation(
        both, names, given, night.job.by, executor=night.executor, progress=night.progress
    )
    how = Resampling()

    def least(gate: Gate) -> Least:
        own = samples.get(gate.condition, {}).get(gate.measure, {}).values()
        return Least(how, max((int(each.queries.sum()) for each in own if each.parts is not None), default=None))

    if any(least(gate).adjusted(len(pairs)) >= (gate.p_below or 1) for gate in gates):
        how = replace(how, adjust="max-t")
        notes.append(
            "p values are adjusted by max-t: with Holm's adjustment for so many pairs, no gate with p could fail."
        )
    found = compare(samples, n_queries, systems, how, pairs, gates, executor=night.executor, ties=False, advise=False)
    return found, [*notes, *found.notes]


def score_report(night: Night, evaluation: Evaluation) -> Result:
    """Score the systems of the last night's report: those that moved, and their baselines.

    `evaluation` is that of the night. The time and place of scoring are left out, so that a night that is published
    again has the same report.
    """
    *before, last = night.past.nights
    moves = last.record.moves
    baselines = [move.baseline for move in moves]
    both = _with_earlier(night, History(before), evaluation, baselines)
    names = [*(move.system for move in moves), *filter(None, baselines)]
    held = [name for name in dict.fromkeys(names) if name in both.systems]
    result = _score_systems(night, both, held)
    return replace(result, manifest={name: value for name, value in result.manifest.items() if name != "run"})


def _score_systems(night: Night, evaluation: Evaluation, systems: list[str]) -> Result:
    return score(
        evaluation,
        night.job.scored,
        runs=systems,
        by=night.job.by,
        executor=night.executor,
        progress=night.progress,
    )


def check_conditions(job: NightlyEvaluation, evaluation: Evaluation) -> None:
    """Raise `SettingsError` for an unknown key of `by`, and for a gate in a condition that is not scored."""
    archive, by = evaluation.archive, [key.split(",") for key in job.by]
    try:
        references = build_references(archive, evaluation.settings.evaluation, by, archive.runs)
    except InputError:  # runs that will be set aside
        return
    names = {condition.name for reference, _ in references for condition in reference.conditions}
    if names:  # runs may determine conditions, and there may be none
        failures(job.parsed_gates, (), {(name, gate.measure): {} for name in names for gate in job.parsed_gates}, {})


def _with_earlier(night: Night, past: History, evaluation: Evaluation, baselines: Iterable[str | None]) -> Evaluation:
    """Return an evaluation whose archive also has those of the baselines that are runs of earlier nights."""
    earlier = tuple(_earlier(night, past, baselines))
    return replace(evaluation, archive=replace(stored_archive(evaluation), beside=earlier))


def _earlier(night: Night, past: History, baselines: Iterable[str | None]) -> Iterator[StoredRun]:
    """Yield the runs of earlier nights among the baselines, under their names there, `SYSTEM (night N)`."""
    named = {*baselines}
    wanted = {system: each for system, each in past.standings.items() if _name_of(system, each.night) in named}
    if not wanted:
        return
    existing = versions(night.storage)

    @cache
    def runs_of(version: int) -> dict[tuple[str, str], StoredRun]:
        return {
            (each.run.system, each.run.content): each for each in open_archive(night.job.archive, version).stored_runs
        }

    for system, standing in sorted(wanted.items()):
        # The night's version, or, if it has expired, the latest version with the run.
        candidates = [standing.version] if standing.version in existing else reversed(existing)
        found = (runs_of(version).get((system, standing.content)) for version in candidates)
        if (held := next(filter(None, found), None)) is not None:
            yield replace(held, run=replace(held.run, system=_name_of(system, standing.night)))


def _baseline(job: NightlyEvaluation, past: History, system: str, why: str) -> str | None:
    """Return the baseline of a system, a system or a run; None if there is none."""
    if why not in (NEW, REPLACED):
        return None
    match job.baseline:
        case "previous":
            own = [system] if system in past.standings else []
        case "best":
            own = _leader(job, past)
        case name if name != system:
            return name
        case _:
            own = [system] if system in past.standings else []
    return next((_name_of(each, past.standings[each].night) for each in own), None)


def _leader(job: NightlyEvaluation, past: History) -> list[str]:
    """Return the best system of the earlier nights by the leading measure, if there is any."""
    found = past.leaderboard(job.scored)
    return [system for system in found.systems if not math.isnan(found.leading(system))][:1]


def _name_of(system: str, night: int) -> str:
    return f"{system} (night {night})"


def _values(result: Result) -> dict[tuple[str, str], dict[str, float]]:
    """Return the numbers over all queries, by condition and measure, and system."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    for (condition, system, measure), value in leaderboard_of(result.overall).values.items():
        values.setdefault((condition, measure), {})[system] = value
    return values
