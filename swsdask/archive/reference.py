"""The reference of an evaluation, from the tables of an archive and settings: occurrences, trials, conditions.

Evaluated occurrences are those whose first word lies inside one excerpt of its (document, channel), ends inclusive
(KWSEval). Under `compat = "stdeval"` they are all occurrences, even in documents that the ECF does not have, or with
`outside = "drop"` (STDEval -E) those that lie entirely inside one excerpt; under `compat = "mediaeval"` all, on any
channel and at any time. For document trials, only documents of the ECF count. For segment trials under
`compat = "kwseval"` see `statistics.segment_trials`.

The counts of a collection are those of table 5.5 of the thesis, without any system. An event is a (query, document). It
is relevant if the document has an evaluated occurrence of the query. A query is out of vocabulary if its attribute
`oov` (in any case) is yes, true or 1. If no query has this attribute, they are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.archive.conditions import OF_RUNS, ConditionData, Divides, available, group_trials, is_of_runs, parts
from swsdask.archive.encode import Codes
from swsdask.archive.protocols import Archive, FindRule, Run
from swsdask.archive.reference_tables import document_codes, n_documents, trial_counter
from swsdask.model.columns import distinct_pairs
from swsdask.model.errors import Problems, SettingsError
from swsdask.model.schemas import INSIDE
from swsdask.model.settings import EvaluationSettings, requested_thresholds, weights
from swsdask.model.trials import I16, I32, I64, AlignmentRule, Bool, Condition, Judgments, Reference, Segments
from swsdask.model.units import whole_ticks
from swsdask.statistics.segment_trials import Spans, Spoken, kwseval_segments, segment_targets, tile

_YES = {"1", "yes", "true", "oov"}


Columns = dict[str, Any]
"""Columns of the evaluated occurrences, by name."""


@dataclass(frozen=True, eq=False)
class _Spoken:
    """The evaluated occurrences, their columns by name, and intermediate results.

    `queries`, bool [n_queries], are the queries that count; under `unlisted_queries = "exclude"`, all those of a run.
    """

    codes: Codes
    found: Columns
    speaker: Sequence[str]
    n_unevaluated: int
    segments: Segments | None
    queries: Bool

    def restricted_to(self, listed: frozenset[str] | None) -> _Spoken:
        """Select the queries that a run lists; None: all."""
        if listed is None:
            return self
        queries = np.array([query in listed for query in self.codes.query_ids], bool)
        kept = queries[self.found["query"]]
        found = {name: column[kept] for name, column in self.found.items()}
        speaker = list(compress(self.speaker, kept.tolist()))
        return replace(self, found=found, speaker=speaker, queries=queries)


def build_reference(
    archive: Archive, settings: EvaluationSettings, by: Sequence[Sequence[str]] = (), *, apart: bool = False
) -> Reference:
    """The evaluated occurrences, the trials and the conditions: "all", then those of `by` (see `archive.conditions`).

    `apart`: every document is a separate group of the statistics. Raises `SettingsError` for an unknown key in `by`, a
    time in the settings that is not a whole number of ticks, or an operating point that cannot be derived from the
    data.
    """
    return _reference(archive, _find_spoken(archive, settings), settings, by, {}, apart=apart)


def build_references(
    archive: Archive,
    settings: EvaluationSettings,
    by: Sequence[Sequence[str]],
    runs: Sequence[Run],
    *,
    apart: bool = False,
) -> list[tuple[Reference, list[Run]]]:
    """Return the references of some runs, as `build_reference`, each with its runs.

    There is one for all runs, unless runs determine conditions or the queries that count: then raises `InputError` with
    every run that determines none.
    """
    by_counts, by_lists = is_of_runs(archive.queries, by), settings.unlisted_queries == "exclude"
    if not (by_counts or by_lists):
        return [(build_reference(archive, settings, by, apart=apart), list(runs))]
    spoken = _find_spoken(archive, settings)
    problems = Problems()
    for run in runs:
        if by_counts and not _oov_counts(run):
            expected = f"an {OF_RUNS} of some query, for the condition key {OF_RUNS!r}"
            problems.add(run.where, None, expected, "none", "Leave out the key or the run.")
        if by_lists and not listed_queries(run):
            remedy = "Leave out the setting or the run: it is no kwslist or stdlist, or has none of its lists."
            problems.add(run.where, None, 'a query that is listed, for unlisted_queries = "exclude"', "none", remedy)
    problems.raise_if_any()
    alike: dict[tuple[frozenset[tuple[str, str]], frozenset[str] | None], list[Run]] = {}
    for run in runs:
        counts = frozenset(_oov_counts(run).items()) if by_counts else frozenset[tuple[str, str]]()
        alike.setdefault((counts, listed_queries(run) if by_lists else None), []).append(run)
    return [
        (_reference(archive, spoken.restricted_to(listed), settings, by, dict(counts), apart=apart), same)
        for (counts, listed), same in alike.items()
    ]


def requestable(archive: Archive, settings: EvaluationSettings) -> list[tuple[str, Divides, list[str]]]:
    """Return the possible keys of `by`, without patterns: the items that each divides, and its conditions."""
    spoken = _find_spoken(archive, settings)
    runs = [counts for run in archive.runs if (counts := _oov_counts(run))]
    return available(_gather_data(archive, spoken, settings, runs[0] if runs else {}))


def _oov_counts(run: Run) -> dict[str, str]:
    """Return the `oov_count` of each query as a run gives it: "" for NA, which is no number."""
    start = f"{OF_RUNS}."
    said = {name.removeprefix(start): value for name, value in run.attributes.items() if name.startswith(start)}
    return {query: "" if value == "NA" else value for query, value in said.items()}


def listed_queries(run: Run) -> frozenset[str]:
    """Return the queries that a run lists, with or without detections; empty if its format has no lists."""
    of_lists = (name.partition(".") for name in run.attributes)
    return frozenset(query for name, _, query in of_lists if query and name in ("search_time", OF_RUNS))


def _find_spoken(archive: Archive, settings: EvaluationSettings) -> _Spoken:
    codes = Codes.of(archive.documents, archive.queries, archive.words)
    found, n_unevaluated = _evaluated_occurrences(archive, codes, settings)
    speaker = found.pop("speaker")
    segments = None
    if settings.trials == "segment":
        segments, segment = _segments(archive, codes, found, speaker, settings)
        if segment is not None:
            found = {name: column[segment >= 0] for name, column in (found | {"segment": segment}).items()}
    every_query = np.ones(len(codes.query_ids), bool)
    return _Spoken(codes, found, speaker, n_unevaluated, segments, every_query)


def _gather_data(
    archive: Archive, spoken: _Spoken, settings: EvaluationSettings, oov_counts: Mapping[str, str]
) -> ConditionData:
    """Gather what conditions are derived from.

    QUIRK, under `compat = "kwseval"`: oov_count is 0 for a query that a run does not list, or lists as NA.
    """
    if oov_counts and settings.compat == "kwseval":
        known = {query: value or "0" for query, value in oov_counts.items()}
        oov_counts = dict.fromkeys(spoken.codes.query_ids, "0") | known
    n_queries = len(spoken.codes.query_ids)
    one_group = np.zeros(len(spoken.codes.document_ids), np.int16)
    targets = _targets(spoken.found, spoken.segments, one_group, None, (n_queries, 1), settings)
    return ConditionData(
        documents=archive.documents,
        queries=archive.queries,
        segments=archive.segments,
        occurrences=spoken.found if settings.trials == "virtual" else None,
        speakers=spoken.speaker,
        n_true=targets[:, 0],
        document_ids=spoken.codes.document_ids,
        counts_empty=settings.no_targets == "false_alarms_only",
        oov_counts=oov_counts,
    )


def _reference(
    archive: Archive,
    spoken: _Spoken,
    settings: EvaluationSettings,
    by: Sequence[Sequence[str]],
    oov_counts: Mapping[str, str],
    *,
    apart: bool,
) -> Reference:
    codes, found, segments = spoken.codes, spoken.found, spoken.segments
    wanted = parts(_gather_data(archive, spoken, settings, oov_counts), by)
    n_others = len(codes.document_ids) - codes.n_evaluated
    groups = group_trials(wanted, codes.n_evaluated, n_others + 1, found["document"], apart=apart)
    shape = (len(codes.query_ids), len(groups.of_parts[0]))
    targets = _targets(found, segments, groups.of_document, groups.of_occurrence, shape, settings)
    trials = trial_counts(archive.documents, settings, segments, groups.of_document)
    conditions = tuple(
        Condition(
            name=part.name,
            all_queries=spoken.queries & _listed_queries(part.queries, len(targets)),
            queries=spoken.queries & _averaged(part.queries, targets[:, within], settings),
            groups=within,
            n_trials=trials(within),
            by_query_pattern=part.by_query_pattern,
            of_occurrences=part.occurrences is not None,
        )
        for part, within in zip(wanted, groups.of_parts, strict=True)
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
        n_unevaluated=spoken.n_unevaluated,
        **found,
        segments=segments,
        group_of_document=groups.of_document,
        group_of_occurrence=groups.of_occurrence,
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
        thresholds=requested_thresholds(settings),
        prior_log_odds=weights(reference, settings).prior_log_odds,
        replay=settings.gap.rule(),
    )


def _judgments(archive: Archive, codes: Codes, settings: EvaluationSettings) -> Judgments | None:
    """Return the judged trials; None if trials are not documents, or no document was judged.

    Raises `SettingsError` if measures of relevant grades are requested without judgments.
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


