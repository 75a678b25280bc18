"""Checks of an archive's runs against the settings, and the counts of its collection.

An archive may have been made under other settings than it is scored with: what its ingest kept or dropped is judged
again. Two runs of one name, or of one content, are errors too.

The counts of a collection are those of the thesis's table 5.5, before any system. An event is a (query, document),
relevant if the document holds an evaluated occurrence of the query. Queries out of vocabulary are those with an
attribute `oov` (in small or capital letters) that is yes, true or 1; where no query has it, they are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from swsdask.archive.occurrences import COUNT_REPEATED
from swsdask.archive.protocols import FindRule, Run
from swsdask.model.errors import SHOWN, Problems, counted
from swsdask.model.results import Note
from swsdask.model.schemas import WITHOUT_TIMES
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import Bool, Reference


def check_runs(runs: Iterable[Run], settings: EvaluationSettings) -> dict[str, tuple[Note, ...]]:
    """Notes on the runs, by system, that belong beside their numbers: what is dropped, rounded, or counted unusually.

    Raises `InputError` with every run that has unknown queries, unknown documents or detections outside the evaluated
    excerpts where the settings call these errors.
    """
    problems = Problems()
    notes: dict[str, tuple[Note, ...]] = {}
    for run in runs:
        _refuse(run, settings, problems)
        notes[run.system] = tuple(_notes(run, settings))
    problems.raise_if_any()
    return notes


def check_reference(words: pa.Table, segments: pa.Table, settings: EvaluationSettings) -> tuple[str, ...]:
    """Sentences about the words and segments of the reference that belong beside the numbers."""
    said = _metadata(words)
    notes = []
    if "encoding" in said:
        notes.append(f"The RTTM was read as {said['encoding']}, the encoding that the query list declares.")
    again = FindRule.of(settings).finder in COUNT_REPEATED
    fate = f"compat={settings.compat} counts them again" if again else "they count once"
    for things, table in {"records of words": words, "records of segments": segments}.items():
        if repeated := _metadata(table).get("repeated"):
            notes.append(f"The reference repeats {counted(int(repeated), things)}: {fate}.")
    if "unknown_types" in said:
        notes.append(f"Passed over in the reference, of types that RTTM does not have: {said['unknown_types']}.")
    return tuple(notes)


def _metadata(table: pa.Table) -> dict[str, str]:
    return {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}


def _refuse(run: Run, settings: EvaluationSettings, problems: Problems) -> None:
    where = ", ".join(run.files) or run.system
    if WITHOUT_TIMES in run.attributes and settings.trials != "document":
        remedy = "Give start and duration, or set trials=document."
        problems.add(where, None, f"times, for {settings.trials} trials", "documents without times", remedy)
    if run.unknown_queries and settings.unknown_queries == "error":
        found = _listed("rows", "of unknown queries", run.unknown_queries)
        problems.add(where, None, "only queries of the list", found, "Correct the ids, or set unknown_queries=drop.")
    if run.unknown_documents and settings.unknown_documents == "error":
        found = _listed("rows", "in unknown documents", run.unknown_documents)
        problems.add(
            where, None, "only documents of the ECF", found, "Correct the ids, or set unknown_documents=outside."
        )
    if run.outside and settings.outside == "error":
        found = f"{run.outside} outside them"
        problems.add(
            where, None, "only detections inside evaluated excerpts", found, "Set outside=drop or outside=false_alarm."
        )


def _notes(run: Run, settings: EvaluationSettings) -> Iterator[Note]:
    fate = "counted as false alarms unless they match an occurrence" if settings.outside == "false_alarm" else "dropped"
    elsewhere = run.outside - sum(run.unknown_documents.values())
    if run.unknown_queries:
        yield _unknown("dropped", "of unknown queries", run.unknown_queries)
    if run.unknown_documents:
        yield _unknown(fate, "in documents that the evaluation does not know", run.unknown_documents)
    if elsewhere and settings.compat != "mediaeval":
        yield _count(fate, elsewhere, "detections", "outside the evaluated excerpts.")
    if run.rounded:
        yield _count("rounded", run.rounded, "times", "finer than 0.1 ms.")


def _count(fate: str, number: int, things: str, which: str) -> Note:
    return Note(f"{fate}: {counted(number, things)} {which}", f"{fate}: {{}} {things} {which}", number)


def _unknown(fate: str, which: str, rows: Mapping[str, int]) -> Note:
    text = f"{fate}: {_listed('detections', which, rows)}."
    return Note(text, f"{fate}: {{}} detections {which}.", sum(rows.values()))


def _listed(things: str, which: str, rows: Mapping[str, int]) -> str:
    """Say how many things there are, and how many of the first ids."""
    first = [f"{name} ({count})" for name, count in list(rows.items())[:SHOWN]]
    more = f" and {counted(len(rows) - SHOWN, 'more ids')}" if len(rows) > SHOWN else ""
    return f"{counted(sum(rows.values()), things)} {which}: {', '.join(first)}{more}"


_YES = {"1", "yes", "true", "oov"}


def collection_statistics(queries: pa.Table, reference: Reference) -> dict[str, int]:
    """Documents, queries, events, relevant events and occurrences, and of these what is out of vocabulary."""
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
