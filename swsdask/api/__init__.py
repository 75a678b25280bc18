"""The Python API: open, ingest, score, discover, validate, report. The command line is a thin layer over it.

What is not asked for is not imported: kernels take time to load, and nobody needs all of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Evaluation": "opening",
    "apply_calibration": "calibrating",
    "calibrate": "calibrating",
    "discover": "discovering",
    "ingest": "ingesting",
    "ingest_discovery": "discovery_inputs",
    "open": "opening",
    "plan": "scoring",
    "plan_discovery": "discovering",
    "rank_correlation": "comparing",
    "renew_report": "writing",
    "report": "writing",
    "score": "scoring",
    "validate": "validating",
    "write": "writing",
}

__all__ = [
    "Evaluation",
    "apply_calibration",
    "calibrate",
    "discover",
    "ingest",
    "ingest_discovery",
    "open",
    "plan",
    "plan_discovery",
    "rank_correlation",
    "renew_report",
    "report",
    "score",
    "validate",
    "write",
]

if TYPE_CHECKING:
    from swsdask.api.calibrating import apply_calibration, calibrate
    from swsdask.api.comparing import rank_correlation
    from swsdask.api.discovering import discover, plan_discovery
    from swsdask.api.discovery_inputs import ingest_discovery
    from swsdask.api.ingesting import ingest
    from swsdask.api.opening import Evaluation, open  # noqa: A004
    from swsdask.api.scoring import plan, score
    from swsdask.api.validating import validate
    from swsdask.api.writing import renew_report, report, write


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'swsdask.api' has no attribute {name!r}")
    value = getattr(import_module(f"swsdask.api.{_HOME[name]}"), name)
    globals()[name] = value
    return value
