"""The application of an evaluation: its operating point in numbers, and the thresholds it asks about."""

from __future__ import annotations

from swsdask.model.settings import EvaluationSettings, Weights
from swsdask.model.trials import Reference


def weights(reference: Reference, settings: EvaluationSettings) -> Weights:
    """The operating point, resolved with N_true and N of the condition "all"; every condition uses the same one.

    Raises `SettingsError` where the data cannot give it (see `OperatingPoint.resolve`).
    """
    whole = reference.conditions[0]
    n_true = int(reference.condition_targets(whole).sum())
    return settings.operating_point.resolve(n_true, whole.n_trials)


def asked_thresholds(reference: Reference, settings: EvaluationSettings) -> tuple[float, ...]:
    """What `Reference.thresholds` must hold: the settings' thresholds and the Bayes threshold, ascending."""
    asked = {*settings.thresholds, weights(reference, settings).bayes_threshold}
    return tuple(sorted(threshold + 0.0 for threshold in asked))
