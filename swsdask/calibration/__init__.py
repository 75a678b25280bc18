"""Calibration: a map from a system's scores to log-likelihood ratios, fitted on one evaluation and applied to others.

The public function `swsdask.calibrate` fits one; this package is named otherwise so as not to hide it.
"""
