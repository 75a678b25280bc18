"""Results as files, as the report page and as an official tool would print them."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from swsdask.api.arguments import Location, as_names
from swsdask.api.opening import Evaluation
from swsdask.model.comparison import Comparison
from swsdask.model.errors import SettingsError
from swsdask.model.leaderboard import board
from swsdask.model.plots import new_figure, save
from swsdask.model.results import Result

_HAIR = 1e-9
"""Relative: numbers that are farther from each other are different ones."""


def report(result: Result, path: Location, *, comparison: Comparison | None = None) -> None:
    """Write one self-contained HTML page: leaderboard, DET curves, the numbers of every query.

    Parameters
    ----------
    result : Result
        What `score` or `discover` returns.
    path : path or URL
        The file to write.
    comparison : Comparison, optional
        What `compare` returned for the result: intervals, differences and ties are shown too.

    Raises
    ------
    SettingsError
        The comparison is of other numbers.
    OSError, InputError
        The page cannot be written.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.report(sws.score("demo/archive", ["atwv", "mtwv"]), "report.html")
    """
    from swsdask.comparison.rank_correlation import rank_correlations
    from swsdask.render.html import write_report

    shown = result if comparison is None else _with_comparison(result, comparison)
    write_report(shown, path, rank_correlations(result))


def write(
    result: Result,
    directory: Location,
    *,
    outputs: str | Iterable[str] | None = None,
    mediaeval: Evaluation | None = None,
    trec: bool = False,
    tde: bool = False,
) -> list[str]:
    """Write scores.parquet, scores.json, curves.parquet, manifest.json and report.html into a directory.

    The files replace those of an earlier result together: a process that is killed leaves the old files, the new ones,
    or files without a manifest, which are no result.

    Parameters
    ----------
    result : Result
        What `score` or `discover` returns.
    directory : path or URL
        The directory, made if it does not exist.
    outputs : str or iterable of str, optional
        Which files are written beside manifest.json: "scores", "json", "curves", "report". Only a directory with
        scores is read again by `renew_report` and `compare`. Default: all, without scores.json where there are more
        than 200 000 numbers.
    mediaeval : Evaluation, optional
        The evaluation that was scored, if the lines of MediaEval's tool are to be written too: `score.out`, or one
        SYSTEM.score.out each. They are the tool's under `compat = "mediaeval"`.
    trec : bool, default False
        Whether to write SYSTEM.trec_eval.txt too: the lines of ``trec_eval -q``, which are the tool's under the preset
        trec.
    tde : bool, default False
        Whether to write the files of the Zero Resource challenge's official tools too.

    Returns
    -------
    list of str
        The files that were written.

    Raises
    ------
    SettingsError
        An output is unknown, or the result lacks what an official tool's files need.
    OSError, InputError
        The directory cannot be written.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.write(sws.score("demo/archive", ["atwv", "mtwv"]), "results")
    ['scores.parquet', 'scores.json', 'curves.parquet', 'manifest.json', 'report.html']
    """
    from swsdask.comparison.rank_correlation import rank_correlations
    from swsdask.render.outputs import OUTPUTS, Official, write_outputs

    chosen = as_names(outputs)
    unknown = [name for name in chosen or () if name not in OUTPUTS]
    if unknown:
        raise SettingsError(f"no output {unknown[0]!r}: there are {', '.join(OUTPUTS)}.")
    official: Official | None = None
    if mediaeval is not None:
        official = _mediaeval(result, mediaeval)
    elif trec:
        from swsdask.render.trec_output import write_trec_output

        official = partial(write_trec_output, result)
    elif tde:
        official = _tde(result)
    return write_outputs(result, directory, rank_correlations(result), official, chosen)


FIGURES = ("det", "det_pooled", "ece", "ape", "precision_recall", "leaderboard")
"""What `plot` draws."""


def plot(
    result: Result,
    path: Location,
    kind: str = "det",
    *,
    systems: str | Iterable[str] | None = None,
    condition: str = "all",
    measure: str | None = None,
) -> None:
    """Write a figure of a result as SVG, PDF or PNG. It needs matplotlib: ``pip install 'swsdask[plot]'``.

    The methods ``plot_det``, ``plot_ece``, ``plot_precision_recall`` and ``plot_leaderboard`` of a result draw the same
    figures into matplotlib Axes. Equal results give equal files.

    Parameters
    ----------
    result : Result
        What `score` returns.
    path : path or URL
        The file to write. Its ending says the format.
    kind : {"det", "det_pooled", "ece", "ape", "precision_recall", "leaderboard"}, default "det"
        What is drawn.
    systems : str or iterable of str, optional
        The systems, in the order of the legend. Default: the first ten of the leaderboard.
    condition : str, default "all"
        The condition whose numbers are drawn.
    measure : str, optional
        For a leaderboard: its measure. Default: the measure that ranks the systems.

    Raises
    ------
    SettingsError
        The result has no such system, condition, curve or measure, the format is unknown, or matplotlib is missing.
    OSError, InputError
        The file cannot be written.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.plot(sws.score("demo/archive", ["atwv", "mtwv"]), "det.svg")
    """
    from swsdask.places.writing import replacing

    draw: dict[str, Callable[..., object]] = {
        "det": result.plot_det,
        "det_pooled": partial(result.plot_det, pooled=True),
        "ece": result.plot_ece,
        "ape": partial(result.plot_ece, cost="ape"),
        "precision_recall": result.plot_precision_recall,
        "leaderboard": partial(result.plot_leaderboard, measure),
    }
    if kind not in draw:
        raise SettingsError(f"no figure {kind!r}: there are {', '.join(draw)}.")
    if measure is not None and kind != "leaderboard":
        raise SettingsError("a measure is drawn as a leaderboard: say kind leaderboard.")
    figure, name = new_figure(), os.path.basename(path)
    form = name.rpartition(".")[2].lower()
    if form not in ("svg", "pdf", "png"):
        raise SettingsError(f"{name}: the ending of a figure is .svg, .pdf or .png.")
    draw[kind](systems=systems, condition=condition, ax=figure.subplots())
    with replacing(path) as file:
        save(figure, file, form)


def _mediaeval(result: Result, evaluation: Evaluation) -> Callable[[Path], list[Path]]:
    """The writer of the lines of MediaEval's tool, for document trials and a result with the numbers that it prints."""
    from swsdask.formats.reference.files import ReferenceFiles
    from swsdask.model.finding import FindRule
    from swsdask.render.mediaeval_output import MEASURES, TOOL_MEASURES, Loaded, write_mediaeval_output

    settings, archive = evaluation.settings.evaluation, evaluation.archive
    if settings.trials != "document":
        raise SettingsError("MediaEval's output is of document trials: set trials=document.")
    needed = TOOL_MEASURES if settings.compat == "mediaeval" else MEASURES
    missing = set(needed) - set(result.table["measure"].unique().to_pylist())
    if missing:
        raise SettingsError(f"MediaEval's output needs measures that were not requested: {', '.join(sorted(missing))}.")
    names = evaluation.files or ReferenceFiles("(archive)", "(archive)", "(archive)")
    occurrences = archive.occurrences(FindRule.of(settings))
    documents = set(archive.documents["document"].to_pylist())
    loaded = Loaded(
        queries=os.path.basename(names.queries),
        n_queries=archive.queries.num_rows,
        ecf=os.path.basename(names.ecf),
        n_excerpts=archive.documents.num_rows,
        rttm=os.path.basename(names.rttm),
        n_occurrences=sum(document in documents for document in occurrences["document"].to_pylist()),
    )
    return lambda folder: write_mediaeval_output(result, loaded, folder)


