"""Who detected what: the exact one-to-one alignment of detections with occurrences, and the three kinds of trial."""
