"""Calibration: maps from scores to log-likelihood ratios, and runs with mapped scores."""
