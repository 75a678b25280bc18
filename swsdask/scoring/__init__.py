"""Scores: rounds over cells, statistics merged, measures computed."""
