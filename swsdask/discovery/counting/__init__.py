"""What several measures count with: pairs and products of types, windows of phones, sets, folds."""
