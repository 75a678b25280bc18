"""Maps from scores to log-likelihood ratios (natural logarithm): their fit, and the TOML file that stores one.

Every map is increasing: it never reverses the order of two scores.

A map is fitted on the statistics of a run: the affine map of Eq. 44-45 of the 2013 measures document, or the steps of
pooled PAV. A map that cannot be used on other runs is an error. The gamma of an affine map must be positive and
finite: gamma < 0 reverses the order of scores, gamma = 0 makes all scores equal, and gamma is infinite if the classes
do not overlap. PAV needs at least two steps. A step with trials of one class only has an infinite log-likelihood ratio.
It is replaced by the ratio with half a trial added to each class,

    log((targets + 1/2) / (nontargets + 1/2)) - log(|T_true| / |T_false|),

limited by that of the adjacent step.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from swsdask.archive.protocols import Run
from swsdask.formats.runs.encoding import NEGATED
from swsdask.measures import select
from swsdask.measures.calibration import Blocks, pooled_blocks
from swsdask.measures.logistic_fit import prior_entropy, sigmoid, softplus
from swsdask.measures.measure import Scored
from swsdask.model.errors import InputError, Problem
from swsdask.model.layers import read_toml, toml_value
from swsdask.model.trials import F64
from swsdask.model.wording import cut
from swsdask.places.reading import as_path, read_small
from swsdask.places.writing import replacing

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


class Checked(BaseModel):
    """A part of a calibration file. Unknown keys, NaN and infinities are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class AffineMap(Checked):
    """llr = gamma score + delta (2013 measures document, Eq. 44), with gamma > 0."""

    method: Literal["affine"] = "affine"
    gamma: float = Field(gt=0)
    delta: float

    def __call__(self, scores: F64) -> F64:
        """Return the log-likelihood ratios of scores; infinite on overflow."""
        with np.errstate(over="ignore"):
            return self.gamma * scores + self.delta

    def __str__(self) -> str:
        return f"affine, gamma {self.gamma:.6g}, delta {self.delta:.6g}"


class StepMap(Checked):
    """Pooled isotonic regression: `llr[k]` for the scores >= `begins[k - 1]` and < `begins[k]`.

    `begins` rise, and `llr`, which has one more entry, never falls. Scores outside the range that the map was fitted on
    belong to the first or the last step.
    """

    method: Literal["pav"] = "pav"
    begins: tuple[float, ...]
    llr: tuple[float, ...]

    @model_validator(mode="after")
    def _check_rising(self) -> Self:
        if len(self.llr) != len(self.begins) + 1:
            raise ValueError(f"llr must have one more number than begins: {len(self.llr)}, {len(self.begins)}")
        if not _rise(self.begins) or not _never_fall(self.llr):
            raise ValueError("begins must rise, and llr never fall")
        return self

    def __call__(self, scores: F64) -> F64:
        """Return the log-likelihood ratios of scores; NaN of NaN."""
        steps = np.searchsorted(np.array(self.begins, np.float64), scores, "right")
        return np.where(np.isnan(scores), np.nan, np.array(self.llr, np.float64)[steps])

    def __str__(self) -> str:
        return f"pav, {len(self.llr)} steps from {self.llr[0]:.6g} to {self.llr[-1]:.6g}"


ScoreMap = Annotated[AffineMap | StepMap, Field(discriminator="method")]


def _rise(values: Sequence[float]) -> bool:
    return all(before < after for before, after in pairwise(values))


def _never_fall(values: Sequence[float]) -> bool:
    return all(before <= after for before, after in pairwise(values))


VERSION: Final = 1

_HEAD = "# Made by `swsdask calibrate`. Apply it to runs: swsdask calibrate --apply THIS_FILE RUN... --out DIRECTORY\n"


_Extended = Annotated[float, Field(allow_inf_nan=True)]
"""Infinite where scores are."""


class FittedOn(Checked):
    """The data that a calibration was fitted on, and the cost before and after.

    `run` is the content hash of the rows of the run, `evaluation` has the hashes of the reference files, and
    `signature` is the signature of the scoring. `prior_log_odds` is logit P_tar of the operating point. `impute` is the
    setting of the evaluation, `impute_score` the score of trials that the system did not submit. `cnxe` is C_nxe
    before, `cnxe_calibrated` after. `negated`: the scores of the run were costs and were negated when read.
    """

    system: str
    run: str
    evaluation: dict[str, str]
    signature: str
    prior_log_odds: float
    impute: Literal["min", "error"] | float
    impute_score: _Extended
    n_given_target: int
    n_imputed_target: int
    n_given_nontarget: int
    n_imputed_nontarget: int
    cnxe: _Extended
    cnxe_calibrated: float
    negated: bool = False


