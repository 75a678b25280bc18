"""Signals that end the command: Ctrl-C, SIGTERM (batch systems, containers) and SIGHUP (a lost terminal).

While modules are loaded a signal ends the process immediately. Afterwards it raises `Ended`, so that every context is
left and temporary files and worker processes are removed; further signals change nothing. An exception of a signal can
be lost: Python drops what a finaliser raises, and compiled libraries drop what happens while they call Python. So
`Ended` is raised again until it is on its way. A process that has not ended by itself after `PATIENCE_S` is ended. The
exit code is 128 plus the number of the signal. A signal that comes when all is done, while the interpreter ends,
changes nothing. Signals that are ignored when the command starts (nohup) stay ignored.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType

PATIENCE_S = 30.0
_LOOK_S = 0.2
"""The interval at which a process that is to end checks whether `Ended` is on its way."""

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "the terminal is gone"}


class Ended(BaseException):
    """A signal ended the command.

    Attributes
    ----------
    exit_code
        128 plus the number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(_WORDS[signal.Signals(number)])
        self.exit_code = 128 + number


def end_immediately() -> None:
    """Let the signals end the process with one line: nothing has begun that would have to be undone."""
    _handle(_exit)


def end_orderly() -> None:
    """Let the first of the signals raise `Ended` in the main thread."""
    _handle(_raise)
    atexit.register(_ignore)
    sys.unraisablehook = _show


def _handle(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in _WORDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _exit(number: int, _: FrameType | None) -> None:
    try:
        os.write(2, f"swsdask: {Ended(number)}\n".encode())
    finally:
        os._exit(128 + number)


def _ignore() -> None:
    """Ignore signals to come, also while the interpreter ends: then handlers are gone, and the default is to kill."""
    for number in _WORDS:
        signal.signal(number, signal.SIG_IGN)


def _raise(number: int, _: FrameType | None) -> None:
    _ignore()
    latest = time.monotonic() + PATIENCE_S

    def look(*_: object) -> None:
        if time.monotonic() >= latest:
            os._exit(128 + number)
        if not _on_its_way(sys.exception()):
            raise Ended(number)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_S, _LOOK_S)
    raise Ended(number)


def _on_its_way(error: BaseException | None) -> bool:
    """Whether `Ended` is handled: whoever leaves a context for it, or fails meanwhile, has it in this chain."""
    return ended_by(error) is not None


def ended_by(error: BaseException | None) -> Ended | None:
    """The signal on account of which something failed, None if there was none.

    Who is interrupted may raise an error of its own: Python does where it makes a class.
    """
    while error is not None and not isinstance(error, Ended):
        error = error.__context__
    return error


def has_arrived(ended: Ended) -> None:
    """Look no more whether `Ended` is on its way. The process is given `PATIENCE_S` once more."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(ended.exit_code))
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)


_show_unraisable = sys.unraisablehook


def _show(dropped: sys.UnraisableHookArgs) -> None:
    """Show an exception that a finaliser raised, as Python does; `Ended` is raised again."""
    if not isinstance(dropped.exc_value, Ended):
        _show_unraisable(dropped)
