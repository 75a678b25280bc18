"""The files of official tools, written from a result: the requirements and the writer of each tool."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from swsdask.api.opening import Evaluation
from swsdask.archive.occurrences import kwseval_read, kwseval_text, kwseval_units
from swsdask.archive.protocols import Archive, FindRule
from swsdask.archive.reference_tables import speech_seconds
from swsdask.formats.find import ReferenceFiles
from swsdask.formats.recognise import Format, sniff
from swsdask.formats.reference.nist_xml import texts_of
from swsdask.formats.runs.read import spelled_starts, with_texts
from swsdask.formats.runs.xml import decision_scores, search_times
from swsdask.model.errors import SettingsError
from swsdask.model.name_columns import names_of, rows_with
from swsdask.model.results import ALIGNMENT, Result
from swsdask.model.settings import weights
from swsdask.model.wording import FEW, listed

if TYPE_CHECKING:
    from swsdask.render.kwseval_output import ReportPart
    from swsdask.render.outputs import Official


@dataclass(frozen=True)
class OfficialTool:
    """The files of an official tool.

    `write` gives their writer for a result, and for its evaluation if the tool `needs_evaluation`; `measures` gives the
    measures to score for the requested ones (None: all).
    """

    write: Callable[..., Official]
    measures: Callable[[list[str] | None], list[str] | None]
    needs_evaluation: bool = True


def measures_of_tool(tool: str | None, names: list[str] | None) -> list[str] | None:
    """Return the requested measures (None: all) and those that a tool's files need; without a request, the tool's."""
    return names if tool is None else _TOOLS[tool].measures(names)


def official_writer(tool: str, result: Result, evaluation: Evaluation | None) -> Official:
    """Return the writer of an official tool's files. Raises `SettingsError` as `write` does."""
    if tool not in _TOOLS:
        raise SettingsError(f"no tool {tool!r}: there are {', '.join(sorted(_TOOLS))}.")
    official = _TOOLS[tool]
    if not official.needs_evaluation:
        return official.write(result)
    if evaluation is None:
        raise SettingsError(f"the files of {tool} need the evaluation that was scored: give evaluation=.")
    return official.write(result, evaluation)


def _trec_eval_measures(names: list[str] | None) -> list[str]:
    from swsdask.render.short_outputs import TREC_NEEDED, TREC_OFFICIAL

    return list(TREC_OFFICIAL if names is None else dict.fromkeys([*names, *TREC_NEEDED, "ap"]))


def _trec_eval(result: Result) -> Official:
    from swsdask.render.short_outputs import write_trec_output

    return partial(write_trec_output, result)


def _kwseval_measures(names: list[str] | None) -> list[str]:
    from swsdask.render.kwseval_output import NEEDED, ON_REQUEST

    more = (each for name in names or () for each in ON_REQUEST.get(name, ()))
    return list(dict.fromkeys([*(names or ()), *NEEDED, *more]))


def _kwseval(result: Result, evaluation: Evaluation) -> Official:
    """Return the writer of KWSEval's reports, for a result with the measures of its summary."""
    from swsdask.archive.reference import build_reference
    from swsdask.render.kwseval_output import NEEDED, KwsevalContext, ReportPart, write_kwseval_output

    settings, archive = evaluation.settings.evaluation, evaluation.archive
    if settings.trials == "document":
        raise SettingsError("KWSEval's reports are of occurrences or segments: set trials=virtual or trials=segment.")
    _require("KWSEval's reports", NEEDED, result)
    _require_columns(result)
    _require_decisions("KWSEval's reports", result)
    reference = build_reference(archive, settings, [])
    point = weights(reference, settings)
    seconds, title = speech_seconds(archive.documents, settings.compat), "Occurrence"
    if settings.trials == "segment":
        title = "Segment"
    evaluated = KwsevalContext(
        whole=ReportPart(title, "all", seconds, reference.conditions[0].n_trials),
        parts=_kwseval_parts(result.manifest["by"], evaluation),
        trials_per_second=settings.trials_per_second,
        beta=point.beta,
        c_fa=point.c_fa,
        p_target=point.p_target,
        c_miss=point.c_miss,
        segments=settings.trials == "segment",
        all_queries=settings.no_targets == "false_alarms_only",
        language=(archive.queries.schema.metadata or {}).get(b"language", b"").decode(),
        texts={query: kwseval_text(text, settings.text_filters) for query, text in _texts(archive.queries).items()},
        listed={}
        if settings.unlisted_queries == "count"
        else {system: frozenset(times) for system, times in _search_times(result, archive).items()},
    )
    return partial(write_kwseval_output, result, evaluated, _alignment_reader(result, evaluation))


