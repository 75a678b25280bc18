"""The geometry of ECE plots: cross entropy against the prior, for a system's scores as they are and recalibrated.

Two plots side by side. The first is the empirical cross entropy in bits (Ramos and Gonzalez-Rodriguez, Cross-entropy
analysis of the information in forensic speaker recognition, 2008). The second is the same over that of the system that
always says 0, which at the prior of the evaluation is C_nxe (2013 measures document, Eq. 40): where targets are rare
all that the first shows lies near its floor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

CURVES = {
    "ece_default": "without any scores",
    "ece_pav": "best rising map (PAV)",
    "ece_affine": "best affine map",
    "ece_actual": "as given",
}
"""The curves, in the order in which they are drawn, and what they are."""

WIDTH, HEIGHT = 320, 240
LEFT, RIGHT, TOP, BOTTOM = 54, 8, 8, 50
_HIGHEST = 1.25
_MOST_X_TICKS = 8

Points = Sequence[tuple[float, float]]


def plots(curves: Mapping[str, Points], prior_log_odds: float) -> list[dict[str, Any]]:
    """Both plots, each with its curves as the data of SVG paths; none without the curve "ece_default".

    A curve is its points (prior log-odds, C_xe in bits) by rising x. What rises above the frame is cut off there.
    """
    default = dict(curves.get("ece_default", ()))
    ends = sorted(default)
    if len(ends) < 2:
        return []
    relative = {
        name: [(x, y / default[x]) for x, y in points if default.get(x, 0.0) > 0.0] for name, points in curves.items()
    }
    return [
        _plot("Cross entropy (bits)", curves, (ends[0], ends[-1]), prior_log_odds),
        _plot("Over that of no scores", relative, (ends[0], ends[-1]), prior_log_odds),
    ]


def _plot(title: str, curves: Mapping[str, Points], ends: tuple[float, float], prior: float) -> dict[str, Any]:
    across = (WIDTH - RIGHT - LEFT) / (ends[1] - ends[0])
    down = (HEIGHT - BOTTOM - TOP) / _HIGHEST

    def x_of(x: float) -> float:
        return round(LEFT + (x - ends[0]) * across, 1)

    def y_of(y: float) -> float:
        return round(HEIGHT - BOTTOM - min(y, 2 * _HIGHEST) * down, 1)

    return {
        "about": "Cross entropy against the prior log-odds of",
        "title": title,
        "x_title": "Prior log-odds",
        "width": WIDTH,
        "height": HEIGHT,
        "left": LEFT,
        "right": WIDTH - RIGHT,
        "top": TOP,
        "bottom": HEIGHT - BOTTOM,
        "x_ticks": [{"at": x_of(tick), "label": f"{tick:g}"} for tick in _ticks(*ends)],
        "y_ticks": [{"at": y_of(tick), "label": f"{tick:g}"} for tick in (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)],
        "prior": x_of(prior) if ends[0] <= prior <= ends[1] else None,
        "curves": [
            {"kind": name, "path": "M" + "L".join(f"{x_of(x)} {y_of(y)}" for x, y in curves[name])}
            for name in CURVES
            if curves.get(name)
        ],
    }


def _ticks(low: float, high: float) -> list[float]:
    """Multiples of 1, 2, 5, 10, ... between two ends, few enough to label all."""
    steps = (digit * 10.0**power for power in range(9) for digit in (1, 2, 5))
    step = next(step for step in steps if (high - low) / step <= _MOST_X_TICKS)
    first = -int(-low // step)
    return [number * step for number in range(first, int(high // step) + 1)]
