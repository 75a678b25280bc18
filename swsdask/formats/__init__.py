"""Input formats: streaming readers that keep line numbers and report every problem."""
