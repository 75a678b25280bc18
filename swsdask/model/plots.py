"""Figures of a result, drawn with matplotlib, an optional dependency: ``pip install 'swsdask[plot]'``.

Every method draws into the given matplotlib Axes, or into new ones, and returns them: you can change labels, limits
and styles afterwards, and ``axes.figure.savefig("det.pdf")`` writes the figure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from statistics import NormalDist
from textwrap import fill
from typing import IO, TYPE_CHECKING

import numpy as np
import pyarrow as pa

from swsdask.model.errors import SettingsError
from swsdask.model.leaderboard import Leaderboard, leaderboard_of
from swsdask.model.measures import better, describe, select_measures
from swsdask.model.name_columns import distinct_names, rows_with
from swsdask.model.system_rows import SystemRows
from swsdask.model.tables import LateImport
from swsdask.model.trials import F64
from swsdask.model.wording import FEW, choices, listed

if TYPE_CHECKING:
    from matplotlib import axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
else:
    axes = LateImport("matplotlib.axes")

DRAWN = 10
"""The number of systems that a figure has by default."""

_TICKS = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999)
_TWV_LEVELS = tuple(level / 10 for level in range(10))
_RECALIBRATED = {"actual": "-", "pav": "--"}
_LINE = 40  # characters of a label
_COSTS = {"ece": "Cross entropy (bits)", "ape": "Error rate"}

_inverse_normal = np.vectorize(NormalDist().inv_cdf, otypes=[np.float64])
_normal = np.vectorize(NormalDist().cdf, otypes=[np.float64])


class Figures:
    """The figures of a result.

    `systems` are names, in the order of the legend; default: the first ten of the leaderboard, except those without
    the curve, which the legend names. `condition` is the condition whose numbers are drawn. `ax` are the matplotlib
    Axes to draw into; default: new ones.
    """

    curve_rows: SystemRows
    overall: pa.Table
    manifest: dict[str, object]

    @property
    def requested(self) -> list[str] | None:
        """The measures that were requested, in that order; None: all."""
        names = self.manifest.get("measures")
        return names if isinstance(names, list) else None

    @cached_property
    def numbers(self) -> Leaderboard:
        """The numbers over all queries, as pages and tables show them."""
        return leaderboard_of(self.overall, self.requested)

    def plot_det(
        self,
        *,
        systems: str | Iterable[str] | None = None,
        condition: str = "all",
        pooled: bool = False,
        ax: axes.Axes | None = None,
    ) -> axes.Axes:
        """Draw DET curves: P_miss over P_fa at every threshold, both on normal-deviate scales.

        See Martin et al. 1997, "The DET curve in assessment of detection task performance". A filled circle marks a
        system's own decisions, a hollow one its best single threshold (MTWV). Grey lines have equal TWV (2013 measures
        document, Eq. 6).

        Parameters
        ----------
        systems : str or iterable of str, optional
            The systems, in the order of the legend. Default: the first ten of the leaderboard.
        condition : str, default "all"
            The condition whose curves are drawn.
        pooled : bool, default False
            Draw the rates over all trials instead of the averages over queries.
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: new Axes.

        Returns
        -------
        matplotlib.axes.Axes
            The Axes with the curves.

        Raises
        ------
        SettingsError
            The result has no such system, condition or curve, or matplotlib is not installed.

        Examples
        --------
        With the files of ``swsdask demo --hours 1 --queries 20``:

        >>> import swsdask as sws
        >>> axes = sws.score("demo/archive", ["atwv", "mtwv"]).plot_det(systems=["calibrated", "weak"])
        >>> [line.get_label() for line in axes.get_lines()][:2]
        ['calibrated', 'weak']
        >>> axes.figure.savefig("det.pdf")
        """
        kind = "det_pooled" if pooled else "det"
        found, chosen, without = self._chosen(systems, condition, kind)
        ax = _axes(ax)
        marks = [("p_fa_pooled", "p_miss_pooled")] if pooled else [("p_fa", "p_miss"), ("mtwv_p_fa", "mtwv_p_miss")]
        rates, lines = [], []
        for system in chosen:
            x, y = self._curve(system, condition, kind)
            (line,) = ax.plot(x, y, label=system, drawstyle="steps-post")
            color = line.get_color()
            rates.append((x, y))
            lines.append(line)
            for names, face in zip(marks, (color, "none"), strict=False):
                p_fa, p_miss = (found.value(condition, system, name) for name in names)
                if not math.isnan(p_fa + p_miss):
                    ax.plot([p_fa], [p_miss], "o", color=color, markerfacecolor=face, label="_")
        functions = (lambda p: _inverse_normal(np.clip(p, 1e-12, 1 - 1e-12)), _normal)
        for axis, values in zip("xy", zip(*rates, strict=True), strict=True):
            _probability_axis(ax, axis, functions, np.concatenate(values))
        beta = None if pooled else found.beta(condition)
        if beta is not None:
            _lines_of_equal_twv(ax, beta)
        ax.set_xlabel("P_fa (%)")
        ax.set_ylabel("P_miss (%)")
        return _finished(ax, condition, lines, without)

    def plot_ece(
        self,
        *,
        systems: str | Iterable[str] | None = None,
        condition: str = "all",
        cost: str = "ece",
        ax: axes.Axes | None = None,
    ) -> axes.Axes:
        """Draw the cost of the scores, taken as log-likelihood ratios, over the prior log-odds.

        Solid lines are the scores as given, dashed ones the best rising map of them (PAV); the dotted line is the cost
        without scores. Where a solid line lies above the dotted one, the scores do harm.

        Parameters
        ----------
        systems : str or iterable of str, optional
            The systems, in the order of the legend. Default: the first ten of the leaderboard.
        condition : str, default "all"
            The condition whose curves are drawn.
        cost : {"ece", "ape"}, default "ece"
            Empirical cross entropy, in bits, or the applied probability of error.
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: new Axes.

        Returns
        -------
        matplotlib.axes.Axes
            The Axes with the curves.

        Raises
        ------
        SettingsError
            The result has no such system, condition or curve, or matplotlib is not installed.

        Examples
        --------
        With the files of ``swsdask demo --hours 1 --queries 20``:

        >>> import swsdask as sws
        >>> sws.score("demo/archive", runs="calibrated").plot_ece().get_ylabel()
        'Cross entropy (bits)'
        """
        if cost not in _COSTS:
            raise SettingsError(f"no cost {cost!r}: there are {' and '.join(_COSTS)}.")
        _, chosen, without = self._chosen(systems, condition, f"{cost}_actual")
        ax = _axes(ax)
        lines = []
        for system in chosen:
            color = None
            for kind, style in _RECALIBRATED.items():
                label = system if kind == "actual" else "_"
                (line,) = ax.plot(*self._curve(system, condition, f"{cost}_{kind}"), style, label=label, color=color)
                color = line.get_color()
                lines += [line] if kind == "actual" else []
        lines += ax.plot(*self._curve(chosen[0], condition, f"{cost}_default"), ":", color="grey", label="no scores")
        ax.set_ylim(0.0, 1.25 * max(self._curve(chosen[0], condition, f"{cost}_default")[1]))
        ax.set_xlabel("Prior log-odds of a target")
        ax.set_ylabel(_COSTS[cost])
        return _finished(ax, condition, lines, without)

    def plot_precision_recall(
        self,
        *,
        systems: str | Iterable[str] | None = None,
        condition: str = "all",
        interpolated: bool = True,
        ax: axes.Axes | None = None,
    ) -> axes.Axes:
        """Draw precision over recall, with all trials of a system in one ranking.

        Parameters
        ----------
        systems : str or iterable of str, optional
            The systems, in the order of the legend. Default: the first ten of the leaderboard.
        condition : str, default "all"
            The condition whose curves are drawn.
        interpolated : bool, default True
            Draw at each recall the highest precision at this or any higher recall.
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: new Axes.

        Returns
        -------
        matplotlib.axes.Axes
            The Axes with the curves.

        Raises
        ------
        SettingsError
            The result has no such system, condition or curve, or matplotlib is not installed.

        Examples
        --------
        With the files of ``swsdask demo --hours 1 --queries 20``:

        >>> import swsdask as sws
        >>> sws.score("demo/archive", runs="calibrated").plot_precision_recall().get_xlabel()
        'Recall'
        """
        kind = "precision_recall_interpolated" if interpolated else "precision_recall"
        _, chosen, without = self._chosen(systems, condition, kind)
        ax = _axes(ax)
        lines = []
        for system in chosen:
            x, y = self._curve(system, condition, kind)
            if interpolated:  # It holds from the recall before on.
                x, y = np.append(0.0, x), np.append(y[:1], y)
            lines += ax.plot(x, y, label=system, drawstyle="steps-pre" if interpolated else "default")
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(0.0, 1.02)
        ax.set_xlabel("Recall")
        ax.set_ylabel("Precision")
        return _finished(ax, condition, lines, without)

    def plot_leaderboard(
        self,
        measure: str | None = None,
        *,
        systems: str | Iterable[str] | None = None,
        condition: str = "all",
        ax: axes.Axes | None = None,
    ) -> axes.Axes:
        """Draw one measure of the systems as bars, the best system first.

        Parameters
        ----------
        measure : str, optional
            Default: the measure that ranks the systems.
        systems : str or iterable of str, optional
            The systems. Default: the first ten of the leaderboard.
        condition : str, default "all"
            The condition whose numbers are drawn.
        ax : matplotlib.axes.Axes, optional
            Where to draw. Default: new Axes.

        Returns
        -------
        matplotlib.axes.Axes
            The Axes with the bars.

        Raises
        ------
        SettingsError
            The result has no such measure, system or condition, or matplotlib is not installed.

        Examples
        --------
        With the files of ``swsdask demo --hours 1 --queries 20``:

        >>> import swsdask as sws
        >>> axes = sws.score("demo/archive", ["atwv", "mtwv"]).plot_leaderboard("mtwv")
        >>> [text.get_text() for text in axes.get_yticklabels()][:2]
        ['calibrated', 'overconfident']
        """
        found, chosen, _ = self._chosen(systems, condition)
        name = measure or next(iter(found.by), found.measures[0])
        if not any(select_measures([name], found.measures)):
            raise SettingsError(f"{name} was not scored over all queries. There are: {choices(found.measures, name)}.")
        ax = _axes(ax)
        values = {system: found.value(condition, system, name) for system in chosen}
        sign = better(name) or 1
        ordered = sorted(chosen, key=lambda system: (math.isnan(values[system]), -sign * values[system], system))
        labels = [_label(system) for system in ordered]
        ax.barh(labels, [values[system] for system in ordered])
        ax.invert_yaxis()
        description = describe(name)
        title = f"{description.heading}: {description.title}" if description.title else description.heading
        ax.set_xlabel(title)
        if any("\n" in label for label in labels):
            ax.tick_params("y", labelsize="small")
            ax.set_xlabel(fill(title, _LINE))
        ax.set_title("" if condition == "all" else condition)
        return ax

    def _chosen(
        self, systems: str | Iterable[str] | None, condition: str, kind: str | None = None
    ) -> tuple[Leaderboard, Sequence[str], Sequence[str]]:
        """Return the leaderboard, the systems to draw, and those of the first ten that have no curve of this kind."""
        found = self.numbers
        if condition not in found.conditions:
            there = choices(found.conditions, condition)
            raise SettingsError(f"no condition {condition!r} was scored. There are: {there}.")
        if systems is None:
            first = found.ranked(condition)[:DRAWN]
            if kind is None:
                return found, first, ()
            rows = rows_with(self.curve_rows.among(first), condition=[condition], curve=[kind])
            drawn = distinct_names(rows["system"]) or list(first)
            return found, drawn, [system for system in first if system not in drawn]
        chosen = [systems] if isinstance(systems, str) else list(systems)
        unknown = [system for system in chosen if system not in found.systems]
        if unknown or not chosen:
            name = f"no system {unknown[0]!r} was scored" if unknown else "no system was named"
            raise SettingsError(f"{name}. There are: {choices(found.systems, ''.join(unknown[:1]))}.")
        return found, chosen, ()

    def _curve(self, system: str, condition: str, kind: str) -> tuple[F64, F64]:
        """Return a curve: by ascending x if x is a prior or a recall, else from the highest threshold down."""
        own = self.curve_rows.among([system])
        rows = rows_with(own, condition=[condition], curve=[kind])
        if rows.num_rows == 0:
            there = distinct_names(own["curve"])
            raise SettingsError(
                f"{system} has no curve {kind} in condition {condition!r}: its measures were not requested, it has "
                f"no detections, or a class has no trials. Its curves: {', '.join(there) or 'none'}."
            )
        threshold, x, y = (rows[name].to_numpy() for name in ("threshold", "x", "y"))
        defined = np.flatnonzero(~(np.isnan(x) | np.isnan(y)))
        order = defined[np.argsort(-threshold[defined], kind="stable")]
        return x[order], y[order]


def new_figure() -> Figure:
    """Return an empty matplotlib Figure without a window."""
    with _needed():
        from matplotlib.figure import Figure
    return Figure(layout="constrained")


def save(figure: Figure, file: IO[bytes], form: str) -> None:
    """Write a figure as "svg", "pdf" or "png", without a date and with reproducible ids."""
    from matplotlib import rc_context

    dated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    with rc_context({"svg.hashsalt": "swsdask"}):
        figure.savefig(file, format=form, metadata=dated.get(form), dpi=150)


def _axes(ax: axes.Axes | None) -> axes.Axes:
    if ax is not None:
        return ax
    with _needed():
        from matplotlib import pyplot
    return pyplot.subplots(layout="constrained")[1]


@contextmanager
def _needed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise SettingsError("figures need matplotlib, which is not installed: pip install 'swsdask[plot]'") from error


def _probability_axis(ax: axes.Axes, name: str, functions: tuple[object, object], values: F64) -> None:
    """Give an axis the normal-deviate scale, and the ticks from just below to just above the values."""
    inside = values[(values > 0.0) & (values < 1.0)]
    low, high = (float(inside.min()), float(inside.max())) if len(inside) else (_TICKS[0], _TICKS[-1])
    first = max(int(np.searchsorted(_TICKS, low, "right")) - 1, 0)
    last = min(max(int(np.searchsorted(_TICKS, high, "left")), first + 1), len(_TICKS) - 1)
    ticks = _TICKS[first : last + 1]
    axis = ax.xaxis if name == "x" else ax.yaxis
    set_scale, set_limits = (ax.set_xscale, ax.set_xlim) if name == "x" else (ax.set_yscale, ax.set_ylim)
    set_scale("function", functions=functions)
    axis.set_ticks(ticks, labels=[f"{100 * tick:.4f}".rstrip("0").rstrip(".") for tick in ticks])
    axis.set_ticks([], minor=True)
    set_limits(ticks[0], ticks[-1])
    ax.grid(visible=True, alpha=0.3)


def _lines_of_equal_twv(ax: axes.Axes, beta: float) -> None:
    """P_miss = 1 - TWV - beta P_fa, in grey, behind the curves."""
    first, last = _inverse_normal(np.array(ax.get_xlim())).tolist()
    x = _normal(np.linspace(first, last, 200))
    low, high = ax.get_ylim()
    for level in _TWV_LEVELS:
        y = 1.0 - level - beta * x
        inside = (y > low) & (y < high)
        if inside.sum() > 1:
            ax.plot(x[inside], y[inside], color="grey", linewidth=0.6, zorder=1, label="_")
            at = 0 if inside[0] else min(10, inside.sum() - 1)  # The frame cuts names where lines come from above.
            place = x[inside][at], y[inside][at]
            ax.annotate(f"TWV {level:.1f}", place, fontsize="x-small", color="grey", clip_on=True)


def _finished(ax: axes.Axes, condition: str, lines: Sequence[Line2D], without: Sequence[str]) -> axes.Axes:
    """Set the title, and a legend of these lines after those that the axes had before."""
    ax.set_title("" if condition == "all" else condition)
    others = [handle for handle in ax.get_legend_handles_labels()[0] if handle not in lines]
    labels = [str(handle.get_label()) for handle in others] + [_label(str(line.get_label())) for line in lines]
    title = _label(f"Not drawn, without this curve: {listed(without, FEW)}") if without else None
    # matplotlib omits labels that begin with "_" unless they are passed explicitly.
    ax.legend([*others, *lines], labels, title=title, fontsize="small", title_fontsize="small")
    return ax


def _label(name: str) -> str:
    """Return a name as a label: wrapped into short lines, and with $ not taken for mathematics."""
    lines = (name[begin : begin + _LINE] for begin in range(0, len(name), _LINE))
    return "\n".join(lines).replace("$", r"\$")
