"""Where compiled kernels are kept, how they are compiled once, and the types of their signatures.

numba checks only the file of a cached function for changes. Kernels call those of other files, so each version of the
sources, of the software beneath them and of the processor has a folder of its own: code that was compiled from another
version is never found. Nor do processes of two kinds write into one index, which numba's cache does not support.

`load_kernels` compiles whatever is missing, one process at a time, and marks the folder as whole. A whole folder is
used where it is, also by those who cannot write there: a container whose image is read-only, another user.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import logging
import os
import pkgutil
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, ParamSpec, TypeVar

import numba
import numpy as np
from numba import types
from numba.core import caching, event
from numba.core.registry import cpu_target
from numba.core.typing.typeof import typeof_impl

from swsdask.model.limits import check_addresses

_caching: Any = caching
_event: Any = event
_typeof: Any = typeof_impl

_HERE = Path(__file__).parent
SOURCES = (*sorted(_HERE.glob("*.py")), *(_HERE.parent / "model" / name for name in ("penalty.py", "units.py")))
"""All files that kernels are compiled from."""

_PREFIX = "swsdask-"
_WHOLE = "whole"
"""A file of this name is in a folder that has every kernel."""

_HELPER = "SWSDASK_COMPILES_FOR_ANOTHER"
"""An environment variable of the processes that help another one to compile."""

_MOST_HELPERS = 3

_ADDRESSES = 1 << 30
"""The least address space: the compiler aborts the process where it cannot allocate."""

_FOLDERS_KEPT = 8
_UNUSED_S = 3600.0


class _Announcement(_event.Listener):  # type: ignore[misc]
    """Says once that kernels are being compiled. Kernels that come from the cache are not compiled."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: object) -> None:  # noqa: ARG002
        if not self._said:
            self._said = True
            logging.getLogger("swsdask").warning(
                "swsdask: compiling kernels, once per installation: about half a minute"
            )

    def on_end(self, event: object) -> None:
        """Nothing."""


def announce_compilation() -> None:
    """Log a warning before the first kernel that this process has to compile."""
    _event.register("numba:compile", _Announcement())


