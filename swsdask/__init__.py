"""Spoken term detection scoring: the official numbers, exactly, for one run or for an archive of thousands.

Examples
--------
The examples of this package read the files that ``swsdask demo --out demo --hours 1 --queries 20`` writes.

>>> import swsdask as sws
>>> evaluation = sws.open("demo/files", preset="sws2013")
>>> result = sws.score(evaluation, ["atwv", "mtwv"], runs="demo/files/runs")
>>> result.scores.head(2)
       system condition query measure     value
0  calibrated       all   NaN    atwv  0.504763
1  calibrated       all   NaN    mtwv  0.556420
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "apply_calibration": "swsdask.api",
    "calibrate": "swsdask.api",
    "discover": "swsdask.api",
    "ingest": "swsdask.api",
    "ingest_discovery": "swsdask.api",
    "open": "swsdask.api",
    "rank_correlation": "swsdask.api",
    "score": "swsdask.api",
    "report": "swsdask.api",
    "validate": "swsdask.api",
    "Evaluation": "swsdask.api",
    "cluster": "swsdask.execution.open",
    "Calibration": "swsdask.calibration.maps",
    "Measure": "swsdask.measures.measure",
    "Result": "swsdask.model.results",
    "EvaluationSettings": "swsdask.model.settings",
    "SwsdaskError": "swsdask.model.errors",
    "InputError": "swsdask.model.errors",
    "SettingsError": "swsdask.model.errors",
    "Value": "swsdask.measures.measure",
}

__all__ = [
    "Calibration",
    "Evaluation",
    "EvaluationSettings",
    "InputError",
    "Measure",
    "Result",
    "SettingsError",
    "SwsdaskError",
    "Value",
    "__version__",
    "apply_calibration",
    "calibrate",
    "cluster",
    "discover",
    "ingest",
    "ingest_discovery",
    "open",
    "rank_correlation",
    "report",
    "score",
    "validate",
]

if TYPE_CHECKING:
    from swsdask.api import (
        Evaluation,
        apply_calibration,
        calibrate,
        discover,
        ingest,
        ingest_discovery,
        open,  # noqa: A004
        rank_correlation,
        report,
        score,
        validate,
    )
    from swsdask.calibration.maps import Calibration
    from swsdask.execution.open import cluster
    from swsdask.measures.measure import Measure, Value
    from swsdask.model.errors import InputError, SettingsError, SwsdaskError
    from swsdask.model.results import Result
    from swsdask.model.settings import EvaluationSettings


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'swsdask' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
