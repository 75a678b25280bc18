"""Nights: many runs arrive, every night scores only what is new, and a board shows what moved and why."""
