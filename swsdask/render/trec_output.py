"""Our numbers as the lines that trec_eval 9 prints with -q, so that scripts that read its output still work.

First every measure of each topic, then every measure over all topics. A line has the measure in 22 columns, the topic
or `all`, and the number: counts as whole numbers, others with four decimals. Measures come in the tool's order, topics
in the order of their ids; those without rows in the run have no lines of their own, also with
`average_precision.missing = "zero"` (the tool's -c). The numbers are trec_eval's under `--preset trec`. Measures that
the tool does not have are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from swsdask.model.errors import SettingsError
from swsdask.model.measures import describe, names_in, parted
from swsdask.model.results import Result
from swsdask.model.retrieval import RELEVANT

NEEDED = ("map_n_averaged", "n_retrieved")
"""What the lines cannot do without: how many topics there are, and which have rows."""

_RANKS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)

OFFICIAL = (
    *("map_n_averaged", "n_retrieved", "n_relevant", "n_relevant_retrieved", "map", "ap", "gm_map", "r_precision"),
    *("bpref", "reciprocal_rank", *(f"precision_at_recall@{tenths / 10}" for tenths in range(11))),
    *(f"precision_at_rank@{rank}" for rank in _RANKS),
)
"""The measures that the tool prints where none are requested."""

_ORDER = (
    *("map_n_averaged", "n_retrieved", "n_relevant", "n_relevant_retrieved", "map", "gm_map", "r_precision", "bpref"),
    *("reciprocal_rank", "precision_at_recall@", "precision_at_rank@", "recall_at_rank@", "inferred_ap", "gm_bpref"),
    *("precision_at_relevant@", "utility", "eleven_point_precision", "binary_gain", "normalised_gain", "ndcg"),
    *("ndcg_of_relevant", "ndcg_at_levels", "ndcg_at_rank@", "ap_at_rank@", "relative_precision_at_rank@"),
    *("success_at_rank@", "set_precision", "set_relative_precision", "set_recall", "set_map", "set_f1"),
    "n_nonrelevant_judged",
)
"""The order in which the tool prints its measures."""

_WITH_DECIMALS = ("precision_at_recall@", "precision_at_relevant@")
"""Measures whose points the tool writes with two decimals."""


def write_trec_output(result: Result, directory: Path) -> list[Path]:
    """Write directory/SYSTEM.trec_eval.txt for every system; return these paths.

    Raises `SettingsError` if the result lacks the measures of `NEEDED`, or AP if it has MAP.
    """
    there = set(result.table["measure"].unique().to_pylist())
    missing = {*NEEDED, *({"ap"} if "map" in there else ())} - there
    if missing:
        raise SettingsError(f"trec_eval's output needs measures that were not requested: {', '.join(sorted(missing))}.")
    whole = result.table.filter(pc.equal(result.table["condition"], "all"))
    paths = []
    for system in result.manifest["runs"]:
        path = directory / f"{system}.trec_eval.txt"
        path.write_text(trec_lines(whole.filter(pc.equal(whole["system"], system)), system), encoding="utf-8")
        paths.append(path)
    return paths


def trec_lines(scores: pa.Table, system: str) -> str:
    """The lines of one system; `scores` are its rows of one condition."""
    topics: dict[str | None, dict[str, float]] = {}
    for row in scores.to_pylist():
        topics.setdefault(row["query"], {})[row["measure"]] = row["value"]
    overall = topics.pop(None, {})
    lines = [
        f"{name:<22}\t{topic}\t{number}\n"
        for topic in sorted(each for each in topics if each is not None)
        if topics[topic].get("n_retrieved")
        for name, number in _written(topics[topic] | ({"map": topics[topic]["ap"]} if "map" in overall else {}))
    ]
    lines.append(f"{'runid':<22}\tall\t{system}\n")
    return "".join([*lines, *(f"{name:<22}\tall\t{number}\n" for name, number in _written(overall))])


def _written(numbers: dict[str, float]) -> Iterator[tuple[str, str]]:
    """The tool's names and numbers of the measures that are there, in the tool's order."""
    theirs = {ours: name for name, ours in names_in("trec_eval").items()}
    names = {name: parted(name) for name in numbers}
    for measure in _ORDER:
        family = [name for name, of in names.items() if of.family == measure and of.level == RELEVANT]
        for name in sorted(family, key=lambda each: float(names[each].point or 0)):
            point = names[name].point
            shown = f"{float(point):.2f}" if measure in _WITH_DECIMALS else point
            decimals = 0 if describe(name).digits == 0 else 4
            yield f"{theirs[measure]}{shown}", f"{numbers[name]:.{decimals}f}"
