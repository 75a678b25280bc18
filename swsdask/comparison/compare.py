"""Systems compared: an interval for every number, the difference of every two systems with its tests, and gates.

A pair of systems is compared over the queries that count for both. Queries are resampled, the same ones for all systems
and measures of a condition, so differences are paired. Systems are in the order of their names.

Gates: by how much a system may be worse than another, such as `atwv drops .005 with p < .05`.

    GATE = MEASURE (drops | rises) [NUMBER] [in CONDITION] [with p < NUMBER]

A gate fails where a system is worse than its baseline by more than the number: `atwv drops .005` where ATWV of the
system is more than .005 lower, `cnxe rises .005` where C_nxe is more than .005 higher. The table of measures
(`model.measures`) says which way is worse, and only that way can be written. Without a number any loss fails; without a
condition the gate is for all queries ("all"). A loss that differs from the number by rounding only does not fail.

`with p < .05` lets only significant losses fail: p is `p_adjusted` of the pair, two-sided. A gate also fails where the
baseline has the measure and the system does not. Without the measure of the baseline nothing fails.
"""

from __future__ import annotations

import difflib
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import pyarrow as pa

from swsdask.comparison.paired import P_RANDOMIZATION, Tasks
from swsdask.comparison.resampled import Draws, OfSystem, SampleReplicates
from swsdask.comparison.significance import ENUMERATED
from swsdask.model.comparison import DIFFERENCES, INTERVALS, Comparison, Failure, Resampling
from swsdask.model.discovery import DISCOVERY
from swsdask.model.errors import SettingsError, counted, listed
from swsdask.model.measures import TABLE, better, parse_name
from swsdask.model.samples import SampleOfQueries
from swsdask.model.trials import F64

if TYPE_CHECKING:
    from swsdask.execution.executor import Executor


_TOLERANCE = 1e-12
"""A relative tolerance: a loss that exceeds the limit of a gate by less does not fail."""

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
        """Whether a difference, system - baseline, is too much of a loss. Without p a gate that needs it never fails.

        Examples
        --------
        >>> parse_gate("atwv drops .005").fails(-0.006), parse_gate("cnxe rises .005").fails(-0.006)
        (True, False)
        """
        return self.loses(difference) and (self.p_below is None or p < self.p_below)

    def loses(self, difference: float) -> bool:
        """Whether a difference, whatever its p value, is a loss of more than `by`."""
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
        near = difflib.get_close_matches(measure, known, n=1, cutoff=0.0)
        raise SettingsError(f"gate {text!r}: measure {measure!r} is unknown. Nearest: {near[0]}.")
    if family.endswith("@") and not point:
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


FEW_QUERIES = 30
"""With fewer queries than this, a note says that intervals and tests say little.

For two equal systems the bootstrap at 5 % rejects equality in 11 % of evaluations with 10 queries, 7 % with 20.
"""

NAMED = 5
"""The number of systems or pairs that a note names; the others are counted."""

MANY_PAIRS = 1000
"""A comparison of at least this many pairs is reported before it starts."""

Samples = Mapping[str, Mapping[str, Mapping[str, SampleOfQueries]]]
"""By condition, measure and system."""


Key = tuple[str, bytes]
"""A system, and the queries of its sample."""


class _Pair(NamedTuple):
    """Two systems, their samples over the queries that both have, and the number of queries that only one has."""

    a: str
    b: str
    one: Key
    other: Key
    n_both: int
    n_only_one: int


@dataclass(frozen=True, eq=False)
class _ByMeasure:
    """One measure in one condition: its samples over their own queries and over those of pairs, and the pairs."""

    own: Mapping[str, Key]
    samples: Mapping[Key, SampleOfQueries]
    pairs: Sequence[_Pair]

    @classmethod
    def of(cls, by_system: Mapping[str, SampleOfQueries], pairs: Iterable[tuple[str, str]]) -> Self:
        """Pair systems; each pair is compared over the queries that both have."""
        queries = {system: sample.queries for system, sample in by_system.items()}
        own = {system: (system, queries[system].tobytes()) for system in by_system}
        samples = {own[system]: sample for system, sample in by_system.items()}
        found = []
        for a, b in pairs:
            if a not in own or b not in own:
                continue
            both = queries[a] & queries[b]
            keys = [(system, both.tobytes()) for system in (a, b)]
            for key in keys:
                if key not in samples:
                    samples[key] = by_system[key[0]].of(both)
            n_only_one = int(np.count_nonzero(queries[a] != queries[b]))
            found.append(_Pair(a, b, keys[0], keys[1], int(both.sum()), n_only_one))
        return cls(own, samples, found)


