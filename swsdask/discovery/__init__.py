"""Term discovery: scores of the classes of speech fragments that a system found without knowing any word."""
