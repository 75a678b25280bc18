"""Files of term discovery: alignments, classes, folds, speakers."""
