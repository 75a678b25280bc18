"""All numba code: numpy arrays in, numpy arrays out, fixed signatures."""