class Calibration(Checked):
    """A map from scores to log-likelihood ratios, and the data that it was fitted on.

    `calibrate` returns one. Calling it maps scores.

    Attributes
    ----------
    version : int
        The version of the file format.
    map : AffineMap or StepMap
        The map: its `method`, and `gamma` and `delta`, or `begins` and `llr`.
    fitted_on : FittedOn
        The system, run, evaluation, operating point and trials, and C_nxe before and after.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> fitted = sws.calibrate("demo/archive", "overconfident")
    >>> fitted.write("overconfident.toml")
    >>> calibration = sws.Calibration.read("overconfident.toml")
    >>> calibration == fitted
    True
    >>> round(calibration.fitted_on.cnxe, 4), round(calibration.fitted_on.cnxe_calibrated, 4)
    (8.0935, 0.3441)
    """

    version: Literal[1] = VERSION
    map: ScoreMap
    fitted_on: FittedOn

    def __call__(self, scores: ArrayLike) -> F64:
        """Return the log-likelihood ratios of scores, float64 of the same shape."""
        return self.map(np.asarray(scores, np.float64))

    @property
    def bayes_threshold(self) -> float:
        """The best threshold of its log-likelihood ratios: -logit P_tar of the evaluation it was fitted on (Eq. 31)."""
        return -self.fitted_on.prior_log_odds

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the calibration to a path or URL. Raises `OSError` or `InputError` if it cannot be written."""
        with replacing(path) as file:
            file.write((_HEAD + "\n".join(_lines(self.model_dump())) + "\n").encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Calibration:
        """Read a calibration from a file. Raises `InputError` with every problem of the file."""
        file = as_path(path)
        try:
            held = read_toml(read_small(path))
        except FileNotFoundError:
            raise _fault(file, "nothing there", "Check the path.") from None
        except (OSError, ValueError) as error:
            raise _fault(file, " ".join(str(error).split()), "Check that it is a calibration file.") from None
        version = held.get("version")
        if version != VERSION:
            found = "no version" if version is None else f"version {version!r}"
            problem = Problem(file, None, f"version = {VERSION} of a calibration file", found, "Fit it again.")
            raise InputError(problem)
        try:
            return cls.model_validate(held)
        except ValidationError as error:
            raise InputError(*(_explain(file, each) for each in error.errors())) from None


def _fault(file: str, found: str, remedy: str) -> InputError:
    return InputError(Problem(file, None, "a file that `swsdask calibrate` wrote", found, remedy))


def _explain(file: str, error: ErrorDetails) -> Problem:
    key = ".".join(str(part) for part in error["loc"] if part not in ("affine", "pav"))
    if error["type"] == "extra_forbidden":
        return Problem(file, None, "known keys only", f"the unknown key {key}", "Remove it, or fit again.")
    if error["type"] == "missing":
        return Problem(file, None, f"the key {key}", "none", "Fit it again.")
    found = f"{key} = {cut(repr(error['input']))} ({error['msg']})"
    return Problem(file, None, "a calibration's values", found, "Fit it again.")


def _lines(table: Mapping[str, object], name: str = "") -> Iterator[str]:
    """Yield the lines of a table in TOML: its values, then its subtables."""
    if name:
        yield f"\n[{name}]"
    for key, value in table.items():
        if isinstance(value, list | tuple):
            yield from (f"{key} = [", *(f"    {toml_value(entry)}," for entry in value), "]")
        elif not isinstance(value, Mapping):
            yield f"{key} = {toml_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _lines(value, f"{name}.{key}" if name else key)


CalibrationMethod = Literal["affine", "pav"]

MEASURES_OF_METHOD: dict[CalibrationMethod, tuple[str, ...]] = {
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
    """Return the calibration of a run, from its merged statistics, over all queries.

    `evaluation` are the content hashes of the reference. Raises `InputError` if no map can be used on other runs.
    """
    whole = scored.populations[0]
    numbers = {
        name: float(column[0])
        for family in select(MEASURES_OF_METHOD[method])
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
            negated=NEGATED in run.attributes,
        ),
    )


def affine_map(numbers: Mapping[str, float], run: Run) -> AffineMap:
    """Return the affine map from the numbers of a run. Raises `InputError` if gamma is not positive and finite."""
    gamma, delta = numbers["cnxe_gamma"], numbers["cnxe_delta"]
    if math.isfinite(gamma) and gamma > 0.0:
        return AffineMap(gamma=gamma, delta=delta)
    if gamma == math.inf:
        why = "scores that separate targets from non-targets completely (gamma = inf)"
        remedy = "Fit on more data, or with the method pav."
    elif math.isinf(numbers["cnxe"]):
        why, remedy = "a target of score -inf or a non-target of inf", "Fit with the method pav, or on finite scores."
    elif gamma == 0.0:
        why, remedy = "scores without information (gamma = 0)", "Check that the scores belong to this system."
    else:
        why = f"scores that are higher for non-targets (gamma = {gamma:.6g})"
        remedy = "Check that higher scores mean higher confidence."
    raise unfit(run, why, remedy)


def step_map(lowest: F64, blocks: Blocks, run: Run) -> StepMap:
    """Return the steps of pooled PAV, from blocks and their lowest scores.

    Raises `InputError` for fewer than two blocks.
    """
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
    """C_nxe of all trials with the log-likelihood ratios of their steps."""
    cost = 0.0
    for counts, sign in ((blocks.target, -1.0), (blocks.nontarget, 1.0)):
        each = (softplus(sign * (llr + prior_log_odds)) for llr in steps.llr)
        total = math.fsum(n * one for n, one in zip(counts.tolist(), each, strict=True))
        cost += sigmoid(-sign * prior_log_odds) * total / int(counts.sum())
    return cost / prior_entropy(prior_log_odds)


def unfit(run: Run, found: str, remedy: str) -> InputError:
    """Return the error for a run on which nothing can be fitted."""
    where = ", ".join(run.files) or run.system
    return InputError(Problem(where, None, "scores that a calibration can be fitted on", found, remedy))
