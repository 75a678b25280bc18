"""Measures: arithmetic over merged statistics. Each family is a file whose docstring is its specification.

A measure is a class of a module here, listed in `MEASURES`, and a row of `model.measures.TABLE`.
"""

from __future__ import annotations

from collections.abc import Sequence

from swsdask.measures.average_precision import AveragePrecision, MeanAveragePrecision, RankedPrecision
from swsdask.measures.calibration import AffineCalibration, PavCalibration
from swsdask.measures.cross_entropy import CrossEntropy
from swsdask.measures.generalised_average_precision import GeneralisedAveragePrecision
from swsdask.measures.measure import Measure
from swsdask.measures.mediaeval_tool import MediaEvalTool
from swsdask.measures.names import with_points
from swsdask.measures.notes import interpretation, system_notes
from swsdask.measures.processing_load import ProcessingLoad
from swsdask.measures.rates import DetectionCost, ErrorRates, OccurrenceWeightedValue, Totals
from swsdask.measures.retrieval import GradedRetrieval, JudgedRetrieval, RankedRetrieval
from swsdask.measures.threshold_curves import DetectionErrorTradeoff, PrecisionRecall, curves
from swsdask.measures.twv import (
    ActualTwv,
    ApplicationParameters,
    MaximumTwv,
    OptimumTwv,
    QueryOffset,
    SupremumTwv,
    ThresholdTwv,
    TwvLosses,
)
from swsdask.model.discovery import measures_named
from swsdask.model.errors import SettingsError
from swsdask.model.measures import parse_name
from swsdask.model.trials import Reference
from swsdask.model.wording import nearest

__all__ = [
    "MEASURES",
    "RANKED",
    "curves",
    "interpretation",
    "require_judgments",
    "select",
    "system_notes",
    "with_points",
]


RANKED: tuple[Measure, ...] = (
    AveragePrecision(),
    MeanAveragePrecision(),
    RankedPrecision(),
    RankedRetrieval(),
    GradedRetrieval(),
    JudgedRetrieval(),
    GeneralisedAveragePrecision(),
)
"""The families of the rankings of queries, which depend on no operating point and no decision."""

MEASURES: tuple[Measure, ...] = (
    Totals(),
    ErrorRates(),
    ActualTwv(),
    MaximumTwv(),
    OptimumTwv(),
    QueryOffset(),
    SupremumTwv(),
    TwvLosses(),
    DetectionCost(),
    ApplicationParameters(),
    ThresholdTwv(),
    DetectionErrorTradeoff(),
    OccurrenceWeightedValue(),
    CrossEntropy(),
    AffineCalibration(),
    PavCalibration(),
    MediaEvalTool(),
    PrecisionRecall(),
    *RANKED,
    ProcessingLoad(),
)
"""Every family of measures, in canonical order: that of the last of their rows in the table."""


def select(names: Sequence[str] | None, otherwise: Sequence[Measure] = MEASURES) -> list[Measure]:
    """Return the families that yield the named measures, in canonical order; `otherwise` for None.

    A name may have a point (`twv@0.5`; see `measures.names`). Raises `SettingsError` for an unknown name, with the
    nearest one.
    """
    if names is None:
        return list(otherwise)
    known = [name for family in MEASURES for name in family.names]
    requested = {parse_name(name).family: name for name in names}
    for family, name in requested.items():
        if family not in known:
            if own := measures_named(name.lower()):
                members = "" if own == [name] else f": {', '.join(own)}"
                raise SettingsError(f"measure {name!r} is one of term discovery, of `swsdask discover`{members}.")
            near = nearest(name.lower(), known)
            raise SettingsError(f"measure {name!r} is unknown. Nearest: {near}. `swsdask measures` lists all.")
    return [family for family in MEASURES if not requested.keys().isdisjoint(family.names)]


def require_judgments(names: Sequence[str] | None, reference: Reference) -> None:
    """Raises `SettingsError` if a measure of judged documents is requested but none was judged."""
    judged = {name for family in (GradedRetrieval, JudgedRetrieval) for name in family.names}
    for name in names or () if reference.judgments is None else ():
        if parse_name(name).family in judged:
            raise SettingsError(
                f"measure {name!r} needs judged documents: qrels, or a column `grade` of occurrences where trials are "
                "documents."
            )
