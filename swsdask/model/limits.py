"""The limits of a process: memory, threads and open files.

The system and libraries report a shortage in many ways; a user sees one kind of error, with one line that names the
limit. Where a library would abort the process or wait instead of failing, the limit is checked beforehand.
"""

from __future__ import annotations

import errno
import os
import re
import resource
from contextlib import suppress
from pathlib import Path

from swsdask.model.errors import ResourceError
from swsdask.model.safe_text import one_line
from swsdask.model.wording import cut

_NO_MEMORY = re.compile(
    r"cannot allocate memory|failed to map segment from shared object(?!: operation not permitted)", re.IGNORECASE
)
_NO_THREAD = re.compile(r"can't start new thread|failed to launch worker thread", re.IGNORECASE)
_NO_FILE = re.compile(r"too many open files", re.IGNORECASE)
_LIMITS = {
    resource.RLIMIT_AS: ("`ulimit -v` allows {:,} MiB of addresses", 1 << 20),
    resource.RLIMIT_NOFILE: ("`ulimit -n` allows {:,} open files", 1),
    resource.RLIMIT_NPROC: ("`ulimit -u` allows {:,} threads of this user", 1),
}
"""The limits of processes in words, and their units."""


def shortage(error: BaseException | None, what: str | None = None) -> ResourceError | None:
    """Return the error for a failure that a lack of memory, threads or open files caused; None for any other failure.

    Libraries wrap the errors of the system, so the causes of an error are examined too, unless it was raised from None.
    `what` is the operation that failed, if known.

    Examples
    --------
    >>> print(shortage(MemoryError()))
    out of memory. Give the process more memory, or set a smaller rows_per_task or fewer workers.
    >>> shortage(ValueError())
    """
    while error is not None:
        if isinstance(error, ResourceError):
            return error
        if (reason := _reason_of(error)) is not None:
            return ResourceError(f"{what}: {reason}" if what else reason)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return None


NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The error numbers of a full disk, an exhausted quota and a file that exceeds the limit of its size."""


def check_addresses(least: int, what: str) -> None:
    """Raise `ResourceError` if `ulimit -v` allows this process fewer than `least` bytes, which `what` needs.

    Libraries in C++ abort the process when they cannot allocate memory, so the limit is checked instead.
    """
    _check_limit(resource.RLIMIT_AS, least, what)


def check_open_files(least: int, what: str) -> None:
    """Raise `ResourceError` if `ulimit -n` allows this process fewer than `least` open files, which `what` needs."""
    _check_limit(resource.RLIMIT_NOFILE, least, what)


def check_threads(least: int, what: str) -> None:
    """Raise `ResourceError` if `ulimit -u` leaves this process fewer than `least` threads, which `what` needs.

    The limit counts the threads of all processes of the user. Root has no such limit. Libraries in C++ abort the
    process when they cannot start a thread.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.getuid() == 0 or allowed == resource.RLIM_INFINITY or allowed >= _MANY_THREADS:
        return
    others = _threads_of_others()
    if allowed - others < least:
        has = f"Other processes of this user have {others:,}. " if others else ""
        said = f"{_limit(resource.RLIMIT_NPROC)}{has}But {what} needs at least {least:,}. Allow more."
        raise ResourceError(said)


_MANY_THREADS = 1024
"""If this many threads are allowed, those of the user are not counted: counting takes time at every start."""


def _threads_of_others() -> int:
    """Return the number of threads of this user's other processes, if the system reports it."""
    found, user = 0, str(os.getuid())
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError, KeyError):  # ended meanwhile
            said = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
            if said["Uid"].split()[0] == user and process.name != str(os.getpid()):
                found += int(said["Threads"])
    return found


def _check_limit(kind: int, least: int, what: str) -> None:
    allowed, _ = resource.getrlimit(kind)
    if allowed != resource.RLIM_INFINITY and allowed < least:
        raise ResourceError(f"{_limit(kind)}But {what} needs at least {least // _LIMITS[kind][1]:,}. Allow more.")


def _reason_of(error: BaseException) -> str | None:
    """Return the kind of shortage that an error reports, and what to do; None if it reports none."""
    said, number = str(error), error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number == errno.ENOMEM or _NO_MEMORY.search(said):
        found = f"out of memory ({cut(one_line(said))})" if said else "out of memory"
        remedy = "Give the process more memory, or set a smaller rows_per_task or fewer workers."
        return f"{found}. {_limit(resource.RLIMIT_AS)}{remedy}"
    if number in {errno.EMFILE, errno.ENFILE} or _NO_FILE.search(said):
        return f"too many open files. {_limit(resource.RLIMIT_NOFILE)}Allow more, or set fewer workers."
    # Two other cases raise EAGAIN: a lock that is held, which is handled where it is taken, and a full non-blocking
    # pipe, whose error has characters_written.
    if _NO_THREAD.search(said) or (number == errno.EAGAIN and getattr(error, "characters_written", None) is None):
        limits = _limit(resource.RLIMIT_AS) + _limit(resource.RLIMIT_NPROC)
        return f"no further thread or process can be started. {limits}Allow more, or set fewer workers."
    return None


def _limit(kind: int) -> str:
    """Return a sentence about a limit of this process, with a blank after it; empty if there is no limit."""
    allowed, _ = resource.getrlimit(kind)
    sentence, unit = _LIMITS[kind]
    return "" if allowed == resource.RLIM_INFINITY else f"{sentence.format(allowed // unit)}. "
