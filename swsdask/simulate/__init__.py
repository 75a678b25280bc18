"""Synthetic evaluations, made from a seed."""
