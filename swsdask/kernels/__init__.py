"""All numba code: numpy arrays in, numpy arrays out, fixed signatures.

A kernel is compiled when it is first called, once per version of the sources, and kept on disk.
"""

from __future__ import annotations

from swsdask.model.limits import check_addresses, check_threads

ADDRESSES = 832 << 20
"""The least address space: enough for libraries, kernels and a small evaluation."""

THREADS = 5
"""The least number of threads of a process: Arrow starts threads beside the main thread."""

check_addresses(ADDRESSES, "the command with its kernels")
check_threads(THREADS, "the command with its kernels")

from swsdask.kernels.compilation import keep_kernels  # noqa: E402

keep_kernels()