def compare(
    samples: Samples,
    n_queries: Mapping[str, int],
    systems: Iterable[str],
    how: Resampling,
    pair: tuple[str, str] | None = None,
    baseline: str | None = None,
    gates: Iterable[Gate] = (),
    signature: str = "",
    pairs: Sequence[tuple[str, str]] = (),
    n_documents: Mapping[str, int] | None = None,
    report: Callable[[str], None] | None = None,
    executor: Executor | None = None,
    advise: bool = True,
) -> Comparison:
    """Intervals of all samples, the differences of all pairs, of one `pair`, or of all others and a `baseline`.

    `pairs` names others. `n_queries` are the queries of each condition, `n_documents` its documents if they are
    drawn. `gates` are applied to every pair, the second of which is the baseline. `report` receives the size of a
    comparison of many pairs, which may take minutes. Samples are resampled and pairs tested by the `executor`, or
    without one in this process. Notes name options of the command that help, if `advise`. Raises `SettingsError` for an
    unknown system, for two equal ones, and for a gate without values.
    """
    systems, gates = sorted(systems), list(gates)
    all_pairs = not pairs
    pairs = pairs or _pairs(systems, pair, baseline)
    if report is not None and len(pairs) >= MANY_PAIRS:
        measures = {measure for by_measure in samples.values() for measure in by_measure}
        report(f"comparing {counted(len(pairs), 'pairs')} by {counted(len(measures), 'measures')}")
    intervals: list[tuple[str, str, str, float, float, float, float]] = []
    differences = [DIFFERENCES.empty_table()]
    notes: dict[tuple[str, str], list[str]] = {}
    leasts: dict[tuple[str, str], Least] = {}
    values: dict[tuple[str, str], dict[str, float]] = {}
    unit = "folds" if how.resample == "folds" else "queries"
    for condition, by_measure in samples.items():
        draws = Draws(how, n_queries[condition], (n_documents or {}).get(condition, 0))
        tasks = Tasks(draws, executor)
        if n_queries[condition] < FEW_QUERIES:
            few = counted(n_queries[condition], unit)
            notes[condition, ""] = [f"{condition}: {few}; intervals and tests of so few say little."]
        if 0 < draws.n_documents < FEW_QUERIES:
            few = counted(draws.n_documents, "documents")
            notes[condition, "documents"] = [f"{condition}: {few}; intervals and tests of so few say little."]
        for measure, found, every in _resampled(systems, by_measure, pairs, tasks, together=draws.n_documents > 0):
            resampled = {system: every[key] for system, key in found.own.items()}
            own_notes = notes[condition, measure] = []
            for system, each in resampled.items():
                intervals.append((system, condition, measure, each.value, *each.interval, each.standard_error))
            own_notes += _undefined_notes(condition, measure, resampled)
            own_notes += _alone_notes(condition, measure, resampled, unit)
            own_notes += _without_notes(condition, measure, [system for system in systems if system not in resampled])
            if n_queries[condition] >= FEW_QUERIES:
                own_notes += _few_notes(condition, measure, resampled, unit)
            own_notes += _left_out_notes(condition, measure, found.pairs, unit)
            number = {key: n for n, key in enumerate(every)}
            tests = tasks.tested([*every.values()], [(number[pair.one], number[pair.other]) for pair in found.pairs])
            exchanged = not np.isnan(tests[0][:, P_RANDOMIZATION]).all()
            n_exchanged = max(pair.n_both for pair in found.pairs) if exchanged else None
            least = leasts[condition, measure] = Least(how, n_exchanged, unit)
            own_notes += _coarse_notes(condition, measure, tests[1], least, advise=advise)
            differences.append(_of_pairs(found.pairs, condition, measure, *tests))
            values[condition, measure] = {system: each.value for system, each in resampled.items()}
    table = pa.concat_tables(differences)
    failed = tuple(failures(gates, pairs, values, _by_pair(table) if gates else {}))
    notes["", "replicates"] = _replicate_notes(how)
    notes["", "gates"] = _gate_notes(gates, table, leasts, failed)
    compared = Comparison(_table(intervals, INTERVALS), table, how, (), signature, failed)
    for place in compared.measures if all_pairs else ():
        notes[place] += _ties(compared, *place)
    return replace(compared, notes=tuple(chain.from_iterable(notes.values())))


def _pairs(systems: Sequence[str], pair: tuple[str, str] | None, baseline: str | None) -> list[tuple[str, str]]:
    for name in (*(pair or ()), *([baseline] if baseline is not None else [])):
        if name not in systems:
            raise SettingsError(f"{name!r} is none of the systems: {listed(systems)}.")
    if pair is not None:
        if pair[0] == pair[1]:
            raise SettingsError(f"{pair[0]!r} is compared with itself: name two systems.")
        return [pair]
    if baseline is not None:
        return [(system, baseline) for system in systems if system != baseline]
    return list(combinations(systems, 2))


