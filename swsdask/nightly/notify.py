"""The command that runs after a night."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Sequence

PATIENCE_S = 60.0

LOG = logging.getLogger("swsdask.nightly")


def notify(command: Sequence[str], latest: bytes) -> bool:
    """Run a command with `latest.json` on its standard input; whether it ended well. The night stands either way."""
    try:
        ended = subprocess.run(
            command, input=latest, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        LOG.warning("notify: %s: %s", command[0], error)
        return False
    if ended.returncode:
        said = ended.stderr.decode(errors="replace").strip().splitlines()
        LOG.warning("notify: %s ended with exit code %d: %s", command[0], ended.returncode, said[-1] if said else "")
    return ended.returncode == 0
