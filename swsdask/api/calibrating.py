"""Calibration: fitting a map from scores to log-likelihood ratios, and applying it to runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack

from swsdask.api.manifest import manifest_of
from swsdask.api.opening import Evaluation, as_evaluation
from swsdask.api.runs import GivenRuns, Runs, rows_to_score, runs_for, with_runs
from swsdask.archive.protocols import check_runs
from swsdask.archive.reference import build_references
from swsdask.calibration.applying import Applied, apply_to_runs
from swsdask.calibration.maps import MEASURES_OF_METHOD, Calibration, CalibrationMethod, fit
from swsdask.execution.executor import Executor, Progress, or_unseen
from swsdask.execution.open import working
from swsdask.formats.find import find_runs
from swsdask.formats.in_memory import check_files
from swsdask.formats.runs.encoding import read_encoding
from swsdask.formats.runs.read import RunFile
from swsdask.measures import select
from swsdask.measures.measure import Scored
from swsdask.model.errors import SettingsError
from swsdask.model.layers import GivenSettings, build_settings, explicit_settings, load_preset
from swsdask.places.reading import Location, as_path, locations
from swsdask.scoring.score import count_archive


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
    encoding = read_encoding(frame_shift, negate_scores, segments)
    evaluation = as_evaluation(evaluation)
    runs = runs_for(evaluation, run, encoding)
    settings = evaluation.settings
    if method not in MEASURES_OF_METHOD:
        raise SettingsError(f"method {method!r} is unknown. Known: {', '.join(MEASURES_OF_METHOD)}.")
    families = select(MEASURES_OF_METHOD[method])
    with ExitStack() as stack:
        rows = rows_to_score(evaluation.archive, runs)
        after = stack.enter_context(ExitStack())
        opened = stack.enter_context(working(settings, executor, rows, progress))
        archive, systems = stack.enter_context(with_runs(evaluation, runs, opened, after=after))
        if len(systems) != 1:
            raise SettingsError(f"A calibration is fitted on one system; found {', '.join(systems) or 'none'}.")
        held = next(each for each in archive.runs if each.system == systems[0])
        check_runs(archive, [held], settings.evaluation)
        ((reference, _),) = build_references(archive, settings.evaluation, (), [held])
        shown = or_unseen(progress)
        ((_, found),) = count_archive(archive, systems, reference, families, opened, settings.engine, shown)
        signature = manifest_of(archive, systems, settings, MEASURES_OF_METHOD[method], ())["signature"]
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
    encoding = read_encoding(frame_shift, negate_scores, segments)
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
    given = GivenRuns(sources=tuple(map(RunFile, files)))
    with working(chosen, executor, given.rows_about, progress) as opened:
        return apply_to_runs(fitted.map, files, as_path(out), None if keep_decisions else threshold, encoding, opened)
