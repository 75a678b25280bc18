"""All numba code: numpy arrays in, numpy arrays out, fixed signatures.

Kernels are compiled when they are imported, once per version of their sources, and kept on disk.
"""

from __future__ import annotations

from swsdask.kernels.compilation import announce_compilation, keep_kernels

keep_kernels()
announce_compilation()
