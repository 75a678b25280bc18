"""Synthetic evaluations and detections, made from a seed: the same seed gives the same bytes."""
