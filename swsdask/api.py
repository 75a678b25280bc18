"""The Python API: open an evaluation, ingest, score, validate, report. The command line is a thin layer over it."""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xxhash

from swsdask import __version__
from swsdask.archive.base import Archive, Run
from swsdask.archive.collection import collection_statistics
from swsdask.archive.ingest import ingest as ingest_files
from swsdask.archive.layout import Layout
from swsdask.archive.memory import MemoryArchive, read_into_memory
from swsdask.archive.policy import check_runs
from swsdask.archive.reading import JudgedFiles, RunFile, read_reference, sources_of
from swsdask.archive.reference import build_reference, whole_ticks
from swsdask.archive.storage import Storage
from swsdask.archive.store import StoredArchive, is_archive, open_archive
from swsdask.archive.tables import ReferenceTables
from swsdask.archive.writing import write_runs
from swsdask.engine.executor import Executor
from swsdask.engine.open import open_executor
from swsdask.engine.progress import Progress, Unseen
from swsdask.engine.score import score_archive, score_systems
from swsdask.engine.serial import SerialExecutor
from swsdask.errors import SettingsError
from swsdask.formats.opening import file_size, is_local
from swsdask.formats.reference import ReferenceFiles, find_reference
from swsdask.formats.run_files import find_runs
from swsdask.formats.validate import Report
from swsdask.formats.validate import validate as validate_files
from swsdask.measures import interpretation, select, with_points
from swsdask.model.presets import load_preset
from swsdask.model.results import Result
from swsdask.model.settings import Settings, build_settings, merge_layers
from swsdask.model.wording import counted

if TYPE_CHECKING:
    import pandas as pd

    from swsdask.calibration.applying import Applied
    from swsdask.calibration.file import Calibration
    from swsdask.calibration.fitting import Method

Location = str | os.PathLike[str]
"""A path or an fsspec URL."""

Runs = Location | Iterable[Location] | Mapping[str, Location] | None
"""Files, directories, globs or URLs; or file by system; or names of an archive's systems."""

_Runs = list[str] | dict[str, str] | None

PER_QUERY = ("search_time.", "oov_count.")
"""Attributes of a run that are about one query."""

