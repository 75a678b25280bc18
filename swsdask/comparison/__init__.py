"""Comparison of systems: the confidence in differences, and the rank correlation between measures."""
