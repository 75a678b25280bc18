"""The reference of an evaluation: evaluated occurrences, numbers of trials, and conditions.

What was spoken and what a trial is, from an archive's tables and the evaluation's settings.

Which occurrences are evaluated: those whose first word lies inside one excerpt of its (document, channel), ends
inclusive (KWSEval). Under `compat = "stdeval"` all occurrences, even in documents that the ECF does not have, or with
`outside = "drop"` (STDEval -E) those that lie entirely inside one excerpt. For document trials only documents of the
ECF count. Segment trials under `compat = "kwseval"`: `alignment.kwseval_segments`.

Conditions: the parts of an evaluation that are averaged on their own, as requested by keys.

A key is the name of a query attribute (among them `language` and `oov` where the list gives them), `source_type` or
`document_language` (all excerpts of a document must agree), `query_pattern:REGEX` or `document_pattern:REGEX` (found
anywhere in the id). Every value of a key that occurs makes a condition `key=value`, a pattern makes `query~REGEX` or
`document~REGEX`; joined keys make every combination, `a=1&b=2` in the order of the keys. An id without the attribute,
or with the empty value, is in no condition of that key.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.alignment.document import document_targets
from swsdask.alignment.kwseval_segments import Spoken, kwseval_segments
from swsdask.alignment.segment import Spans, segment_targets, tile
from swsdask.archive.encode import Codes
from swsdask.archive.protocols import Archive
from swsdask.archive.reference_tables import document_codes, document_ids, trial_counter
from swsdask.model.errors import SettingsError, counted
from swsdask.model.finding import FindRule
from swsdask.model.schemas import INSIDE
from swsdask.model.settings import EvaluationSettings, asked_thresholds, weights
from swsdask.model.trials import I16, I32, I64, AlignmentRule, Bool, Condition, Judgments, Reference, Segments
from swsdask.model.units import whole_ticks

DOCUMENT_KEYS = {"source_type": "source_type", "document_language": "language"}
"""The keys of documents, and their columns in `model.schemas.DOCUMENTS`."""

QUERY_PATTERN = "query_pattern:"
DOCUMENT_PATTERN = "document_pattern:"

ALL = "all"


@dataclass(frozen=True, eq=False)
class Part:
    """A named part of an evaluation: bool [n_queries] and bool [n_documents]; None: all, unknown documents as well.

    `by_query_pattern`: nothing but patterns of query ids makes it.
    """

    name: str
    queries: Bool | None
    documents: Bool | None
    by_query_pattern: bool = False


def parts(documents: pa.Table, queries: pa.Table, by: Sequence[Sequence[str]]) -> list[Part]:
    """The whole, named "all", then the parts that each entry of `by` (joined keys) makes, in order of values.

    Raises `SettingsError` for an unknown key, naming the valid ones, for a document whose excerpts differ in a key, for
    a pattern that is no regular expression and for a pattern that nothing matches.
    """
    keys = _Keys(documents, queries)
    found = {ALL: Part(ALL, None, None)}
    for entry in by:
        for combination in product(*(keys.parts(key) for key in entry)):
            part = Part(
                "&".join(each.name for each in combination),
                _both([each.queries for each in combination]),
                _both([each.documents for each in combination]),
                by_query_pattern=bool(combination) and all(each.by_query_pattern for each in combination),
            )
            if combination and _is_some(part.queries) and _is_some(part.documents):
                found.setdefault(part.name, part)
    return list(found.values())


def group_documents(
    of: Sequence[Part], n_evaluated: int, n_others: int, *, apart: bool = False
) -> tuple[np.ndarray, list[Bool]]:
    """Documents in groups that no part cuts: int16 [n_evaluated + n_others], and each part's groups, bool [n_groups].

    Documents that no part distinguishes are one group; `apart`, each is one of its own, by its code. The others,
    which the ECF does not have, are a group of their own, which only parts of all documents hold, where any part is
    one of some documents, else in the only group there is. Raises `SettingsError` for more groups than an int16
    counts.
    """
    cuts = [part.documents for part in of if part.documents is not None]
    if apart:
        distinct, group = np.reshape(cuts, (len(cuts), n_evaluated)).T.astype(bool), np.arange(n_evaluated)
    elif not cuts:
        return np.zeros(n_evaluated + n_others, np.int16), [np.ones(1, bool) for _ in of]
    else:
        distinct, group = np.unique(np.column_stack(cuts), axis=0, return_inverse=True)
    unknown = len(distinct)
    if unknown > np.iinfo(np.int16).max:
        raise SettingsError(f"the documents are cut into {unknown} groups; at most 32767 are possible.")
    columns = iter(np.vstack((distinct, np.zeros((1, len(cuts)), bool))).T)
    groups = [np.ones(unknown + 1, bool) if part.documents is None else next(columns) for part in of]
    return np.append(group, np.full(n_others, unknown)).astype(np.int16), groups


class _Keys:
    def __init__(self, documents: pa.Table, queries: pa.Table) -> None:
        self.query_ids = queries["query"].to_pylist()
        self.document_ids = document_ids(documents)
        self.attributes = [dict(pairs) for pairs in queries["attributes"].to_pylist()]
        self.documents = documents

    def parts(self, key: str) -> list[Part]:
        """The parts that one key makes."""
        if key.startswith(QUERY_PATTERN):
            regex = key.removeprefix(QUERY_PATTERN)
            matching = _matching(regex, self.query_ids, key)
            return [Part(f"query~{regex}", matching, None, by_query_pattern=True)]
        if key.startswith(DOCUMENT_PATTERN):
            regex = key.removeprefix(DOCUMENT_PATTERN)
            return [Part(f"document~{regex}", None, _matching(regex, self.document_ids, key))]
        if key in DOCUMENT_KEYS:
            return _by_value(self._of_documents(key), lambda value, there: Part(f"{key}={value}", None, there))
        values = [attributes.get(key, "") for attributes in self.attributes]
        if not any(values):
            raise self._unknown(key)
        return _by_value(values, lambda value, there: Part(f"{key}={value}", there, None))

    def _of_documents(self, key: str) -> list[str]:
        found: dict[str, str] = {}
        columns = (self.documents[name].to_pylist() for name in ("document", DOCUMENT_KEYS[key]))
        for document, value in zip(*columns, strict=True):
            if found.setdefault(document, value) != value:
                raise SettingsError(
                    f"condition key {key!r}: excerpts of document {document!r} have {found[document]!r} and {value!r}. "
                    f"A condition takes whole documents: give all excerpts of a document one {key}, or use "
                    f"{DOCUMENT_PATTERN}REGEX."
                )
        return list(found.values())

    def _unknown(self, key: str) -> SettingsError:
        names = sorted({name for attributes in self.attributes for name in attributes} | set(DOCUMENT_KEYS))
        near = difflib.get_close_matches(key, names, n=1, cutoff=0.0)
        known = ", ".join([*names, f"{QUERY_PATTERN}REGEX", f"{DOCUMENT_PATTERN}REGEX"])
        return SettingsError(f"condition key {key!r} is unknown. Nearest: {near[0]}. Known: {known}.")


def _by_value(values: Sequence[str], part: Callable[[str, Bool], Part]) -> list[Part]:
    column = np.array(values, object)
    return [part(value, column == value) for value in sorted(set(values) - {""})]


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


def _is_some(mask: Bool | None) -> bool:
    return mask is None or bool(mask.any())


_NOT_COUNTED = np.iinfo(np.int64).min


def build_reference(
    archive: Archive, settings: EvaluationSettings, by: Sequence[Sequence[str]] = (), *, apart: bool = False
) -> Reference:
    """The evaluated occurrences, the trials and the conditions: "all", then those of `by` (see `archive.reference`).

    `apart`: every document is a group of its own, so that statistics keep it apart. Raises `SettingsError` for an
    unknown key in `by`, a time in the settings that is no whole number of ticks, or an operating point that the
    data cannot give.
    """
    codes = Codes.of(archive.documents, archive.queries, archive.words)
    found, n_unevaluated = _evaluated_occurrences(archive, codes, settings)
    speaker = found.pop("speaker")
    segments = None
    if settings.trials == "segment":
        segments, segment = _segments(archive, codes, found, speaker, settings)
        if segment is not None:
            found = {name: column[segment >= 0] for name, column in (found | {"segment": segment}).items()}
    wanted = parts(archive.documents, archive.queries, by)
    n_others = len(codes.document_ids) - codes.n_evaluated
    group_of_document, groups = group_documents(wanted, codes.n_evaluated, n_others + 1, apart=apart)
    shape = (len(codes.query_ids), len(groups[0]))
    targets = _targets(found, segments, group_of_document, shape, settings)
    trials = trial_counts(archive, settings, segments, group_of_document)
    conditions = tuple(
        Condition(
            name=part.name,
            asked=_asked(part.queries, len(targets)),
            queries=_averaged(part.queries, targets[:, within], settings),
            groups=within,
            n_trials=trials(within),
            by_query_pattern=part.by_query_pattern,
        )
        for part, within in zip(wanted, groups, strict=True)
    )
    class_of, n_classes = _classes(conditions, targets)
    reference = Reference(
        rule=AlignmentRule(
            trials=settings.trials,
            tolerance=whole_ticks("tolerance_s", settings.tolerance_s),
            objective=settings.objective,
            score_scale=settings.score_scale,
            outside=_outside(segments, settings),
            arithmetic=settings.compat if settings.compat in ("kwseval", "stdeval") else "exact",
        ),
        query_ids=codes.query_ids,
        document_ids=codes.document_ids,
        ranking=settings.average_precision.rule(settings.trials),
        n_without_excerpts=n_others,
        n_unevaluated=n_unevaluated,
        **found,
        segments=segments,
        group_of_document=group_of_document,
        targets=targets,
        class_of=class_of,
        n_classes=n_classes,
        conditions=conditions,
        file_order=settings.compat == "mediaeval",
        every_score=settings.compat in ("kwseval", "stdeval"),
        impute=settings.impute if isinstance(settings.impute, float) else None,
        judgments=_judgments(archive, codes, settings),
    )
    return replace(
        reference,
        thresholds=asked_thresholds(reference, settings),
        prior_log_odds=weights(reference, settings).prior_log_odds,
        replay=settings.gap.rule(),
    )


def queries_without_targets(reference: Reference) -> tuple[str, ...]:
    """The ids of the queries that have no target trial at all, in the order of the list."""
    empty = reference.targets.sum(axis=1) == 0
    return tuple(reference.query_ids[number] for number in np.flatnonzero(empty))


def _judgments(archive: Archive, codes: Codes, settings: EvaluationSettings) -> Judgments | None:
    """The judged trials; None where trials are no documents, or none was judged.

    Raises `SettingsError` where measures of relevant grades are requested without judgments.
    """
    table = archive.judgments
    if settings.trials != "document" or not len(table):
        if settings.average_precision.levels:
            raise SettingsError(
                f"measures of grade {settings.average_precision.levels[0]} and above need graded judgments of "
                "documents: qrels, or a column `grade` of occurrences where trials are documents."
            )
        return None
    query = pc.index_in(table["query"], value_set=pa.array(codes.query_ids, pa.string())).to_numpy()
    document = document_codes(codes.document_ids[: codes.n_evaluated], table["document"]).astype(np.int64)
    rows = np.flatnonzero(document >= 0)
    rows = rows[np.lexsort((document[rows], query[rows]))]
    return Judgments(query[rows].astype(np.int32), document[rows], table["grade"].to_numpy()[rows])


def _evaluated_occurrences(archive: Archive, codes: Codes, settings: EvaluationSettings) -> tuple[dict[str, Any], int]:
    """The columns that `Reference` has of them, sorted by (query, document, channel, start, end); how many others."""
    table = archive.occurrences(FindRule.of(settings))
    found = {name: table[name].to_numpy() for name in table.column_names if name != "document"}
    found["document"] = document_codes(codes.document_ids, table["document"])
    if settings.compat != "stdeval":
        kept = codes.excerpts.contain(found["document"], found["channel"], found["start"], found["first_word_end"])
    elif settings.outside == "drop":
        inside = codes.excerpts.inside(found["document"], found["channel"], found["start"], found["end"])
        kept = np.isin(inside, INSIDE["stdeval"])
    else:
        kept = np.ones(len(found["document"]), bool)
    if settings.trials == "document":
        kept &= found["document"] < codes.n_evaluated
    keys = ("last_word_start", "first_word_end", "end", "start", "channel", "document", "query")
    order = np.lexsort([found[name] for name in keys])
    rows = order[kept[order]]
    return {name: np.ascontiguousarray(column[rows]) for name, column in found.items()}, len(order) - len(rows)


def _segments(
    archive: Archive, codes: Codes, found: dict[str, Any], speaker: Sequence[str], settings: EvaluationSettings
) -> tuple[Segments, I64 | None]:
    """The segments, and the one that each of the occurrences `found` is in; None where mid-points say it."""

    def spans(table: pa.Table) -> Spans:
        times = (table[name].to_numpy() for name in ("channel", "start", "end"))
        return Spans(document_codes(codes.document_ids, table["document"]), *times)

    excerpts, records = spans(archive.documents), spans(archive.segments)
    if settings.compat != "kwseval":
        return tile(excerpts, records), None
    names = (("start", "first_word_end"), ("last_word_start", "end"))
    ends = [Spans(found["document"], found["channel"], *(found[name] for name in pair)) for pair in names]
    words = Spoken(Spans(*(np.concatenate(columns) for columns in zip(*ends, strict=True))), [*speaker, *speaker])
    segments, lies = kwseval_segments(excerpts, Spoken(records, archive.segments["speaker"].to_pylist()), words)
    first, last = np.split(lies, 2)
    return segments, np.where(first == last, first, -1)


def _outside(segments: Segments | None, settings: EvaluationSettings) -> Literal["drop", "false_alarm", "error"]:
    """The rule `outside`. KWSEval's segments take in every detection by its mid-point, wherever it ends."""
    in_segments = segments is not None and settings.compat == "kwseval" and settings.outside == "drop"
    return "false_alarm" if in_segments else settings.outside


