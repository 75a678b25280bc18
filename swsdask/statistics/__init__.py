"""Alignment, which makes the trials of a cell, and mergeable statistics of trials: exact, associative, commutative."""
