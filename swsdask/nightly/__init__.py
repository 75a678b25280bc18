"""Nights: many runs arrive, every night scores only what is new, and a board tells what moved and why."""