def _targets(
    found: dict[str, Any],
    segments: Segments | None,
    group_of_document: I16,
    shape: tuple[int, int],
    settings: EvaluationSettings,
) -> I64:
    """How many target trials a query has in a group of documents, int64 [n_queries, n_groups]."""
    query: I32 = found["query"]
    document: I32 | I64 = found["document"]
    if settings.trials == "document":
        query, document = document_targets(found["query"], found["document"])
    elif segments is not None:
        query, segment = segment_targets(segments, **found)
        document = segments.document[segment]
    strata = query.astype(np.int64) * shape[1] + group_of_document[document]
    return np.bincount(strata, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)


def trial_counts(
    archive: Archive, settings: EvaluationSettings, segments: Segments | None, group_of_document: I16
) -> Callable[[Bool | I64], int]:
    """What gives the number of trials of one query (Eq. 2's N) where groups of documents count so often [n_groups]."""
    evaluated = document_ids(archive.documents)
    group = group_of_document[: len(evaluated)]
    if settings.trials == "virtual":
        count = trial_counter(archive.documents, settings.trials_per_second, settings.compat)
        return lambda times: count(Counter(dict(zip(evaluated, times[group].tolist(), strict=True))))
    trial_group = group if segments is None else group_of_document[segments.document]
    return lambda times: int(times[trial_group].sum())


