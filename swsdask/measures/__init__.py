"""Formulas: one family of measures per file, whose module docstring is the measure's specification."""
