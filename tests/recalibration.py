"""What the best maps of scores are, by definition: to 50 digits, or in exact fractions."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction

Row = tuple[float, int, int]
"""A score with its target and non-target trials."""


def exact_minimum(
    rows: Sequence[Row], eta: float, start: tuple[float, float] = (0.0, 0.0)
) -> tuple[Decimal, Decimal, Decimal]:
    """C_nxe_min, gamma and delta to 50 digits: Newton in the scores' own units, from `start`, in short steps."""
    one, log_odds = Decimal(1), Decimal(eta)
    scores = [Decimal(score) for score, _, _ in rows]
    prior = one / (one + (-log_odds).exp())
    target = [prior * n / sum(row[1] for row in rows) for _, n, _ in rows]
    nontarget = [(one - prior) * n / sum(row[2] for row in rows) for _, _, n in rows]

    def cost(gamma: Decimal, delta: Decimal) -> Decimal:
        odds = [(gamma * score + delta + log_odds).exp() for score in scores]
        return sum(
            (w * (one + one / o).ln() + v * (one + o).ln() for w, v, o in zip(target, nontarget, odds, strict=True)),
            Decimal(0),
        )

    gamma, delta = map(Decimal, start)
    nothing, here = cost(Decimal(0), Decimal(0)), cost(gamma, delta)
    while True:
        g_gamma = g_delta = h_gg = h_gd = h_dd = Decimal(0)
        for score, w, v in zip(scores, target, nontarget, strict=True):
            posterior = one / (one + (-(gamma * score + delta + log_odds)).exp())
            slope, curvature = v * posterior - w * (one - posterior), (w + v) * posterior * (one - posterior)
            g_gamma, g_delta = g_gamma + slope * score, g_delta + slope
            h_gg, h_gd, h_dd = h_gg + curvature * score * score, h_gd + curvature * score, h_dd + curvature
        determinant = h_gg * h_dd - h_gd * h_gd
        d_gamma = (h_gd * g_delta - h_dd * g_gamma) / determinant
        d_delta = (h_gd * g_gamma - h_gg * g_delta) / determinant
        decrement = -(g_gamma * d_gamma + g_delta * d_delta)
        if decrement < Decimal("1e-40"):
            return here / nothing, gamma, delta
        stride = max(abs(d_gamma * score + d_delta) for score in scores)
        share = min(one, 2 / stride)
        while cost(gamma + share * d_gamma, delta + share * d_delta) > here - share * decrement / 1000:
            share /= 2
        d_gamma, d_delta = share * d_gamma, share * d_delta
        gamma, delta = gamma + d_gamma, delta + d_delta
        here = cost(gamma, delta)


def overlapping(rows: Sequence[Row]) -> bool:
    """Some target lies below a non-target, and some above one."""
    targets = [row[0] for row in rows if row[1]]
    nontargets = [row[0] for row in rows if row[2]]
    return min(targets) < max(nontargets) and max(targets) > min(nontargets)


def min_max_shares(rows: Sequence[tuple[int, int]]) -> list[Fraction]:
    """Isotonic regression by its formula: at each row, the highest lower end of the lowest averages around it."""
    shares = []
    for at in range(len(rows)):
        from_below = []
        for begin in range(at + 1):
            averages = []
            for end in range(at + 1, len(rows) + 1):
                target = sum(t for t, _ in rows[begin:end])
                averages.append(Fraction(target, target + sum(n for _, n in rows[begin:end])))
            from_below.append(min(averages))
        shares.append(max(from_below))
    return shares
