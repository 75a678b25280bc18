"""The command, from its first moment on: `swsdask` and `python -m swsdask`."""

from __future__ import annotations

import os
import signal


def start() -> None:
    """Run the command line. Ctrl-C ends it with a line and exit code 130, also while its modules are loaded."""
    heeds = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeds:
        signal.signal(signal.SIGINT, _end)
    from swsdask.cli import console

    if heeds:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    console()


def _end(*_: object) -> None:
    """End at once: nothing has been begun that would have to be undone."""
    try:
        os.write(2, b"swsdask: interrupted\n")
    finally:
        os._exit(130)


if __name__ == "__main__":
    start()
