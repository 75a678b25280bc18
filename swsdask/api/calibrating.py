"""Fitting a map from scores to log-likelihood ratios, and applying it to runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

from swsdask.api.calibrated_runs import Applied, apply_to_runs
from swsdask.api.calibration_maps import MEASURES, Calibration, CalibrationMethod, fit
from swsdask.api.manifest import manifest_of
from swsdask.api.opening import Evaluation, as_evaluation
from swsdask.api.runs import given_runs, rows_to_score, with_runs
from swsdask.archive.check_runs import check_runs
from swsdask.archive.reference import build_references
from swsdask.execution.executor import Executor, Progress, Unseen
from swsdask.execution.open import working
from swsdask.formats.find import find_runs
from swsdask.formats.runs.encoding import read_encoding
from swsdask.measures import select
from swsdask.measures.measure import Scored
from swsdask.model.errors import SettingsError
from swsdask.model.settings import build_settings, load_preset
from swsdask.places.reading import Location, locations
from swsdask.scoring.score import count_archive


def calibrate(
    evaluation: Evaluation | Location,
    run: Location | Mapping[str, Location],
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
    run : path, URL or mapping
        A file with one system, a mapping from the system to its file, or the name of a system of the archive.
    method : {"affine", "pav"}, default "affine"
        "affine" fits gamma and delta of llr = gamma score + delta (2013 measures document, Eq. 44). "pav" fits rising
        steps by pooled isotonic regression.
    frame_shift : float, optional
        Seconds per frame, for tables whose times are frame numbers.
    negate_scores : bool, default False
        Negate the scores of tables, for tables whose scores are costs.
    segments : path or URL, optional
        Kaldi's file of segments: the documents of tables are utterances, whose times are counted from their start.
    executor : Executor or str, optional
        Where the work runs, see `cluster`. Default: what the settings' ``[engine]`` says.
    progress : Progress, optional
        Receives the phases of the work and the rows that are done.

    Returns
    -------
    Calibration
        The map and what it was fitted on. Call it with scores, write it, or give it to `apply_calibration`.

    Raises
    ------
    InputError
        The run has problems, or no map that was fitted on it can be used on other runs: it has one class of trials
        only, or targets do not have higher scores.
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
    encoding = read_encoding(frame_shift, negate_scores, segments)
    runs = given_runs(run, evaluation.systems, judged=evaluation.judged, encoding=encoding)
    settings = evaluation.settings
    if method not in MEASURES:
        raise SettingsError(f"method {method!r} is unknown. Known: {', '.join(MEASURES)}.")
    families = select(MEASURES[method])
    with ExitStack() as stack:
        rows = rows_to_score(evaluation.archive, runs)
        after = stack.enter_context(ExitStack())
        workers = stack.enter_context(working(settings, executor, rows, progress))
        archive, systems = stack.enter_context(
            with_runs(evaluation.archive, evaluation.settings.evaluation, runs, workers, None, after)
        )
        if len(systems) != 1:
            raise SettingsError(f"A calibration is fitted on one system; found {', '.join(systems) or 'none'}.")
        held = next(each for each in archive.runs if each.system == systems[0])
        check_runs([held], settings.evaluation)
        ((reference, _),) = build_references(archive, settings.evaluation, (), [held])
        ((_, found),) = count_archive(
            archive, systems, reference, families, workers, settings.engine, progress or Unseen()
        )
        signature = manifest_of(archive, systems, settings, MEASURES[method], ())["signature"]
        scored = Scored(found, reference, settings.evaluation)
        return fit(method, held, scored, archive.inputs, signature)


def apply_calibration(
    calibration: Calibration | Location,
    runs: Location | Iterable[Location],
    out: Location,
    *,
    preset: str | None = None,
    settings: Mapping[str, Any] | None = None,
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
        What `calibrate` returns, or the file that `Calibration.write` wrote.
    runs : path, URL, glob, or iterable of these
        Files or directories with runs.
    out : path or URL
        A directory; for one run it may be a file.
    preset, settings : optional
        Settings with an operating point, see `open`. Decisions are made at its Bayes threshold. Default: the operating
        point of the evaluation on which the calibration was fitted.
    keep_decisions : bool, default False
        Keep the decisions of the runs.
    frame_shift : float, optional
        Seconds per frame, for tables whose times are frame numbers.
    negate_scores : bool, default False
        Negate the scores of tables, for tables whose scores are costs.
    segments : path or URL, optional
        Kaldi's file of segments: the documents of tables are utterances, whose times are counted from their start.
    executor : Executor or str, optional
        Where runs are read and written, see `cluster`. Default: what the settings' ``[engine]`` says.
    progress : Progress, optional
        Receives the phases of the work.

    Returns
    -------
    list of Applied
        For each run: its source and target, the number of its rows and of those accepted, and the range of its scores.

    Raises
    ------
    InputError
        Lists every problem of the runs, or of the calibration's file. Nothing is written.
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
    fitted = calibration if isinstance(calibration, Calibration) else Calibration.read(calibration)
    files = find_runs(locations(runs))
    threshold = fitted.bayes_threshold
    chosen = build_settings(load_preset(preset) if preset else None, None, settings)
    if preset or "operating_point" in (settings or {}).get("evaluation", {}):
        point = chosen.evaluation.operating_point
        if point.from_data is not None:
            raise SettingsError("operating_point.from_data needs a reference, and there is none. Give beta.")
        threshold = point.resolve(0, 0).bayes_threshold
    if progress is not None:
        progress.begin("writing calibrated runs", 0)
    encoding = read_encoding(frame_shift, negate_scores, segments)
    with working(chosen, executor, 0, progress) as workers:
        return apply_to_runs(
            fitted.map, files, os.fspath(out), None if keep_decisions else threshold, encoding, workers
        )
