"""Scoring of runs that come in batches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import cast

from swsdask.api.opening import Evaluation, as_evaluation
from swsdask.api.runs import Runs, given_runs
from swsdask.api.scoring import Measures, requested, score
from swsdask.archive.memory import RunsInMemory
from swsdask.archive.reference_tables import ReferenceTables
from swsdask.execution.executor import Executor, Progress
from swsdask.measures.measure import Measure
from swsdask.measures.names import as_names
from swsdask.model.results import Result
from swsdask.places.reading import Location


class Scorer:
    """Scores runs that come in batches, as a decoder or a pipeline yields them.

    The numbers are those that `score` gives for all batches together, bit for bit, however the detections are divided
    into batches and in whatever order these come. (Where a setting makes the order in files count, such as
    ``compat = "mediaeval"``, that of the batches counts.)

    Parameters
    ----------
    evaluation : Evaluation, path or URL
        As for `score`. Runs that it holds are not scored.
    measures : str, Measure, or iterable of these, optional
        As for `score`. Default: every measure.
    by : str or iterable of str, optional
        Conditions to score separately, as for `score`.

    Raises
    ------
    InputError, SettingsError, ArchiveError
        As `open` and `score`.

    Notes
    -----
    Detections are checked and encoded when they are added, and kept in some 30 bytes each: which of them are mapped to
    an occurrence is not decided before the last one is there.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> scorer = sws.Scorer("demo/archive", "mtwv")
    >>> for detections in sws.open("demo/archive").detections("weak"):
    ...     scorer.update(detections)
    >>> scorer.result().leaderboard().round(4)
              mtwv
    system
    weak    0.2903
    """

    def __init__(
        self, evaluation: Evaluation | Location, measures: Measures = None, *, by: str | Iterable[str] = ()
    ) -> None:
        self._evaluation = as_evaluation(evaluation)
        single = measures is None or isinstance(measures, str | Measure)
        self._measures: Measures = measures if single else list(cast("Iterable[str | Measure]", measures))
        requested(self._measures, self._evaluation.settings)
        self._by = as_names(by) or []
        settings = self._evaluation.settings.evaluation
        self._runs = RunsInMemory(ReferenceTables.of(self._evaluation.archive), settings)

    def update(self, runs: Runs) -> None:
        """Add a batch of detections. A batch with a fault raises, and nothing of it is added.

        Parameters
        ----------
        runs : DataFrame, Arrow table, list of dict, path, iterable of these, or mapping
            Detections of one system or of several, as for `score`.

        Raises
        ------
        InputError
            Lists every problem of the batch, with its rows or lines.
        """
        self._runs.add(given_runs(runs, judged=self._evaluation.judged).sources)

    def result(
        self, *, executor: Executor | str | None = None, alignment: bool = False, progress: Progress | None = None
    ) -> Result:
        """Score what was added so far. More may be added afterwards.

        Parameters
        ----------
        executor, alignment, progress : optional
            As for `score`.

        Returns
        -------
        Result
            The scores, curves, manifest and notes.

        Raises
        ------
        InputError, SettingsError, ClusterError
            As `score`.
        """
        evaluation = replace(self._evaluation, archive=self._runs.archive())
        return score(evaluation, self._measures, by=self._by, executor=executor, alignment=alignment, progress=progress)
