"""What the numbers of several systems say beside one another: see `rank_correlation`."""
