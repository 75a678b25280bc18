"""What a user sees while kernels are compiled."""

from __future__ import annotations

import logging

import pytest

from swsdask.cli.progress import Bar


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
