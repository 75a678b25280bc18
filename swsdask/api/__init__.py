"""The Python API: open, ingest, score, discover, validate, report. The command line is a thin layer over it."""

from swsdask.api.calibrating import apply_calibration, calibrate
from swsdask.api.comparing import rank_correlation
from swsdask.api.discovering import discover, plan_discovery
from swsdask.api.ingesting import ingest, validate
from swsdask.api.opening import Evaluation, open  # noqa: A004
from swsdask.api.scoring import plan, score
from swsdask.api.writing import report, write, write_mediaeval, write_tde

__all__ = [
    "Evaluation",
    "apply_calibration",
    "calibrate",
    "discover",
    "ingest",
    "open",
    "plan",
    "plan_discovery",
    "rank_correlation",
    "report",
    "score",
    "validate",
    "write",
    "write_mediaeval",
    "write_tde",
]