BYTES_PER_DETECTION = 90
"""About what a detection takes in an official file: for a guess at how much there is to do before anything is read."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What runs are scored against: an archive (or a reference in memory) and settings."""

    archive: Archive
    settings: Settings
    files: ReferenceFiles | None = field(default=None, repr=False)
    """Where the reference was read from, unless it is an archive's."""

    def __repr__(self) -> str:
        excerpts, queries = self.archive.documents.num_rows, self.archive.queries.num_rows
        held = f"{counted(excerpts, 'excerpts')}, {counted(queries, 'queries')}, {counted(len(self.systems), 'runs')}"
        return f"<Evaluation: {held}; {_differences(self.settings)}>"

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems whose runs the archive holds."""
        return tuple(run.system for run in self.archive.runs)


def open(  # noqa: A001
    source: Location | None = None,
    *,
    ecf: Location | None = None,
    rttm: Location | None = None,
    queries: Location | None = None,
    qrels: Location | None = None,
    collection: Runs = None,
    preset: str | None = None,
    compat: str | None = None,
    settings: Mapping[str, Any] | None = None,
    version: int | None = None,
) -> Evaluation:
    """Open an evaluation: an archive or a reference directory (path or URL), or the three files of a reference.

    Or judgments of documents, `qrels`: TREC's or a table with query, document and relevance. `collection` are runs
    whose documents are of the collection whether they were judged or not: give it all runs that are to be scored.

    `settings` is shaped as a settings file, e.g. {"evaluation": {"trials": "segment"}}; it wins over `compat`, which
    wins over `preset`. `version` is a version of an archive. Raises `InputError` with everything that is wrong with the
    reference files, `SettingsError`, `ArchiveError`.
    """
    resolved = _settings(preset, compat, settings, judged=qrels is not None)
    if qrels is not None:
        judged = _judged_files(qrels, collection, (source, ecf, rttm, queries, version))
        return Evaluation(MemoryArchive(read_reference(judged), (), {}), resolved)
    if source is not None and is_archive(os.fspath(source)):
        return Evaluation(open_archive(os.fspath(source), version), resolved)
    if version is not None:
        raise SettingsError(f"version={version} goes with an archive; {source} is none.")
    files = _reference_files(source, ecf, rttm, queries)
    return Evaluation(MemoryArchive(read_reference(files), (), {}), resolved, files)


def ingest(
    archive: Location,
    reference: Location | None = None,
    *,
    ecf: Location | None = None,
    rttm: Location | None = None,
    queries: Location | None = None,
    qrels: Location | None = None,
    runs: Runs = None,
    preset: str | None = None,
    compat: str | None = None,
    settings: Mapping[str, Any] | None = None,
    replace_runs: bool = False,
    buckets: int | None = None,
    codec: str = "lz4",
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> StoredArchive:
    """Write a reference and runs into the archive at a path or URL, made if there is none; the new version.

    A run that is there already, with the same content, is left alone; one whose content differs is an `ArchiveError`
    unless `replace_runs`. Either everything is committed or nothing. With judgments, `qrels`, documents are those that
    were judged and those of `runs`: an archive of judgments takes later runs of these documents only.
    """
    resolved = _settings(preset, compat, settings, judged=qrels is not None)
    given = reference is not None or any((ecf, rttm, queries))
    judged = None if qrels is None else _judged_files(qrels, runs, (reference, ecf, rttm, queries))
    runs = _named(runs)
    layout = Layout(buckets=buckets, codec=codec)
    with _executor(resolved, executor, _rows_about(_run_files(runs)), progress) as workers:
        return ingest_files(
            os.fspath(archive),
            _reference_files(reference, ecf, rttm, queries) if given else judged,
            _run_files(runs),
            resolved.evaluation,
            replace=replace_runs,
            layout=layout,
            executor=workers,
            progress=None if progress is None else lambda label: progress.begin(label, 0),
        )


def score(
    evaluation: Evaluation | Location,
    measures: str | Iterable[str] | None = None,
    *,
    runs: Runs = None,
    by: str | Iterable[str] = (),
    executor: Executor | None = None,
    alignment: bool = False,
    buckets: int | None = None,
    progress: Progress | None = None,
) -> Result:
    """Score runs: those of the archive (all, or the named systems), or files, directories, globs, URLs.

    `measures` are names (None: all), also with a threshold or a false-alarm rate: twv@0.5, p_miss@0.001. `by` are
    conditions, each a key or several joined by commas: a query attribute (language and oov where the list gives them),
    source_type, document_language, query_pattern:REGEX, document_pattern:REGEX. `executor` is one of `swsdask.cluster`;
    without it the settings' `[engine]` decides. Numbers do not depend on it. Raises `InputError` with everything that
    is wrong with the runs, `SettingsError`, `ArchiveError`, `ClusterError`.
    """
    evaluation = evaluation if isinstance(evaluation, Evaluation) else open(evaluation)
    runs, by = _named(runs, evaluation.systems), _names(by) or []
    began = time.time()
    measures, settings = _asked(measures, evaluation.settings)
    families = select(measures)
    with ExitStack() as stack:
        rows = _rows_to_score(evaluation, runs)
        workers = stack.enter_context(_executor(settings, executor, rows, progress))
        archive, systems = stack.enter_context(_with_runs(evaluation, runs, workers, buckets))
        notes = check_runs([run for run in archive.runs if run.system in systems], settings.evaluation)
        reference = build_reference(archive, settings.evaluation, [key.split(",") for key in by])
        tables = score_archive(
            archive,
            systems,
            reference,
            families,
            settings,
            workers,
            measures=measures,
            alignment=alignment,
            progress=progress,
        )
        manifest = _manifest(archive, systems, settings, measures, by)
        manifest["collection"] = collection_statistics(archive.queries, reference)
        manifest["run"] = {
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
            "seconds": round(time.time() - began, 3),
            "executor": type(workers).__name__,
            "workers": workers.workers,
            "python": platform.python_version(),
        }
    return Result(
        table=tables.scores,
        curves=tables.curves,
        alignment=tables.alignment,
        manifest=manifest,
        notes=(*interpretation(reference, settings.evaluation), *notes, *tables.notes),
    )


def calibrate(
    evaluation: Evaluation | Location,
    run: Location | Mapping[str, Location],
    method: Method = "affine",
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Fit the map from a run's scores to log-likelihood ratios: "affine" (Eq. 44) or "pav" (rising steps).

    `run` is a file or URL with one system, or file by system, or a system of the archive. The result can be called with
    scores, written (`write`) and applied to other runs (`apply_calibration`). Raises `InputError` where no such map can
    be used on other runs (see `calibration.fitting`), and what `score` raises.
    """
    from swsdask.calibration.fitting import MEASURES, fit

    evaluation = evaluation if isinstance(evaluation, Evaluation) else open(evaluation)
    runs = _named(run, evaluation.systems)
    settings = evaluation.settings
    if method not in MEASURES:
        raise SettingsError(f"method {method!r} is unknown. Known: {', '.join(MEASURES)}.")
    families = select(MEASURES[method])
    with ExitStack() as stack:
        rows = _rows_to_score(evaluation, runs)
        workers = stack.enter_context(_executor(settings, executor, rows, progress))
        archive, systems = stack.enter_context(_with_runs(evaluation, runs, workers, None))
        if len(systems) != 1:
            raise SettingsError(f"A calibration is fitted on one system; here are {', '.join(systems) or 'none'}.")
        held = next(each for each in archive.runs if each.system == systems[0])
        check_runs([held], settings.evaluation)
        reference = build_reference(archive, settings.evaluation)
        ((_, found),) = score_systems(
            archive, systems, reference, families, workers, settings.engine, progress or Unseen()
        )
        signature = _manifest(archive, systems, settings, MEASURES[method], ())["signature"]
        return fit(method, held, found, reference, settings.evaluation, archive.inputs, signature)


