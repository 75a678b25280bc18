"""The numbers of one system in long form: over each set of folds, their spread, and of every fold."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from swsdask.discovery.base import Measure
from swsdask.discovery.folds import COUNT, spreads, with_f_scores
from swsdask.discovery.measures.sizes import sizes
from swsdask.discovery.score import Found
from swsdask.model.corpus import Corpus, Discovered
from swsdask.model.results import SCORES
from swsdask.model.trials import F64


@dataclass(frozen=True, eq=False)
class Numbers:
    """The numbers of one system over one set of folds.

    `overall` are those of the whole set by name, means with their spreads and counts; `by_fold` those of its folds,
    float64 [n_folds]; `left_out` how many folds a mean leaves out, where it does.
    """

    condition: str
    folds: tuple[str, ...]
    overall: dict[str, float]
    by_fold: dict[str, F64]
    left_out: dict[str, int]


def numbers(
    discovered: Discovered, found: Found, families: Sequence[Measure], corpus: Corpus, names: Collection[str]
) -> list[Numbers]:
    """The numbers called `names` (and the spreads of means), in this order, for each set of folds.

    tdev2 has one fold, the corpus: it has no spreads, and no numbers of folds.
    """
    made = []
    for place, folds in enumerate(corpus.folds):
        totals, by_fold = sizes(discovered, corpus, place)
        values = dict(by_fold)
        for family in families:
            values.update(family.values(found[family.statistic], corpus, place))
        values = with_f_scores(values)
        whole = corpus.definition == "tdev2"
        overall, left_out = _overall({name: values[name] for name in names}, values, totals, corpus, spread=not whole)
        kept = {} if whole else {name: values[name] for name in names}
        made.append(Numbers(folds.condition, folds.names, overall, kept, left_out))
    return made


def _overall(
    asked: Mapping[str, F64], values: Mapping[str, F64], totals: Mapping[str, float], corpus: Corpus, *, spread: bool
) -> tuple[dict[str, float], dict[str, int]]:
    over_folds = spreads(values, corpus.definition)
    overall: dict[str, float] = {}
    left_out: dict[str, int] = {}
    for name, numbers_of_folds in asked.items():
        if name.startswith(COUNT):
            overall[name] = totals.get(name, float(numbers_of_folds.sum()))
            continue
        this = over_folds[name]
        overall[name] = this.mean
        if spread:
            overall |= {f"{name}_std": this.std, f"{name}_min": this.least, f"{name}_max": this.most}
        if this.left_out:
            left_out[name] = this.left_out
    return overall, left_out


def score_table(system: str, conditions: Sequence[Numbers]) -> pa.Table:
    """Rows of `model.results.SCORES`: "all" or "within_talker", then a condition per fold, "all/<fold>"."""
    rows = [(condition, name, value) for numbers in conditions for condition, name, value in _rows(numbers)]
    names, measures, values = zip(*rows, strict=True) if rows else ((), (), ())
    columns = [[system] * len(rows), names, pa.nulls(len(rows), pa.string()), measures, values]
    return pa.table(columns, schema=SCORES)


def _rows(numbers: Numbers) -> Iterator[tuple[str, str, float]]:
    for name, value in numbers.overall.items():
        yield numbers.condition, name, value
    for place, fold in enumerate(numbers.folds):
        for name, values in numbers.by_fold.items():
            yield f"{numbers.condition}/{fold}", name, float(values[place])
