"""The table of measures: one row for each name, with its heading, digits, order of merit and source.

Rankings, tables, pages and documentation read it; a measure's formula is in `measures`, under the same name. A name
that ends in "@" means one number at each point, such as `twv@0.5`. `map(rel=2)` is MAP if documents are relevant from
grade 2 on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from swsdask.model.ranked_measures import RELEVANT
from swsdask.model.trials import I64

Column = TypeVar("Column")

_COUNT, _RATE, _RARE, _SCORE = 0, 4, 6, 4
_LONG = 1e12
_MEASURES, _THESIS, _NDCG = "2013 measures document, ", "thesis, ", "Järvelin and Kekäläinen 2002"


class Points(NamedTuple):
    """The setting that holds the points of a measure, an example of a point, and the allowed values."""

    setting: str
    example: str
    least: float = -math.inf
    most: float = math.inf
    whole: bool = False


_THRESHOLDS = Points("thresholds", "0.5")
_RANKS = Points("average_precision.ranks", "10", least=1, most=10**9, whole=True)


class Accepted(NamedTuple):
    """Columns of numbers: of hits, of all accepted trials, and of targets."""

    hits: I64
    accepted: I64
    targets: I64


Quotient = Callable[[Accepted], tuple[I64, I64]]
"""A numerator and a denominator."""


@dataclass(frozen=True)
class Description:
    """The name of a measure, the format of its numbers, and whether a higher value is better.

    Parameters
    ----------
    name : str
        The name in results.
    heading, title : str
        The heading of a column, and the measure in words.
    digits : int or None
        Decimals; None: six significant digits.
    better : {1, -1, 0}
        1 if a higher value is better, -1 if a lower one is, 0 if neither.
    balanced : bool
        Whether misses and false alarms weigh against each other, so that detecting everything or nothing does not win.
        Systems are ranked by the first balanced measure that has numbers. If two measures always rank alike, such as
        C_Norm and C_Det, only one is balanced.
    by_query : bool
        Whether the report's table of queries has a column for it, if it is defined for a query.
    source : str
        Document and equation, where a document defines it.
    formula : str
        The formula in plain text: ``sum over q of``, ``a / b``, ``N_(g-1)``. The documentation typesets it.
    span : str
        The lowest and the highest value, such as ``0 .. 1``; a missing bound means that there is none.
    printed : str
        Official tools that print it, and its name there, such as ``trec_eval: map; KWSEval: MAP%``.
    points : Points, optional
        The points of a measure whose name ends in "@".
    quotient : callable, optional
        For a measure that is a quotient: its numerator and denominator, from the numbers of hits, accepted trials and
        targets. It is computed over all queries and per query, by the system's decisions or, if it has points, at
        thresholds; not defined (NaN) where the denominator is 0.
    """

    name: str
    heading: str
    title: str
    digits: int | None = None
    better: int = 0
    balanced: bool = False
    by_query: bool = True
    source: str = ""
    formula: str = ""
    span: str = ""
    printed: str = ""
    points: Points | None = None
    quotient: Quotient | None = None


def _precision(found: Accepted) -> tuple[I64, I64]:
    return found.hits, found.accepted


def _recall(found: Accepted) -> tuple[I64, I64]:
    return found.hits, found.targets


def _f_beta(beta: int) -> Quotient:
    """Return the harmonic mean of precision and of recall with the weight beta^2; not defined without targets."""

    def quotient(found: Accepted) -> tuple[I64, I64]:
        total = found.accepted + beta**2 * found.targets
        return (1 + beta**2) * found.hits, np.where(found.targets > 0, total, 0)

    return quotient


# fmt: off
TABLE = (
    Description("n_queries", "Queries", "Queries that the averages count", _COUNT, formula="|Q|", span="0 ..",
                printed="KWSEval: #Keyword"),
    Description("n_target", "Targets", "Target trials, which are to be found", _COUNT, source=_MEASURES + "2.1",
                formula="sum over q of N_act(q)", span="0 ..", printed="KWSEval: #Targ; STDEval: Ref"),
    Description("n_nontarget", "Non-targets", "Detections without a target", _COUNT, by_query=False,
                span="0 ..", printed="KWSEval: #NTarg"),
    Description("n_detections", "Detections", "Detections that were scored", _COUNT, by_query=False, span="0 ..",
                printed="KWSEval: #Sys"),
    Description("n_hit", "Hits", "Targets found, by the system's decisions", _COUNT, +1, source=_MEASURES + "2.1",
                formula="sum over q of N_hit(q)", span="0 ..", printed="KWSEval: #CorDet; STDEval: Corr"),
    Description("n_miss", "Misses", "Targets not found, by the system's decisions",
                _COUNT, -1, source=_MEASURES + "2.1", formula="sum over q of N_miss(q)", span="0 ..",
                printed="KWSEval: #Miss; STDEval: Miss"),
    Description("n_false_alarm", "False alarms", "Detections without a target, decided YES",
                _COUNT, -1, source=_MEASURES + "2.1", formula="sum over q of N_fa(q)", span="0 ..",
                printed="KWSEval: #FA; STDEval: FA"),
    Description("n_correct_nondetection", "Rejected", "Detections without a target, decided NO",
                _COUNT, by_query=False, source=_MEASURES + "2.1", span="0 ..", printed="KWSEval: #Cor!Det"),
    Description("p_miss", "P_miss", "Miss probability at the system's decisions, averaged over queries",
                _RATE, -1, source=_MEASURES + "Eq. 1, 4", formula="mean over q of N_miss(q) / N_act(q)",
                span="0 .. 1", printed="KWSEval: PMiss; STDEval: mean P(Mis)"),
    Description("p_fa", "P_fa", "False alarm probability at the system's decisions, averaged over queries",
                _RARE, -1, source=_MEASURES + "Eq. 3, 5", formula="mean over q of N_fa(q) / N_nt(q)", span="0 ..",
                printed="KWSEval: PFA; STDEval: mean P(FA)"),
    Description("p_miss_pooled", "P_miss pooled", "Miss probability at the system's decisions, all trials as one set",
                _RATE, -1, formula="N_miss / N_true", span="0 .. 1", printed="STDEval: total P(Mis)"),
    Description("p_fa_pooled", "P_fa pooled", "False alarm probability at its decisions, all trials as one set",
                _RARE, -1, formula="N_fa / (|Q| N - N_true)", span="0 ..", printed="STDEval: total P(FA)"),
    Description("atwv", "ATWV", "Actual term-weighted value: at the system's decisions",
                _RATE, +1, balanced=True, source=_MEASURES + "Eq. 6", formula="1 - (P_miss + beta P_fa)",
                span=".. 1", printed="KWSEval: Actual Decision TWV; STDEval: A. T-Weighted Value; MediaEval: actTWV"),
    Description("actual_threshold", "Threshold", "The threshold that explains all decisions, where there is one",
                _SCORE, by_query=False, printed="KWSEval: Actual Decision Dec. Tresh"),
    Description("mtwv", "MTWV", "Maximum term-weighted value: at the best single threshold",
                _RATE, +1, balanced=True, source=_MEASURES + "2.3", formula="max over theta of TWV(theta)",
                span="0 .. 1", printed="KWSEval: Maximum TWV; MediaEval: maxTWV"),
    Description("mtwv_threshold", "Threshold", "The smallest score accepted at the MTWV", _SCORE,
                formula="argmax over theta of TWV(theta)", printed="KWSEval: Maximum Dec. Thresh"),
    Description("mtwv_rejected_threshold", "Rejected up to", "The largest score rejected at the MTWV", _SCORE,
                printed="MediaEval: Threshold"),
    Description("mtwv_p_miss", "P_miss", "Miss probability at the MTWV", _RATE, -1, source=_MEASURES + "Eq. 4",
                formula="P_miss(theta)", span="0 .. 1", printed="KWSEval: Maximum PMiss"),
    Description("mtwv_p_fa", "P_fa", "False alarm probability at the MTWV", _RARE, -1, source=_MEASURES + "Eq. 5",
                formula="P_fa(theta)", span="0 ..", printed="KWSEval: Maximum PFA"),
    Description("otwv", "OTWV", "Optimum term-weighted value: at the best threshold of each query",
                _RATE, +1, balanced=True, source=_MEASURES + "Eq. 6",
                formula="1 - (P_miss + beta P_fa), each q at argmax over theta of TWV_q(theta)", span="0 .. 1",
                printed="KWSEval: Optimum TWV"),
    Description("otwv_p_miss", "P_miss", "Miss probability at the OTWV",
                _RATE, -1, by_query=False, source=_MEASURES + "Eq. 4", span="0 .. 1",
                printed="KWSEval: Optimum PMiss"),
    Description("otwv_p_fa", "P_fa", "False alarm probability at the OTWV",
                _RARE, -1, by_query=False, source=_MEASURES + "Eq. 5", span="0 ..", printed="KWSEval: Optimum PFA"),
    Description("otwv_threshold", "Threshold", "The smallest score accepted at the OTWV", _SCORE,
                formula="argmax over theta of TWV_q(theta)"),
    Description("twv_query_offset", "TWV query offset",
                "Term-weighted value with an offset of the scores of each query", _RATE, +1, balanced=True,
                formula="max over delta_q of TWV(s + delta_q)", span=".. 1", printed="MediaEval: Upper-bound TWV"),
    Description("stwv", "STWV", "Supremum term-weighted value: false alarms and decisions ignored",
                _RATE, +1, source=_MEASURES + "Eq. 6", formula="mean over q of N_detected(q) / N_act(q)",
                span="0 .. 1", printed="KWSEval: Supremum TWV"),
    Description("stwv_p_miss", "P_miss", "Miss probability at the STWV: targets that no detection found",
                _RATE, -1, by_query=False, source=_MEASURES + "Eq. 4", span="0 .. 1",
                printed="KWSEval: Supremum PMiss"),
    Description("loss_not_found", "Not found", "1 - STWV: the cost of targets that no detection found", _RATE, -1,
                formula="1 - STWV", span="0 .. 1"),
    Description("loss_within_query", "Within queries", "STWV - OTWV: the cost of the order of scores inside queries",
                _RATE, -1, formula="STWV - OTWV", span="0 .."),
    Description("loss_across_queries", "Across queries", "OTWV - MTWV: the cost of one threshold for all queries",
                _RATE, -1, formula="OTWV - MTWV"),
    Description("loss_threshold", "Threshold loss", "MTWV - ATWV: the cost of the system's own decisions", _RATE, -1,
                formula="MTWV - ATWV"),
    Description("c_det", "C_Det", "Detection cost at the system's decisions", None, -1, source=_MEASURES + "Eq. 8",
                formula="C_miss P_miss P_target + C_fa P_fa (1 - P_target)", span="0 .."),
    Description("c_default", "C_Default", "Cost of the better of rejecting and accepting everything",
                None, source=_MEASURES + "Eq. 9", formula="min(C_miss P_target, C_fa (1 - P_target))", span="0 .."),
    Description("c_norm", "C_Norm", "Detection cost over C_Default",
                _RATE, -1, balanced=True, source=_MEASURES + "Eq. 10", formula="C_Det / C_Default", span="0 .."),
    Description("beta", "Beta", "The weight of P_fa in TWV", None, source=_MEASURES + "Eq. 7, 18",
                formula="C_fa (1 - P_target) / (C_miss P_target)", span="0 ..", printed="KWSEval: BETA"),
    Description("effective_prior", "Effective prior", "The prior that with equal costs is the same application",
                None, source=_MEASURES + "Eq. 23", formula="1 / (1 + beta)", span="0 .. 1"),
    Description("bayes_threshold", "Bayes threshold", "The best threshold for log-likelihood ratios",
                _SCORE, source=_MEASURES + "Eq. 31", formula="log(beta)"),
    Description("twv_bayes", "TWV Bayes", "Term-weighted value at the Bayes threshold",
                _RATE, +1, balanced=True, source=_MEASURES + "Eq. 30-31", formula="TWV(log(beta))", span=".. 1"),
    Description("twv@", "TWV", "Term-weighted value at a given threshold",
                _RATE, +1, balanced=True, source=_MEASURES + "Eq. 6",
                formula="1 - (P_miss(theta) + beta P_fa(theta))", span=".. 1",
                points=_THRESHOLDS),
    Description("eer", "EER", "Equal error rate: where P_miss and P_fa meet",
                _RATE, -1, balanced=True, source=_MEASURES + "Eq. 4-5", formula="P_miss(theta) = P_fa(theta)",
                span="0 .. 1"),
    Description("p_miss@", "P_miss", "Miss probability at a given false alarm probability",
                _RATE, -1, balanced=True, source=_MEASURES + "Eq. 4-5",
                formula="P_miss(theta) where P_fa(theta) = p", span="0 .. 1",
                points=Points("p_fa_points", "0.001", 0, 1)),
    Description("occurrence_weighted_value", "OWV", "Occurrence-weighted value at the system's decisions",
                _RATE, +1, balanced=True, by_query=False, formula="(C_miss N_hit - C_fa N_fa) / (C_miss N_true)",
                span=".. 1", printed="STDEval: Actual Occ. Weighted Value"),
    Description("cxe", "C_xe", "Cross entropy of the scores as log-likelihood ratios, in bits",
                _RATE, -1, source=_MEASURES + "Eq. 38, 43", span="0 ..",
                formula="(P_tar mean over T_true of softplus(-s - eta)"
                        " + (1 - P_tar) mean over T_false of softplus(s + eta)) / log(2)"),
    Description("cxe_prior", "C_xe prior", "Cross entropy without any scores, in bits",
                _RATE, source=_MEASURES + "Eq. 39", formula="-P_tar log_2(P_tar) - (1 - P_tar) log_2(1 - P_tar)",
                span="0 .. 1"),
    Description("cnxe", "C_nxe", "Normalised cross entropy: 0 is best, 1 is as good as no scores",
                _RATE, -1, balanced=True, source=_MEASURES + "Eq. 40", formula="C_xe / C_xe_prior", span="0 ..",
                printed="MediaEval: actCnxe"),
    Description("n_given_target", "Targets given", "Target trials that the system gave a score",
                _COUNT, source=_MEASURES + "Eq. 41", span="0 .."),
    Description("n_imputed_target", "Targets imputed", "Target trials without a detection, at the imputed score",
                _COUNT, source=_MEASURES + "Eq. 41", span="0 .."),
    Description("n_given_nontarget", "Non-targets given", "Non-target trials that the system gave a score",
                _COUNT, source=_MEASURES + "Eq. 41", span="0 .."),
    Description("n_imputed_nontarget", "Non-targets imputed",
                "Non-target trials without a detection, at the imputed score", _COUNT, source=_MEASURES + "Eq. 41",
                span="0 .."),
    Description("impute_score", "Imputed score", "The score of trials that the system did not give",
                _SCORE, source=_MEASURES + "Eq. 42", printed="MediaEval: default"),
    Description("cnxe_min", "C_nxe min", "C_nxe after the best affine map of the scores",
                _RATE, -1, balanced=True, source=_MEASURES + "Eq. 44-45",
                formula="min over gamma, delta of C_nxe(gamma s + delta)", span="0 .. 1"),
    Description("cnxe_gamma", "Gamma", "Factor of the best affine map; 1 where scores are log-likelihood ratios",
                _SCORE, source=_MEASURES + "Eq. 44"),
    Description("cnxe_delta", "Delta", "Offset of the best affine map; 0 where scores are log-likelihood ratios",
                _SCORE, source=_MEASURES + "Eq. 44"),
    Description("cnxe_min_pav", "C_nxe min PAV", "C_nxe after the best rising map of the scores",
                _RATE, -1, balanced=True, formula="min over rising f of C_nxe(f(s))", span="0 .. 1",
                printed="MediaEval: minCnxe"),
    Description("cnxe_query_pav", "C_nxe query PAV", "C_nxe after the best rising map for each query",
                _RATE, -1, balanced=True, formula="min over rising f_q of C_nxe(f_q(s))", span="0 ..",
                printed="MediaEval: Lower-bound Cnxe"),
    Description("calibration_loss", "Calibration loss", "C_nxe that the best affine map would save", _RATE, -1,
                formula="C_nxe - C_nxe_min", span="0 .."),
    Description("calibration_loss_pav", "Loss PAV", "C_nxe that the best rising map would save", _RATE, -1,
                formula="C_nxe - C_nxe_min_PAV", span="0 .."),
    Description("mediaeval_atwv", "QUESST actTWV", "TWV of the decisions, as MediaEval's tool prints it", _RATE, +1,
                printed="MediaEval: actTWV"),
    Description("mediaeval_mtwv", "QUESST maxTWV", "Highest TWV of one threshold, as MediaEval's tool prints it",
                _RATE, +1, printed="MediaEval: maxTWV"),
    Description("mediaeval_threshold", "QUESST threshold", "The largest score rejected at QUESST maxTWV", _SCORE,
                printed="MediaEval: Threshold"),
    Description("mediaeval_cnxe", "QUESST actCnxe", "C_nxe, as MediaEval's tool prints it", _RATE, -1,
                printed="MediaEval: actCnxe"),
    Description("mediaeval_cnxe_min", "QUESST minCnxe", "C_nxe after PAV, as MediaEval's tool prints it", _RATE, -1,
                printed="MediaEval: minCnxe"),
    Description("mediaeval_offset_atwv", "QUESST UB actTWV", "Upper bound of TWV, as MediaEval's tool prints it",
                _RATE, +1, printed="MediaEval: Upper-bound actTWV"),
    Description("mediaeval_offset_mtwv", "QUESST UB maxTWV", "Upper bound's maximum, as MediaEval's tool prints it",
                _RATE, +1, printed="MediaEval: Upper-bound maxTWV"),
    Description("mediaeval_offset_threshold", "QUESST UB threshold", "The threshold of the upper bound's maximum",
                _SCORE, printed="MediaEval: Upper-bound Threshold"),
    Description("mediaeval_pav_cnxe", "QUESST LB actCnxe", "Lower bound of C_nxe, as MediaEval's tool prints it",
                _RATE, -1, printed="MediaEval: Lower-bound actCnxe"),
    Description("mediaeval_pav_cnxe_min", "QUESST LB minCnxe", "Lower bound after PAV, as MediaEval's tool prints it",
                _RATE, -1, printed="MediaEval: Lower-bound minCnxe"),
    Description("mediaeval_min_score", "QUESST minScore", "Lowest score, as MediaEval's tool prints it", _SCORE,
                printed="MediaEval: minScore"),
    Description("mediaeval_max_score", "QUESST maxScore", "Highest score, as MediaEval's tool prints it", _SCORE,
                printed="MediaEval: maxScore"),
    Description("precision", "Precision", "Precision at the system's decisions, over all queries",
                _RATE, +1, source=_THESIS + "Eq. 5.1-5.6", formula="H / A", span="0 .. 1", quotient=_precision),
    Description("recall", "Recall", "Recall at the system's decisions, over all queries",
                _RATE, +1, source=_THESIS + "Eq. 5.1-5.6", formula="H / R", span="0 .. 1", quotient=_recall),
    Description("f1", "F1", "F1 at the system's decisions, over all queries",
                _RATE, +1, balanced=True, source=_THESIS + "Eq. 5.1-5.6", formula="2 H / (A + R)", span="0 .. 1",
                quotient=_f_beta(1)),
    Description("precision@", "Precision", "Precision at a given threshold", _RATE, +1, source=_THESIS + "Eq. 5.1-5.6",
                formula="H(theta) / A(theta)", span="0 .. 1", quotient=_precision, points=_THRESHOLDS),
    Description("recall@", "Recall", "Recall at a given threshold", _RATE, +1, source=_THESIS + "Eq. 5.1-5.6",
                formula="H(theta) / R", span="0 .. 1", quotient=_recall, points=_THRESHOLDS),
    Description("f1@", "F1", "F1 at a given threshold", _RATE, +1, source=_THESIS + "Eq. 5.1-5.6",
                formula="2 H(theta) / (A(theta) + R)", span="0 .. 1", quotient=_f_beta(1), points=_THRESHOLDS),
    Description("best_f1", "Best F1", "F1 at the best single threshold",
                _RATE, +1, balanced=True, source=_THESIS + "Eq. 5.1-5.6", formula="max over theta of F1(theta)",
                span="0 .. 1", printed="kws-assessment: F1max"),
    Description("best_f1_threshold", "Threshold", "The smallest score accepted at the best F1", _SCORE,
                formula="argmax over theta of F1(theta)"),
    Description("map", "MAP", "Mean average precision over queries", _RATE, +1, balanced=True, source=_THESIS + "5.2",
                formula="mean over q of AP(q)", span="0 .. 1",
                printed="KWSEval: MAP%; trec_eval: map; ir_measures: AP; kws-assessment: MAP"),
    Description("ap", "AP", "Average precision", _RATE, +1, balanced=True, source=_THESIS + "5.2",
                formula="(1 / R) sum over g of (H_g - H_(g-1)) Q_g", span="0 .. 1", printed="kws-assessment: AP"),
    Description("map_n_averaged", "Averaged", "Queries that MAP averages", _COUNT, span="0 ..",
                printed="trec_eval: num_q; ir_measures: NumQ"),
    Description("map_n_no_relevant", "No targets", "Queries left out of MAP: without targets", _COUNT, span="0 .."),
    Description("map_n_missing", "No trials", "Queries left out of MAP: the run has none of their trials", _COUNT,
                span="0 .."),
    Description("r_precision", "R-precision", "Precision at as many trials as a query has targets",
                _RATE, +1, balanced=True, formula="mean over q of H_R / R", span="0 .. 1",
                printed="trec_eval: Rprec; ir_measures: Rprec"),
    Description("precision_at_rank@", "Precision", "Precision at a given rank, averaged over queries", _RATE, +1,
                formula="mean over q of H_K / K", span="0 .. 1", printed="trec_eval: P_K; ir_measures: P@K",
                points=_RANKS),
    Description("precision_at_recall@", "Int. precision",
                "Interpolated precision at a given recall, averaged over queries",
                _RATE, +1, source=_THESIS + "Eq. 5.7", formula="mean over q of max over r' >= r of P(r')",
                span="0 .. 1", printed="trec_eval: iprec_at_recall_R; ir_measures: IPrec@R",
                points=Points("average_precision.recalls", "0.5", 0, 1)),
    Description("recall_at_rank@", "Recall", "Recall at a given rank, averaged over queries", _RATE, +1,
                formula="mean over q of H_K / R", span="0 .. 1", printed="trec_eval: recall_K; ir_measures: R@K",
                points=_RANKS),
    Description("success_at_rank@", "Success", "Share of queries with a target down to a given rank", _RATE, +1,
                formula="mean over q of [H_K > 0]", span="0 .. 1",
                printed="trec_eval: success_K; ir_measures: Success@K",
                points=_RANKS),
    Description("ap_at_rank@", "AP", "Average precision of rankings that end at a given rank, averaged over queries",
                _RATE, +1, formula="mean over q of 1/R sum over t_i <= K of i / t_i", span="0 .. 1",
                printed="trec_eval: map_cut_K; ir_measures: AP@K",
                points=_RANKS),
    Description("reciprocal_rank", "MRR", "One over the rank of the first target, averaged over queries",
                _RATE, +1, balanced=True, formula="mean over q of 1 / t_1", span="0 .. 1",
                printed="trec_eval: recip_rank; ir_measures: RR"),
    Description("rbp@", "RBP", "Rank-biased precision at a given persistence, averaged over queries",
                _RATE, +1, source="Moffat and Zobel 2008", formula="mean over q of (1 - p) sum over i of p^(t_i - 1)",
                span="0 .. 1", printed="ir_measures: RBP(p=P)",
                points=Points("average_precision.persistences", "0.8", least=1e-9, most=1 - 1e-9)),
    Description("eleven_point_precision", "11-point precision", "Mean interpolated precision at recalls 0, .1 to 1",
                _RATE, +1, balanced=True, by_query=False, span="0 .. 1", printed="trec_eval: 11pt_avg"),
    Description("set_precision", "Set precision", "Precision of all that was retrieved, averaged over queries",
                _RATE, +1, by_query=False, formula="mean over q of n / N", span="0 .. 1",
                printed="trec_eval: set_P; ir_measures: SetP"),
    Description("set_recall", "Set recall", "Recall of all that was retrieved, averaged over queries",
                _RATE, +1, by_query=False, formula="mean over q of n / R", span="0 .. 1",
                printed="trec_eval: set_recall; ir_measures: SetR"),
    Description("set_f1", "Set F1", "F1 of all that was retrieved, averaged over queries", _RATE, +1, by_query=False,
                formula="mean over q of 2 n / (N + R)", span="0 .. 1", printed="trec_eval: set_F; ir_measures: SetF"),
    Description("set_map", "Set MAP", "Precision times recall of all that was retrieved, averaged over queries",
                _RATE, +1, by_query=False, formula="mean over q of n^2 / (N R)", span="0 .. 1",
                printed="trec_eval: set_map; ir_measures: SetAP"),
    Description("gm_map", "GMAP", "Geometric mean of the average precision of queries", _RATE, +1,
                formula="exp(mean over q of ln(max(AP(q), .00001)))", span="0 .. 1", printed="trec_eval: gm_map"),
    Description("n_retrieved", "Retrieved", "Trials of the rankings that are averaged", _COUNT, by_query=False,
                formula="sum over q of N", span="0 ..", printed="trec_eval: num_ret; ir_measures: NumRet"),
    Description("n_relevant", "Relevant", "Targets of the rankings that are averaged", _COUNT, by_query=False,
                formula="sum over q of R", span="0 ..", printed="trec_eval: num_rel; ir_measures: NumRel"),
    Description("n_relevant_retrieved", "Relevant retrieved", "Targets in the rankings that are averaged",
                _COUNT, +1, by_query=False, formula="sum over q of n", span="0 ..",
                printed="trec_eval: num_rel_ret; ir_measures: NumRet(rel=1)"),
    Description("reciprocal_rank_at_rank@", "MRR", "Reciprocal rank, 0 beyond a given rank, over queries",
                _RATE, +1, formula="mean over q of [t_1 <= K] / t_1", span="0 .. 1", printed="ir_measures: RR@K",
                points=_RANKS),
    Description("ndcg", "nDCG", "Normalised discounted cumulative gain, averaged over queries", _RATE, +1,
                balanced=True, source=_NDCG, formula="mean over q of DCG / ideal DCG", span="0 .. 1",
                printed="trec_eval: ndcg; ir_measures: nDCG"),
    Description("ndcg_at_rank@", "nDCG", "nDCG at a given rank, averaged over queries",
                _RATE, +1, source=_NDCG, formula="mean over q of DCG_K / ideal DCG_K", span="0 .. 1",
                printed="trec_eval: ndcg_cut_K; ir_measures: nDCG@K",
                points=_RANKS),
    Description("exponential_ndcg_at_rank@", "nDCG 2^g", "nDCG of gains 2^grade - 1 at a given rank, over queries",
                _RATE, +1, source="Burges et al. 2005", span="0 .. 1",
                printed="ir_measures: nDCG(dcg='exp-log2')@K",
                points=_RANKS),
    Description("err_at_rank@", "ERR", "Expected reciprocal rank down to a given rank, averaged over queries",
                _RATE, +1, source="Chapelle et al. 2009",
                formula="mean over q of sum over r <= K of s_r / r prod over i < r of (1 - s_i)",
                span="0 .. 1", printed="ir_measures: ERR@K",
                points=_RANKS),
    Description("bpref", "bpref", "Preference of relevant over judged non-relevant documents, averaged over queries",
                _RATE, +1, balanced=True, source="Buckley and Voorhees 2004",
                formula="mean over q of 1/R sum over relevant of 1 - min(n, R) / min(M, R)", span="0 .. 1",
                printed="trec_eval: bpref; ir_measures: Bpref"),
    Description("gm_bpref", "GM bpref", "Geometric mean of bpref of queries", _RATE, +1, span="0 .. 1",
                printed="trec_eval: gm_bpref"),
    Description("inferred_ap", "infAP", "Average precision inferred from a judged sample, averaged over queries",
                _RATE, +1, balanced=True, source="Yilmaz and Aslam 2006", span="0 .. 1",
                printed="trec_eval: infAP; ir_measures: infAP"),
    Description("judged_at_rank@", "Judged", "Share of judged documents among the first K, averaged over queries",
                _RATE, formula="mean over q of J_K / min(K, N)", span="0 .. 1", printed="ir_measures: Judged@K",
                points=_RANKS),
    Description("ndcg_at_levels", "nDCG at levels", "Mean of nDCG at the ranks where ideal gain falls", _RATE, +1,
                by_query=False, span="0 ..", printed="trec_eval: Rndcg"),
    Description("ndcg_of_relevant", "nDCG of relevant", "Mean of nDCG at the ranks of relevant documents", _RATE, +1,
                by_query=False, span="0 .. 1", printed="trec_eval: ndcg_rel"),
    Description("normalised_gain", "G", "Gain discounted by how much more the ideal ranking has gained", _RATE, +1,
                by_query=False, span="0 .. 1", printed="trec_eval: G"),
    Description("binary_gain", "Binary G", "Relevant documents discounted by the others in front", _RATE, +1,
                by_query=False, formula="mean over q of 1/R sum over i of 1 / log2(2 + t_i - i)", span="0 .. 1",
                printed="trec_eval: binG"),
    Description("precision_at_relevant@", "Precision at R times", "Precision at a multiple of the number of targets",
                _RATE, +1, by_query=False, span="0 .. 1", printed="trec_eval: Rprec_mult_M",
                points=Points("average_precision.multiples", "2.0", least=1e-9, most=1e6)),
    Description("relative_precision_at_rank@", "Rel. precision",
                "Precision at a given rank over the highest possible one",
                _RATE, +1, by_query=False, formula="mean over q of H_K / min(K, R)", span="0 .. 1",
                printed="trec_eval: relative_P_K",
                points=_RANKS),
    Description("set_relative_precision", "Set rel. precision",
                "Precision of all that was retrieved over the highest possible one", _RATE, +1, by_query=False,
                formula="mean over q of n / min(N, R)", span="0 .. 1",
                printed="trec_eval: set_relative_P; ir_measures: SetP(relative=True)"),
    Description("utility", "Utility", "Relevant documents less others of all that was retrieved, averaged over queries",
                _RATE, +1, by_query=False, formula="mean over q of 2 n - N", printed="trec_eval: utility"),
    Description("n_nonrelevant_judged", "Non-relevant judged",
                "Judged non-relevant documents in the rankings that are averaged", _COUNT, by_query=False, span="0 ..",
                printed="trec_eval: num_nonrel_judged_ret"),
    Description("gap", "GAP", "Generalised average precision of places to start listening", _RATE, +1, balanced=True,
                formula="(1 / N) sum over k with R_k > 0 of p_k", span="0 .. 1"),
    Description("mgap", "mGAP", "Mean over queries of the GAP of places to start listening", _RATE, +1, balanced=True,
                formula="mean over q of GAP(q)", span="0 .. 1"),
    Description("isf", "ISF", "Indexing speed factor: CPU time of indexing over the duration of the audio",
                None, -1, source=_MEASURES + "4.3", formula="T_index / T_Omega", span="0 .."),
    Description("ssf", "SSF", "Searching speed factor: CPU time over the durations of queries and audio, 1/h",
                None, -1, source=_MEASURES + "Eq. 46", formula="T_search / (T_Q T_Omega)", span="0 .."),
    Description("pmu_index", "PMU indexing", "Peak memory usage of indexing, GB", None, -1, source=_MEASURES + "4.3",
                span="0 .."),
    Description("pmu_search", "PMU searching", "Peak memory usage of searching, GB",
                None, -1, source=_MEASURES + "4.3", span="0 .."),
    Description("pl", "PL", "Processing load: .1 ISF PMU indexing + .9 SSF PMU searching",
                None, -1, source=_MEASURES + "Eq. 48", formula="0.1 ISF PMU_index + 0.9 SSF PMU_search", span="0 .."),
)
# fmt: on
"""Every measure of detections, in the order in which rankings prefer them."""

_BY_NAME = {row.name: row for row in TABLE}

BALANCED = tuple(row.name for row in TABLE if row.balanced)
"""Names of measures by which systems may be ranked, the preferred first."""

_STAND_IN = {"atwv": "mtwv"}
"""The substitute of a measure, for systems that lack it: runs without decisions have no ATWV."""


_NAME = re.compile(r"([^(@]+)(?:\(rel=([0-9]+)\))?(?:(@)(.*))?")


class Name(NamedTuple):
    """The parts of a measure's name: `twv@` of `twv@0.5`, the lowest relevant grade, and the point, "" for none."""

    family: str
    level: int
    point: str


