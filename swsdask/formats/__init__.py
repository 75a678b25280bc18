"""One file per input format: streaming readers that keep line numbers and report every problem."""
