"""Gates: by how much a system may be worse than another, such as `atwv drops .005 with p < .05`.

    GATE = MEASURE (drops | rises) [NUMBER] [in CONDITION] [with p < NUMBER]

A gate fails where a system is worse than its baseline by more than the number: `atwv drops .005` where ATWV of the
system is more than .005 lower, `cnxe rises .005` where C_nxe is more than .005 higher. The table of measures
(`model.measures`) says which way is worse, and only that way can be written. Without a number any loss fails; without a
condition the gate is for all queries ("all"). A loss that differs from the number by rounding only does not fail.

`with p < .05` lets only significant losses fail: p is `p_adjusted` of the pair, two-sided. A gate also fails where the
baseline has the measure and the system does not. Without the measure of the baseline nothing fails.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from swsdask.comparison.notes import NAMED, Least
from swsdask.model.comparison import Failure
from swsdask.model.discovery import DISCOVERY
from swsdask.model.errors import SettingsError
from swsdask.model.measures import TABLE, better, parse_name
from swsdask.model.wording import counted, listed, nearest

_TOLERANCE = 1e-12
"""A relative tolerance: a loss that exceeds the limit of a gate by less does not fail."""

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_GATE = re.compile(
    rf"(?P<measure>\S+)\s+(?P<verb>drops|rises)(?:\s+(?P<by>{_NUMBER}))?"
    rf"(?:\s+in\s+(?P<condition>\S.*?))?(?:\s+with\s+p\s*<\s*(?P<p>{_NUMBER}))?"
)
_VERBS = {1: "drops", -1: "rises"}

NumbersBySystem = Mapping[tuple[str, str], Mapping[str, float]]
"""By (condition, measure) and system."""

Differences = Mapping[tuple[str, str], Mapping[tuple[str, str], tuple[float, float]]]
"""By (condition, measure) and pair: the difference, and its adjusted p value."""


@dataclass(frozen=True)
class Gate:
    """A gate: its text, and the limit that the text sets.

    The limit is on the numbers of `measure` in `condition`. A loss of more than `by` fails; if `p_below` is given, only
    one with a smaller p value.
    """

    text: str
    measure: str
    by: float = 0.0
    condition: str = "all"
    p_below: float | None = None

    def fails(self, difference: float, p: float = math.nan) -> bool:
        """Return whether a difference, system - baseline, is too much of a loss.

        Without p a gate that needs it never fails.

        Examples
        --------
        >>> parse_gate("atwv drops .005").fails(-0.006), parse_gate("cnxe rises .005").fails(-0.006)
        (True, False)
        """
        return self.loses(difference) and (self.p_below is None or p < self.p_below)

    def loses(self, difference: float) -> bool:
        """Return whether a difference, whatever its p value, is a loss of more than `by`."""
        return -better(self.measure) * difference > self.by + _TOLERANCE * (1 + self.by)


def parse_gate(text: str, named: Callable[[str], str] = str.lower) -> Gate:
    """Parse the text of a gate; `named` converts the name of its measure to that in results.

    Raises `SettingsError` for a text that is not a gate, and for an unknown measure, with the nearest one.
    """
    found = _GATE.fullmatch(text.strip())
    if found is None:
        raise SettingsError(
            f"gate {text!r}: expected MEASURE drops|rises [NUMBER] [in CONDITION] [with p < NUMBER], "
            "such as 'atwv drops .005 with p < .05'."
        )
    measure = named(found["measure"])
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
    known = [row.name for row in (*TABLE, *DISCOVERY)]
    family, _, point = parse_name(measure)
    if family not in known:
        raise SettingsError(f"gate {text!r}: measure {measure!r} is unknown. Nearest: {nearest(measure, known)}.")
    if family.endswith("@") and not point:
        raise SettingsError(f"gate {text!r}: expected a point after the @, such as {measure}0.5; found none.")


def failures(
    gates: Iterable[Gate], pairs: Iterable[tuple[str, str]], values: NumbersBySystem, differences: Differences
) -> list[Failure]:
    """Return the failures of each gate in each of some pairs (system, baseline).

    Without a difference of a pair that of the two values is taken, without a p value. Raises `SettingsError` for a
    condition or a measure that has no values.
    """
    pairs = list(pairs)
    return [failure for gate in gates for failure in _failures(gate, pairs, values, differences)]


def _failures(
    gate: Gate, pairs: list[tuple[str, str]], values: NumbersBySystem, differences: Differences
) -> list[Failure]:
    place = (gate.condition, gate.measure)
    conditions = {condition for condition, _ in values}
    if gate.condition not in conditions:
        near = nearest(gate.condition, sorted(conditions))
        raise SettingsError(f"gate {gate.text!r}: condition {gate.condition!r} is unknown. Nearest: {near}.")
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


def gate_notes(
    gates: Sequence[Gate], differences: Differences, leasts: Mapping[tuple[str, str], Least], failed: Sequence[Failure]
) -> list[str]:
    """Note the gates that no loss can fail because p values are too large, and losses without a p value or a number."""
    notes = []
    for gate in gates:
        of_pairs = differences.get((gate.condition, gate.measure), {})
        failures = {failure.system for failure in failed if failure.gate == gate.text}
        unknown = [a for (a, _), (difference, _) in of_pairs.items() if math.isnan(difference) and a not in failures]
        if unknown:
            notes.append(
                f"gate {gate.text!r}: not judged, because the difference is not defined, and so passed: "
                f"{listed(unknown, NAMED)}."
            )
        if (p_below := gate.p_below) is None:
            continue
        every = [p for _, p in of_pairs.values() if not math.isnan(p)]
        if every and min(every) >= p_below:
            least = leasts[gate.condition, gate.measure]
            if (adjusted := least.adjusted(len(every))) >= p_below:
                pairs = counted(len(every), "pairs")
                notes.append(
                    f"gate {gate.text!r}: cannot fail, because the least p of {least} and {pairs} is {adjusted:.2g}."
                )
        lost = [a for (a, _), (difference, p) in of_pairs.items() if gate.loses(difference) and math.isnan(p)]
        if lost:
            notes.append(
                f"gate {gate.text!r}: not tested, because there is no p value, and so passed: {listed(lost, NAMED)}."
            )
    return notes
