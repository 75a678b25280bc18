"""Settings of an evaluation, and the operating point that follows from them.

`[evaluation]` and `[discovery]` hold everything that can change a number; `[engine]` holds the settings of execution,
which cannot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)

from swsdask.model.discovery import DiscoverySettings
from swsdask.model.errors import SettingsError
from swsdask.model.ranked_measures import AveragePrecisionSettings, GapSettings
from swsdask.model.resources import ProcessingLoadSettings
from swsdask.model.settings_table import SettingsTable
from swsdask.model.trials import Reference

TextFilter = Literal["charsplit", "notascii", "deletehyphens"]
Compat = Literal["none", "kwseval", "stdeval", "mediaeval"]


_MOST_BETA = 10**100


class _Settings(SettingsTable):
    @field_validator("*", mode="before")
    @classmethod
    def _no_switch_is_a_number(cls, value: Any, about: ValidationInfo) -> Any:
        """Refuse true and false where they would be taken for 1 and 0."""
        if isinstance(value, bool) and cls.model_fields[about.field_name or ""].annotation is not bool:
            raise ValueError("expected neither true nor false")
        return value


@dataclass(frozen=True)
class Weights:
    """An operating point resolved to numbers.

    `exact_beta` is Eq. 7 of the 2013 measures document, C_fa (1 - P_target) / (C_miss P_target), as an exact fraction
    of the given decimals or counts, so that ties are exact; `beta`, the weight of P_fa in TWV, is the float nearest to
    it.
    `effective_prior` is Eq. 23, `bayes_threshold` and `prior_log_odds` Eq. 31.
    """

    p_target: float
    c_miss: float
    c_fa: float
    exact_beta: Fraction
    beta: float

    @classmethod
    def of(cls, p_target: Fraction, c_miss: Fraction, c_fa: Fraction) -> Self:
        """Return the weights of exact costs and an exact prior.

        Raises `SettingsError` for a beta outside 1e-100 .. 1e100.
        """
        exact_beta = c_fa * (1 - p_target) / (c_miss * p_target)
        if not Fraction(1, _MOST_BETA) <= exact_beta <= _MOST_BETA:
            raise SettingsError("setting evaluation.operating_point: beta must lie between 1e-100 and 1e100.")
        return cls(float(p_target), float(c_miss), float(c_fa), exact_beta, float(exact_beta))

    @property
    def effective_prior(self) -> float:
        """P_tar = 1 / (1 + beta)."""
        return 1.0 / (1.0 + self.beta)

    @property
    def bayes_threshold(self) -> float:
        """-logit(P_tar) = log(beta)."""
        return math.log(self.beta)

    @property
    def prior_log_odds(self) -> float:
        """logit(P_tar)."""
        return 0.0 - self.bayes_threshold


class OperatingPoint(_Settings):
    """The application, given by (p_target, c_miss, c_fa), by `beta`, by `effective_prior`, or from the data.

    `from_data = "sws2012"` is Eq. 17-18 of the 2013 measures document: C_miss = C_fa = 1 and P_target = N_true /
    (n_tps T). `alpha` (2012 document, Section 2; not that of Eq. 20) is the number of false alarms for each miss where
    P_miss = P_fa; beta is that of Eq. 18 divided by alpha.

    Attributes
    ----------
    p_target : float, optional
        The prior probability of a target; 0.0001 if no operating point is given.
    c_miss : float, optional
        The cost of a miss; 1 by default.
    c_fa : float, optional
        The cost of a false alarm; 0.1 by default.
    beta : float, optional
        The weight of P_fa in TWV, instead of the costs.
    effective_prior : float, optional
        The prior of the same application at equal costs, instead of the costs.
    from_data : {"sws2012"}, optional
        Derive the prior from the reference, as SWS 2012 did.
    alpha : float, optional
        With `from_data`: the number of false alarms for each miss at equal rates; 1 by default. Above 1, misses weigh
        more.
    """

    p_target: float | None = Field(default=None, gt=0, lt=1)
    c_miss: float | None = Field(default=None, gt=0)
    c_fa: float | None = Field(default=None, gt=0)
    beta: float | None = Field(default=None, gt=0)
    effective_prior: float | None = Field(default=None, gt=0, lt=1)
    from_data: Literal["sws2012"] | None = None
    alpha: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        by_costs = any(value is not None for value in (self.p_target, self.c_miss, self.c_fa))
        ways = [by_costs, self.beta is not None, self.effective_prior is not None, self.from_data is not None]
        if sum(ways) > 1:
            raise ValueError("give one of (p_target, c_miss, c_fa), beta, effective_prior, from_data")
        if self.alpha is not None and self.from_data is None:
            raise ValueError('alpha goes with from_data = "sws2012"')
        return self

    def resolve(self, n_true: int, n_trials: int) -> Weights:
        """Return the weights for an evaluation with `n_true` targets over all queries and `n_trials` trials per query.

        Raises `SettingsError` if `from_data` is used on data without targets, or with more targets than trials.
        """
        if self.from_data is not None:
            if not 0 < n_true < n_trials:
                raise SettingsError(
                    f"operating_point.from_data needs 0 < N_true < n_tps*T; the data has N_true = {n_true}, "
                    f"n_tps*T = {n_trials}. Give p_target, c_miss and c_fa, or beta."
                )
            return Weights.of(Fraction(n_true, n_trials), _ONE, 1 / _given(self.alpha, "1"))
        if self.effective_prior is not None:
            return Weights.of(_given(self.effective_prior), _ONE, _ONE)
        if self.beta is not None:
            return Weights.of(Fraction(1, 2), _ONE, _given(self.beta))
        return Weights.of(_given(self.p_target, "0.0001"), _given(self.c_miss, "1"), _given(self.c_fa, "0.1"))


_ONE = Fraction(1)


def _given(value: float | None, otherwise: str = "") -> Fraction:
    """Return the decimal that a setting gives."""
    return Fraction(otherwise if value is None else repr(value))


class EvaluationSettings(_Settings):
    """Everything that can change a number. Part of the signature of every result.

    Attributes
    ----------
    trials : {"virtual", "segment", "document"}
        The kind of trials: every detection and the non-targets that `trials_per_second` gives; every pair of a query
        and a segment; every pair of a query and a document.
    trials_per_second : float
        Trials per second of audio and query, for virtual trials.
    tolerance_s : float
        How far the middle of a detection may lie outside the occurrence that it detects.
    find_gap_s : float
        The longest gap between two words of one occurrence.
    objective : {"nist", "score"}
        The objective of the alignment: first the number of pairs, then the sum of NIST's weights or of the scores.
    score_scale : {"group", "run"}
        The range by which "nist" scales scores, unless the run declares one: the range within the query, document and
        channel, or within the run.
    outside : {"drop", "false_alarm", "error"}
        How detections outside the evaluated excerpts are treated.
    unknown_documents : {"error", "outside"}
        Whether a detection in an unknown document is an error, or outside.
    unknown_queries : {"error", "drop"}
        Whether a detection of an unknown query is an error, or dropped.
    unlisted_queries : {"count", "exclude"}
        Whether queries count for which a run has no list, not even an empty one. Only kwslist and stdlist files have
        lists.
    no_targets : {"exclude", "false_alarms_only"}
        Whether queries without targets are left out of averages.
    impute : {"min", "error"} or float
        The score of trials that a run leaves out: its lowest score, or a number; "error" makes them an error.
    nonnegative_gamma : bool
        Whether the affine map of C_nxe_min must not fall.
    compat : {"none", "kwseval", "stdeval", "mediaeval"}
        The official tool whose rules apply.
    text_filters : tuple of {"charsplit", "notascii", "deletehyphens"}
        The filters that are applied to texts before occurrences are found.
    thresholds : tuple of float
        Scores at which TWV, precision, recall and F1 are requested, beside the measures' own thresholds.
    p_fa_points : tuple of float
        False-alarm rates at which P_miss is requested.
    operating_point : OperatingPoint
        The costs and the prior of targets.
    average_precision : AveragePrecisionSettings
        The rules of rankings.
    gap : GapSettings
        The penalty function of GAP.
    measures : {"all", "ranked"}
        The measures that are scored if none are requested: all, or those of the rankings of queries.
    processing_load : ProcessingLoadSettings
        The weight of indexing in PL, and the duration of the queries.

    Raises
    ------
    SettingsError
        Names every wrong key or value, with the nearest key; so does `model_copy`.

    Examples
    --------
    >>> import swsdask as sws
    >>> settings = sws.EvaluationSettings(trials="segment", operating_point={"beta": 999.9})
    >>> settings.trials, settings.tolerance_s, settings.operating_point.beta
    ('segment', 0.5, 999.9)
    """

    trials: Literal["virtual", "segment", "document"] = "virtual"
    trials_per_second: float = Field(default=1.0, gt=0)
    tolerance_s: float = Field(default=0.5, ge=0, le=100_000)
    find_gap_s: float = Field(default=0.5, ge=0, le=100_000)
    objective: Literal["nist", "score"] = "nist"
    score_scale: Literal["group", "run"] = "group"
    outside: Literal["drop", "false_alarm", "error"] = "drop"
    unknown_documents: Literal["error", "outside"] = "error"
    unknown_queries: Literal["error", "drop"] = "error"
    unlisted_queries: Literal["count", "exclude"] = "count"
    no_targets: Literal["exclude", "false_alarms_only"] = "exclude"
    impute: Literal["min", "error"] | float = "min"
    nonnegative_gamma: bool = False
    compat: Compat = "none"
    text_filters: tuple[TextFilter, ...] = ()
    thresholds: tuple[float, ...] = ()
    p_fa_points: tuple[Annotated[float, Field(ge=0, le=1)], ...] = ()
    operating_point: OperatingPoint = OperatingPoint()
    average_precision: AveragePrecisionSettings = AveragePrecisionSettings()
    gap: GapSettings = GapSettings()
    measures: Literal["all", "ranked"] = "all"
    processing_load: ProcessingLoadSettings = ProcessingLoadSettings()

    @field_validator("impute", mode="wrap")
    @classmethod
    def _a_word_or_a_number(cls, value: object, check: ValidatorFunctionWrapHandler) -> object:
        try:
            return check(value)
        except ValidationError:
            raise ValueError(f"Input should be 'min', 'error' or a finite number; found {value!r}") from None

    @model_validator(mode="after")
    def _of_document_trials(self) -> Self:
        if self.trials != "document":
            if self.compat == "mediaeval":
                raise ValueError('compat = "mediaeval" requires trials = "document": its tool knows no others')
            if self.impute == "error":
                raise ValueError(
                    'impute = "error" requires trials = "document": only document trials can be complete in a run'
                )
        if self.trials == "virtual" and self.average_precision.duplicates == "first":
            raise ValueError(
                'average_precision.duplicates = "first" requires trials = "segment" or "document": for occurrences the '
                "alignment selects the detection"
            )
        return self


class EngineSettings(_Settings):
    """Settings of execution, which never change a number.

    Attributes
    ----------
    executor : str
        Where tasks run: "auto" (depends on the amount of work), "serial", "threads", "processes", or a file that
        describes a cluster.
    workers : int, optional
        The number of workers. Default: one for each core.
    rows_per_task : int
        The maximum number of rows of a task, which bounds the memory of a worker. With more than 16 workers it is
        multiplied by workers / 16, so that the scheduler can keep up.
    fan_in : int
        The number of partial statistics that are merged at a time.
    """

    executor: str = "auto"
    workers: int | None = Field(default=None, ge=1)
    rows_per_task: int = Field(default=10_000_000, ge=1)
    fan_in: int = Field(default=8, ge=2)


class Settings(_Settings):
    """A whole settings file."""

    notes: tuple[str, ...] = ()
    evaluation: EvaluationSettings = EvaluationSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    engine: EngineSettings = EngineSettings()


_CUT = 10**7


def weights(reference: Reference, settings: EvaluationSettings) -> Weights:
    """Return the operating point, resolved with N_true and N of the condition "all"; every condition uses the same one.

    QUIRK, under `compat = "mediaeval"`: its tool takes the effective prior, cut to seven decimals: .0741289, beta
    12.490015, for the 12.49 of QUESST. This changes TWV in the sixth decimal.

    QUIRK, under `compat = "kwseval"` and `"stdeval"`: the tools compute beta in double precision, C_fa / C_miss
    (1 / P_target - 1), 999.9000000000001 for the 999.9 of OpenKWS. It decides how exact halves are rounded; ties stay
    exact.

    Raises `SettingsError` if the data cannot give the operating point (see `OperatingPoint.resolve`).
    """
    whole = reference.conditions[0]
    n_true = int(reference.condition_targets(whole).sum())
    point = settings.operating_point.resolve(n_true, whole.n_trials)
    if settings.compat == "mediaeval":
        return _with_cut_prior(point)
    if settings.compat in ("kwseval", "stdeval"):
        return replace(point, beta=point.c_fa / point.c_miss * (1 / point.p_target - 1))
    return point


def requested_thresholds(settings: EvaluationSettings) -> tuple[float, ...]:
    """Return the values of `Reference.thresholds`, ascending: those of the settings, and `impute` if it is a number."""
    thresholds = set(settings.thresholds)
    if isinstance(settings.impute, float):
        thresholds.add(settings.impute)
    return tuple(sorted(threshold + 0.0 for threshold in thresholds))


def _with_cut_prior(point: Weights) -> Weights:
    prior = Fraction(int(_CUT / (1 + point.exact_beta)), _CUT)
    if not 0 < prior < 1:
        raise SettingsError("setting evaluation.operating_point: compat=mediaeval needs an effective prior above 1e-7.")
    return Weights.of(prior, Fraction(1), Fraction(1))
