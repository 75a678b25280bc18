"""Counts that several measures share: pairs and products of types, windows of phones, sets, folds."""
