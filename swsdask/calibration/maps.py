"""Maps from scores to log-likelihood ratios (natural logarithm), and the TOML file that keeps one.

Every map rises: it never changes which of two scores is greater.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, Final, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from swsdask.model.errors import InputError, Problem
from swsdask.model.trials import F64
from swsdask.places.reading import read_small
from swsdask.places.writing import replacing


class Checked(BaseModel):
    """A part of a calibration file. Unknown keys, NaN and infinities are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class AffineMap(Checked):
    """llr = gamma score + delta (2013 measures document, Eq. 44), with gamma > 0."""

    method: Literal["affine"] = "affine"
    gamma: float = Field(gt=0)
    delta: float

    def __call__(self, scores: F64) -> F64:
        """The log-likelihood ratios of scores; infinite on overflow."""
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
    def _rising(self) -> Self:
        if len(self.llr) != len(self.begins) + 1:
            raise ValueError(f"llr must have one more number than begins: {len(self.llr)}, {len(self.begins)}")
        if not _rise(self.begins) or not _never_fall(self.llr):
            raise ValueError("begins must rise, and llr never fall")
        return self

    def __call__(self, scores: F64) -> F64:
        """The log-likelihood ratios of scores."""
        steps = np.searchsorted(np.array(self.begins, np.float64), scores, "right")
        return np.array(self.llr, np.float64)[steps]

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
    """What a calibration was fitted on, and the cost before and after.

    `run` is the content hash of the run's rows, `evaluation` those of the reference files, `signature` that of the
    scoring. `prior_log_odds` is logit P_tar of the operating point. `impute` is the evaluation's setting,
    `impute_score` the score of the trials that the system did not submit. `cnxe` is C_nxe before, `cnxe_calibrated`
    after.
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


class Calibration(Checked):
    """A map from scores to log-likelihood ratios, and what it was fitted on.

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

    def __call__(self, scores: Any) -> F64:
        """The log-likelihood ratios of scores, float64 of the same shape."""
        return self.map(np.asarray(scores, np.float64))

    @property
    def bayes_threshold(self) -> float:
        """-logit P_tar of the evaluation it was fitted on: the best threshold of its log-likelihood ratios (Eq. 31)."""
        return -self.fitted_on.prior_log_odds

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the file, at a path or URL. Raises `OSError` or `InputError` where it cannot be written."""
        with replacing(path) as file:
            file.write((_HEAD + "\n".join(_lines(self.model_dump())) + "\n").encode())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Calibration:
        """The calibration of a file. Raises `InputError` with everything that is wrong with it."""
        file = os.fspath(path)
        try:
            held = tomllib.loads(read_small(path).decode())
        except FileNotFoundError:
            raise _fault(file, "nothing there", "Check the path.") from None
        except (OSError, ValueError, RecursionError) as error:
            raise _fault(file, " ".join(str(error).split()), "Check that it is a calibration file.") from None
        version = held.get("version")
        if version != VERSION:
            found = "no version" if version is None else f"version {version!r}"
            problem = Problem(file, None, f"version = {VERSION} of a calibration file", found, "Fit it again.")
            raise InputError(problem)
        try:
            return cls.model_validate(held)
        except ValidationError as error:
            raise InputError(*(_explained(file, each) for each in error.errors())) from None


def _fault(file: str, found: str, remedy: str) -> InputError:
    return InputError(Problem(file, None, "a file that `swsdask calibrate` wrote", found, remedy))


def _explained(file: str, error: Any) -> Problem:
    key = ".".join(str(part) for part in error["loc"] if part not in ("affine", "pav"))
    if error["type"] == "extra_forbidden":
        return Problem(file, None, "known keys only", f"the unknown key {key}", "Remove it, or fit again.")
    if error["type"] == "missing":
        return Problem(file, None, f"the key {key}", "none", "Fit it again.")
    found = f"{key} = {_short(error['input'])} ({error['msg']})"
    return Problem(file, None, "a calibration's values", found, "Fit it again.")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _lines(table: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """A table in TOML: its values, then the tables in it."""
    if name:
        yield f"\n[{name}]"
    for key, value in table.items():
        if not isinstance(value, Mapping):
            yield f"{key} = {_toml(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _lines(value, f"{name}.{key}" if name else key)


def _toml(value: Any) -> str:
    """A value in TOML. Numbers keep every digit."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + "".join(f"\n    {_toml(entry)}," for entry in value) + "\n]"
    return repr(value)