def _evaluated_occurrences(archive: Archive, codes: Codes, settings: EvaluationSettings) -> tuple[Columns, int]:
    """Return the columns of `Reference`, sorted by (query, document, channel, start, end), and the number of others."""
    table = archive.occurrences(FindRule.of(settings))
    found = {name: table[name].to_numpy() for name in table.column_names if name != "document"}
    found["document"] = document_codes(codes.document_ids, table["document"])
    if settings.compat not in ("stdeval", "mediaeval"):
        kept = codes.excerpts.contain(found["document"], found["channel"], found["start"], found["first_word_end"])
    elif settings.outside == "drop" and settings.compat == "stdeval":
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
    archive: Archive, codes: Codes, found: Columns, speaker: Sequence[str], settings: EvaluationSettings
) -> tuple[Segments, I64 | None]:
    """Return the segments, and the segment of each of the occurrences `found`; None if mid-points determine it."""

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
    """Return the rule `outside`. A segment of KWSEval contains every detection whose mid-point it contains."""
    in_segments = segments is not None and settings.compat == "kwseval" and settings.outside == "drop"
    return "false_alarm" if in_segments else settings.outside


def _targets(
    found: Columns,
    segments: Segments | None,
    group_of_document: I16,
    group_of_occurrence: I16 | None,
    shape: tuple[int, int],
    settings: EvaluationSettings,
) -> I64:
    """Count the target trials of each query in a group, int64 [n_queries, n_groups]."""
    query: I32 = found["query"]
    document: I32 | I64 = found["document"]
    if settings.trials == "document":
        query, document = distinct_pairs(found["query"], found["document"])
    elif segments is not None:
        query, segment = segment_targets(segments, **found)
        document = segments.document[segment]
    group = group_of_document[document] if group_of_occurrence is None else group_of_occurrence
    strata = query.astype(np.int64) * shape[1] + group
    return np.bincount(strata, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)


