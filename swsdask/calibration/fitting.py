"""Fit a calibration from the statistics of a run: the affine map of Eq. 44-45, or the steps of pooled PAV.

Equations are those of the 2013 measures document. A map is an error if it cannot be used on other runs. The gamma of an
affine map must be positive and finite: gamma < 0 reverses the order of scores, gamma = 0 makes all scores equal, and
gamma is infinite if the classes do not overlap. PAV needs at least two steps. A step with trials of one class only has
an infinite log-likelihood ratio, which is replaced by the one with half a trial added to either class,

    log((targets + 1/2) / (nontargets + 1/2)) - log(|T_true| / |T_false|),

limited by that of the adjacent step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import numpy as np

from swsdask.archive.protocols import Run
from swsdask.calibration.maps import AffineMap, Calibration, FittedOn, StepMap
from swsdask.measures import select
from swsdask.measures.calibration import pooled_blocks
from swsdask.measures.isotonic import Blocks
from swsdask.measures.logistic_fit import prior_entropy, sigmoid, softplus
from swsdask.measures.measure import Scored
from swsdask.model.errors import InputError, Problem
from swsdask.model.trials import F64

CalibrationMethod = Literal["affine", "pav"]

MEASURES: dict[CalibrationMethod, tuple[str, ...]] = {
    "affine": ("cnxe", "cnxe_min", "impute_score"),
    "pav": ("cnxe", "cnxe_min_pav", "impute_score"),
}
"""The measures that each method needs."""

_COUNTS = ("n_given_target", "n_imputed_target", "n_given_nontarget", "n_imputed_nontarget")


def fit(
    method: CalibrationMethod,
    run: Run,
    scored: Scored,
    evaluation: dict[str, str],
    signature: str,
) -> Calibration:
    """The calibration of a run, from its merged statistics, over all queries.

    `evaluation` are the content hashes of the reference. Raises `InputError` if no map can be used on other runs.
    """
    whole = scored.populations[0]
    numbers = {
        name: float(column[0])
        for family in select(MEASURES[method])
        for values in family.values(scored)
        if values.queries is None and values.condition == whole.condition.name
        for name, column in values.columns.items()
    }
    if math.isnan(numbers["cnxe"]):
        raise unfit(run, "no targets, or no non-targets", "Fit on an evaluation that has both.")
    if run.rows == 0:
        raise unfit(run, "a run without detections", "Fit on another run.")
    score_map: AffineMap | StepMap
    if method == "affine":
        score_map, after = affine_map(numbers, run), numbers["cnxe_min"]
    else:
        lowest, blocks = pooled_blocks(scored, whole)
        score_map = step_map(lowest, blocks, run)
        after = _cnxe(blocks, score_map, scored.reference.prior_log_odds)
    counts = {name: int(numbers[name]) for name in _COUNTS}
    return Calibration(
        map=score_map,
        fitted_on=FittedOn(
            system=run.system,
            run=run.content,
            evaluation=dict(sorted(evaluation.items())),
            signature=signature,
            prior_log_odds=scored.reference.prior_log_odds,
            impute=scored.settings.impute,
            impute_score=numbers["impute_score"],
            **counts,
            cnxe=numbers["cnxe"],
            cnxe_calibrated=after,
        ),
    )


def affine_map(numbers: Mapping[str, float], run: Run) -> AffineMap:
    """The affine map of a run's numbers. Raises `InputError` if gamma is not positive and finite."""
    gamma, delta = numbers["cnxe_gamma"], numbers["cnxe_delta"]
    if math.isfinite(gamma) and gamma > 0.0:
        return AffineMap(gamma=gamma, delta=delta)
    if gamma == math.inf:
        why = "scores that separate targets from non-targets completely (gamma = inf)"
        remedy = "Fit on more data, or with --method pav."
    elif math.isinf(numbers["cnxe"]):
        why, remedy = "a target of score -inf or a non-target of inf", "Fit with --method pav, or on finite scores."
    elif gamma == 0.0:
        why, remedy = "scores without information (gamma = 0)", "Check that the scores belong to this system."
    else:
        why = f"scores that are higher for non-targets (gamma = {gamma:.6g})"
        remedy = "Check that higher scores mean higher confidence."
    raise unfit(run, why, remedy)


def step_map(lowest: F64, blocks: Blocks, run: Run) -> StepMap:
    """The steps of pooled PAV, of blocks with their lowest scores. Raises `InputError` for less than two blocks."""
    if len(lowest) < 2:
        raise unfit(run, "scores without information: one step", "Check that higher scores mean higher confidence.")
    target, nontarget = blocks.target, blocks.nontarget
    n_target, n_nontarget = int(target.sum()), int(nontarget.sum())
    llr = blocks.llr(n_target, n_nontarget)
    half = np.log((target + 0.5) / (nontarget + 0.5)) - math.log(n_target / n_nontarget)
    if target[0] == 0:
        llr[0] = min(half[0], llr[1])
    if nontarget[-1] == 0:
        llr[-1] = max(half[-1], llr[-2])
    return StepMap(begins=tuple(lowest[1:].tolist()), llr=tuple(llr.tolist()))


def _cnxe(blocks: Blocks, steps: StepMap, prior_log_odds: float) -> float:
    """C_nxe of all trials at their steps."""
    cost = 0.0
    for counts, sign in ((blocks.target, -1.0), (blocks.nontarget, 1.0)):
        each = (softplus(sign * (llr + prior_log_odds)) for llr in steps.llr)
        total = math.fsum(n * one for n, one in zip(counts.tolist(), each, strict=True))
        cost += sigmoid(-sign * prior_log_odds) * total / int(counts.sum())
    return cost / prior_entropy(prior_log_odds)


def unfit(run: Run, found: str, remedy: str) -> InputError:
    """The error for a run on which nothing can be fitted."""
    where = ", ".join(run.files) or run.system
    return InputError(Problem(where, None, "scores that a calibration can be fitted on", found, remedy))
