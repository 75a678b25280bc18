"""Notes on runs: queries that are left out, and requested measures that a run has no data for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from swsdask.archive.protocols import Run
from swsdask.measures.generalised_average_precision import GeneralisedAveragePrecision
from swsdask.measures.processing_load import ProcessingLoad
from swsdask.model.resources import ProcessingLoadSettings, Resources
from swsdask.model.results import Note
from swsdask.model.schemas import WITHOUT_TIMES
from swsdask.model.trials import Reference


def note_unlisted_queries(references: Iterable[tuple[Reference, Sequence[Run]]]) -> Iterator[tuple[str, Note]]:
    """Report how many queries are left out because a run does not list them."""
    for reference, runs in references:
        left_out = int((~reference.conditions[0].all_queries).sum())
        if left_out:
            note = Note.of_count("Left out because the run does not list them: ", left_out, "queries", ".")
            yield from ((run.system, note) for run in runs)


def note_missing_loads(
    held: Iterable[Run], measures: Iterable[str] | None, settings: ProcessingLoadSettings
) -> Iterator[tuple[str, Note]]:
    """Report measures of processing load that were requested by name and that a run has no resources for."""
    load = [name for name in ProcessingLoad.names if name in (measures or ())]
    for run in held:
        times = run.reported or Resources()
        given = {
            "isf": times.indexing.cpu_time is not None,
            "ssf": times.searching.cpu_time is not None and settings.query_seconds is not None,
        }
        missing = [name for name in load if not given.get(name)]
        if missing and run.resources is None:
            text = f"no {', '.join(missing)}: there is no resources.toml beside the run."
            yield run.system, Note(text, text)


def note_missing_times(
    held: Iterable[Run], measures: Iterable[str] | None, *, judged: bool
) -> Iterator[tuple[str, Note]]:
    """Report that GAP was requested by name where the run, or the judgments, have no times."""
    named = [name for name in GeneralisedAveragePrecision.names if name in (measures or ())]
    for run in held if named else ():
        if judged or WITHOUT_TIMES in run.attributes:
            whose = "the judgments" if judged else "the run"
            text = f"no {', '.join(named)}: there are no times in {whose}."
            yield run.system, Note(text, text)
