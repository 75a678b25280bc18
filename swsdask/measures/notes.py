"""Notes that explain the numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from swsdask.measures.average_precision import ranked_queries
from swsdask.measures.calibration import whole_gamma
from swsdask.measures.cross_entropy import censored
from swsdask.measures.measure import Population, Scored, populations
from swsdask.measures.twv import decision_bounds
from swsdask.model.ranked_measures import RELEVANT
from swsdask.model.results import Note
from swsdask.model.settings import EvaluationSettings, Weights, weights
from swsdask.model.trials import Reference, given_score
from swsdask.model.units import INFINITE
from swsdask.model.wording import counted, listed
from swsdask.statistics.counts import Counts
from swsdask.statistics.entropy import Entropy
from swsdask.statistics.moments import Moments
from swsdask.statistics.onsets import onset_counts
from swsdask.statistics.ranks import EventHits, EventQueryRanks, QueryRanks


def interpretation(reference: Reference, settings: EvaluationSettings, *, costs: bool = True) -> tuple[str, ...]:
    """Explain the settings for this evaluation: costs in plain words, the effective prior, queries left out.

    Without `costs`, for measures that do not depend on the operating point, only the queries left out.

    Sources: the 2013 measures document, Eq. 12, 15-16, 19-20, 23 and 31.
    """
    whole = populations(reference)[0]
    if not costs:
        return tuple(_left_out(reference, settings))
    point = weights(reference, settings)
    return (
        *_costs(whole, point, settings),
        f"Beta = {point.beta:.6g}; effective prior P_tar = {point.effective_prior:.6g} (Eq. 23); Bayes threshold "
        f"-logit(P_tar) = {point.bayes_threshold:.6g} (Eq. 31): where scores are log-likelihood ratios, accepting "
        "scores above it costs least.",
        *_left_out(reference, settings),
        *_undefined(reference, whole),
    )


def system_notes(scored: Scored) -> tuple[Note, ...]:
    """Return the notes on one system."""
    by_counts: tuple[Note, ...] = ()
    if Counts in scored:
        by_counts = (
            *_undecided(scored[Counts]),
            *_unexplained(scored),
            *_infinite(scored),
            *_imputed(scored),
            *_recalibrated(scored),
            *_ranked_as_text(scored),
        )
    return (*by_counts, *_averaged(scored), *_duplicates(scored))


def _averaged(scored: Scored) -> Iterator[Note]:
    if not (QueryRanks in scored or EventQueryRanks in scored):
        return
    queries = ranked_queries(scored, scored.whole, RELEVANT)
    left_out = [
        f"{counted(number, 'queries')} without {what}"
        for number, what in ((queries.n_no_relevant, "targets"), (queries.n_missing, "trials"))
        if number
    ]
    if left_out:
        yield Note(
            f"MAP averages {counted(queries.n_averaged, 'queries')}; left out: {', '.join(left_out)}.",
            "MAP leaves out queries without targets or without trials.",
        )


def _ranked_as_text(scored: Scored) -> Iterator[Note]:
    counts = scored[Counts]
    alike = counts.lowest.min(initial=np.inf) >= 0 and counts.highest.max(initial=-np.inf) < 10
    as_numbers = scored.settings.compat == "kwseval" and not scored.reference.ranking.text
    if as_numbers and QueryRanks in scored and not alike:
        text = "KWSEval sorts scores as text. With scores below 0 or of 10 and more, its MAP may differ from ours."
        yield Note(text, text)


def _duplicates(scored: Scored) -> Iterator[Note]:
    if EventHits not in scored or not scored[EventHits].further:
        return
    trial = scored.settings.trials
    what, which = {
        "ignore": ("Rankings leave out", "near occurrences that others are mapped to."),
        "first": ("Rankings leave out", f"after the first one of a {trial} in the run's files."),
        "false-positive": ("Rankings count as false alarms", f"beside the best one of a {trial}."),
    }[str(scored.reference.ranking.duplicates)]
    yield Note.of_count(f"{what} ", scored[EventHits].further, "detections", f" {which}")


def _undecided(counts: Counts) -> Iterator[Note]:
    if counts.has_decisions:
        return
    without = int(counts.mapped[..., -1].sum() + counts.unmapped[..., -1].sum())
    every = int(counts.mapped.sum() + counts.unmapped.sum())
    undefined = "without a YES/NO decision: ATWV and other measures of decisions are not defined."
    yield Note(f"{without:,} of {counted(every, 'trials')} {undefined}", f"{{}} trials {undefined}", without)


def _unexplained(scored: Scored) -> Iterator[Note]:
    min_yes, max_no = decision_bounds(scored, scored.whole)
    if scored[Counts].has_decisions and min_yes < max_no:
        what = "No single threshold explains the YES/NO decisions: the lowest YES"
        undefined = "`actual_threshold` is not defined, and NIST's KWSEval does not score such a run."
        lowest, highest = (given_score(float(score)) for score in (min_yes, max_no))
        yield Note(
            f"{what}, {lowest:.6g}, lies below the highest NO, {highest:.6g}. {undefined}",
            f"{what} lies below the highest NO. {undefined}",
        )


def _infinite(scored: Scored) -> Iterator[Note]:
    counts = scored[Counts]
    found = {"-inf": (counts.lowest == -INFINITE).any(), "inf": (counts.highest == INFINITE).any()}
    if any(found.values()):
        meaning = (
            "C_nxe is infinite if a target is at -inf, or another trial at inf. A threshold at an infinite score is "
            f"given as {INFINITE:.4g} or {-INFINITE:.4g}."
        )
        where = listed([name for name, there in found.items() if there])
        yield Note(f"Some scores are {where}: {meaning}", f"Some scores are infinite: {meaning}")


def _imputed(scored: Scored) -> Iterator[Note]:
    trials = censored(scored, scored.whole)
    n_imputed = int(trials.imputed_target.sum() + trials.imputed_nontarget.sum())
    lowest = float(scored[Counts].lowest.min(initial=np.inf))
    if Entropy in scored and n_imputed and trials.score > lowest:
        yield Note(
            f"The imputed score, {trials.score:.6g}, lies above the run's lowest, {given_score(lowest):.6g}: "
            f"{counted(n_imputed, 'trials')} without a score rank above some with a score.",
            "The imputed score lies above the run's lowest: {} trials without a score rank above some with a score.",
            n_imputed,
        )


def _recalibrated(scored: Scored) -> Iterator[Note]:
    if Moments not in scored:
        return
    gamma = whole_gamma(scored)
    if gamma < 0.0:
        falls = "The best affine map of the scores falls"
        meaning = (
            "high scores speak against an occurrence. C_nxe_min of a map that rises or is flat: nonnegative_gamma = "
            "true."
        )
        yield Note(f"{falls}, gamma = {gamma:.6g}: {meaning}", f"{falls}: {meaning}")
    elif gamma == np.inf:
        separated = "The scores separate targets from non-targets, or all but those at one score"
        yield Note(f"{separated}: no affine map is the best.", f"{separated}: no affine map is the best.")


def _costs(whole: Population, point: Weights, settings: EvaluationSettings) -> Iterator[str]:
    if whole.n_target == 0 or whole.n_target >= whole.n_queries * whole.condition.n_trials:
        return
    empirical = whole.n_target / (whole.n_queries * whole.condition.n_trials)
    in_false_alarms = counted((1.0 - empirical) / (point.beta * empirical), "false alarms", ".6g")
    given = settings.operating_point
    if given.from_data is not None:
        weight = (
            f"|Q| alpha = {in_false_alarms} (Eq. 19-20)"
            if given.alpha is None
            else f"{in_false_alarms}, |Q| alpha of Eq. 19-20 times operating_point.alpha = {given.alpha:g}"
        )
        yield (
            f"One miss weighs as much as {weight}: the operating point comes from the data, "
            f"P_target = N_true / N = {point.p_target:.6g}, |Q| = {counted(whole.n_queries, 'queries')}."
        )
        return
    if given.beta is None and given.effective_prior is None:
        in_costs = counted(point.c_miss / point.c_fa, "false alarms", ".6g")
        yield (
            f"C_fa / C_miss = {point.c_fa / point.c_miss:.6g}: where P_target = {point.p_target:.6g} is how frequent "
            f"targets are, one miss weighs as much as {in_costs} (Eq. 16)."
        )
    yield (
        f"Here the empirical prior of targets is {empirical:.6g} (Eq. 12), so one miss weighs as much as "
        f"{in_false_alarms} (Eq. 15)."
    )


def _left_out(reference: Reference, settings: EvaluationSettings) -> Iterator[str]:
    every = reference.conditions[0].all_queries
    without = [reference.query_ids[q] for q in np.flatnonzero(every & (reference.targets.sum(axis=1) == 0))]
    if without:
        who = f"{counted(len(without), 'queries')} without target trials ({listed(without)})"
        if settings.no_targets == "false_alarms_only":
            yield f"Left out of the average P_miss: {who}."
        elif settings.average_precision.no_relevant == "exclude":
            yield f"Left out of all averages: {who}."
        elif settings.average_precision.no_relevant == "zero-if-retrieved":
            yield f"Only averages of rankings count {who}, and only if retrieved, by average_precision.no_relevant."
        else:
            yield f"Only averages of rankings count {who}, by average_precision.no_relevant."
    if reference.n_unevaluated:
        yield f"Not counted: {counted(reference.n_unevaluated, 'occurrences')} outside the evaluated excerpts."


def _undefined(reference: Reference, whole: Population) -> Iterator[str]:
    if whole.n_target == 0:
        yield "No query has target trials: TWV and C_nxe are not defined."
    full = [reference.query_ids[q] for q in np.flatnonzero(whole.queries & (whole.nontargets <= 0))]
    if full:
        yield (
            f"Left out of the average P_fa: {counted(len(full), 'queries')} without non-target trials, and so without "
            f"P_fa ({listed(full)}). Their targets count in C_nxe of all queries."
        )
    silent = [
        reference.query_ids[q] for q in np.flatnonzero(whole.queries & (onset_counts(reference).sum(axis=1) == 0))
    ]
    if silent:
        without_onsets = counted(len(silent), "queries")
        yield f"Left out of mGAP: {without_onsets} without onsets, and so without GAP ({listed(silent)})."
