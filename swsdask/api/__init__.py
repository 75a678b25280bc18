"""The Python API, whose public names `swsdask` exports. The command line is a thin layer over it."""
