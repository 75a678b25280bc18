"""Calibration: a map from a system's scores to log-likelihood ratios, fitted on one evaluation and applied to others.

The package is not named `calibrate`, since it would shadow the public function `swsdask.calibrate`.
"""
