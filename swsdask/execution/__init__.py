"""Executors: serial, threads, Dask. One protocol, `Executor`."""