def parse_name(measure: str) -> Name:
    """Split a name into its parts.

    Examples
    --------
    >>> tuple(parse_name("precision_at_rank(rel=2)@5")), tuple(parse_name("map"))
    (('precision_at_rank@', 2, '5'), ('map', 1, ''))
    """
    found = _NAME.fullmatch(measure)
    if found is None:
        return Name(measure, RELEVANT, "")
    family, level, at, point = found.groups("")
    return Name(family + at, int(level or RELEVANT), point)


def at_level(measure: str, level: int) -> str:
    """Return the name of a measure if documents are relevant from a grade on: `precision_at_rank(rel=2)@5`."""
    family, at, point = measure.partition("@")
    return measure if level == RELEVANT else f"{family}(rel={level}){at}{point}"


def named_at(level: int, columns: Mapping[str, Column]) -> dict[str, Column]:
    """Rename measures to the names that they have if documents are relevant from a grade on."""
    return {at_level(name, level): column for name, column in columns.items()}


@lru_cache(maxsize=4096)
def describe(measure: str) -> Description:
    """Return the row of a measure.

    The heading of `twv@0.5` names its point; an unknown measure is described by its name.
    """
    family, level, point = parse_name(measure)
    row = _BY_NAME.get(family) or _of_discovery().get(family)
    if row is None:
        return Description(measure, measure, measure, _COUNT if measure.startswith("n_") else None)
    heading = f"{row.heading} at {point}" if point else row.heading
    return replace(row, name=measure, heading=heading if level == RELEVANT else f"{heading}, grade {level}+")


