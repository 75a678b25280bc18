"""Gates: by how much a system may be worse than another, such as `atwv drops .005 with p < .05`.

    GATE = MEASURE (drops | rises) [NUMBER] [in CONDITION] [with p < NUMBER]

A gate fails where a system is worse than its baseline by more than the number: `atwv drops .005` where ATWV of the
system is more than .005 lower, `cnxe rises .005` where C_nxe is more than .005 higher. The table of measures
(`model.measures`) says which way is worse, and only that way can be written. Without a number any loss fails; without a
condition the gate looks at all queries ("all"). A loss that differs from the number by rounding only does not fail.

`with p < .05` lets only significant losses fail: p is `p_adjusted` of the pair, two-sided. A gate also fails where the
baseline has the measure and the system does not. Without the measure of the baseline nothing fails.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from swsdask.model.comparison import Failure
from swsdask.model.errors import SettingsError
from swsdask.model.measures import TABLE, better

_HAIR = 1e-12

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_GATE = re.compile(
    rf"(?P<measure>\S+)\s+(?P<verb>drops|rises)(?:\s+(?P<by>{_NUMBER}))?"
    rf"(?:\s+in\s+(?P<condition>\S.*?))?(?:\s+with\s+p\s*<\s*(?P<p>{_NUMBER}))?"
)
_VERBS = {1: "drops", -1: "rises"}

Values = Mapping[tuple[str, str], Mapping[str, float]]
"""By (condition, measure) and system."""

Differences = Mapping[tuple[str, str], Mapping[tuple[str, str], tuple[float, float]]]
"""By (condition, measure) and pair: the difference, and its adjusted p value."""


@dataclass(frozen=True)
class Gate:
    """A gate as it was written, and what it says.

    `measure` and `condition` are what it looks at. A loss of more than `by` fails, given `p_below` only if the p value
    is less than that.
    """

    text: str
    measure: str
    by: float = 0.0
    condition: str = "all"
    p_below: float | None = None

    def fails(self, difference: float, p: float = math.nan) -> bool:
        """Whether a difference, system - baseline, is too much of a loss. Without p a gate that needs it never fails.

        Examples
        --------
        >>> parse_gate("atwv drops .005").fails(-0.006), parse_gate("cnxe rises .005").fails(-0.006)
        (True, False)
        """
        loss = -better(self.measure) * difference
        return loss > self.by + _HAIR * (1 + self.by) and (self.p_below is None or p < self.p_below)


def parse_gate(text: str) -> Gate:
    """A gate from its text. Raises `SettingsError` for one that cannot be read, and names the nearest measure."""
    found = _GATE.fullmatch(text.strip())
    if found is None:
        raise SettingsError(
            f"gate {text!r}: expected MEASURE drops|rises [NUMBER] [in CONDITION] [with p < NUMBER], "
            "such as 'atwv drops .005 with p < .05'."
        )
    measure = found["measure"].lower()
    _check_measure(text, measure)
    verb = _VERBS.get(better(measure))
    if verb is None:
        raise SettingsError(f"gate {text!r}: neither more nor less of {measure} is better. Name another measure.")
    if found["verb"] != verb:
        worse = "lower" if verb == "drops" else "higher"
        raise SettingsError(f"gate {text!r}: {measure} gets worse as it gets {worse}. Write '{measure} {verb} ...'.")
    by = float(found["by"] or 0)
    p_below = float(found["p"]) if found["p"] else None
    if not 0 <= by < math.inf:
        raise SettingsError(f"gate {text!r}: expected a number from 0 after {verb}; found {found['by']}.")
    if p_below is not None and not 0 < p_below <= 1:
        raise SettingsError(f"gate {text!r}: expected a number above 0, at most 1, after p <; found {found['p']}.")
    return Gate(text.strip(), measure, by, found["condition"] or "all", p_below)


def _check_measure(text: str, measure: str) -> None:
    """Raise `SettingsError` unless the table of measures has it; a family such as `twv@` needs a point."""
    known = [row.name for row in TABLE]
    family, at, point = measure.partition("@")
    if family + at not in known:
        near = difflib.get_close_matches(measure, known, n=1, cutoff=0.0)
        raise SettingsError(f"gate {text!r}: measure {measure!r} is unknown. Nearest: {near[0]}.")
    if at and not point:
        raise SettingsError(f"gate {text!r}: expected a point after the @, such as {measure}0.5; found none.")


def failures(
    gates: Iterable[Gate], pairs: Iterable[tuple[str, str]], values: Values, differences: Differences
) -> list[Failure]:
    """The failures of each gate in each of some pairs (system, baseline).

    Without a difference of a pair that of the two values is taken, without a p value. Raises `SettingsError` for a
    condition or a measure that has no values.
    """
    pairs = list(pairs)
    return [failure for gate in gates for failure in _failures(gate, pairs, values, differences)]


def _failures(gate: Gate, pairs: list[tuple[str, str]], values: Values, differences: Differences) -> list[Failure]:
    place = (gate.condition, gate.measure)
    conditions = {condition for condition, _ in values}
    if gate.condition not in conditions:
        near = difflib.get_close_matches(gate.condition, sorted(conditions), n=1, cutoff=0.0)
        raise SettingsError(f"gate {gate.text!r}: condition {gate.condition!r} is unknown. Nearest: {', '.join(near)}.")
    if place not in values:
        raise SettingsError(f"gate {gate.text!r}: no system has {gate.measure} in the condition {gate.condition}.")
    found = []
    for system, baseline in pairs:
        value, old = (values[place].get(name, math.nan) for name in (system, baseline))
        difference, p = differences.get(place, {}).get((system, baseline), (value - old, math.nan))
        lost = math.isnan(value) and not math.isnan(old)
        if lost or gate.fails(difference, p):
            p = math.nan if gate.p_below is None else p
            found.append(Failure(gate.text, system, baseline, *place, value, old, difference, p))
    return found