def _asked(queries: Bool | None, n_queries: int) -> Bool:
    return np.ones(n_queries, bool) if queries is None else queries


def _averaged(queries: Bool | None, targets: I64, settings: EvaluationSettings) -> Bool:
    """The queries of a condition that its averages count. `targets` are those in its groups of documents."""
    asked = _asked(queries, len(targets))
    if settings.no_targets == "false_alarms_only":
        return asked
    has_targets: Bool = targets.sum(axis=1) > 0
    return asked & has_targets


def _classes(conditions: Sequence[Condition], targets: I64) -> tuple[I32, int]:
    """`Reference.class_of` and how many classes there are, in order of what the conditions say of them.

    Two strata (query, group of documents) share a class iff the same conditions count both, each with the same number
    of non-target trials of the query, so that a false alarm in either weighs the same everywhere.
    """
    said = np.full((len(conditions), *targets.shape), _NOT_COUNTED, np.int64)
    for number, condition in enumerate(conditions):
        nontarget = condition.n_trials - targets[:, condition.groups].sum(axis=1)
        counted = condition.queries[:, None] & condition.groups[None, :]
        said[number] = np.where(counted, nontarget[:, None], _NOT_COUNTED)
    flat = said.reshape(len(conditions), -1).T
    distinct, class_of = np.unique(flat, axis=0, return_inverse=True)
    uncounted = (distinct == _NOT_COUNTED).all(axis=1)
    names = np.where(uncounted, -1, np.cumsum(~uncounted) - 1).astype(np.int32)
    return names[class_of].reshape(targets.shape), int(np.count_nonzero(~uncounted))
