"""All numba code: numpy arrays in, numpy arrays out, fixed signatures.

Kernels are compiled when they are imported, once per installation, and kept in numba's cache.
"""

from __future__ import annotations

from swsdask.kernels.cache import announce_compilation, ensure_cache

ensure_cache()
announce_compilation()
