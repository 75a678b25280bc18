"""Calibration: fitting a map from scores to log-likelihood ratios, and applying it to runs.

Runs are read, mapped and written piece by piece, in flat memory, each in the format of its source.
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from swsdask.api.calibration_maps import MEASURES, AffineMap, Calibration, CalibrationMethod, StepMap, fit
from swsdask.api.manifest import manifest_of
from swsdask.api.opening import Evaluation, as_evaluation
from swsdask.api.runs import Runs, rows_to_score, runs_for, with_runs
from swsdask.archive.protocols import check_runs
from swsdask.archive.reference import build_references
from swsdask.execution.executor import Executor, Progress, SerialExecutor, or_unseen
from swsdask.execution.open import working
from swsdask.formats.find import find_runs
from swsdask.formats.in_memory import check_files
from swsdask.formats.recognise import RUNS, TYPED, AnyFormat, Format, expect
from swsdask.formats.runs.encoding import Encoding, read_encoding
from swsdask.formats.runs.read import RunFile, read_run
from swsdask.formats.runs.write import (
    Losses,
    in_system,
    rewrite_table,
    stays_table,
    system_to_add,
    write_lists,
    writer_of,
)
from swsdask.formats.runs.xml import DIALECTS, Dialect
from swsdask.formats.xml_stream import read_elements
from swsdask.measures import select
from swsdask.measures.measure import Scored
from swsdask.model.errors import InputError, Problem, Problems, SettingsError, without_secrets
from swsdask.model.layers import GivenSettings, build_settings, explicit_settings, load_preset
from swsdask.model.schemas import RunPiece
from swsdask.model.trials import F64
from swsdask.places.reading import (
    Location,
    Pipe,
    as_path,
    before_query,
    is_folder,
    is_local,
    join_path,
    locations,
    parted,
)
from swsdask.places.writing import together
from swsdask.scoring.score import count_archive

_FILE = re.compile(r"\.(xml|tsv|csv)(\.gz|\.zst)?$|\.parquet$", re.IGNORECASE)
_ENDINGS: dict[AnyFormat, tuple[str, str]] = {
    Format.RUN_XML: (r"\.xml(\.gz|\.zst)?$", ".xml"),
    **dict.fromkeys(TYPED, (r"\.parquet$", ".parquet")),
}
_OF_TABLES = r"\.[tc]sv(\.gz|\.zst)?$", ".tsv"
"""By format: the pattern that the name of a run must match, and the ending that is appended if it does not. Runs in
other formats become tables in text."""


def target_files(sources: Sequence[str], out: str) -> list[str]:
    """The target file of each run. `out` is a folder unless its name has the ending of a run.

    In a folder, a run keeps its name; an ending is appended if the name does not show the format. A run that is neither
    XML nor Parquet becomes a table in text. Raises `InputError` if a target is one of the runs that are read, if two
    runs have the same target, or if `out` is a file and there are several runs, and as `expect` does.
    """
    if _FILE.search(out) and not is_folder(out):
        if len(sources) > 1:
            raise InputError(Problem(out, None, "a folder for several runs", "a file", "Name a folder."))
        targets = [out]
    else:
        targets = [join_path(out, _name(source)) for source in sources]
    uses, given = Counter(targets), {*sources}
    there = {target for target in uses if (os.path.exists(target) if is_local(target) else target in given)}
    for source, target in zip(sources, targets, strict=True):
        if uses[target] > 1:
            found = "runs of several folders with the same name"
            raise InputError(Problem(target, None, "one run for each file", found, "Apply it folder by folder."))
        if target in there and any(_are_same(each, target) for each in sources):
            raise InputError(Problem(target, None, "a new file", f"the run {source}", "Name another folder."))
    return targets


def _are_same(source: str, target: str) -> bool:
    if is_local(source) and is_local(target):
        return os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target)
    return source == target


def write_like(source: str, pieces: Iterable[RunPiece], target: str) -> None:
    """Write the pieces of one run, in the format that the name of the target shows.

    Lists of detections are written piece by piece, in their own dialect unless the name has another ending. Memory is
    bounded by the largest piece, unless a table becomes lists.
    """
    dialect = _dialect(source, target)
    if dialect is None:
        writer_of(target)(pieces, target)
    else:
        write_lists(pieces, dialect, target)


def _dialect(source: str, target: str) -> Dialect | None:
    """The dialect in which a list of detections is written; None for a table, as source or target."""
    if expect(source, *RUNS) is not Format.RUN_XML or not re.search(_ENDINGS[Format.RUN_XML][0], target, re.IGNORECASE):
        return None
    said = re.search(r"\.(kws|std)list\.", target, re.IGNORECASE)
    return DIALECTS[f"{said[1].lower()}list" if said else next(read_elements(source)).path[0]]


def _name(source: str) -> str:
    name = before_query(source)[0].rstrip("/").rsplit("/", 1)[-1]
    known, ending = _ENDINGS.get(expect(source, *RUNS), _OF_TABLES)
    return name if re.search(known, name, re.IGNORECASE) else name + ending


@dataclass
class Applied:
    """A run that was written: `rows` with scores from `lowest` to `highest`, of which `accepted` are decided YES.

    `systems` are the systems of the rows. `rounded` counts times finer than 0.1 ms. `dropped` lists what the written
    run lacks (see `formats.runs.write.Losses`). A table in text that stays one keeps everything.
    """

    source: str
    target: str
    rows: int = 0
    accepted: int = 0
    lowest: float = np.inf
    highest: float = -np.inf
    rounded: int = 0
    dropped: tuple[str, ...] = ()
    systems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Application:
    """The options of mapping runs: see `apply_to_runs`."""

    score_map: AffineMap | StepMap
    threshold: float | None
    encoding: Encoding | None


@dataclass(frozen=True)
class _Run:
    """A run, its target, and the temporary file beside the target."""

    source: str
    target: str
    beside: str

    def __str__(self) -> str:
        return without_secrets(self.source)


def apply_to_runs(
    score_map: AffineMap | StepMap,
    sources: Sequence[str],
    out: str,
    threshold: float | None,
    encoding: Encoding | None = None,
    executor: Executor | None = None,
) -> list[Applied]:
    """Write runs with mapped scores and new decisions: YES at or above `threshold`.

    A threshold of None keeps the decisions. Declared minimum and maximum scores are mapped too. For `out` see
    `target_files`. `encoding` describes the tables that are read; the written tables have seconds, and scores that rise
    with confidence. Each run is a task of the `executor`; None: this process writes them. Either all files are written
    or none. Raises `InputError` with every problem of the runs, and for targets that cannot be written.
    """
    targets = target_files(sources, out)
    problems = Problems()
    done = []
    folder = parted(targets[0])[0] if targets else ""
    where = executor or SerialExecutor()
    with together(folder or ".") as hidden:
        place = hidden.resolve()
        probe = place / "probe"
        probe.touch()
        where.check([str(probe), *(source for source in sources if not isinstance(source, Pipe))])
        probe.unlink()
        both = zip(sources, targets, strict=True)
        runs = [_Run(source, target, str(place / parted(target)[1])) for source, target in both]
        shared = where.share(_Application(score_map, threshold, encoding))
        for applied, own in where.map(_applied, runs, shared, name="apply"):
            done.append(applied)
            problems.extend(own)
        problems.raise_if_any()
    return done


def _applied(run: _Run, how: _Application) -> tuple[Applied, Problems]:
    """Write a run beside its target. Also return its problems."""
    applied, problems = Applied(run.source, run.target), Problems()
    read = read_run(run.source, problems, encoding=how.encoding)
    dialect = _dialect(run.source, run.target)
    losses = Losses(run.target if dialect is None else f"*.{dialect.root}.xml")
    pieces = (_mapped(piece, how.score_map, how.threshold, applied, losses) for piece in read)
    if not how.encoding and stays_table(run.source, run.target):
        deque(pieces, 0)
        losses = Losses(run.target)
        if not len(problems):
            _rewrite(run, how)
    for first in pieces:
        write_like(run.source, chain([first], pieces), run.beside)
    applied.rounded, applied.dropped = losses.rounded, losses.dropped
    return applied, problems


def _rewrite(run: _Run, how: _Application) -> None:
    """Write a table as a table, beside its target. It keeps its columns and digits."""
    system = system_to_add(run.source, run.target)

    def anew(scores: F64) -> dict[str, pa.StringArray]:
        mapped = how.score_map(scores)
        values = {"score": pa.array(mapped).cast(pa.string())}
        if how.threshold is not None:
            values["decision"] = pc.if_else(pa.array(mapped >= how.threshold), "YES", "NO")
        return {**values, **in_system(system, scores)}

    rewrite_table(run.source, run.beside, anew)


def _mapped(
    piece: RunPiece, score_map: AffineMap | StepMap, threshold: float | None, applied: Applied, losses: Losses
) -> RunPiece:
    header = piece.header
    if header.declared_scores:
        low, high = score_map(np.array(header.declared_scores)).tolist()
        header = replace(header, declared_scores=(low, high))
    score = score_map(piece.score)
    beyond = np.isfinite(piece.score) & ~np.isfinite(score)
    if beyond.any():
        found = repr(float(piece.score[beyond][0]))
        expected = "scores with finite log-likelihood ratios"
        raise InputError(Problem(piece.file, None, expected, found, "Was the calibration fitted on such scores?"))
    decision = piece.decision if threshold is None else (score >= threshold).astype(np.int8)
    applied.rows += len(piece)
    applied.accepted += int((decision == 1).sum())
    applied.lowest = min(applied.lowest, score.min(initial=np.inf))
    applied.highest = max(applied.highest, score.max(initial=-np.inf))
    losses.add(piece)
    if header.system not in applied.systems:
        applied.systems.append(header.system)
    return replace(piece, header=header, score=score, decision=decision)


def calibrate(
    evaluation: Evaluation | Location,
    run: Runs,
    method: CalibrationMethod = "affine",
    *,
    frame_shift: float | None = None,
    negate_scores: bool = False,
    segments: Location | None = None,
    executor: Executor | str | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Fit a map from the scores of a run to log-likelihood ratios.

    Parameters
    ----------
    evaluation : Evaluation, path or URL
        The evaluation to fit on, as for `score`: a development set.
    run : path, URL, table or mapping
        A file or a table with one system, a mapping from the system to one, or the name of a system of the archive.
    method : {"affine", "pav"}, default "affine"
        "affine" fits gamma and delta of llr = gamma score + delta (2013 measures document, Eq. 44). "pav" fits an
        increasing step function by pooled isotonic regression.
    frame_shift : float, optional
        Seconds per frame, for tables whose times are frame numbers.
    negate_scores : bool, default False
        Negate the scores of tables, for tables whose scores are costs.
    segments : path or URL, optional
        Kaldi's ``segments`` file, for tables whose documents are utterances and whose times begin at the utterance.
    executor : Executor or str, optional
        Where the work runs, see `cluster`. Default: the executor of the settings' ``[engine]``.
    progress : Progress, optional
        Receives the phases of the work and the number of rows done.

    Returns
    -------
    Calibration
        The map, and the data that it was fitted on. Call it with scores, write it, or give it to `apply_calibration`.

    Raises
    ------
    InputError
        The run has problems, or a map fitted on it cannot be used on other runs: the run has only one class of trials,
        or targets do not have higher scores.
    SettingsError
        The method is unknown, or the run has several systems.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> evaluation = sws.open("demo/files", preset="sws2013")
    >>> calibration = sws.calibrate(evaluation, "demo/files/runs/overconfident.kwslist.xml")
    >>> print(calibration.map)
    affine, gamma 1.33074, delta -6.77762
    >>> calibration([4.0, 8.0]).round(3)
    array([-1.455,  3.868])
    """
    evaluation = as_evaluation(evaluation)
    runs = runs_for(evaluation, run, frame_shift, negate_scores, segments)
    settings = evaluation.settings
    if method not in MEASURES:
        raise SettingsError(f"method {method!r} is unknown. Known: {', '.join(MEASURES)}.")
    families = select(MEASURES[method])
    with ExitStack() as stack:
        rows = rows_to_score(evaluation.archive, runs)
        after = stack.enter_context(ExitStack())
        workers = stack.enter_context(working(settings, executor, rows, progress))
        archive, systems = stack.enter_context(with_runs(evaluation, runs, workers, after=after))
        if len(systems) != 1:
            raise SettingsError(f"A calibration is fitted on one system; found {', '.join(systems) or 'none'}.")
        held = next(each for each in archive.runs if each.system == systems[0])
        check_runs(archive, [held], settings.evaluation)
        ((reference, _),) = build_references(archive, settings.evaluation, (), [held])
        shown = or_unseen(progress)
        ((_, found),) = count_archive(archive, systems, reference, families, workers, settings.engine, shown)
        signature = manifest_of(archive, systems, settings, MEASURES[method], ())["signature"]
        scored = Scored(found, reference, settings.evaluation)
        return fit(method, held, scored, archive.inputs, signature)


