"""The limits of a process: memory, threads and open files.

The system and libraries say in many ways that something does not suffice; to a user all are one fault, with one line
that names the limit. Where a library would not fail but abort the process or wait, the limit is checked beforehand.
"""

from __future__ import annotations

import errno
import os
import re
import resource
from contextlib import suppress
from pathlib import Path

from swsdask.model.errors import ResourceError, cut, one_line

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
    """Return the error for a failure for want of memory, threads or open files; None for any other failure.

    Libraries put errors of their own around what the system said, so what an error was raised from is looked at too.
    One that was raised from None is looked at alone. `what` failed, where that is known.

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
"""The numbers of errors of a disk, a quota or a limit of the size of files that is reached."""


def check_addresses(least: int, what: str) -> None:
    """Raise `ResourceError` if `ulimit -v` allows this process fewer than `least` bytes, which `what` needs.

    Libraries in C++ abort the process when they cannot allocate, so it is not tried.
    """
    _check_limit(resource.RLIMIT_AS, least, what)


def check_open_files(least: int, what: str) -> None:
    """Raise `ResourceError` if `ulimit -n` allows this process fewer than `least` open files, which `what` needs."""
    _check_limit(resource.RLIMIT_NOFILE, least, what)


def check_threads(least: int, what: str) -> None:
    """Raise `ResourceError` if `ulimit -u` leaves this process fewer than `least` threads, which `what` needs.

    What counts is all that the user runs, on whichever terminal. Root has no such limit. Libraries in C++ abort the
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
"""From so many on it is not counted what a user runs: that takes time at every start."""


def _threads_of_others() -> int:
    """Return the number of threads of this user's other processes, as far as the system reports it."""
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
    """The kind of shortage that an error is, and what to do; None if it is none."""
    said, number = str(error), error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError) or number == errno.ENOMEM or _NO_MEMORY.search(said):
        found = f"out of memory ({cut(one_line(said))})" if said else "out of memory"
        remedy = "Give the process more memory, or set a smaller rows_per_task or fewer workers."
        return f"{found}. {_limit(resource.RLIMIT_AS)}{remedy}"
    if number in {errno.EMFILE, errno.ENFILE} or _NO_FILE.search(said):
        return f"too many open files. {_limit(resource.RLIMIT_NOFILE)}Allow more, or set fewer workers."
    # EAGAIN is also what a lock that is held raises, where it is taken and answered, and what a full pipe does that is
    # not to be waited for; that says how much was written.
    if _NO_THREAD.search(said) or (number == errno.EAGAIN and getattr(error, "characters_written", None) is None):
        limits = _limit(resource.RLIMIT_AS) + _limit(resource.RLIMIT_NPROC)
        return f"no further thread or process can be started. {limits}Allow more, or set fewer workers."
    return None


def _limit(kind: int) -> str:
    """A sentence about a limit of this process, with the blank that follows; empty where there is none."""
    allowed, _ = resource.getrlimit(kind)
    sentence, unit = _LIMITS[kind]
    return "" if allowed == resource.RLIM_INFINITY else f"{sentence.format(allowed // unit)}. "
