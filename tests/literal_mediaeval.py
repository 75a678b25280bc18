"""The numbers of MediaEval's tool, each list of trials gone through in plain arithmetic, in its order."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from tests.document_trials import Literal, ascending


@dataclass(frozen=True)
class Trial:
    query: int
    target: bool
    score: float
    accepted: bool


def tool_numbers(literal: Literal, prior: float) -> list[float]:
    """In the order of `swsdask.measures.mediaeval_tool`."""
    columns = (literal.query.tolist(), literal.target.tolist(), literal.score.tolist(), literal.accepted.tolist())
    trials = [Trial(*each) for each in zip(*columns, strict=True)]
    beta = (1.0 - prior) / prior
    pooled = calibrated(trials, share(trials))
    moved, mapped = [], []
    for query in sorted({trial.query for trial in trials}):
        own = [trial for trial in pooled if trial.query == query]
        threshold = maximum([replace(trial, query=0) for trial in own], beta)[1]
        for trial in own:
            score = trial.score + -threshold
            moved.append(replace(trial, score=score, accepted=score > 0))
        mapped += calibrated(own, share(trials))
    given = [trial.score for trial in trials[: literal.n_given]]
    lowest, highest = math.inf, -math.inf
    for score in given:
        if score > highest:
            highest = score
        elif score < lowest:
            lowest = score
    return [
        actual(trials, beta),
        *maximum(trials, beta),
        cnxe(trials, prior),
        cnxe(pooled, prior),
        actual(moved, beta),
        *maximum(moved, beta),
        cnxe(mapped, prior),
        cnxe(calibrated(mapped, share(trials)), prior),
        lowest,
        highest,
    ]


def share(trials: list[Trial]) -> float:
    return sum(trial.target for trial in trials) / len(trials)


def counts(trials: list[Trial]) -> list[tuple[float, float]]:
    """Non-targets and targets of each query."""
    found = [[0.0, 0.0] for _ in range(1 + max(trial.query for trial in trials))]
    for trial in trials:
        found[trial.query][trial.target] += 1
    return [(nontargets, targets) for nontargets, targets in found]


def over(number: float, total: float) -> float:
    return number / total if total else math.nan if number == 0 or math.isnan(number) else math.inf


def actual(trials: list[Trial], beta: float) -> float:
    total = 0.0
    numbers = counts(trials)
    for query, (nontargets, targets) in enumerate(numbers):
        own = [trial for trial in trials if trial.query == query]
        misses = sum(trial.target and not trial.accepted for trial in own)
        alarms = sum(trial.accepted and not trial.target for trial in own)
        total += over(misses, targets) + over(beta * alarms, nontargets)
    return 1.0 - total / len(numbers)


def maximum(trials: list[Trial], beta: float) -> tuple[float, float]:
    """The first of the highest values from below, and the largest score that is rejected there."""
    numbers = counts(trials)
    steps = [[over(1.0, total) / len(numbers) for total in own] for own in numbers]
    points = [[-math.inf, 0.0, 1.0]]
    for trial in sorted(
        trials, key=lambda trial: (math.isnan(trial.score), trial.score, math.copysign(1.0, trial.score))
    ):
        if trial.score != points[-1][0]:
            points.append([trial.score, *points[-1][1:]])
        if trial.target:
            points[-1][1] += steps[trial.query][1]
        else:
            points[-1][2] -= steps[trial.query][0]
    best, highest = 0, 1.0 - beta
    values = [1.0 - (p_miss + beta * p_fa) for _, p_miss, p_fa in points]
    for place, value in enumerate(values):
        if value > highest:
            best, highest = place, value
    return values[best], points[best][0]


def calibrated(trials: list[Trial], prior: float) -> list[Trial]:
    order = ascending([trial.score for trial in trials])
    blocks: list[tuple[float, int]] = []
    for at in order:
        blocks.append((float(trials[at].target), 1))
        while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
            (lower, below), (upper, above) = blocks[-2:]
            blocks[-2:] = [(lower + above / (below + above) * (upper - lower), below + above)]
    pooled = [value for value, size in blocks for _ in range(size)]
    found = list(trials)
    for at, value in zip(order, pooled, strict=True):
        found[at] = replace(trials[at], score=log_odds(value) - log_odds(prior))
    return found


def log_odds(value: float) -> float:
    if value in (0.0, 1.0):
        return math.inf if value else -math.inf
    return math.log(value / (1 - value))


def cnxe(trials: list[Trial], prior: float) -> float:
    return cost(trials, prior) / cost([Trial(0, True, 0.0, False), Trial(0, False, 0.0, False)], prior)


def cost(trials: list[Trial], prior: float) -> float:
    targets = sum(trial.target for trial in trials)
    weights = over(1.0 - prior, len(trials) - targets), over(prior, targets)
    total = 0.0
    for trial in trials:
        odds = trial.score + math.log(prior / (1 - prior))
        loss = -odds if trial.target else odds
        try:
            e = math.exp(loss)
        except OverflowError:
            e = math.inf
        total += weights[trial.target] * (loss if 1 + e == e else math.log(1 + e))
    return total
