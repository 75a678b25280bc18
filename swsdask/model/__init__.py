"""What everything else speaks of: ticks, ids, table schemas, settings, trials and results."""