def apply_calibration(
    calibration: Calibration | Location,
    runs: Location | Iterable[Location],
    out: Location,
    *,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
    keep_decisions: bool = False,
    progress: Progress | None = None,
) -> list[Applied]:
    """Write runs (files, directories, globs, URLs) with their scores calibrated; what became of each.

    `out` is a local directory, or for one run a file. Decisions are made at the Bayes threshold of the evaluation that
    was fitted on, or of the operating point that `preset` or `settings` gives. Raises `InputError` with everything that
    is wrong with the runs, or with the calibration's file; then nothing is written.
    """
    from swsdask.calibration.applying import apply_to_runs
    from swsdask.calibration.file import Calibration

    held = calibration if isinstance(calibration, Calibration) else Calibration.read(calibration)
    files = find_runs(_locations(runs))
    threshold = held.bayes_threshold
    if preset or "operating_point" in (settings or {}).get("evaluation", {}):
        point = build_settings(load_preset(preset) if preset else None, None, settings).evaluation.operating_point
        if point.from_data is not None:
            raise SettingsError("operating_point.from_data: there is no reference here to take it from. Give beta.")
        threshold = point.resolve(0, 0).bayes_threshold
    if progress is not None:
        progress.begin("writing calibrated runs", 0)
    return apply_to_runs(held.map, files, os.fspath(out), None if keep_decisions else threshold)


def plan(
    evaluation: Evaluation,
    measures: str | Iterable[str] | None = None,
    *,
    runs: Runs = None,
    by: str | Iterable[str] = (),
) -> str:
    """What `score` would do, in words, after checking everything that it would read. Scores nothing."""
    measures, settings = _asked(measures, evaluation.settings)
    runs, by = _named(runs, evaluation.systems), _names(by) or []
    families = select(measures)
    with _with_runs(evaluation, runs, SerialExecutor(), None) as (archive, systems):
        held = [run for run in archive.runs if run.system in systems]
        notes = check_runs(held, settings.evaluation)
        reference = build_reference(archive, settings.evaluation, [key.split(",") for key in by])
        names = [name for family in families for name in family.names] if measures is None else measures
        lines = [
            _manifest(archive, systems, settings, measures, by)["signature"],
            *(f"{run.system}: {counted(run.rows, 'detections')}" for run in held),
            *(
                f"{c.name}: {counted(int(c.queries.sum()), 'queries')}, {counted(c.n_trials, 'trials')} each"
                for c in reference.conditions
            ),
            f"measures: {', '.join(names)}",
            *notes,
        ]
    return "\n".join(lines)


def validate(paths: Location | Iterable[Location], reference: Location | None = None) -> Report:
    """Check files of any kind, and every file of the folders, with everything that is wrong with them.

    With `reference` (a folder) the runs' queries and documents must be its own. Raises nothing for bad input.
    """
    return validate_files(_locations(paths), find_reference(os.fspath(reference)) if reference else None)


def report(result: Result, path: Location) -> None:
    """Write one self-contained HTML page: leaderboard, DET curves, the numbers of every query."""
    from swsdask.compare.rank_correlation import rank_correlations
    from swsdask.render.html import write_report

    write_report(result, Path(path), rank_correlations(result))


def rank_correlation(
    result: Result, measures: str | Iterable[str] | None = None, condition: str = "all"
) -> pd.DataFrame:
    """How alike measures rank the systems of a condition: Kendall's tau-b and tau_AP of every pair, as a DataFrame.

    Columns are those of `model.rank_correlation.RANK_CORRELATION`; `tau_ap` takes the ranking under `other` as the
    truth. `measures` are names; None: those asked for that have an order of merit, or, where all were, those that weigh
    misses against false alarms. Raises `SettingsError` where there is nothing to compare.
    """
    from swsdask.compare.rank_correlation import rank_correlation as compare

    frame: pd.DataFrame = compare(result, _names(measures), condition).table.to_pandas()
    return frame


