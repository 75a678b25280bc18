"""Fitting a system's scores to log-likelihood ratios, and applying that to runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from swsdask.api.arguments import Location, locations, named_runs
from swsdask.api.opening import Evaluation
from swsdask.api.opening import open as open_evaluation
from swsdask.api.runs import rows_to_score, with_runs, working
from swsdask.api.writing import manifest_of
from swsdask.archive.check_runs import check_runs
from swsdask.archive.reference import build_reference
from swsdask.execution.executor import Executor, Progress, Unseen
from swsdask.formats.find import find_runs
from swsdask.formats.run_encoding import Encoding
from swsdask.measures import select
from swsdask.model.errors import SettingsError
from swsdask.model.settings import build_settings, load_preset
from swsdask.scoring.score import score_systems

if TYPE_CHECKING:
    from swsdask.calibration.applying import Applied
    from swsdask.calibration.fitting import Method
    from swsdask.calibration.maps import Calibration


def calibrate(
    evaluation: Evaluation | Location,
    run: Location | Mapping[str, Location],
    method: Method = "affine",
    *,
    frame_shift: float | None = None,
    negate_scores: bool = False,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Fit the map from a run's scores to log-likelihood ratios: "affine" (Eq. 44) or "pav" (rising steps).

    `run` is a file or URL with one system, or file by system, or a system of the archive. The result can be called with
    scores, written (`write`) and applied to other runs (`apply_calibration`). Raises `InputError` where no such map can
    be used on other runs (see `calibration.fitting`), and what `score` raises.
    """
    from swsdask.calibration.fitting import MEASURES, fit

    evaluation = evaluation if isinstance(evaluation, Evaluation) else open_evaluation(evaluation)
    runs = named_runs(run, evaluation.systems)
    settings = evaluation.settings
    if method not in MEASURES:
        raise SettingsError(f"method {method!r} is unknown. Known: {', '.join(MEASURES)}.")
    families = select(MEASURES[method])
    with ExitStack() as stack:
        rows = rows_to_score(evaluation, runs)
        workers = stack.enter_context(working(settings, executor, rows, progress))
        archive, systems = stack.enter_context(
            with_runs(evaluation, runs, workers, None, Encoding(frame_shift, negate_scores))
        )
        if len(systems) != 1:
            raise SettingsError(f"A calibration is fitted on one system; here are {', '.join(systems) or 'none'}.")
        held = next(each for each in archive.runs if each.system == systems[0])
        check_runs([held], settings.evaluation)
        reference = build_reference(archive, settings.evaluation)
        ((_, found),) = score_systems(
            archive, systems, reference, families, workers, settings.engine, progress or Unseen()
        )
        signature = manifest_of(archive, systems, settings, MEASURES[method], ())["signature"]
        return fit(method, held, found, reference, settings.evaluation, archive.inputs, signature)


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
    progress: Progress | None = None,
) -> list[Applied]:
    """Write runs (files, directories, globs, URLs) with their scores calibrated; what became of each.

    `out` is a local directory, or for one run a file. Decisions are made at the Bayes threshold of the evaluation that
    was fitted on, or of the operating point that `preset` or `settings` gives. Raises `InputError` with everything that
    is wrong with the runs, or with the calibration's file; then nothing is written.
    """
    from swsdask.calibration.applying import apply_to_runs
    from swsdask.calibration.maps import Calibration

    held = calibration if isinstance(calibration, Calibration) else Calibration.read(calibration)
    files = find_runs(locations(runs))
    threshold = held.bayes_threshold
    if preset or "operating_point" in (settings or {}).get("evaluation", {}):
        point = build_settings(load_preset(preset) if preset else None, None, settings).evaluation.operating_point
        if point.from_data is not None:
            raise SettingsError("operating_point.from_data: there is no reference here to take it from. Give beta.")
        threshold = point.resolve(0, 0).bayes_threshold
    if progress is not None:
        progress.begin("writing calibrated runs", 0)
    encoding = Encoding(frame_shift, negate_scores)
    return apply_to_runs(held.map, files, os.fspath(out), None if keep_decisions else threshold, encoding)
