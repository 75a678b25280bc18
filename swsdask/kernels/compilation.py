"""Kernels: the folder of their compiled code, their compilation by one process, the types of their signatures.

numba checks only the file of a cached function for changes. Kernels use code of other files, so each version of the
sources, of the software below them and of the processor has its own folder: code compiled from another version is never
found. Nor do processes of different versions write into one index, which numba's cache does not support.

One process compiles a kernel, even if several need it. Meanwhile the others, and processes that the first one starts on
idle cores, compile other kernels that scoring needs. `load_kernels` compiles all of them, and marks the folder as
complete. A complete folder is used also by processes that cannot write there, for example in a container with a
read-only image or of another user.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, ParamSpec, TypeVar

import numba
import numpy as np
from llvmlite import binding
from numba import types
from numba.core import caching
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.typing.templates import Signature
from numba.core.typing.typeof import typeof_impl

from swsdask.model.limits import check_addresses

_binding: Any = binding
_caching: Any = caching
_typeof: Any = typeof_impl
_runtime: Any = rtsys
_njit: Any = numba.njit

LOG = logging.getLogger("swsdask")

_HERE = Path(__file__).parent
SOURCES = (*sorted(_HERE.glob("*.py")), *(_HERE.parent / "model" / name for name in ("ranked_measures.py", "units.py")))
"""All files that kernels are compiled from."""

_PREFIX = "swsdask-"
_WHOLE = "whole"
"""A file of this name is in a folder that has every kernel."""

LONGEST_FIRST = (
    "align.align",
    "entropy.add_costs",
    "ladder.count_own_slots",
    "align.in_time_order",
    "ladder.add_rates",
    "align.near_occurrences",
    "ladder.count_decisions",
    "onsets.use_onsets",
    "entropy.logistic_cost",
    "onsets.count_before",
    "onsets.near_onsets",
    "moments.add_powers",
    "moments.nodes",
    "sums.rounded_integers",
    "rows.stretch_begins",
    "rows.place_rows",
    "moments.merge_sums",
    "sums.window_sums",
    "sums.grid_moments",
    "ladder.count_slots",
    "entropy.logistic_expansion",
    "ladder.count_ranks",
    "onsets.in_rank_order",
    "sums.rounded_sums",
    "entropy.pool_adjacent_violators",
    "entropy.softplus",
    "entropy.sigmoid",
    "rows.sum_of_hashes",
    "moments.reach",
    "ladder.find_own_rungs",
    "sums.highest_behind",
    "sums.running_sums",
)
"""The kernels that every measure of detections needs after a run is read, the slowest to compile first: a process that
waits for another kernel, or helps, begins with them."""

_HELPER = "SWSDASK_COMPILES_FOR_ANOTHER"
"""An environment variable of the processes that help another one to compile."""

_MOST_HELPERS = 3

_ADDRESSES = 1 << 30
"""The least address space: the compiler aborts the process if it cannot allocate memory."""

_FOLDERS_KEPT = 8
_UNUSED_S = 3600.0


class _Locator(_caching._SourceFileBackedLocatorMixin, _caching._CacheLocator):  # type: ignore[misc]
    """Tells numba where the kernels of this package are kept. Functions of others are left to numba."""

    def __init__(self, function: Callable[..., object], file: str) -> None:
        self._py_file = file
        self._lineno = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(kept_in())

    def get_source_stamp(self) -> str:
        """The same wherever the sources are installed, and whenever: the folder is of their version."""
        return kept_in().name

    @classmethod
    def from_function(cls, function: Callable[..., object], file: str) -> _Locator | None:
        return cls(function, file) if Path(file).parent == _HERE else None


class _Kept(_caching.CompileResultCacheImpl):  # type: ignore[misc]
    """Keeps only the code of a kernel, which is faster to load.

    numba also stores bitcode, for functions that call this one. Kernels call only parts, so only the name of the
    function that Python calls is used. numba also stores the environment of every function that was compiled into this
    one, and imports the module of each. The code reads only constants from them.
    """

    def reduce(self, compiled: Any) -> object:
        (name, kind, (code, _)), descriptor, *others, environments = super().reduce(compiled)
        called = descriptor.llvm_cpython_wrapper_name
        bare = _binding.parse_assembly(f'define void @"{called}"() {{\n  unreachable\n}}').as_bitcode()
        used = tuple(each for each in environments if each.consts)
        return (name, kind, (code, bare)), descriptor, *others, used


class _Cache(_caching.FunctionCache):  # type: ignore[misc]
    """Loads a kernel without the preparations for compiling.

    numba's own cache first declares every function that kernels may call, which takes longer than loading all kernels.
    The compiler also does this when it starts, so kernels that are not on disk are compiled as usual.
    """

    _impl_class = _Kept

    def load_overload(self, sig: object, target_context: Any) -> object:
        _runtime.initialize(target_context)
        return self._load_overload(sig, target_context)


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
    if _is_whole(folder):
        return folder
    for module in pkgutil.iter_modules([str(_HERE)], "swsdask.kernels."):
        import_module(module.name)
    missing = [each for each in _in_turn(Kernel.known) if not each.is_kept]
    if missing:
        _COMPILATION.begin(*missing)
    for each in missing:
        each.compile_if_free()
    for each in Kernel.known:
        _ = each.compiled
    (folder / _WHOLE).touch()
    return folder


def load_common_kernels() -> None:
    """Load the kernels that every measure needs, if all kernels have been compiled before."""
    if _is_whole(kept_in()):
        for name in LONGEST_FIRST:
            _ = _kernel(name).compiled


def _kernel(name: str) -> Kernel[..., object]:
    """The kernel of a name, its module imported."""
    module, _, function = name.partition(".")
    found: Kernel[..., object] = getattr(import_module(f"swsdask.kernels.{module}"), function)
    return found


@contextmanager
def _alone(place: Path, wait: bool = True) -> Iterator[BinaryIO | None]:
    """Hold the lock of a place; None if another process holds it and `wait` is false.

    If the file system has no locks, every process compiles.
    """
    with place.open("ab") as lock:
        is_held = False
        with suppress(OSError):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # so that later errors do not have this one as their context
                is_held = True
            if is_held and wait:
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield None if is_held and not wait else lock


class _Compilation:
    """The compilation of kernels that this process needs, by it and by processes that help."""

    def __init__(self) -> None:
        self._needed: list[Kernel[..., object]] = []
        self._lock = threading.Lock()

    def begin(self, *needed: Kernel[..., object]) -> None:
        """Log that kernels are compiled, and call for help, when the first of them are needed."""
        with self._lock:
            if not self._needed:
                LOG.warning("compiling kernels, once for this machine")
                missing = [each for each in _in_turn(Kernel.known) if not each.is_kept]
                _call_for_help(missing)
                self._needed = [each for each in missing if each.place < len(LONGEST_FIRST)]
            self._needed += [each for each in needed if each not in self._needed]
        self.tell()

    def tell(self) -> None:
        """Log how many of the kernels are compiled."""
        if LOG.isEnabledFor(logging.DEBUG) and self._needed:
            done = sum(each.is_kept for each in self._needed)
            LOG.debug("compiling kernels, once for this machine, %d of %d", done, len(self._needed))

    def compile_another(self) -> bool:
        """Compile a kernel that no process has begun; return whether there was one."""
        return any(each.compile_if_free() for each in self._needed)


_COMPILATION = _Compilation()


@contextmanager
def _no_search_for_garbage() -> Iterator[None]:
    """Look for no unreachable objects: numba makes many that it needs until the end of a compilation."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _in_turn(kernels: Iterable[Kernel[..., object]]) -> list[Kernel[..., object]]:
    """Kernels in the order of `LONGEST_FIRST`, then others, those of the largest modules first."""
    return sorted(kernels, key=lambda each: (each.place, -each.size, each.name))


