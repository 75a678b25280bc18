"""Mergeable summaries of trials: exact, associative, commutative."""
