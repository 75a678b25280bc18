"""The errors of systems, to look at and to listen to."""

from __future__ import annotations

from collections.abc import Iterable

from swsdask.api.arguments import Location, Runs
from swsdask.api.opening import Evaluation
from swsdask.api.scoring import score_observed
from swsdask.execution.executor import Executor, Progress
from swsdask.formats.runs.encoding import read_encoding
from swsdask.model.errors import SettingsError
from swsdask.model.listening import Errors


def errors(
    evaluation: Evaluation | Location,
    *,
    runs: Runs = None,
    by: str | Iterable[str] = (),
    queries: int = 20,
    false_alarms: int = 10,
    frame_shift: float | None = None,
    negate_scores: bool = False,
    segments: Location | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Errors:
    """Report the queries that cost systems most, with their highest false alarms and missed targets.

    Parameters
    ----------
    evaluation : Evaluation or path
        What `open` returns, an archive or a reference directory.
    runs : Runs, optional
        The runs to look at, as for `score`.
    by : str or iterable of str, optional
        Conditions, as for `score`; each has a list of its own.
    queries : int, default 20
        How many queries of each system are listed, the costliest first: P_miss + beta P_fa of the query.
    false_alarms : int, default 10
        How many false alarms of each query are listed, the highest scores first; at most 100.
    frame_shift, negate_scores, segments, executor, progress : optional
        As for `score`.

    Returns
    -------
    Errors
        The DataFrames `queries` and `events`, and `notes`.

    Raises
    ------
    SettingsError
        A number is out of its range.
    InputError, ArchiveError, ExecutionError, ClusterError
        As `score`.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> found = sws.errors("demo/archive", runs="weak", queries=1)
    >>> found.queries[["n_target", "n_miss"]].to_dict("records")
    [{'n_target': 1, 'n_miss': 1}]
    """
    from swsdask.scoring.worst_queries import WorstQueries
    from swsdask.statistics.errors import KEPT

    if queries < 1:
        raise SettingsError(f"queries is {queries}; expected 1 or more.")
    if not 0 <= false_alarms <= KEPT:
        raise SettingsError(f"false_alarms is {false_alarms}; expected a number from 0 to {KEPT}.")
    observer = WorstQueries(queries, false_alarms)
    encoding = read_encoding(frame_shift, negate_scores, segments)
    result = score_observed(
        evaluation, ["n_target"], runs, by, encoding, executor=executor, progress=progress, observer=observer
    )
    systems = result.table["system"].unique().to_pylist()
    return observer.errors(systems, str(result.manifest["signature"]))
