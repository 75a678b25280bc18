"""The Python API. `swsdask` exports its public names. The command line is a thin layer over it."""
