"""Files that say what was spoken: ECF, query lists, RTTM, judgements."""