def _require_columns(result: Result) -> None:
    """Raise `SettingsError` if some columns of OTWV, STWV or MAP were requested without the others of their group."""
    asked = result.manifest["measures"]
    if asked != "all" and (missing := {*_kwseval_measures(asked)} - {*asked}):
        raise SettingsError(f"KWSEval's reports need measures that were not requested: {', '.join(sorted(missing))}.")


def _texts(queries: pa.Table) -> dict[str, str]:
    """Return the texts of queries, by id; the id itself if occurrences were given without texts."""
    return {query: text or query for query, text in zip(queries["query"].to_pylist(), texts_of(queries), strict=True)}


def _kwseval_parts(by: Iterable[str], evaluation: Evaluation) -> list[ReportPart]:
    """Return the conditions that KWSEval reports, under its titles, in its order."""
    from swsdask.archive.reference import build_reference
    from swsdask.render.kwseval_output import ReportPart

    settings, archive = evaluation.settings.evaluation, evaluation.archive
    documents, ids = archive.documents, archive.queries["query"].to_pylist()
    pairs = {pair for of_query in archive.queries["attributes"].to_pylist() for pair in of_query}
    attributes = {name for name, _ in pairs}
    selected = attributes | {f"{name}:{value}" for name, value in pairs}
    whole = speech_seconds(documents, settings.compat)
    parts = {}
    for spec in by:
        keys = spec.split(",")
        of_sources = keys[0].partition(":")[0] == "source_type" not in attributes and len(keys) == 1
        pattern = spec.partition("query_pattern:")[2].removeprefix("^").removesuffix("$")
        if not of_sources and not pattern and not selected.issuperset(keys):
            continue
        for condition in build_reference(archive, settings, [[spec] if pattern else keys]).conditions[1:]:
            value = condition.name.partition("=")[2]
            if of_sources:
                own = documents.filter(pc.is_in(documents["source_type"], pa.array(value.split("+"))))
                places = frozenset(zip(own["document"].to_pylist(), own["channel"].to_pylist(), strict=True))
                part = ReportPart(
                    value, condition.name, speech_seconds(own, settings.compat), condition.n_trials, places
                )
            else:
                title = pattern or " X ".join(each.replace("=", "-", 1) for each in condition.name.split("&"))
                queries = frozenset(compress(ids, condition.all_queries))
                part = ReportPart(title, condition.name, whole, condition.n_trials, None, queries, adopts=bool(pattern))
            parts[part.title] = part
    return [parts[title] for title in sorted(parts)]


def _stdeval_measures(names: list[str] | None) -> list[str]:
    from swsdask.render.stdeval_output import NEEDED

    return list(dict.fromkeys([*(names or ()), *NEEDED]))


