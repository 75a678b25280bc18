"""Trials of a cell by alignment, and mergeable statistics counted over them: exact, associative, commutative."""
