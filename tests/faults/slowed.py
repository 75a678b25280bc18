"""swsdask with phases that last long enough to be struck: `python -m tests.faults.slowed COMMAND ...`.

Reading runs for `score` is logged as it is for `ingest`, and so is the begin of writing. Where `ROUNDS` is set in the
environment, small systems are counted in rounds, as large ones are.
"""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

from swsdask import ending

ROUNDS = "SWSDASK_FAULTS_ROUNDS"
BEGIN_S, TASK_S = 0.3, 0.05
"""How much longer a phase lasts, and each of its tasks."""


def start() -> None:
    """Run the command line, as `swsdask.__main__.start` does."""
    ending.end_immediately()
    import swsdask.api.runs
    import swsdask.cli.progress
    import swsdask.places.writing
    from swsdask.cli import console
    from swsdask.scoring import detections

    class Slowed(swsdask.cli.progress.LogLines):
        def begin(self, phase: str, rows: int) -> None:
            super().begin(phase, rows)
            time.sleep(BEGIN_S)

        def advance(self, rows: int) -> None:
            super().advance(rows)
            time.sleep(TASK_S)

    def move(*given: Any) -> None:
        Slowed().begin("moving", 0)
        moved(*given)
        time.sleep(BEGIN_S)

    moved = swsdask.places.writing._move
    swsdask.places.writing._move = move
    swsdask.cli.progress.LogLines = Slowed  # type: ignore[misc]
    log = Slowed()
    swsdask.api.runs.write_runs = partial(swsdask.api.runs.write_runs, progress=log)
    if os.environ.get(ROUNDS):
        detections.FEW_ROWS = 1
    ending.end_orderly()
    console()


if __name__ == "__main__":
    start()
