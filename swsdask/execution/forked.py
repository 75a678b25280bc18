"""The modules that worker processes are forked with. Only the fork server imports this module.

Modules are named, not imported, because they belong to all layers. In other processes this module does nothing.
"""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from importlib import import_module

from swsdask.execution.fork_server import FORKED
from swsdask.needless import left_out

MODULES = (
    "distributed.nanny",
    "distributed.worker",
    "pyarrow.parquet",
    "swsdask.scoring.score",
    "swsdask.measures",
)
"""The modules that every worker imports to score runs."""


def _load() -> None:
    parent = os.getppid()
    gc.disable()
    with left_out():
        for name in MODULES:
            with suppress(ImportError):
                import_module(name)
            if os.getppid() != parent:
                os._exit(0)  # no workers will be needed
        import pyarrow as pa

        from swsdask.kernels.compilation import load_common_kernels

        pa.array([0.0])
        load_common_kernels()
    gc.enable()
    gc.freeze()


if os.environ.pop(FORKED, None):
    del os.environ["PYTHONSAFEPATH"]
    _load()