def _stdeval(result: Result, evaluation: Evaluation) -> Official:
    """Return the writer of STDEval's reports, for a result with their measures, its alignment and types of source."""
    from swsdask.archive.reference import build_reference
    from swsdask.render.stdeval_output import ALL, NEEDED, TYPES, StdevalContext, write_stdeval_output

    settings, archive = evaluation.settings.evaluation, evaluation.archive
    if settings.trials != "virtual":
        raise SettingsError("STDEval's reports are of occurrences: set trials=virtual.")
    _require("STDEval's reports", NEEDED, result)
    _require_decisions("STDEval's reports", result)
    aligned = _alignment_reader(result, evaluation)
    if aligned is None:
        raise SettingsError("STDEval's reports need the alignment: score with alignment=True.")
    documents = archive.documents
    kinds = sorted({*documents["source_type"].to_pylist()})
    own = {title: [kind for kind in kinds if kind.upper() == title] for title in TYPES}
    own = {title: names for title, names in own.items() if names}
    curves = {title: [kind for kind in kinds if title in kind.upper()] for title in own}
    by = ["source_type", *(f"source_type:{'+'.join(names)}" for names in (*own.values(), *curves.values()))]
    reference = build_reference(archive, settings, [[key] for key in dict.fromkeys(by)])
    point = weights(reference, settings)
    conditions, of_curves = (
        {title: f"source_type={'+'.join(names)}" for title, names in each.items()} | {ALL: "all"}
        for each in (own, curves)
    )
    if missing := {*conditions.values(), *of_curves.values()} - {*result.overall["condition"].unique().to_pylist()}:
        keys = sorted({name.replace("=", ":", 1) if "+" in name else "source_type" for name in missing})
        raise SettingsError(f"STDEval's reports have a block for each type of source: score by {' and '.join(keys)}.")
    trials = {condition.name: condition.n_trials for condition in reference.conditions}
    parts = {
        title: documents if title == ALL else documents.filter(pc.is_in(documents["source_type"], pa.array(own[title])))
        for title in conditions
    }
    places = documents.select(["document", "channel", "source_type"]).to_pylist()
    evaluated = StdevalContext(
        c_fa=point.c_fa,
        c_miss=point.c_miss,
        p_target=point.p_target,
        trials_per_second=settings.trials_per_second,
        language=(archive.queries.schema.metadata or {}).get(b"language", b"").decode(),
        conditions=conditions,
        curves=of_curves,
        trials={title: trials[name] for title, name in conditions.items()},
        seconds={title: speech_seconds(part, settings.compat) for title, part in parts.items()},
        texts=_texts(archive.queries),
        types={(row["document"], row["channel"]): row["source_type"] for row in places},
        times=_search_times(result, archive),
        decided=_decision_scores(result, archive) if settings.outside == "drop" else {},
    )
    return partial(write_stdeval_output, result, evaluated, aligned)


def _alignment_reader(result: Result, evaluation: Evaluation) -> Callable[[str], pa.Table] | None:
    """Return a function that gives the alignment of a system, with numbers as files spell them; None without one."""
    rows = result.alignment_rows
    if rows is None:
        return None
    settings, runs = evaluation.settings.evaluation, _files_read(result, evaluation.archive)
    files = evaluation.files
    rttm = files.rttm if files and not files.tables else None
    encoding = (evaluation.archive.words.schema.metadata or {}).get(b"encoding", b"utf-8").decode()
    units = partial(kwseval_units, text_filters=settings.text_filters)
    words = {
        row["query"]: next(iter(units(kwseval_read(row["text"]))), "")
        for row in evaluation.archive.queries.select(["query", "text"]).to_pylist()
    }
    segments = settings.trials == "segment"
    targets = [] if rttm is None else spelled_starts(rttm, encoding, None if segments else units)

    def aligned(system: str) -> pa.Table:
        own = rows.among([system]).cast(ALIGNMENT)
        return with_texts(own, runs.get(system, ()), targets, {} if segments else words)

    return aligned


def _files_read(result: Result, archive: Archive) -> dict[str, Sequence[str]]:
    """Return the files of each system whose run the archive does not hold."""
    held = {run.system for run in archive.runs}
    return {system: run["files"] for system, run in result.manifest["runs"].items() if system not in held}


def _search_times(result: Result, archive: Archive) -> dict[str, dict[str, float]]:
    """Return the search times of queries that lists of detections report, by system, from the archive or the files."""
    files, attributes = _files_read(result, archive), {run.system: run.attributes for run in archive.runs}
    times: dict[str, dict[str, float]] = {}
    for system in result.manifest["runs"]:
        if system in files:
            lists = (file for file in files[system] if sniff(file) == Format.RUN_XML)
            reported = [each for file in lists for each in search_times(file).items()]
        else:
            stored = attributes[system].items()
            reported = [(key.partition(".")[2], time) for key, time in stored if key.startswith("search_time.")]
        times[system] = {query: float(time) for query, time in reported}
    return times