def _tde(result: Result) -> Callable[[Path], list[Path]]:
    """The writer of the challenge's files, for a result of `discover` with all measures of its definition."""
    from swsdask.render.tde_output import write_tde_output

    if result.manifest.get("kind") != "discovery":
        raise SettingsError("The official files of term discovery are of a result of term discovery.")
    if result.asked is not None:
        raise SettingsError("The official files have all measures: request all.")
    return lambda folder: write_tde_output(result, folder)


def write_comparison(comparison: Comparison, directory: Location) -> list[str]:
    """Write intervals.parquet, differences.parquet and comparison.json into a directory.

    In a directory that `write` wrote they become part of the result: report.html shows them, and a later result there
    replaces them too.

    Parameters
    ----------
    comparison : Comparison
        What `compare` returns.
    directory : path or URL
        The directory, made if it does not exist.

    Returns
    -------
    list of str
        The files that were written.

    Raises
    ------
    SettingsError
        The directory has a result with other numbers.
    OSError, InputError
        The directory cannot be written.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.write_comparison(sws.compare("demo/results", "atwv", replicates=1000), "demo/results")
    ['intervals.parquet', 'differences.parquet', 'comparison.json', 'report.html']
    """
    from swsdask.comparison.rank_correlation import rank_correlations
    from swsdask.places.writing import together
    from swsdask.render import outputs
    from swsdask.render.comparison import comparison_files

    if not outputs.is_result(directory):
        with together(directory) as hidden:
            return comparison_files(comparison, hidden)
    result = outputs.read_outputs(directory)
    return outputs.renew_report(directory, _with_comparison(result, comparison), rank_correlations(result))


def _with_comparison(result: Result, comparison: Comparison) -> Result:
    """The result with a comparison of its numbers. Raises `SettingsError` if it is of other numbers."""
    there = board(result.table)
    for row in comparison.interval_table.to_pylist():
        value = there.value(row["condition"], row["system"], row["measure"])
        if row["system"] not in there.systems or abs(value - row["value"]) > _HAIR * (1 + abs(value)):
            raise SettingsError(
                f"the comparison has {row['measure']} = {row['value']:.6g} of {row['system']} in the condition "
                f"{row['condition']}, the result {'none' if math.isnan(value) else format(value, '.6g')}: they are of "
                "different runs or settings. Compare the result, or write to another directory."
            )
    return replace(result, comparison=comparison)


def renew_report(directory: Location) -> None:
    """Write report.html of the result in a directory anew, for example after an upgrade.

    Parameters
    ----------
    directory : path or URL
        The directory of a result that `write` wrote.

    Raises
    ------
    InputError
        The directory does not hold a result that `write` wrote.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.renew_report("demo/results")
    """
    from swsdask.comparison.rank_correlation import rank_correlations
    from swsdask.render import outputs

    result = outputs.read_outputs(directory)
    outputs.renew_report(directory, result, rank_correlations(result))
