"""Signals that end the command: Ctrl-C, SIGTERM (batch systems, containers) and SIGHUP (a lost terminal).

While modules are loaded a signal ends the process immediately. Afterwards it raises `Ended`, so that every context is
left and temporary files and worker processes are removed; further signals change nothing. Python drops an exception
that is raised in a finaliser (`__del__`, a callback of a weak reference): then `Ended` is raised again. A process that
has not ended by itself after `PATIENCE_S` is ended. The exit code is 128 plus the number of the signal. Signals that
are ignored when the command starts (nohup) stay ignored.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

PATIENCE_S = 30.0
_AGAIN_S = 0.01

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
        self.number = number
        self.exit_code = 128 + number


def end_immediately() -> None:
    """Let the signals end the process with one line: nothing has begun that would have to be undone."""
    _handle(_exit)


def end_orderly() -> None:
    """Let the first of the signals raise `Ended` in the main thread."""
    _handle(_raise)
    sys.unraisablehook = _raise_again


def _handle(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in _WORDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _exit(number: int, _: FrameType | None) -> None:
    try:
        os.write(2, f"swsdask: {Ended(number)}\n".encode())
    finally:
        os._exit(128 + number)


def _raise(number: int, _: FrameType | None) -> None:
    for signal_to_come in _WORDS:
        signal.signal(signal_to_come, signal.SIG_IGN)  # also while the interpreter ends, when handlers are gone
    signal.signal(signal.SIGALRM, lambda *_: os._exit(128 + number))
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    raise Ended(number)


_show_unraisable = sys.unraisablehook


def _raise_again(dropped: sys.UnraisableHookArgs) -> None:
    """Raise `Ended` again when the finaliser is done, if it was dropped; show other exceptions as Python does."""
    ended = dropped.exc_value
    if isinstance(ended, Ended):
        signal.signal(signal.SIGALRM, lambda *_: _raise(ended.number, None))
        signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    else:
        _show_unraisable(dropped)