@cache
def _of_discovery() -> dict[str, Description]:
    from swsdask.model.discovery import DISCOVERY  # which imports this module

    return {row.name: row for row in DISCOVERY}


def measures_of_merit(measures: Sequence[str], requested: Sequence[str] | None = None) -> list[str]:
    """Return the requested measures that have an order of merit.

    If all were requested (None): those by which systems may be ranked, the preferred first; for term discovery in
    the order of its table.
    """
    of_discovery = (name for name in measures if name in _of_discovery() and describe(name).balanced)
    names = requested or (*BALANCED, *of_discovery)
    return list(dict.fromkeys(name for name in select_measures(names, measures) if better(name)))


def names_in(tool: str) -> dict[str, str]:
    """Return the measures by their names in an official tool; a family by the part of the name before its point."""
    found = (
        (row.name, name)
        for row in TABLE
        for owner, _, name in (each.partition(": ") for each in row.printed.split("; "))
        if owner == tool
    )
    return {re.sub(r"[A-Z]\)?$", "", name) if ours.endswith("@") else name: ours for ours, name in found}


def distinct_headings(measures: Sequence[str]) -> list[str]:
    """Headings of adjacent columns: measures with the same heading have their names instead."""
    headings = [describe(measure).heading for measure in measures]
    return [
        heading if headings.count(heading) == 1 else measure
        for measure, heading in zip(measures, headings, strict=True)
    ]


