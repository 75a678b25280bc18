"""What scoring costs, as ratios taken in one run on generated data: `python -m tests.bench --help`."""
