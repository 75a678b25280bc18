"""How statistics are computed over cells: rounds, and the executors that run them."""