def write(result: Result, directory: Location) -> None:
    """Write scores.parquet, scores.json, curves.parquet, manifest.json and report.html into a local directory."""
    from swsdask.compare.rank_correlation import rank_correlations
    from swsdask.render.outputs import write_outputs

    write_outputs(result, Path(directory), rank_correlations(result))


def write_mediaeval(result: Result, evaluation: Evaluation, directory: Location) -> list[Path]:
    """Write what MediaEval's tool would print into a local directory: score.out, or SYSTEM.score.out each; the paths.

    For document trials only, and a result with the numbers that are printed (`render.mediaeval_output`); they are the
    tool's under `compat = "mediaeval"`.
    """
    from swsdask.render.mediaeval_output import MEASURES, Loaded, write_mediaeval_output

    settings, archive = evaluation.settings.evaluation, evaluation.archive
    if settings.trials != "document":
        raise SettingsError("MediaEval's output is of document trials: set trials=document.")
    missing = set(MEASURES) - set(result.table["measure"].unique().to_pylist())
    if missing:
        raise SettingsError(f"MediaEval's output needs measures that were not asked for: {', '.join(sorted(missing))}.")
    names = evaluation.files or ReferenceFiles("(archive)", "(archive)", "(archive)")
    occurrences = archive.occurrences(whole_ticks("find_gap_s", settings.find_gap_s), settings.text_filters)
    loaded = Loaded(
        queries=os.path.basename(names.queries),
        n_queries=archive.queries.num_rows,
        ecf=os.path.basename(names.ecf),
        n_excerpts=archive.documents.num_rows,
        rttm=os.path.basename(names.rttm),
        n_occurrences=occurrences.num_rows,
    )
    return write_mediaeval_output(result, loaded, Path(directory))


def _settings(
    preset: str | None, compat: str | None, explicit: Mapping[str, Any] | None, *, judged: bool = False
) -> Settings:
    """Settings from their layers; of `judged` documents, trials are documents unless a layer says otherwise.

    Raises `SettingsError` where it does.
    """
    below: dict[str, Any] = {"evaluation": {"trials": "document"}} if judged else {}
    resolved = build_settings(merge_layers(below, load_preset(preset) if preset else {}), compat, explicit)
    if judged and resolved.evaluation.trials != "document":
        raise SettingsError(
            f"qrels judge documents: trials = {resolved.evaluation.trials!r} cannot be scored with them."
        )
    return resolved


def _judged_files(qrels: Location, runs: Runs, others: Iterable[Any]) -> JudgedFiles:
    if any(other is not None for other in others):
        raise SettingsError("qrels are a whole reference: give no other one beside them.")
    return JudgedFiles(os.fspath(qrels), tuple(file.url for file in _run_files(_named(runs))))


def _reference_files(
    source: Location | None, ecf: Location | None, rttm: Location | None, queries: Location | None
) -> ReferenceFiles:
    if source is not None and not any((ecf, rttm, queries)):
        return find_reference(os.fspath(source))
    if source is None and ecf and rttm and queries:
        return ReferenceFiles(os.fspath(ecf), os.fspath(rttm), os.fspath(queries))
    raise SettingsError("Give a reference directory, or all three of ecf, rttm and queries.")


def _names(given: str | Iterable[str] | None) -> list[str] | None:
    return [given] if isinstance(given, str) else None if given is None else list(given)


def _asked(measures: str | Iterable[str] | None, settings: Settings) -> tuple[list[str] | None, Settings]:
    """The names of measures, and the settings with the points that names such as `twv@0.5` add."""
    names, evaluation = with_points(_names(measures), settings.evaluation)
    return names, settings.model_copy(update={"evaluation": evaluation})


def _locations(given: Location | Iterable[Location]) -> list[str]:
    return [os.fspath(given)] if isinstance(given, str | os.PathLike) else [os.fspath(place) for place in given]


def _named(runs: Runs, held: Sequence[str] = ()) -> _Runs:
    """Runs as strings. Of an archive, each must be one of the systems `held`, or each something to read."""
    if runs is None:
        return None
    if isinstance(runs, Mapping):
        return {system: os.fspath(url) for system, url in runs.items()}
    given = _locations(runs)
    others = [name for name in given if name not in held]
    missing = [name for name in others if held and is_local(name) and not glob(name) and not os.path.exists(name)]
    if missing:
        raise SettingsError(f"{missing[0]} is neither a file nor a system of the archive: {', '.join(held)}.")
    if others and len(others) < len(given):
        both = f"{next(name for name in given if name in held)} is a system of the archive, {others[0]} a file"
        raise SettingsError(f"{both}: score them one after the other, or ingest the file.")
    return given


