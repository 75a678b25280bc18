"""Conditions: parts of an evaluation that are averaged separately, as requested by keys.

A key divides queries, documents or occurrences by a value that each of them has. It is

- the name of an attribute of the query list (among them `language` and `oov` where the list gives them),
- one of `COMPUTED`, unless the list has an attribute of that name, or
- `query_pattern:REGEX` or `document_pattern:REGEX`, found anywhere in the id.

Every value of a key that occurs makes a condition `key=value`; a pattern makes `query~REGEX` or `document~REGEX`.
Numbers, and in the last form any values, can be grouped in other ways:

- `KEY:quartiles`: four parts of about equal size. A value in part k, counted from 0, has k/4 to (k+1)/4 of all values
  below it. Equal values are never separated, so a part may be larger or missing. A part is named by its lowest and
  highest value, `n_words=Q1:2-3`.
- `KEY:1/5/20`: from each number up to the next, exclusive, and from the last on: `n_true=1-4`, `n_true=5-19`,
  `n_true=20+` (if not all numbers are integers, `duration=0.5-1` excludes 1). Lower values are in no condition.
- `KEY:A+B`: everything with one of these values, as one condition `KEY=A+B`.

Joined keys make every combination, `a=1&b=2` in the order of the keys. Items without a value are in no condition of a
key.

Conditions of occurrences (talker, gender, duration) divide only targets. A false alarm is not an occurrence: neither
KWSEval nor STDEval gives it a talker or a duration. So it counts in each of these conditions, and N is that of the
whole. P_miss is then that of the occurrences with the value, and P_fa equals that of the whole if all queries have such
occurrences. A detection that is mapped to an occurrence with another value is not a trial of the condition: neither a
hit nor a false alarm. Only virtual trials have one occurrence each.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from swsdask.archive.reference_tables import document_ids
from swsdask.formats.reference.nist_xml import texts_of
from swsdask.formats.reference.rttm import GENDERS
from swsdask.model.errors import SettingsError
from swsdask.model.trials import F64, I16, I32, I64, Bool
from swsdask.model.units import TICKS_PER_SECOND
from swsdask.model.wording import counted, nearest

QUERY_PATTERN = "query_pattern:"
DOCUMENT_PATTERN = "document_pattern:"

ALL = "all"

Divides = Literal["queries", "documents", "occurrences"]


@dataclass(frozen=True, eq=False)
class ConditionData:
    """The data that keys are computed from.

    `occurrences` are the evaluated ones, their columns by name, or None if trials have several of them; `speakers` are
    their speakers; `n_true` int64 [n_queries] counts target trials. `counts_empty`: averages include queries without
    targets. `oov_counts` are the counts that a run gives for queries.
    """

    documents: pa.Table
    queries: pa.Table
    segments: pa.Table
    occurrences: Mapping[str, NDArray[np.integer]] | None
    speakers: Sequence[str]
    n_true: I64
    document_ids: tuple[str, ...]
    counts_empty: bool = False
    oov_counts: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def attributes(self) -> list[dict[str, str]]:
        """The attributes of every query."""
        return [dict(pairs) for pairs in self.queries["attributes"].to_pylist()]

    @cached_property
    def query_ids(self) -> list[str]:
        """The ids of the queries."""
        ids: list[str] = self.queries["query"].to_pylist()
        return ids


@dataclass(frozen=True)
class Key:
    """A key whose values are computed.

    Parameters
    ----------
    name : str
        The name of the key.
    divides : {"queries", "documents", "occurrences"}
        The items that have the values.
    reads : str
        The source of the values, for messages.
    levels : {"values", "bins", "quartiles"}
        The default conditions: every value, the bins 1, 2-4, 5-9, 10-19, 20-49, ..., or quarters of the values.
    column : callable
        Returns the values of an evaluation as text, "" for none.
    """

    name: str
    divides: Divides
    reads: str
    levels: Literal["values", "bins", "quartiles"]
    column: Callable[[ConditionData], list[str]]


def _attribute(name: str) -> Callable[[ConditionData], list[str]]:
    return lambda of: [attributes.get(name, "") for attributes in of.attributes]


def _of_text(size: Callable[[str], int]) -> Callable[[ConditionData], list[str]]:
    return lambda of: [str(size(text)) if text else "" for text in texts_of(of.queries)]


def _n_true(of: ConditionData) -> list[str]:
    return [str(number) if number or of.counts_empty else "" for number in of.n_true.tolist()]


def _of_documents(key: str, column: str) -> Callable[[ConditionData], list[str]]:
    def values(of: ConditionData) -> list[str]:
        found: dict[str, str] = {}
        for document, value in zip(*(of.documents[name].to_pylist() for name in ("document", column)), strict=True):
            if found.setdefault(document, value) != value:
                raise SettingsError(
                    f"condition key {key!r}: excerpts of document {document!r} have {found[document]!r} and {value!r}. "
                    f"A condition takes whole documents: give all excerpts of a document one {key}, or use "
                    f"{DOCUMENT_PATTERN}REGEX."
                )
        return list(found.values())

    return values


def _of_occurrences(
    column: Callable[[ConditionData, Mapping[str, NDArray[np.integer]]], list[str]],
) -> Callable[[ConditionData], list[str]]:
    return lambda of: [] if of.occurrences is None else column(of, of.occurrences)


def _talkers(of: ConditionData, _: object) -> list[str]:
    return list(of.speakers)


def _genders(of: ConditionData, occurrences: Mapping[str, NDArray[np.integer]]) -> list[str]:
    said = json.loads((of.segments.schema.metadata or {}).get(GENDERS.encode(), b"[]"))
    gender = {(document, talker): value for document, talker, value in said}
    names = [of.document_ids[document] for document in occurrences["document"].tolist()]
    return [gender.get(pair, "") for pair in zip(names, of.speakers, strict=True)]


def _durations(_: ConditionData, occurrences: Mapping[str, NDArray[np.integer]]) -> list[str]:
    ticks = occurrences["end"].astype(np.int64) - occurrences["start"]
    return [_plain(each / TICKS_PER_SECOND) for each in ticks.tolist()]


COMPUTED = (
    Key("n_words", "queries", "the texts of the queries", "values", _of_text(lambda text: len(text.split()))),
    Key("n_characters", "queries", "the texts without blanks", "values", _of_text(lambda t: len("".join(t.split())))),
    Key("n_phones", "queries", "a lexicon (--lexicon)", "values", _attribute("n_phones")),
    Key("oov", "queries", "the list, a lexicon (--lexicon) or a text (--vocabulary)", "values", _attribute("oov")),
    Key("n_true", "queries", "the targets of each query", "bins", _n_true),
    Key(
        "oov_count",
        "queries",
        "the oov_count of the kwslist or stdlist of each run",
        "values",
        lambda of: [of.oov_counts.get(query, "") for query in of.query_ids],
    ),
    Key("source_type", "documents", "the ECF", "values", _of_documents("source_type", "source_type")),
    Key("document_language", "documents", "the ECF", "values", _of_documents("document_language", "language")),
    Key("talker", "occurrences", "the RTTM's words", "values", _of_occurrences(_talkers)),
    Key("gender", "occurrences", "the RTTM's SPKR-INFO records", "values", _of_occurrences(_genders)),
    Key("duration", "occurrences", "the times of the words, in seconds", "quartiles", _of_occurrences(_durations)),
)
"""All keys whose values are computed. An attribute of the query list takes precedence over a key of the same name."""

_BY_NAME = {key.name: key for key in COMPUTED}

OF_RUNS = "oov_count"
"""The key whose values differ from run to run."""


@dataclass(frozen=True, eq=False)
class Part:
    """A named part of an evaluation: bool [n_queries], bool [n_documents] and bool [n_occurrences]; None: all.

    "All documents" includes unknown ones. `by_query_pattern`: the part is made only by patterns of query ids.
    """

    name: str
    queries: Bool | None = None
    documents: Bool | None = None
    occurrences: Bool | None = None
    by_query_pattern: bool = False


def parts(of: ConditionData, by: Sequence[Sequence[str]]) -> list[Part]:
    """Return the whole, named "all", then the parts that each entry of `by` (joined keys) makes, in order of values.

    Raises `SettingsError` for an unknown key, naming the valid ones, and for a key without values; for an unknown value
    and for numbers if the values are not numbers; for a document whose excerpts differ in a key; for a pattern that is
    not a regular expression or matches nothing.
    """
    found = {ALL: Part(ALL)}
    for entry in by:
        for combination in product(*(_parts(of, key) for key in entry)):
            masks = {
                name: _both([getattr(each, name) for each in combination])
                for name in ("queries", "documents", "occurrences")
            }
            part = Part(
                "&".join(each.name for each in combination),
                **masks,
                by_query_pattern=bool(combination) and all(each.by_query_pattern for each in combination),
            )
            if combination and all(mask is None or mask.any() for mask in masks.values()):
                found.setdefault(part.name, part)
    return list(found.values())


def is_of_runs(queries: pa.Table, by: Iterable[Iterable[str]]) -> bool:
    """Return whether conditions differ from run to run: a key is `oov_count`, which is not an attribute of the list."""
    wanted = any(key.partition(":")[0] == OF_RUNS for keys in by for key in keys)
    return wanted and not any(name == OF_RUNS for pairs in queries["attributes"].to_pylist() for name, _ in pairs)


def available(of: ConditionData) -> list[tuple[str, Divides, list[str]]]:
    """The keys that have values in this evaluation, without patterns: the items they divide, and their conditions."""
    names = sorted({name for attributes in of.attributes for name in attributes} - {"text"})
    every: list[tuple[str, Divides]] = [(name, "queries") for name in names]
    every += [(key.name, key.divides) for key in COMPUTED if key.name not in names]
    found = []
    for name, divides in every:
        try:
            found.append((name, divides, [part.name.partition("=")[2] for part in _parts(of, name)]))
        except SettingsError:
            continue
    return found


@dataclass(frozen=True, eq=False)
class TrialGroups:
    """The groups of trials such that each part is a union of groups.

    `of_document` is the group of a trial by its document, int16 [n_documents]. `of_occurrence` is the group of a target
    by its occurrence, or None if no part divides occurrences. `of_parts` are the groups of each part, bool [n_groups].
    """

    of_document: I16
    of_occurrence: I16 | None
    of_parts: list[Bool]


def group_trials(of: Sequence[Part], n_evaluated: int, n_others: int, spoken_in: I32, *, apart: bool) -> TrialGroups:
    """Divide evaluated documents, other documents (not in the ECF), and occurrences into groups, according to parts.

    `spoken_in` is the document of each occurrence. Documents that no part distinguishes are one group; with `apart`,
    each document is a group, by its code. If documents are divided, the other documents are a separate group, which
    only parts with all documents contain; otherwise they are in the only group. Targets are grouped by their documents,
    separately from non-target trials, and by the parts of their occurrences. Raises `SettingsError` for more groups
    than fit an int16.
    """
    by_document, of_evaluated = _cut([part.documents for part in of], n_evaluated)
    others = 0
    if apart:
        by_document, of_evaluated = by_document[of_evaluated], np.arange(n_evaluated)
    if apart or any(part.documents is not None for part in of):
        others = len(by_document)
        by_document = np.vstack((by_document, [part.documents is None for part in of]))
    of_document = np.append(of_evaluated, np.full(n_others, others))
    by_occurrence, of_occurrence = _cut([part.occurrences for part in of], len(spoken_in))
    cuts_occurrences = any(part.occurrences is not None for part in of)
    if cuts_occurrences and apart:
        raise SettingsError("Documents are resampled as a whole: leave out conditions of talker, gender and duration.")
    targets = [by_document & level for level in by_occurrence] if cuts_occurrences else []
    selected = np.vstack((by_document, *targets))
    if len(selected) > np.iinfo(np.int16).max:
        raise SettingsError(f"the documents are cut into {len(selected)} groups; at most 32767 are possible.")
    group = len(by_document) * (1 + of_occurrence) + of_document[spoken_in]
    return TrialGroups(
        of_document.astype(np.int16), group.astype(np.int16) if cuts_occurrences else None, list(selected.T.copy())
    )


def _cut(masks: Sequence[Bool | None], size: int) -> tuple[Bool, I64]:
    """Return the groups that masks of `size` distinguish, bool [n_groups, n_masks], and the group of each item."""
    distinct, group = np.ones((1, len(masks)), bool), np.zeros(size, np.int64)
    if size == 0:
        return distinct, group
    for place, mask in enumerate(masks):
        if mask is not None:
            halves = 2 * group + mask
            there = np.flatnonzero(np.bincount(halves))
            distinct = distinct[there // 2]
            distinct[:, place] = there % 2
            number = np.zeros(there[-1] + 1, np.int64)
            number[there] = np.arange(len(there))
            group = number[halves]
    return distinct, group


def _parts(of: ConditionData, key: str) -> list[Part]:
    """Return the parts that one key makes."""
    if key.startswith(QUERY_PATTERN):
        regex = key.removeprefix(QUERY_PATTERN)
        return [Part(f"query~{regex}", queries=_matching(regex, of.query_ids, key), by_query_pattern=True)]
    if key.startswith(DOCUMENT_PATTERN):
        regex = key.removeprefix(DOCUMENT_PATTERN)
        return [Part(f"document~{regex}", documents=_matching(regex, document_ids(of.documents), key))]
    known = {name for attributes in of.attributes for name in attributes}
    name, form = (key, "") if key in known or ":" not in key else key.split(":", 1)
    if name in known:
        computed = Key(name, "queries", "the list", "values", _attribute(name))
    elif name in _BY_NAME:
        computed = _BY_NAME[name]
    else:
        raise _unknown(key, name, known)
    if computed.divides == "occurrences" and of.occurrences is None:
        raise SettingsError(f"condition key {key!r} goes with virtual trials: others may have several occurrences.")
    values = computed.column(of)
    if not any(values):
        raise SettingsError(f"condition key {key!r} has no values here: it reads {computed.reads}.")
    levels = _levels(key, values, form or computed.levels)
    if not levels:
        raise SettingsError(f"condition key {key!r}: no value is in any of its parts.")
    masks: list[dict[str, Any]] = [{computed.divides: mask} for _, mask in levels]
    return [Part(f"{name}={level}", **mask) for (level, _), mask in zip(levels, masks, strict=True)]


def _unknown(key: str, name: str, known: set[str]) -> SettingsError:
    names = sorted(known | set(_BY_NAME))
    every = ", ".join([*names, f"{QUERY_PATTERN}REGEX", f"{DOCUMENT_PATTERN}REGEX"])
    return SettingsError(f"condition key {key!r} is unknown. Nearest: {nearest(name, names)}. Known: {every}.")


_EDGE = r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_EDGES = re.compile(rf"{_EDGE}(/{_EDGE})+")


def _levels(key: str, values: Sequence[str], form: str) -> list[tuple[str, Bool]]:
    """Return the levels of a key in order: the name, and a mask of the `values` ("": none) at this level."""
    distinct = sorted(set(values) - {""})
    numeric = all(map(_is_number, distinct))
    if numeric:
        distinct.sort(key=float)
    place = {value: number for number, value in enumerate(distinct)}
    code = np.array([place.get(value, -1) for value in values], np.int64)
    if form == "values":
        return [(value, code == number) for number, value in enumerate(distinct)]
    if form not in ("quartiles", "bins") and not _EDGES.fullmatch(form):
        return [(form, np.isin(code, [place[value] for value in _joined(key, form, distinct)]))]
    if not numeric:
        raise SettingsError(f"condition key {key!r} needs numbers; the values are {', '.join(distinct[:5])}.")
    numbers = np.append([float(value) for value in distinct], np.nan)[code]
    if form == "quartiles":
        return _quartiles(numbers)
    edges = _one_two_five(numbers) if form == "bins" else [float(edge) for edge in form.split("/")]
    if edges != sorted(set(edges)):
        raise SettingsError(f"condition key {key!r}: the numbers must ascend.")
    return _between(numbers, edges)


def _joined(key: str, form: str, distinct: Sequence[str]) -> list[str]:
    """Return the values that `form` joins by +."""
    wanted = [form] if form in distinct else form.split("+")
    for value in wanted:
        if value not in distinct:
            near = nearest(value, [*distinct, "quartiles"])
            values = ", ".join(distinct[:20]) + (", ..." if len(distinct) > 20 else "")
            raise SettingsError(f"condition key {key!r}: no value {value!r}. Nearest: {near}. Values: {values}.")
    return wanted


def _is_number(value: str) -> bool:
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def _quartiles(numbers: F64) -> list[tuple[str, Bool]]:
    ordered = np.sort(numbers[~np.isnan(numbers)])
    quarter = np.minimum(4 * np.searchsorted(ordered, numbers) // len(ordered), 3)
    found = []
    for number in range(4):
        inside = ~np.isnan(numbers) & (quarter == number)
        if inside.any():
            low, high = (_plain(float(end(numbers[inside]))) for end in (np.min, np.max))
            found.append((f"Q{number + 1}:{low}" if low == high else f"Q{number + 1}:{low}-{high}", inside))
    return found


def _one_two_five(numbers: F64) -> list[float]:
    """0, 1, 2, 5, 10, 20, 50, ... up to the first one above the highest number."""
    edges = [0.0, *(step * 10.0**power for power in range(16) for step in (1, 2, 5))]
    return edges[: int(np.searchsorted(edges, np.nanmax(numbers), "right")) + 1]


def _between(numbers: F64, edges: Sequence[float]) -> list[tuple[str, Bool]]:
    whole = all(float(number).is_integer() for number in (*edges, *numbers[~np.isnan(numbers)]))
    found = []
    for low, high in zip(edges, [*edges[1:], math.inf], strict=True):
        inside = (numbers >= low) & (numbers < high)
        if inside.any():
            last = high - 1 if whole else high
            name = f"{_plain(low)}+" if high == math.inf else f"{_plain(low)}-{_plain(last)}"
            found.append((_plain(low) if low == last else name, inside))
    return found


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() else repr(number)


def _matching(regex: str, ids: Sequence[str], key: str) -> Bool:
    try:
        pattern = re.compile(regex)
    except re.error as error:
        raise SettingsError(f"condition key {key!r}: not a regular expression: {error}.") from None
    matching = np.array([pattern.search(identifier) is not None for identifier in ids], bool)
    if not matching.any():
        raise SettingsError(f"condition key {key!r}: none of the {counted(len(ids), 'ids')} matches.")
    return matching


def _both(masks: Sequence[Bool | None]) -> Bool | None:
    given = [mask for mask in masks if mask is not None]
    return np.logical_and.reduce(given) if given else None
