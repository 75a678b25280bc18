"""The words of all other packages: ticks, ids, table schemas, settings, trials and results."""
