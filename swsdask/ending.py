"""Signals that end the command: Ctrl-C, SIGTERM (batch systems, containers) and SIGHUP (a lost terminal).

While modules are loaded, a signal ends the process immediately. Afterwards it raises `Ended`, so that every context is
left, and temporary files and worker processes are removed; further signals have no effect. An exception that a signal
handler raises can be lost: Python drops exceptions of finalisers, and compiled libraries drop those that are raised
while they call Python. So `Ended` is raised again until it propagates. A process that has not ended after `PATIENCE_S`
is terminated. The exit code is 128 plus the number of the signal. A signal that arrives when the work is done, while
the interpreter shuts down, has no effect. Signals that are ignored when the command starts (nohup) stay ignored.
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
"""The interval at which a process that should end checks whether `Ended` propagates."""

_WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "the terminal is gone"}


class Ended(BaseException):
    """A signal ended the command.

    Attributes
    ----------
    exit_code
        128 plus the number of the signal.
    is_logged
        Whether a log says that the command ended.
    """

    is_logged = False

    def __init__(self, number: int) -> None:
        super().__init__(_WORDS[signal.Signals(number)])
        self.exit_code = 128 + number


def end_immediately() -> None:
    """Let the signals end the process at once, with one line: there is nothing to clean up yet."""
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
    """Ignore later signals, even while the interpreter shuts down: without handlers the default is to kill."""
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
    """Return whether `Ended` is being handled: an error raised while contexts are left for it has it in its chain."""
    return ended_by(error) is not None


def ended_by(error: BaseException | None) -> Ended | None:
    """Return the signal that caused an error; None if there was none.

    Interrupted code may raise an error of its own, as Python does while it creates a class.
    """
    while error is not None and not isinstance(error, Ended):
        error = error.__context__
    return error


def has_arrived(ended: Ended) -> None:
    """Stop checking whether `Ended` propagates. The process has `PATIENCE_S` more to end."""
    signal.signal(signal.SIGALRM, lambda *_: os._exit(ended.exit_code))
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)


_show_unraisable = sys.unraisablehook


def _show(dropped: sys.UnraisableHookArgs) -> None:
    """Show an exception that a finaliser raised, as Python does; `Ended` is raised again."""
    if not isinstance(dropped.exc_value, Ended):
        _show_unraisable(dropped)