def _call_for_help(kernels: Sequence[Kernel[..., object]]) -> None:
    """Start a process for each other core, up to `_MOST_HELPERS`, that compiles kernels that no process has begun.

    They end with this process. If none can start, this process compiles everything.
    """
    if _HELPER in os.environ:
        return
    names = [each.name for each in kernels]
    call = f"from swsdask.kernels.compilation import help_to_compile; help_to_compile({names!r})"
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


def help_to_compile(names: Sequence[str]) -> None:
    """Compile kernels, one after the other, except those that another process has begun.

    Ends with the process that waits at the other end of the standard input.
    """
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    for name in names:
        _kernel(name).compile_if_free()


@cache
def kept_in() -> Path:
    """The folder of this process's version. Unused folders of other versions are removed.

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
    """Remove the folders that no process has started to use in the last hour, except the most recent ones.

    A process that still uses a removed folder creates it again.
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
    """A permanent folder that only this user can write to; if there is none, one for this process."""
    folder = parent / f"swsdask-kernels-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022:
        return folder
    own = tempfile.mkdtemp(prefix="swsdask-kernels-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)


P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class Kernel(Generic[P, R]):
    """A function that is compiled, or loaded from disk, on its first call: unused kernels cost nothing.

    Kernels do not call each other, only parts. The signatures are fixed, so calls never compile another one.
    """

    known: ClassVar[list[Kernel[..., object]]] = []
    """All kernels of the modules that have been imported."""

    def __init__(
        self, function: Callable[P, R], signatures: Sequence[Signature], options: Mapping[str, object]
    ) -> None:
        update_wrapper(self, function)
        self._function = function
        self._signatures = signatures
        self._options = options
        self.known.append(self)

    @cached_property
    def compiled(self) -> Callable[P, R]:
        """The compiled function. If several processes need it, one compiles it; others compile another, or wait."""
        if _is_whole(kept_in()) or self.is_kept:
            return self._compile()
        check_addresses(_ADDRESSES, "compiling kernels")
        _COMPILATION.begin(self)
        while not self.compile_if_free():
            if self.is_kept:
                return self._compile()
            if not _COMPILATION.compile_another():
                with _alone(self._lock):
                    pass
        compiled: Callable[P, R] = self.__dict__["compiled"]
        return compiled

    def compile_if_free(self) -> bool:
        """Compile the function, unless it is compiled or another process compiles it; return whether this one did."""
        with _alone(self._lock, wait=False) as lock:
            if lock is None or self.is_kept:
                return False
            self.__dict__["compiled"] = self._compile()
            lock.write(b"kept\n")
        _COMPILATION.tell()
        return True

    @property
    def name(self) -> str:
        """The names of its module and of the function."""
        return f"{self.__module__.rpartition('.')[2]}.{self.__name__}"  # type: ignore[attr-defined]

    @property
    def place(self) -> int:
        """Its index in `LONGEST_FIRST`, or one past the end."""
        return LONGEST_FIRST.index(self.name) if self.name in LONGEST_FIRST else len(LONGEST_FIRST)

    @property
    def size(self) -> int:
        """The size of its module in bytes, which says roughly how long it takes to compile."""
        return Path(sys.modules[self.__module__].__file__ or "").stat().st_size

    @property
    def is_kept(self) -> bool:
        """Whether it is on disk."""
        with suppress(OSError):
            return self._lock.stat().st_size > 0
        return False

    @property
    def _lock(self) -> Path:
        return kept_in() / f"{self.name}.lock"

    def _compile(self) -> Callable[P, R]:
        """Compile the function, or load it."""
        options = {"nogil": True, "no_cfunc_wrapper": True, **_OWN, **self._options}
        with _no_search_for_garbage():
            compiled = _njit(**options)(self._function)
            compiled._cache = _Cache(self._function)
            for signature in self._signatures:
                compiled.compile(signature)
            compiled.disable_compile()
        found: Callable[P, R] = compiled
        return found

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the compiled function."""
        return self.compiled(*args, **kwargs)


def kernel(*signatures: Signature, **options: object) -> Callable[[Callable[P, R]], Kernel[P, R]]:
    """Make a function a kernel for arguments of these types: kept on disk, called without the interpreter's lock."""

    def decorate(function: Callable[P, R]) -> Kernel[P, R]:
        return Kernel(function, list(signatures), options)

    return decorate


class _Part:
    """A function that kernels call, compiled with the first of them."""

    def __init__(
        self, function: Callable[..., object], signatures: Sequence[Signature], options: Mapping[str, object]
    ) -> None:
        self._function = function
        self._signatures = signatures
        self._options = options

    @cached_property
    def compiled(self) -> Any:
        own = {**_OWN, **self._options} if self._signatures else self._options
        return _njit(self._signatures or None, no_cpython_wrapper=True, no_cfunc_wrapper=True, **own)(self._function)


def part(*signatures: Signature, **options: object) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function a part of the kernels that call it. It is not stored separately, and Python cannot call it.

    With a signature it is compiled once for these types. Without one it is compiled for all types of its calls: once
    for a number, and again for every literal number in a call.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        made: Any = _Part(function, list(signatures), options)
        return made  # type: ignore[no-any-return]

    return decorate


def inlined(*signatures: Signature, **options: object) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function a `part` that is inlined into its callers, since it is called for every value."""
    return part(*signatures, forceinline=True, **options)


NOTHING_NEW = {"_nrt": False}
"""Options of a function that makes no arrays. Other functions count references to their array arguments in every call,
by atomic operations, which take longer than reading a number."""

_OWN = {"_nrt": True, "error_model": "python", "forceinline": False}
"""Options that numba takes from the caller: the first caller of a function must not decide them."""


@_typeof.register(_Part)  # type: ignore[untyped-decorator]
def _type_of_part(callee: _Part, context: object) -> types.Type:
    """Return the type of a part that a kernel calls."""
    kind: types.Type = _typeof(callee.compiled, context)
    return kind


_untyped: Any = types


def column(dtype: types.Type) -> types.Array:
    """A contiguous array that a kernel only reads: read-only buffers, such as Arrow's, are accepted too."""
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
