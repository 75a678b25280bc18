"""What was spoken and what a trial is, from an archive's tables and the evaluation's settings.

Which occurrences are evaluated: those whose first word lies inside one excerpt of its (document, channel), ends
inclusive (KWSEval). Under `compat = "stdeval"` all occurrences, even in documents that the ECF does not have, or with
`outside = "drop"` (STDEval -E) those that lie entirely inside one excerpt. For document trials only documents of the
ECF count. Segment trials under `compat = "kwseval"`: `alignment.kwseval_segments`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from swsdask.alignment.document import document_targets
from swsdask.alignment.kwseval_segments import Spoken, kwseval_segments
from swsdask.alignment.segment import Spans, segment_targets, tile
from swsdask.archive.audio import trial_counter
from swsdask.archive.base import Archive
from swsdask.archive.conditions import group_documents, parts
from swsdask.archive.encode import Codes
from swsdask.archive.excerpts import document_codes
from swsdask.model.application import asked_thresholds, weights
from swsdask.model.finding import FindRule
from swsdask.model.settings import EvaluationSettings
from swsdask.model.ticks import whole_ticks
from swsdask.model.trials import I16, I32, I64, AlignmentRule, Bool, Condition, Reference, Segments

_NOT_COUNTED = np.iinfo(np.int64).min


def build_reference(archive: Archive, settings: EvaluationSettings, by: Sequence[Sequence[str]] = ()) -> Reference:
    """The evaluated occurrences, the trials and the conditions: "all", then those of `by` (see `archive.conditions`).

    Raises `SettingsError` for an unknown key in `by`, a time in the settings that is no whole number of ticks, or an
    operating point that the data cannot give.
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
    group_of_document, groups = group_documents(wanted, codes.n_evaluated, n_others + 1)
    shape = (len(codes.query_ids), len(groups[0]))
    targets = _targets(found, segments, group_of_document, shape, settings)
    trials = _trials_of_groups(archive, codes, segments, group_of_document, settings)
    conditions = tuple(
        Condition(
            name=part.name,
            asked=_asked(part.queries, len(targets)),
            queries=_averaged(part.queries, targets[:, within], settings),
            groups=within,
            n_trials=trials(within),
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
            doubles=settings.compat == "kwseval",
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
        impute=settings.impute if isinstance(settings.impute, float) else None,
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


def _evaluated_occurrences(archive: Archive, codes: Codes, settings: EvaluationSettings) -> tuple[dict[str, Any], int]:
    """The columns that `Reference` has of them, sorted by (query, document, channel, start, end); how many others."""
    table = archive.occurrences(FindRule.of(settings))
    found = {name: table[name].to_numpy() for name in table.column_names if name != "document"}
    found["document"] = document_codes(codes.document_ids, table["document"])
    if settings.compat != "stdeval":
        kept = codes.excerpts.contain(found["document"], found["channel"], found["start"], found["first_word_end"])
    elif settings.outside == "drop":
        kept = codes.excerpts.contain(found["document"], found["channel"], found["start"], found["end"])
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
    """The segments, and the one that each of the occurrences `found` lies in; None where mid-points say it."""

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


def _trials_of_groups(
    archive: Archive, codes: Codes, segments: Segments | None, group_of_document: I16, settings: EvaluationSettings
) -> Callable[[Bool], int]:
    """What gives the number of trials of one query (Eq. 2's N) in some groups of documents, bool [n_groups]."""
    if settings.trials == "virtual":
        count = trial_counter(archive.documents, settings.trials_per_second, settings.compat)
        group = dict(zip(codes.document_ids[: codes.n_evaluated], group_of_document.tolist(), strict=False))
        return lambda within: count({document for document, number in group.items() if within[number]})
    trial_group = group_of_document[: codes.n_evaluated] if segments is None else group_of_document[segments.document]
    return lambda within: int(np.count_nonzero(within[trial_group]))


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