def trial_counts(
    documents: pa.Table, settings: EvaluationSettings, segments: Segments | None, group_of_document: I16
) -> Callable[[Bool | I64], int]:
    """Return a function from the weights of groups of documents [n_groups] to the trials of a query (N of Eq. 2)."""
    group = group_of_document[: n_documents(documents)]
    if settings.trials == "virtual":
        count = trial_counter(documents, settings.trials_per_second, settings.compat)
        return lambda times: count(times[group].astype(np.int64))
    trial_group = group if segments is None else group_of_document[segments.document]
    return lambda times: int(times[trial_group].sum())


def _listed_queries(queries: Bool | None, n_queries: int) -> Bool:
    return np.ones(n_queries, bool) if queries is None else queries


def _averaged(queries: Bool | None, targets: I64, settings: EvaluationSettings) -> Bool:
    """Return the queries of a condition that its averages count. `targets` are those in its groups of documents."""
    listed = _listed_queries(queries, len(targets))
    if settings.no_targets == "false_alarms_only":
        return listed
    has_targets: Bool = targets.sum(axis=1) > 0
    return listed & has_targets


def _classes(conditions: Sequence[Condition], targets: I64) -> tuple[I32, int]:
    """`Reference.class_of` and the number of classes.

    Two strata (query, group of documents) share a class iff the same conditions count both, each with the same number
    of non-target trials of the query. So a false alarm in either has the same weight everywhere.
    """
    class_of = np.full(targets.shape, -1, np.int64)
    said: list[tuple[tuple[int, int], ...]] = []
    for number, condition in enumerate(conditions):
        queries, groups = np.flatnonzero(condition.queries), np.flatnonzero(condition.groups)
        strata = np.ix_(queries, groups)
        targets_of, n_act = np.unique(targets[strata].sum(axis=1), return_inverse=True)
        # The class by the earlier conditions, and the number of targets in this condition.
        both = (class_of[strata] + 1) * len(targets_of) + n_act[:, np.newaxis]
        distinct, place = np.unique(both, return_inverse=True)
        class_of[strata] = len(said) + place.reshape(both.shape)
        for before, own in zip(*(each.tolist() for each in np.divmod(distinct, len(targets_of))), strict=True):
            nontargets = condition.n_trials - int(targets_of[own])
            said.append((*(said[before - 1] if before else ()), (-number, nontargets)))
    used = np.unique(class_of[class_of >= 0]).tolist()
    names = np.full(len(said) + 1, -1, np.int32)
    names[sorted(used, key=said.__getitem__)] = np.arange(len(used))
    return names[class_of], len(used)


def collection_statistics(queries: pa.Table, reference: Reference) -> dict[str, int]:
    """The numbers of documents, queries, events, relevant events and occurrences, also of queries out of vocabulary."""
    evaluated = reference.n_documents - reference.n_without_excerpts
    inside = reference.document < evaluated
    pairs = np.unique(reference.query[inside].astype(np.int64) << 32 | reference.document[inside])
    counts = {
        "documents": evaluated,
        "queries": reference.n_queries,
        "events": evaluated * reference.n_queries,
        "relevant_events": len(pairs),
        "occurrences": len(reference.query),
    }
    oov = _out_of_vocabulary(queries)
    if oov is not None:
        counts |= {
            "oov_queries": int(oov.sum()),
            "oov_events": evaluated * int(oov.sum()),
            "relevant_oov_events": int(oov[pairs >> 32].sum()),
            "oov_occurrences": int(oov[reference.query].sum()),
        }
    return counts


def _out_of_vocabulary(queries: pa.Table) -> Bool | None:
    said = [
        {name.lower(): value.strip().lower() for name, value in attributes}.get("oov")
        for attributes in queries["attributes"].to_pylist()
    ]
    if all(value is None for value in said):
        return None
    return np.array([value in _YES for value in said], np.bool_)
