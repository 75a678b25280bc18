"""What `deploy/` has for a schedule is checked by its own check, where the machine has the programs that it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.mark.parametrize(("kind", "program"), [("systemd", "systemd-analyze"), ("cron", "flock")])
def test_units_and_schedules(kind: str, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"no {program} on this machine: deploy/{kind} is not checked")
    check = DEPLOY / kind / "check"
    ended = subprocess.run(
        [check], env={**os.environ, "PYTHON": sys.executable}, capture_output=True, text=True, check=False, timeout=300
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
