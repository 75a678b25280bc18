"""The application of an evaluation: its operating point in numbers, and the thresholds it asks about."""

from __future__ import annotations

from fractions import Fraction

from swsdask.errors import SettingsError
from swsdask.model.settings import EvaluationSettings, Weights
from swsdask.model.trials import Reference

_CUT = 10**7


def weights(reference: Reference, settings: EvaluationSettings) -> Weights:
    """The operating point, resolved with N_true and N of the condition "all"; every condition uses the same one.

    QUIRK, under `compat = "mediaeval"`: its tool is given the effective prior, cut to seven decimals: .0741289, beta
    12.490015, for the 12.49 of QUESST. It moves TWV in the sixth decimal.

    Raises `SettingsError` where the data cannot give it (see `OperatingPoint.resolve`).
    """
    whole = reference.conditions[0]
    n_true = int(reference.condition_targets(whole).sum())
    point = settings.operating_point.resolve(n_true, whole.n_trials)
    return _with_cut_prior(point) if settings.compat == "mediaeval" else point


def asked_thresholds(reference: Reference, settings: EvaluationSettings) -> tuple[float, ...]:
    """What `Reference.thresholds` must hold, ascending: the settings' thresholds, Bayes' and the number `impute`."""
    asked = {*settings.thresholds, weights(reference, settings).bayes_threshold}
    if isinstance(settings.impute, float):
        asked.add(settings.impute)
    return tuple(sorted(threshold + 0.0 for threshold in asked))


def _with_cut_prior(point: Weights) -> Weights:
    prior = Fraction(int(_CUT / (1 + point.exact_beta)), _CUT)
    if not 0 < prior < 1:
        raise SettingsError("setting evaluation.operating_point: compat=mediaeval needs an effective prior above 1e-7.")
    return Weights.of(prior, Fraction(1), Fraction(1))
