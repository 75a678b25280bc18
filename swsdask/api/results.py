"""Output of results: files, the report page, figures, and the files of official tools."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from swsdask.api.official import official_writer
from swsdask.api.opening import Evaluation
from swsdask.measures.names import as_names
from swsdask.model.comparison import Comparison
from swsdask.model.errors import SettingsError
from swsdask.model.leaderboard import leaderboard_of
from swsdask.model.plots import new_figure, save
from swsdask.model.results import Result
from swsdask.places.reading import Location
from swsdask.places.writing import replacing, together

_TOLERANCE = 1e-9
"""Relative tolerance: numbers that differ by more are different."""


def read_result(directory: Location) -> Result:
    """Read a result from the directory that `write` wrote it to.

    Parameters
    ----------
    directory : path or URL
        The directory, with scores.parquet and manifest.json. Files with other content than the manifest lists are
        errors.

    Returns
    -------
    Result
        The scores, manifest and notes; curves, alignment and texts of queries if they were written; and the comparison
        that `write_comparison` added, if any.

    Raises
    ------
    InputError
        The directory does not hold a result that `write` wrote, or a file is missing or was changed.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> result = sws.read_result("demo/results")
    >>> result.scores["system"].unique().tolist()[:2]
    ['calibrated', 'keyword-specific']
    """
    from swsdask.render.outputs import read_outputs

    return read_outputs(directory)


def report(result: Result | Location, path: Location, *, comparison: Comparison | None = None) -> None:
    """Write a self-contained HTML page with the leaderboard, DET curves and the numbers of every query.

    Parameters
    ----------
    result : Result, path or URL
        The result of `score` or `discover`, or the directory to which it was written.
    path : path or URL
        The file to write.
    comparison : Comparison, optional
        The comparison of the result by `compare`. The page then shows intervals, differences and ties too.

    Raises
    ------
    SettingsError
        The comparison has numbers that differ from those of the result.
    InputError
        The directory does not hold a result that `write` wrote.
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

    result = _as_result(result)
    if comparison is not None:
        _expect(Comparison, comparison)
    shown = result if comparison is None else _with_comparison(result, comparison)
    write_report(shown, path, rank_correlations(result))


def write(
    result: Result,
    directory: Location,
    *,
    outputs: str | Iterable[str] | None = None,
    tool: str | None = None,
    evaluation: Evaluation | None = None,
) -> list[str]:
    """Write scores.parquet, scores.json, curves.parquet, manifest.json and report.html into a directory.

    If queries have texts, query_texts.parquet is written too.

    All files of an earlier result are replaced together. A process that is killed leaves the old files, the new files,
    or files without a manifest, which do not count as a result.

    Parameters
    ----------
    result : Result
        The result of `score` or `discover`.
    directory : path or URL
        The directory, made if it does not exist.
    outputs : str or iterable of str, optional
        The files to write in addition to manifest.json: "scores", "json", "curves", "report". `read_result` and
        `compare` can read only a directory with scores. Default: all, but scores.json only for up to 200 000 numbers.
    tool : {"kwseval", "mediaeval", "stdeval", "tde", "trec_eval"}, optional
        An official tool whose files are written too, from the numbers of the result. The numbers equal the tool's if
        the result was scored with its ``compat``, or with the preset trec.

        - kwseval: the summary and block summary reports, SYSTEM.sum.txt and SYSTEM.bsum.txt, both as .csv too. If the
          result has an alignment, also SYSTEM.alignment.csv, the points of the error tradeoff SYSTEM.det.dat, and the
          reports of conditions by source_type, attributes of queries and query_pattern, SYSTEM.cond.sum and
          SYSTEM.cond.bsum.
        - mediaeval: score.out, or SYSTEM.score.out for each of several systems.
        - stdeval: the occurrence report and the alignment, SYSTEM.occ.txt and SYSTEM.ali.csv. The result must have an
          alignment and be scored by source_type.
        - tde: the files of the Zero Resource challenge's tools.
        - trec_eval: SYSTEM.trec_eval.txt, the lines of ``trec_eval -q``.
    evaluation : Evaluation, optional
        The evaluation that was scored, for kwseval, mediaeval and stdeval.

    Returns
    -------
    list of str
        The files that were written.

    Raises
    ------
    SettingsError
        An output or a tool is unknown, or the result lacks what the files of the tool need.
    OSError, InputError
        The directory cannot be written.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.write(sws.score("demo/archive", ["atwv", "mtwv"]), "results")
    ['scores.parquet', 'scores.json', 'curves.parquet', 'query_texts.parquet', 'manifest.json', 'report.html']
    """
    from swsdask.comparison.rank_correlation import rank_correlations
    from swsdask.render.outputs import known_outputs, write_outputs

    _expect(Result, result)
    names = as_names(outputs)
    chosen = None if names is None else known_outputs(names)
    official = None if tool is None else official_writer(tool, result, evaluation)
    return write_outputs(result, directory, rank_correlations(result), official, chosen)


