"""The entry point of `swsdask` and `python -m swsdask`."""

from __future__ import annotations

from swsdask import ending


def start() -> None:
    """Run the command line. A signal ends it with one line and an exit code, even while modules are being loaded."""
    ending.end_immediately()
    from swsdask.cli import console

    ending.end_orderly()
    console()


if __name__ == "__main__":
    start()
