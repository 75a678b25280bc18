"""Placing what a system found in the corpus: times to phones, by the three definitions."""
