"""Where compiled kernels are kept, and a word to the user while they are made."""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from numba.core import caching, config, event

_caching: Any = caching
_config: Any = config
_event: Any = event


class _Announcement(_event.Listener):  # type: ignore[misc]
    """Says once that kernels are being compiled. Kernels that come from the cache are not compiled."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: object) -> None:  # noqa: ARG002
        if not self._said:
            self._said = True
            logging.getLogger("swsdask").warning("swsdask: compiling kernels, once per installation: half a minute")

    def on_end(self, event: object) -> None:
        """Nothing."""


def announce_compilation() -> None:
    """Log a warning before the first kernel that this process has to compile."""
    _event.register("numba:compile", _Announcement())


def ensure_cache() -> None:
    """Give numba a folder for compiled kernels if neither NUMBA_CACHE_DIR, the package nor the home can be written.

    It is a folder of the user alone below the system's for temporary files, and set as NUMBA_CACHE_DIR so that worker
    processes share it.
    """
    try:
        _caching.FunctionCache(ensure_cache)
    except RuntimeError:
        os.environ["NUMBA_CACHE_DIR"] = str(_private_folder(Path(tempfile.gettempdir())))
        _config.reload_config()


def _private_folder(parent: Path) -> Path:
    """A lasting folder that nobody else can have put code into; one for this process where there is none such."""
    folder = parent / f"swsdask-kernels-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return folder
    return Path(tempfile.mkdtemp(prefix="swsdask-kernels-"))
