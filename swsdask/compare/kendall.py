"""How alike two rankings of the same things are: Kendall's tau-b, and tau_AP, which weighs the top.

Rankings are given by values, more is better, float64 [n]; infinities may be among them, NaN may not. Equal values are
ties. All counts are integers and sums are rounded once, so the order of the things never shows.
"""

from __future__ import annotations

import math

import numpy as np

from swsdask.model.trials import F64, I8, I64


def tau_b(x: F64, y: F64) -> float:
    """Kendall's tau-b: (concordant - discordant pairs) / sqrt(pairs not tied in x * pairs not tied in y).

    1 for equal rankings, -1 for reversed ones. NaN where all of x or all of y are tied, so for fewer than two things.
    Source: Kendall, The Treatment of Ties in Ranking Problems, Biometrika 33 (1945).
    """
    s, t = _order(x), _order(y)
    untied = int(np.count_nonzero(s)) * int(np.count_nonzero(t))
    return int((s * t).sum()) / math.sqrt(untied) if untied else math.nan


def tau_ap(x: F64, y: F64) -> float:
    """tau_AP of the ranking x with y as the truth: 1 for equal rankings, -1 for reversed ones; not symmetric.

    Mean over the things with others above them in x of C - D, C being the share of those above that y puts above too,
    D the share of those that y puts below. Without ties it is 2 / (n - 1) sum over ranks i = 2 .. n of C(i) / (i - 1),
    less 1, as in Yilmaz, Aslam and Robertson, A New Rank Correlation Coefficient for Information Retrieval, SIGIR 2008,
    Section 4. They leave ties open. Here "above" is strictly above: what is tied in x says nothing of one another,
    what is tied in y only is neither right nor wrong; so it is 1 for equal rankings with ties too. NaN where all of x
    are tied.
    """
    above = _order(x) > 0
    n_above: I64 = above.sum(axis=0)
    agreed: I64 = (above * _order(y)).sum(axis=0)
    below = n_above > 0
    shares = (agreed[below] / n_above[below]).tolist()
    return math.fsum(shares) / len(shares) if shares else math.nan


def _order(x: F64) -> I8:
    """1 where the thing of a row is better than that of a column, -1 where it is worse: int8 [n, n]."""
    return np.greater.outer(x, x).view(np.int8) - np.less.outer(x, x).view(np.int8)
