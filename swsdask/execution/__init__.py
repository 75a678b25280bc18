"""Where work runs: serially, on threads, on Dask. One protocol, `Executor`."""
