"""Term discovery: how good the classes of fragments are that a system found in speech without being told any word."""