def _decision_scores(result: Result, archive: Archive) -> dict[str, tuple[float, float]]:
    """Return, for each system with lists of detections in files, the highest score with NO and the lowest with YES."""
    files = _files_read(result, archive)
    lists = {system: own for system, own in files.items() if own and {*map(sniff, own)} == {Format.RUN_XML}}
    return {system: decision_scores(own) for system, own in lists.items()}


def _require(files: str, needed: Iterable[str], result: Result) -> None:
    missing = set(needed) - set(result.score_rows.names("measure"))
    if missing:
        raise SettingsError(f"{files} need measures that were not requested: {', '.join(sorted(missing))}.")


def _require_decisions(files: str, result: Result) -> None:
    hits = rows_with(result.overall, condition=["all"], measure=["n_hit"])
    without = names_of(hits.filter(pc.is_nan(hits["value"]))["system"])
    if without:
        raise SettingsError(
            f"{files} need decisions, which {listed(without, FEW)} did not give. Give each detection YES or NO."
        )


def _mediaeval_measures(names: list[str] | None) -> list[str] | None:
    from swsdask.render.short_outputs import MEDIAEVAL_MEASURES, MEDIAEVAL_TOOL_MEASURES

    return [*dict.fromkeys([*names, *MEDIAEVAL_MEASURES, *MEDIAEVAL_TOOL_MEASURES])] if names else names


def _mediaeval(result: Result, evaluation: Evaluation) -> Official:
    """Return the writer of MediaEval's lines, for document trials and a result with the numbers in them."""
    from swsdask.render.short_outputs import MEDIAEVAL_MEASURES, MEDIAEVAL_TOOL_MEASURES, Loaded, write_mediaeval_output

    settings, archive = evaluation.settings.evaluation, evaluation.archive
    if settings.trials != "document":
        raise SettingsError("MediaEval's output is of document trials: set trials=document.")
    needed = MEDIAEVAL_TOOL_MEASURES if settings.compat == "mediaeval" else MEDIAEVAL_MEASURES
    _require("The lines of MediaEval's tool", needed, result)
    names = evaluation.files or ReferenceFiles("(archive)", "(archive)", "(archive)")
    occurrences = archive.occurrences(FindRule.of(settings))
    documents = set(archive.documents["document"].to_pylist())
    loaded = Loaded(
        queries=os.path.basename(names.queries or names.rttm),
        n_queries=archive.queries.num_rows,
        ecf=os.path.basename(names.ecf),
        n_excerpts=archive.documents.num_rows,
        rttm=os.path.basename(names.rttm),
        n_occurrences=sum(document in documents for document in occurrences["document"].to_pylist()),
    )
    return lambda folder: write_mediaeval_output(result, loaded, folder)


def _tde(result: Result) -> Official:
    """Return the writer of the challenge's files, for a result of `discover` with all measures of its definition."""
    from swsdask.render.short_outputs import write_tde_output

    if result.manifest.get("kind") != "discovery":
        raise SettingsError("The official files of term discovery need a result of term discovery.")
    if result.requested is not None:
        raise SettingsError("The official files need all measures: request all.")
    return lambda folder: write_tde_output(result, folder)


def _tde_measures(names: list[str] | None) -> list[str] | None:
    return names


_TOOLS = {
    "kwseval": OfficialTool(_kwseval, _kwseval_measures),
    "mediaeval": OfficialTool(_mediaeval, _mediaeval_measures),
    "stdeval": OfficialTool(_stdeval, _stdeval_measures),
    "tde": OfficialTool(_tde, _tde_measures, needs_evaluation=False),
    "trec_eval": OfficialTool(_trec_eval, _trec_eval_measures, needs_evaluation=False),
}
