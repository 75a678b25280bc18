"""What a user sees while work goes on, and while kernels are compiled."""

from __future__ import annotations

import logging
import os
import pty
import re
import subprocess
import sys

import pytest

from swsdask.cli.progress import Bar, LogLines


def test_a_bar_says_how_far_kernels_are_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("swsdask")
    before = logger.handlers[:], logger.level
    bar = Bar()
    bar.begin("systems", 10)
    logger.warning("swsdask: compiling kernels [once]")
    logger.debug("compiling kernels, %d of %d", 1, 9)
    (task,) = bar._bar.tasks
    assert task.description == "compiling kernels, 1 of 9"
    bar.advance(3)
    assert (task.description, task.completed, task.total) == ("systems", 3, 10)
    bar.close()
    assert capsys.readouterr().err.count("swsdask: compiling kernels [once]") == 1
    assert (logger.handlers, logger.level) == before


@pytest.mark.parametrize(
    ("total", "line"),
    [(0, r"verifying: 3 files, \S+ files/s\n"), (9, r"verifying: 3/9 files, \S+ files/s, \d+ s left\n")],
)
def test_a_log_says_what_is_left_where_that_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], total: int, line: str
) -> None:
    monkeypatch.setattr(LogLines, "EVERY_S", 0.0)
    log = LogLines("files")
    log.begin("verifying", total)
    capsys.readouterr()
    log.advance(3)
    assert re.fullmatch(rf"(\S+ )?swsdask: {line}", capsys.readouterr().err)


ON_A_TERMINAL = """
from swsdask.cli import _streams
from swsdask.cli.progress import progress
with _streams(), progress() as bar:
    bar.begin("read runs[/x]\\x1b[31m\\n.csv", 3)
    bar.advance(3)
"""


def test_a_bar_moves_the_cursor_and_nothing_in_its_text_acts() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    with os.fdopen(ours, "rb", buffering=0) as terminal:
        subprocess.run([sys.executable, "-c", ON_A_TERMINAL], stderr=theirs, env=environment, check=True)
        os.close(theirs)
        shown = b""
        while chunk := _read(terminal.fileno()):
            shown += chunk
    assert b"\x1b[?25l" in shown  # the cursor is hidden, and
    assert shown.rstrip().endswith(b"\x1b[2K")  # the bar is taken away
    assert rb"\u001b[?25" not in shown
    assert rb"read runs[/x]\u001b[31m\n.csv" in shown
    assert b"\x1b[31m" not in shown


def _read(terminal: int) -> bytes:
    """What a terminal shows next; nothing at its end, which Linux reports as an error."""
    try:
        return os.read(terminal, 65536)
    except OSError:
        return b""