def apply_calibration(
    calibration: Calibration | Location,
    runs: Location | Iterable[Location],
    out: Location,
    *,
    preset: str | None = None,
    settings: GivenSettings | None = None,
    keep_decisions: bool = False,
    frame_shift: float | None = None,
    negate_scores: bool = False,
    segments: Location | None = None,
    executor: Executor | str | None = None,
    progress: Progress | None = None,
) -> list[Applied]:
    """Write runs with calibrated scores.

    Parameters
    ----------
    calibration : Calibration, path or URL
        The result of `calibrate`, or the file that `Calibration.write` wrote.
    runs : path, URL, glob, or iterable of these
        Files or directories with runs.
    out : path or URL
        A directory, or for one run a file.
    preset, settings : optional
        Settings with an operating point, see `open`. Its Bayes threshold gives the decisions. Default: the operating
        point of the evaluation that the calibration was fitted on.
    keep_decisions : bool, default False
        Keep the decisions of the runs.
    frame_shift : float, optional
        Seconds per frame, for tables whose times are frame numbers.
    negate_scores : bool, default False
        Negate the scores of tables, for tables whose scores are costs.
    segments : path or URL, optional
        Kaldi's ``segments`` file, for tables whose documents are utterances and whose times begin at the utterance.
    executor : Executor or str, optional
        Where runs are read and written, see `cluster`. Default: the executor of the settings' ``[engine]``.
    progress : Progress, optional
        Receives the phases of the work.

    Returns
    -------
    list of Applied
        For each run: its source and target, the number of its rows and of those accepted, and the range of its scores.

    Raises
    ------
    InputError
        Lists every problem of the runs or of the calibration file. Nothing is written.
    SettingsError
        A setting is unknown or malformed.
    ClusterError
        The workers cannot be reached, were lost, or do not see a file.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> evaluation = sws.open("demo/files", preset="sws2013")
    >>> calibration = sws.calibrate(evaluation, "demo/files/runs/overconfident.kwslist.xml")
    >>> applied, = sws.apply_calibration(calibration, "demo/files/runs/overconfident.kwslist.xml", "calibrated")
    >>> applied.rows, applied.accepted
    (214, 113)
    """
    check_files(runs)
    fitted = calibration if isinstance(calibration, Calibration) else Calibration.read(calibration)
    files = find_runs(locations(runs))
    threshold = fitted.bayes_threshold
    explicit = explicit_settings(settings)
    chosen = build_settings(load_preset(preset) if preset else None, None, explicit)
    evaluation = explicit.get("evaluation")
    if preset or (isinstance(evaluation, Mapping) and "operating_point" in evaluation):
        point = chosen.evaluation.operating_point
        if point.from_data is not None:
            raise SettingsError("operating_point.from_data needs a reference, and there is none. Give beta.")
        threshold = point.resolve(0, 0).bayes_threshold
    or_unseen(progress).begin("writing calibrated runs", 0)
    encoding = read_encoding(frame_shift, negate_scores, segments)
    rows_about = sum(RunFile(file).rows_about for file in files)
    with working(chosen, executor, rows_about, progress) as workers:
        return apply_to_runs(fitted.map, files, as_path(out), None if keep_decisions else threshold, encoding, workers)