FIGURES = ("det", "det_pooled", "ece", "ape", "precision_recall", "leaderboard")
"""The kinds of figures that `plot` draws."""


def plot(
    result: Result | Location,
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
    result : Result, path or URL
        The result of `score`, or the directory to which it was written.
    path : path or URL
        The file to write. Its ending, .svg, .pdf or .png, determines the format.
    kind : {"det", "det_pooled", "ece", "ape", "precision_recall", "leaderboard"}, default "det"
        The kind of figure.
    systems : str or iterable of str, optional
        The systems, in the order of the legend. Default: the first ten of the leaderboard. The legend names those of
        them that do not have the curve.
    condition : str, default "all"
        The condition whose numbers are drawn.
    measure : str, optional
        The measure of a leaderboard. Default: the measure that ranks the systems.

    Raises
    ------
    SettingsError
        The result has no such system, condition, curve or measure, the format is unknown, or matplotlib is missing.
    InputError
        The directory does not hold a result that `write` wrote.
    OSError, InputError
        The file cannot be written.

    Examples
    --------
    With the files of ``swsdask demo --hours 1 --queries 20``:

    >>> import swsdask as sws
    >>> sws.plot(sws.score("demo/archive", ["atwv", "mtwv"]), "det.svg")
    """
    result = _as_result(result)
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
        raise SettingsError('measure requires kind="leaderboard".')
    figure, name = new_figure(), os.path.basename(path)
    form = name.rpartition(".")[2].lower()
    if form not in ("svg", "pdf", "png"):
        raise SettingsError(f"{name}: the ending of a figure is .svg, .pdf or .png.")
    draw[kind](systems=systems, condition=condition, ax=figure.subplots())
    with replacing(path) as file:
        save(figure, file, form)


def write_comparison(comparison: Comparison, directory: Location) -> list[str]:
    """Write intervals.parquet, differences.parquet and comparison.json into a directory.

    comparison.json has the parameters of the comparison, and repeats both tables unless they have more than 20,000
    rows. In a directory that `write` wrote, they become part of the result: report.html shows them, and a later result
    in this directory replaces them too.

    Parameters
    ----------
    comparison : Comparison
        The result of `compare`.
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
    from swsdask.render import outputs
    from swsdask.render.comparison import comparison_files

    _expect(Comparison, comparison)
    if not outputs.is_result(directory):
        with together(directory) as hidden:
            return comparison_files(comparison, hidden)
    result = read_result(directory)
    return outputs.renew_report(directory, _with_comparison(result, comparison), rank_correlations(result))


def _as_result(given: Result | Location) -> Result:
    """Return a result itself, or read it from a directory. Raises `SettingsError` for another type."""
    if isinstance(given, str | os.PathLike):
        return read_result(given)
    _expect(Result, given)
    return given


def _expect(kind: type[Result | Comparison], given: object) -> None:
    if not isinstance(given, kind):
        made_by = "score or discover" if kind is Result else "compare"
        raise SettingsError(f"expected a {kind.__name__}, as {made_by} returns; found {type(given).__name__}.")


def _with_comparison(result: Result, comparison: Comparison) -> Result:
    """Return the result with a comparison. Raises `SettingsError` if the comparison has other numbers."""
    there = leaderboard_of(result.overall)
    for row in comparison.interval_table.to_pylist():
        value = there.value(row["condition"], row["system"], row["measure"])
        is_there = (
            row["system"] in there.systems and row["condition"] in there.conditions and row["measure"] in there.measures
        )
        is_same = math.isclose(value, row["value"], rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
        if not is_there or not (is_same or (math.isnan(value) and math.isnan(row["value"]))):
            raise SettingsError(
                f"the comparison has {row['measure']} = {row['value']:.6g} of {row['system']} in the condition "
                f"{row['condition']}, the result {'none' if math.isnan(value) else format(value, '.6g')}: they are of "
                "different runs or settings. Compare the result, or write to another directory."
            )
    return replace(result, comparison=comparison)


def renew_report(directory: Location) -> None:
    """Rewrite report.html of the result in a directory, for example after an upgrade.

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

    result = read_result(directory)
    outputs.renew_report(directory, result, rank_correlations(result))