def _resampled(
    systems: Sequence[str],
    by_measure: Mapping[str, Mapping[str, SampleOfQueries]],
    pairs: Sequence[tuple[str, str]],
    tasks: Tasks,
    *,
    together: bool,
) -> Iterator[tuple[str, _ByMeasure, dict[Key, SampleReplicates]]]:
    """Yield each measure with its samples resampled: one measure after the other, or all `together`."""
    ordered = {
        measure: _ByMeasure.of({system: own[system] for system in systems if system in own}, pairs)
        for measure, own in by_measure.items()
    }
    for measures in [[*ordered]] if together else [[measure] for measure in ordered]:
        work: dict[str, list[tuple[str, Key, bool]]] = defaultdict(list)
        for measure in measures:
            of_pairs = {key for pair in ordered[measure].pairs for key in (pair.one, pair.other)}
            for key in ordered[measure].samples:
                work[key[0]].append((measure, key, key in of_pairs))
        items = [
            OfSystem(
                system,
                [ordered[measure].samples[key] for measure, key, _ in own],
                [in_pairs for *_, in_pairs in own],
            )
            for system, own in work.items()
        ]
        found: dict[str, dict[Key, SampleReplicates]] = {measure: {} for measure in measures}
        for own, results in zip(work.values(), tasks.resampled(items), strict=True):
            for (measure, key, _), each in zip(own, results, strict=True):
                found[measure][key] = each
        for measure in measures:
            yield measure, ordered[measure], found[measure]


def _undefined_notes(condition: str, measure: str, resampled: Mapping[str, SampleReplicates]) -> list[str]:
    """Note the number of replicates in which a measure is not defined; systems with equal numbers share a note."""
    by_number: dict[int, list[str]] = defaultdict(list)
    for system, each in resampled.items():
        if not math.isnan(each.value) and not each.is_alone:
            by_number[each.n_undefined].append(system)
    return [
        f"{condition}, {measure}: not defined in {counted(number, 'replicates')} of {listed(systems, NAMED)}, "
        "which are left out."
        for number, systems in sorted(by_number.items())
        if number
    ]


def _without_notes(condition: str, measure: str, systems: Sequence[str]) -> list[str]:
    """Note the systems that cannot be compared because they lack a measure."""
    return [f"{condition}, {measure}: not defined for {listed(systems, NAMED)}."] if systems else []


def _replicate_notes(how: Resampling) -> list[str]:
    """Note that there are too few replicates for one beyond either end of an interval."""
    least = math.ceil(2 / (1 - how.level) * (1 - _TOLERANCE))
    if how.replicates >= least:
        return []
    few = counted(how.replicates, "replicates")
    return [f"{few}: too few for intervals of {how.level:g}, which need at least {least:,}."]


def _few_notes(condition: str, measure: str, resampled: Mapping[str, SampleReplicates], unit: str) -> list[str]:
    """Note the systems with few queries in a condition that has more."""
    few = [system for system, each in resampled.items() if np.count_nonzero(each.queries) < FEW_QUERIES]
    if not few:
        return []
    return [
        f"{condition}, {measure}: fewer than {FEW_QUERIES} {unit} of {listed(few, NAMED)}; intervals and tests of so "
        "few say little."
    ]


def _alone_notes(condition: str, measure: str, resampled: Mapping[str, SampleReplicates], unit: str) -> list[str]:
    """Note the systems with a single query: its resamples do not vary."""
    alone = [system for system, each in resampled.items() if each.is_alone]
    one = counted(1, unit)
    return [f"{condition}, {measure}: {one} of {listed(alone, NAMED)}: no interval and no test."] if alone else []


def _left_out_notes(condition: str, measure: str, pairs: Sequence[_Pair], unit: str) -> list[str]:
    """Note the pairs from which queries are left out; pairs with equal numbers share a note."""
    by_number: dict[tuple[int, int], list[str]] = defaultdict(list)
    for pair in pairs:
        if pair.n_only_one:
            by_number[pair.n_only_one, pair.n_both].append(f"{pair.a} and {pair.b}")
    return [
        f"{condition}, {measure}: {counted(number, unit)} left out of {listed(names, NAMED)}: "
        f"the measure counts them for only one of the two, and {n_both:,} for both"
        f"{'; intervals and tests of so few say little' if n_both < FEW_QUERIES else ''}."
        for (number, n_both), names in sorted(by_number.items())
    ]


