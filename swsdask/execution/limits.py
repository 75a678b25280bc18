"""Calls with a time limit: one that does not return within it is left in its own thread."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TypeVar

Answer = TypeVar("Answer")


def within(limit_s: float, call: Callable[[], Answer]) -> Answer:
    """Return what `call` returns.

    A scheduler or worker that is stopped keeps its connections open, so a call to it waits without end.

    Raises
    ------
    TimeoutError
        If the call has not returned after `limit_s` seconds.
    Exception
        What the call raises.

    Examples
    --------
    >>> within(60, lambda: 2 + 2)
    4
    """
    ended: SimpleQueue[tuple[bool, Answer | Exception]] = SimpleQueue()

    def run() -> None:
        try:
            ended.put((True, call()))
        except Exception as error:
            ended.put((False, error))

    Thread(target=run, daemon=True, name="swsdask call").start()
    try:
        returned, value = ended.get(timeout=limit_s)
    except Empty:
        raise TimeoutError from None
    if not returned:
        raise value  # type: ignore[misc]
    return value  # type: ignore[return-value]