def written(measure: str, value: float) -> str:
    """Return a number with the digits of its measure; a dash where it is not defined. Beyond `_LONG` it has six digits.

    A small rate of false alarms, which would be printed as zeros only, has three significant digits.

    Examples
    --------
    >>> written("atwv", 0.55911), written("p_fa", 0.0000123), written("mtwv", float("nan"))
    ('0.5591', '0.000012', '-')
    >>> written("p_fa", 0.000000123), written("p_fa", 0.0)
    ('1.23e-07', '0.000000')
    """
    if math.isnan(value):
        return "-"
    digits = describe(measure).digits
    size = abs(value)
    if digits is None or (digits > 0 and size >= _LONG):
        return f"{value:.6g}"
    return f"{value:.3g}" if digits == _RARE and 0.0 < size < 0.5 * 10.0**-digits else f"{value:,.{digits}f}"


def signed(measure: str, change: float) -> str:
    """A difference of two numbers of a measure with its sign, without a sign if it is written as zero; "" if undefined.

    Examples
    --------
    >>> signed("atwv", 0.01), signed("atwv", -0.01), signed("atwv", -0.00001), signed("atwv", float("nan"))
    ('+0.0100', '-0.0100', '0.0000', '')
    """
    text = "" if math.isnan(change) else written(measure, change)
    if text.strip("-0.") == "":
        return text.removeprefix("-")
    return f"{'+' * (change > 0)}{text}"


def better(measure: str) -> int:
    """1 if higher values of a measure are better, -1 if lower ones are, 0 if neither; `twv@0.5` counts as `twv@`."""
    return describe(measure).better


def select_measures(names: Sequence[str], measures: Sequence[str]) -> Iterator[str]:
    """Select the measures that `names` name, in the order of the names; `twv@` names `twv@0.5` and all other points."""
    for name in names:
        yield from (each for each in measures if each == name or (name.endswith("@") and each.startswith(name)))


def ranking_measures(measures: Sequence[str], requested: Sequence[str] | None) -> tuple[str, ...]:
    """Return the measures that rank systems: the first requested one with an order of merit, then its substitute.

    `measures` are those that have numbers. If all were requested (None), systems are ranked by ATWV. Empty if none has
    an order of merit.
    """
    first = next((name for name in select_measures(requested or BALANCED, measures) if better(name)), None)
    if first is None:
        return ()
    stand_in = _STAND_IN.get(first)
    return (first,) if stand_in is None or stand_in not in measures else (first, stand_in)
