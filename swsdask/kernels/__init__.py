"""All numba code: numpy arrays in, numpy arrays out, fixed signatures.

A kernel is compiled when it is first called, once per version of the sources, and kept on disk.
"""

from __future__ import annotations

from swsdask.kernels.compilation import announce_compilation, keep_kernels

keep_kernels()
announce_compilation()