def _run_files(runs: _Runs) -> list[RunFile]:
    if runs is None:
        return []
    if isinstance(runs, dict):
        return [RunFile(url, system) for system, url in runs.items()]
    return [RunFile(url) for url in find_runs(runs)]


@contextmanager
def _executor(
    settings: Settings, given: Executor | None, total_rows: int, progress: Progress | None
) -> Iterator[Executor]:
    """The executor that was given, which stays open, or one of the settings."""
    if given is not None:
        yield given
    else:
        with open_executor(settings.engine, total_rows, progress) as executor:
            yield executor


def _rows_to_score(evaluation: Evaluation, runs: _Runs) -> int:
    if runs is None or _are_systems(runs, evaluation.systems):
        wanted = set(evaluation.systems) if runs is None else set(runs)
        return sum(run.rows for run in evaluation.archive.runs if run.system in wanted)
    return _rows_about(_run_files(runs))


def _rows_about(files: Sequence[RunFile]) -> int:
    """About how many detections some files hold, by their size."""
    return sum(file_size(file.url) for file in files) // BYTES_PER_DETECTION


def _are_systems(runs: _Runs, held: Sequence[str]) -> bool:
    return bool(held) and isinstance(runs, list) and set(runs) <= set(held)


@contextmanager
def _with_runs(
    evaluation: Evaluation, runs: _Runs, executor: Executor, buckets: int | None
) -> Iterator[tuple[Archive, list[str]]]:
    """The archive that holds the runs, and which of its systems are asked for.

    Runs of files are read into memory where the executor shares it, else into a temporary archive.
    """
    archive = evaluation.archive
    held = evaluation.systems
    if not runs:
        if runs is not None or not held:
            raise SettingsError("No RUN to score: give files, directories or globs, or an archive that holds runs.")
        yield archive, list(held)
    elif _are_systems(runs, held):
        yield archive, sorted(set(runs))
    else:
        tables = ReferenceTables(archive.documents, archive.queries, archive.words, archive.segments)
        settings = evaluation.settings.evaluation
        sources = sources_of(_run_files(runs))
        if executor.shares_memory and buckets is None:
            loaded: Archive = read_into_memory(tables, sources, settings)
            yield loaded, [run.system for run in loaded.runs]
            return
        with tempfile.TemporaryDirectory(prefix="swsdask-") as folder:
            layout = Layout(buckets=buckets)
            loaded = write_runs(Storage(folder, {}), tables, sources, settings, layout=layout, executor=executor)
            yield loaded, [run.system for run in loaded.runs]


def _manifest(
    archive: Archive, systems: Sequence[str], settings: Settings, measures: Sequence[str] | None, by: Sequence[str]
) -> dict[str, Any]:
    """What the numbers mean, and what was dropped or rounded on the way to them."""
    runs = {run.system: run for run in archive.runs if run.system in set(systems)}
    meaning = {
        "swsdask": __version__,
        "measures": list(measures) if measures else "all",
        "by": list(by),
        "settings": settings.evaluation.model_dump(mode="json"),
        "inputs": {**archive.inputs, "runs": {system: runs[system].content for system in systems}},
    }
    digest = xxhash.xxh3_64_hexdigest(json.dumps(meaning, sort_keys=True, allow_nan=False).encode())
    return {
        "signature": f"swsdask {__version__} {_differences(settings)} {digest}",
        **meaning,
        "runs": {system: _provenance(runs[system]) for system in systems},
    }


def _provenance(run: Run) -> dict[str, Any]:
    """What a run is and what was counted of it, without what its file says of each query."""
    said = {name: text for name, text in run.attributes.items() if not name.startswith(PER_QUERY)}
    told = None if run.resources is None else run.resources.model_dump(mode="json", exclude_defaults=True)
    return {**asdict(replace(run, attributes=said, resources=None)), "resources": told}


def _differences(settings: Settings) -> str:
    """The settings that are not the defaults, in one line."""
    chosen = settings.evaluation.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
    point = chosen.pop("operating_point", {})
    pairs = [pair for key, value in chosen.items() for pair in _flat(key, value)] + list(point.items())
    return " ".join(f"{key}={value}" for key, value in pairs) or "defaults"


def _flat(key: str, value: Any) -> list[tuple[str, Any]]:
    """A setting, or those of a table of settings, named as `--set` takes them."""
    return [(f"{key}.{name}", each) for name, each in value.items()] if isinstance(value, dict) else [(key, value)]