class Least(NamedTuple):
    """The least p value that a difference can have.

    `n_exchanged` is the largest number of queries in which two systems are exchanged; None if they are not.
    """

    how: Resampling
    n_exchanged: int | None = None
    unit: str = "queries"

    @property
    def p(self) -> float:
        """The p value of one pair."""
        return 1 / (self.how.replicates + 1) if self._of_queries is None else 2.0 ** (1 - self._of_queries)

    @property
    def _of_queries(self) -> int | None:
        """The number of queries that it follows from; None if it follows from the number of replicates."""
        n, least = self.n_exchanged, 1 / (self.how.replicates + 1)
        few = n is not None and n <= ENUMERATED and (self.how.adjust == "holm" or 2.0 ** (1 - n) > least)
        return n if few else None

    def adjusted(self, n_pairs: int) -> float:
        """The p value adjusted for so many pairs."""
        return min(1.0, self.p * self._times(n_pairs))

    def _times(self, n_pairs: int) -> int:
        return n_pairs if self.how.adjust == "holm" else 1

    def __str__(self) -> str:
        n = self._of_queries
        return counted(self.how.replicates, "replicates") if n is None else counted(n, self.unit)

    def remedy(self, n_pairs: int) -> str:
        """The advice that leads to a smaller one, a sentence; empty if nothing does."""
        fewer = "--adjust max-t or fewer pairs (--baseline, --pair)" if self.p < self.how.alpha else ""
        enough = math.floor(self._times(n_pairs) / self.how.alpha)
        more = f"--replicates {enough}" if self._of_queries is None else ""
        return f" Use {', or '.join(filter(None, (fewer, more)))}." if fewer or more else ""


def _coarse_notes(condition: str, measure: str, p_adjusted: F64, least: Least, *, advise: bool) -> list[str]:
    """Note if no difference can be significant with so few queries or replicates, or so many pairs."""
    tested, alpha = p_adjusted[~np.isnan(p_adjusted)], least.how.alpha
    n_pairs = len(tested)
    if not n_pairs or least.adjusted(n_pairs) < alpha or (tested < alpha).any():
        return []
    times = f", which Holm's adjustment multiplies by {counted(n_pairs, 'pairs')}" if least.p < alpha else ""
    remedy = least.remedy(n_pairs) if advise else ""
    return [
        f"{condition}, {measure}: no difference can be significant (p < {alpha:g}): the least p of {least} is "
        f"{least.p:.2g}{times}.{remedy}"
    ]


def _gate_notes(
    gates: Sequence[Gate], differences: pa.Table, leasts: Mapping[tuple[str, str], Least], failed: Sequence[Failure]
) -> list[str]:
    """Note the gates that no loss can fail because p values are too large, and losses without a p value or a number."""
    notes = []
    by_place = _by_pair(differences) if gates else {}
    for gate in gates:
        of_pairs = by_place.get((gate.condition, gate.measure), {})
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


def _ties(found: Comparison, condition: str, measure: str) -> list[str]:
    """The systems that do not differ from the best one, if it was compared with all others."""
    tied = found.tied(condition, measure)
    if tied is None:
        return []
    others = listed(tied.others, NAMED) or "none"
    untested = f"; not tested: {listed(tied.untested, NAMED)}" if tied.untested else ""
    tied_at = f"tied with it (p >= {found.how.alpha:g})"
    return [f"{condition}, {measure}: best is {tied.best}; {tied_at}: {others}{untested}."]


def _of_pairs(pairs: Sequence[_Pair], condition: str, measure: str, rows: F64, p_adjusted: F64) -> pa.Table:
    """The tests of pairs as rows of `DIFFERENCES`."""
    names = [pa.array((pair.a for pair in pairs), pa.string()), pa.array((pair.b for pair in pairs), pa.string())]
    same = [pa.repeat(name, len(pairs)) for name in (condition, measure)]
    return pa.table([*names, *same, *map(pa.array, rows.T), pa.array(p_adjusted)], schema=DIFFERENCES)


def _by_pair(table: pa.Table) -> dict[tuple[str, str], dict[tuple[str, str], tuple[float, float]]]:
    """The differences, with their adjusted p values, by (condition, measure) and pair."""
    found: dict[tuple[str, str], dict[tuple[str, str], tuple[float, float]]] = defaultdict(dict)
    named = ("condition", "measure", "a", "b", "difference", "p_adjusted")
    for condition, measure, a, b, difference, p in zip(*(table[name].to_pylist() for name in named), strict=True):
        found[condition, measure][a, b] = (difference, p)
    return found


def _table(rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [() for _ in schema]
    return pa.table([pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)], schema=schema)
