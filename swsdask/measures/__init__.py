"""Measures: arithmetic over merged statistics. Each family is a file whose docstring is its specification."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from swsdask.measures import prior_curves, threshold_curves
from swsdask.measures.average_precision import AveragePrecision, MeanAveragePrecision, RankedPrecision
from swsdask.measures.calibration import AffineCalibration, PavCalibration, QueryOffset
from swsdask.measures.cross_entropy import CrossEntropy
from swsdask.measures.gap import GeneralisedAveragePrecision
from swsdask.measures.measure import Curve, Measure, Scored
from swsdask.measures.mediaeval_tool import MediaEvalTool
from swsdask.measures.names import with_points
from swsdask.measures.notes import interpretation, system_notes
from swsdask.measures.optimum import OptimumTwv
from swsdask.measures.processing_load import ProcessingLoad
from swsdask.measures.rates import DetectionCost, ErrorRates, OccurrenceWeightedValue, Totals
from swsdask.measures.retrieval import GradedRetrieval, JudgedRetrieval, RankedRetrieval
from swsdask.measures.threshold_curves import DetectionErrorTradeoff, PrecisionRecall
from swsdask.measures.twv import ActualTwv, MaximumTwv, OperatingPoint, SupremumTwv, ThresholdTwv, TwvLosses
from swsdask.model.errors import SettingsError
from swsdask.model.measures import parted
from swsdask.model.trials import Reference

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
)
"""The families of the rankings of queries, which no operating point and no decision bears upon."""

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
    OperatingPoint(),
    ThresholdTwv(),
    DetectionErrorTradeoff(),
    OccurrenceWeightedValue(),
    CrossEntropy(),
    AffineCalibration(),
    PavCalibration(),
    MediaEvalTool(),
    PrecisionRecall(),
    *RANKED,
    GeneralisedAveragePrecision(),
    ProcessingLoad(),
)
"""Every family of measures, in canonical order."""


def select(names: Sequence[str] | None, otherwise: Sequence[Measure] = MEASURES) -> list[Measure]:
    """The families that yield the named measures, in canonical order; `otherwise` for None.

    A name may have a point (`twv@0.5`; see `points`). Raises `SettingsError` for an unknown name, with the nearest one.
    """
    if names is None:
        return list(otherwise)
    known = [name for family in MEASURES for name in family.names]
    asked = {parted(name).family: name for name in names}
    for family, name in asked.items():
        if family not in known:
            near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.0)
            raise SettingsError(f"measure {name!r} is unknown. Nearest: {near[0]}. `swsdask measures` lists all.")
    return [family for family in MEASURES if not asked.keys().isdisjoint(family.names)]


def require_judgments(names: Sequence[str] | None, reference: Reference) -> None:
    """Raises `SettingsError` for a requested measure of judged documents where none was judged."""
    judged = {name for family in (GradedRetrieval, JudgedRetrieval) for name in family.names}
    for name in names or () if reference.judgments is None else ():
        if parted(name).family in judged:
            raise SettingsError(
                f"measure {name!r} needs judged documents: qrels, or a column `grade` of occurrences where trials are "
                "documents."
            )


def curves(scored: Scored) -> Iterator[Curve]:
    """The curves whose statistics are there: error trade-off, precision and recall, cost and errors over priors."""
    for kind in (threshold_curves, prior_curves):
        if scored.has(kind.NEEDS):
            yield from kind.curves(scored)
