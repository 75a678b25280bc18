"""How a measure is shown: its heading, what it is in words, and how its numbers are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Face:
    """`digits` are decimals; None: six significant digits."""

    heading: str
    title: str
    digits: int | None


_COUNT, _RATE, _RARE, _SCORE = 0, 4, 6, 4

FACES = {
    "n_queries": Face("Queries", "Queries that the averages count", _COUNT),
    "n_target": Face("Targets", "Target trials: what was to be found", _COUNT),
    "n_nontarget": Face("Non-targets", "Detections of what was not there", _COUNT),
    "n_detections": Face("Detections", "Detections that were scored", _COUNT),
    "n_hit": Face("Hits", "Targets found, by the system's decisions", _COUNT),
    "n_miss": Face("Misses", "Targets not found, by the system's decisions", _COUNT),
    "n_false_alarm": Face("False alarms", "Detections decided YES of what was not there", _COUNT),
    "n_correct_nondetection": Face("Rejected", "Detections decided NO of what was not there", _COUNT),
    "p_miss": Face("P_miss", "Miss probability at the system's decisions, averaged over queries", _RATE),
    "p_fa": Face("P_fa", "False alarm probability at the system's decisions, averaged over queries", _RARE),
    "p_miss_pooled": Face("P_miss pooled", "Miss probability at the system's decisions, all trials as one set", _RATE),
    "p_fa_pooled": Face("P_fa pooled", "False alarm probability at its decisions, all trials as one set", _RARE),
    "atwv": Face("ATWV", "Actual term-weighted value: at the system's decisions", _RATE),
    "actual_threshold": Face("Threshold", "The threshold that explains all decisions, where there is one", _SCORE),
    "mtwv": Face("MTWV", "Maximum term-weighted value: at the best single threshold", _RATE),
    "mtwv_threshold": Face("Threshold", "The smallest score accepted at the MTWV", _SCORE),
    "mtwv_rejected_threshold": Face("Rejected up to", "The largest score rejected at the MTWV", _SCORE),
    "mtwv_p_miss": Face("P_miss", "Miss probability at the MTWV", _RATE),
    "mtwv_p_fa": Face("P_fa", "False alarm probability at the MTWV", _RARE),
    "otwv": Face("OTWV", "Optimum term-weighted value: at the best threshold of each query", _RATE),
    "otwv_p_miss": Face("P_miss", "Miss probability at the OTWV", _RATE),
    "otwv_p_fa": Face("P_fa", "False alarm probability at the OTWV", _RARE),
    "otwv_threshold": Face("Threshold", "The smallest score accepted at the OTWV", _SCORE),
    "twv_query_offset": Face(
        "TWV query offset", "Term-weighted value with an offset of the scores of each query", _RATE
    ),
    "stwv": Face("STWV", "Supremum term-weighted value: false alarms and decisions ignored", _RATE),
    "stwv_p_miss": Face("P_miss", "Miss probability at the STWV: targets that no detection found", _RATE),
    "c_det": Face("C_Det", "Detection cost at the system's decisions", None),
    "c_default": Face("C_Default", "Cost of the better of rejecting and accepting everything", None),
    "c_norm": Face("C_Norm", "Detection cost over C_Default", _RATE),
    "beta": Face("Beta", "The weight of P_fa in TWV", None),
    "effective_prior": Face("Effective prior", "The prior that with equal costs is the same application", None),
    "bayes_threshold": Face("Bayes threshold", "The best threshold for log-likelihood ratios", _SCORE),
    "twv_bayes": Face("TWV Bayes", "Term-weighted value at the Bayes threshold", _RATE),
    "twv@": Face("TWV", "Term-weighted value at a given threshold", _RATE),
    "p_miss@": Face("P_miss", "Miss probability at a given false alarm probability", _RATE),
    "eer": Face("EER", "Equal error rate: where P_miss and P_fa meet", _RATE),
    "cxe": Face("C_xe", "Cross entropy of the scores as log-likelihood ratios, in bits", _RATE),
    "cxe_prior": Face("C_xe prior", "Cross entropy without any scores, in bits", _RATE),
    "cnxe": Face("C_nxe", "Normalised cross entropy: 0 is best, 1 is as good as no scores", _RATE),
    "cnxe_min": Face("C_nxe min", "C_nxe after the best affine map of the scores", _RATE),
    "cnxe_gamma": Face("Gamma", "Factor of the best affine map; 1 where scores are log-likelihood ratios", _SCORE),
    "cnxe_delta": Face("Delta", "Offset of the best affine map; 0 where scores are log-likelihood ratios", _SCORE),
    "cnxe_min_pav": Face("C_nxe min PAV", "C_nxe after the best rising map of the scores", _RATE),
    "cnxe_query_pav": Face("C_nxe query PAV", "C_nxe after the best rising map for each query", _RATE),
    "calibration_loss": Face("Calibration loss", "C_nxe that the best affine map would save", _RATE),
    "calibration_loss_pav": Face("Loss PAV", "C_nxe that the best rising map would save", _RATE),
    "mediaeval_atwv": Face("QUESST actTWV", "TWV of the decisions, as MediaEval's tool prints it", _RATE),
    "mediaeval_mtwv": Face("QUESST maxTWV", "Highest TWV of one threshold, as MediaEval's tool prints it", _RATE),
    "mediaeval_threshold": Face("QUESST threshold", "The largest score rejected at QUESST maxTWV", _SCORE),
    "mediaeval_cnxe": Face("QUESST actCnxe", "C_nxe, as MediaEval's tool prints it", _RATE),
    "mediaeval_cnxe_min": Face("QUESST minCnxe", "C_nxe after PAV, as MediaEval's tool prints it", _RATE),
    "mediaeval_offset_atwv": Face("QUESST UB actTWV", "Upper bound of TWV, as MediaEval's tool prints it", _RATE),
    "mediaeval_offset_mtwv": Face("QUESST UB maxTWV", "Upper bound's maximum, as MediaEval's tool prints it", _RATE),
    "mediaeval_offset_threshold": Face("QUESST UB threshold", "The threshold of the upper bound's maximum", _SCORE),
    "mediaeval_pav_cnxe": Face("QUESST LB actCnxe", "Lower bound of C_nxe, as MediaEval's tool prints it", _RATE),
    "mediaeval_pav_cnxe_min": Face("QUESST LB minCnxe", "Lower bound after PAV, as MediaEval's tool prints it", _RATE),
    "mediaeval_min_score": Face("QUESST minScore", "Lowest score, as MediaEval's tool prints it", _SCORE),
    "mediaeval_max_score": Face("QUESST maxScore", "Highest score, as MediaEval's tool prints it", _SCORE),
    "n_given_target": Face("Targets given", "Target trials that the system gave a score", _COUNT),
    "n_imputed_target": Face("Targets imputed", "Target trials without a detection, at the imputed score", _COUNT),
    "n_given_nontarget": Face("Non-targets given", "Non-target trials that the system gave a score", _COUNT),
    "n_imputed_nontarget": Face(
        "Non-targets imputed", "Non-target trials without a detection, at the imputed score", _COUNT
    ),
    "impute_score": Face("Imputed score", "The score of trials that the system did not give", _SCORE),
    "occurrence_weighted_value": Face("OWV", "Occurrence-weighted value at the system's decisions", _RATE),
    "ap": Face("AP", "Average precision", _RATE),
    "map": Face("MAP", "Mean average precision over queries", _RATE),
    "map_n_averaged": Face("Averaged", "Queries that MAP averages", _COUNT),
    "map_n_no_relevant": Face("No targets", "Queries left out of MAP: without targets", _COUNT),
    "map_n_missing": Face("No trials", "Queries left out of MAP: the run has none of their trials", _COUNT),
    "r_precision": Face("R-precision", "Precision at as many trials as a query has targets", _RATE),
    "precision_at_rank@": Face("Precision", "Precision at a given rank, averaged over queries", _RATE),
    "precision_at_recall@": Face(
        "Int. precision", "Interpolated precision at a given recall, averaged over queries", _RATE
    ),
    "precision": Face("Precision", "Precision at the system's decisions, over all queries", _RATE),
    "recall": Face("Recall", "Recall at the system's decisions, over all queries", _RATE),
    "f1": Face("F1", "F1 at the system's decisions, over all queries", _RATE),
    "precision@": Face("Precision", "Precision at a given threshold", _RATE),
    "recall@": Face("Recall", "Recall at a given threshold", _RATE),
    "f1@": Face("F1", "F1 at a given threshold", _RATE),
    "best_f1": Face("Best F1", "F1 at the best single threshold", _RATE),
    "best_f1_threshold": Face("Threshold", "The smallest score accepted at the best F1", _SCORE),
    "gap": Face("GAP", "Generalised average precision of places to start listening", _RATE),
    "mgap": Face("mGAP", "Mean over queries of the GAP of places to start listening", _RATE),
    "isf": Face("ISF", "Indexing speed factor: CPU time of indexing over the duration of the audio", None),
    "ssf": Face("SSF", "Searching speed factor: CPU time over the durations of queries and audio, 1/h", None),
    "pmu_index": Face("PMU indexing", "Peak memory usage of indexing, GB", None),
    "pmu_search": Face("PMU searching", "Peak memory usage of searching, GB", None),
    "pl": Face("PL", "Processing load: .1 ISF PMU indexing + .9 SSF PMU searching", None),
}

LEADERBOARD = (
    ("n_hit", "n_miss", "n_false_alarm"),
    ("p_miss", "p_fa"),
    ("atwv", "actual_threshold"),
    ("mtwv", "mtwv_threshold"),
    ("otwv", "stwv"),
    ("cnxe", "cnxe_min"),
)
"""The columns of a leaderboard; those of a group stay side by side."""


NOT_BY_QUERY = frozenset(
    {
        "n_nontarget",
        "n_detections",
        "n_correct_nondetection",
        "actual_threshold",
        "otwv_p_miss",
        "otwv_p_fa",
        "stwv_p_miss",
        "occurrence_weighted_value",
    }
)
"""Measures that have no column in the report's table of queries: too many make it hard to read."""


def face(measure: str) -> Face:
    """The face of a measure; one such as `twv@2.5` says in its heading where, one without a face goes by its name."""
    family, at, point = measure.partition("@")
    if at and f"{family}@" in FACES:
        return replace(FACES[f"{family}@"], heading=f"{FACES[f'{family}@'].heading} at {point}")
    if measure in FACES:
        return FACES[measure]
    return Face(measure, measure, _COUNT if measure.startswith("n_") else None)


def distinct_headings(measures: Sequence[str]) -> list[str]:
    """The headings of measures that stand side by side; those that would have the same go by their names."""
    headings = [face(measure).heading for measure in measures]
    return [
        heading if headings.count(heading) == 1 else measure
        for measure, heading in zip(measures, headings, strict=True)
    ]


def shown(measure: str, value: float) -> str:
    """A number as people read it; a dash where it is not defined."""
    if math.isnan(value):
        return "-"
    digits = face(measure).digits
    return f"{value:.6g}" if digits is None else f"{value:,.{digits}f}"