class _Locator(_caching._SourceFileBackedLocatorMixin, _caching._CacheLocator):  # type: ignore[misc]
    """Tells numba where the kernels of this package are kept. Functions of others are left to numba."""

    def __init__(self, function: Any, file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(kept_in())

    def get_source_stamp(self) -> str:
        """The same wherever the sources are installed, and whenever: the folder is of their version."""
        return kept_in().name

    @classmethod
    def from_function(cls, function: Any, file: str) -> _Locator | None:
        return cls(function, file) if Path(file).parent == _HERE else None


def keep_kernels() -> None:
    """Keep compiled kernels in a folder that changes with all that they are made from."""
    _caching.CacheImpl._locator_classes.insert(0, _Locator)


def version() -> str:
    """A digest of the kernels' sources, of what compiles them and of the processor that they are compiled for."""
    beneath = (sys.version, numba.__version__, np.__version__)
    digest = hashlib.sha256(repr((beneath, cpu_target.target_context.codegen().magic_tuple())).encode())
    for file in SOURCES:
        content = file.read_bytes()
        digest.update(f"\n{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def load_kernels() -> Path:
    """Compile every kernel that is not on disk yet, and return the folder that they are kept in.

    Processes that do so at once share the work.
    """
    folder = kept_in()
    for module in pkgutil.iter_modules([str(_HERE)], "swsdask.kernels."):
        import_module(module.name)
    for each in Kernel.known:
        _ = each.compiled
    if not _is_whole(folder):
        (folder / _WHOLE).touch()
    return folder


@contextmanager
def _alone(place: Path, wait: bool = True) -> Iterator[BinaryIO | None]:
    """Hold the lock of a place; None if another process does and nobody is to `wait`.

    Where the file system has no locks, every process compiles.
    """
    with place.open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not wait:
                yield None
                return
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:
            pass
        yield lock


@cache
def _call_for_help() -> None:
    """Start a process for each other core, up to `_MOST_HELPERS`, that compiles kernels which nobody has begun with.

    They end with this process. One that cannot start is not missed: then this process compiles everything.
    """
    if _HELPER in os.environ:
        return
    modules = sorted({each.__module__ for each in Kernel.known})
    call = f"from swsdask.kernels.compilation import help_to_compile; help_to_compile({modules!r})"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    for _ in range(min(cores - 1, _MOST_HELPERS)):
        with suppress(OSError):
            helper = subprocess.Popen(
                [sys.executable, "-c", call],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, _HELPER: "1"},
            )
            atexit.register(_dismiss, helper)


def _dismiss(helper: subprocess.Popen[bytes]) -> None:
    helper.kill()
    helper.communicate()


def help_to_compile(modules: Sequence[str]) -> None:
    """Compile the kernels of some modules, the largest first, but for those that another process has begun with.

    Ends with the process that waits at the other end of the standard input.
    """
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    for module in modules:
        import_module(module)
    for each in sorted(Kernel.known, key=lambda each: -each.size):
        each.compile_if_free()


@cache
def kept_in() -> Path:
    """The folder of this process's version. Folders of other versions that nobody uses any more are removed.

    It is in the first of these that has every kernel or can be written: NUMBA_CACHE_DIR, the package, the user's cache,
    a temporary folder.
    """
    name = f"{_PREFIX}{version()}"
    folder = next(parent / name for parent in _parents() if _is_whole(parent / name) or _is_writable(parent / name))
    with suppress(OSError):
        os.utime(folder)
    _remove_unused(folder.parent)
    return folder


def _parents() -> Iterator[Path]:
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(given)
    yield _HERE / "__pycache__"
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    if user.is_absolute():  # not where the user has no home
        yield user / "swsdask"
    yield _private_folder(Path(tempfile.gettempdir()))


def _is_whole(folder: Path) -> bool:
    return os.path.exists(folder / _WHOLE)


def _is_writable(folder: Path) -> bool:
    """Whether the folder is there, or can be made, and takes files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _remove_unused(parent: Path) -> None:
    """Remove the folders that no process has begun to use for an hour, except the last few.

    A process that goes on with a folder that is gone makes it again.
    """
    used = sorted(_last_use(parent), reverse=True)
    for at, folder in used[_FOLDERS_KEPT:]:
        if at < time.time() - _UNUSED_S:
            shutil.rmtree(folder, ignore_errors=True)


def _last_use(parent: Path) -> Iterator[tuple[float, Path]]:
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another process has removed it
            yield folder.stat().st_mtime, folder


def _private_folder(parent: Path) -> Path:
    """A lasting folder that nobody else can have put code into; one for this process where there is none such."""
    folder = parent / f"swsdask-kernels-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return folder
    own = tempfile.mkdtemp(prefix="swsdask-kernels-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)


P = ParamSpec("P")
R = TypeVar("R")


class Kernel(Generic[P, R]):
    """A function that is compiled, or loaded from the disk, when it is first called: what nobody calls costs nothing.

    Kernels may call each other. Its signatures are fixed, so no caller makes a further one.
    """

    known: ClassVar[list[Kernel[Any, Any]]] = []
    """All kernels of the modules that have been imported."""

    def __init__(self, function: Callable[P, R], signatures: Any, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self._signatures = signatures
        self._options = options
        self.known.append(self)

    @cached_property
    def compiled(self) -> Any:
        """The compiled function. Of processes that need it at once, one compiles it and the others wait."""
        if _is_whole(kept_in()) or self._is_kept:
            return self._compile()
        check_addresses(_ADDRESSES, "compiling kernels")
        _call_for_help()
        with _alone(self._lock) as lock:
            return self._compile(lock)

    def compile_if_free(self) -> None:
        """Compile the function, unless that is done or another process is at it."""
        with _alone(self._lock, wait=False) as lock:
            if lock is not None and not self._is_kept:
                self._compile(lock)

    @property
    def size(self) -> int:
        """The size of its module in bytes, which says roughly how long it takes to compile."""
        return Path(sys.modules[self.__module__].__file__ or "").stat().st_size

    @property
    def _lock(self) -> Path:
        return kept_in() / f"{self.__module__.rpartition('.')[2]}.{self.__name__}.lock"  # type: ignore[attr-defined]

    @property
    def _is_kept(self) -> bool:
        with suppress(OSError):
            return self._lock.stat().st_size > 0
        return False

    def _compile(self, lock: BinaryIO | None = None) -> Any:
        """Compile the function, or load it, and write into its lock that it is kept."""
        function: Any = self.__wrapped__  # type: ignore[attr-defined]
        compiled = numba.njit(self._signatures, cache=True, nogil=True, **self._options)(function)
        if lock is not None and not self._is_kept:
            lock.write(b"kept\n")
        return compiled

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the compiled function."""
        returned: R = self.compiled(*args, **kwargs)
        return returned


def kernel(*signatures: Any, **options: Any) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Make a function a kernel for arguments of these types: kept on disk, without the interpreter's lock."""

    def decorate(function: Callable[P, R]) -> Kernel[P, R]:
        return Kernel(function, list(signatures), options)

    return decorate


@_typeof.register(Kernel)  # type: ignore[untyped-decorator]
def _type_of_kernel(callee: Kernel[Any, Any], context: Any) -> Any:
    """Return the type of a kernel that another kernel calls."""
    return _typeof(callee.compiled, context)


_untyped: Any = types


def column(dtype: types.Type) -> types.Array:
    """A contiguous array that a kernel only reads: read-only buffers, such as Arrow's, fit as well as others."""
    return types.Array(dtype, 1, "C", readonly=True)


def several(*kinds: types.Type) -> types.Type:
    """A tuple."""
    kind: types.Type = _untyped.Tuple(kinds)
    return kind


def record(name: type, *kinds: types.Type) -> types.Type:
    """A NamedTuple."""
    uniform = len(set(kinds)) == 1
    kind: types.Type = (
        _untyped.NamedUniTuple(kinds[0], len(kinds), name) if uniform else _untyped.NamedTuple(kinds, name)
    )
    return kind
