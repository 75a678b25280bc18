"""The cross entropy that is left after the best rising map of scores: pool adjacent violators (`measures.isotonic`).

- `cnxe_min_pav`: C_nxe (`measures.cross_entropy`) of all trials of a condition, imputed ones too, each at the llr of
  its block. Equal scores are one: the result does not depend on the order of trials, nor on the imputed score as long
  as that lies below the given ones. No rising map has less, so none of gamma s + delta, gamma >= 0, has.
- `calibration_loss_pav` = cnxe - cnxe_min_pav.
- `cnxe_query_pav`: the same with a map for each query, pooled over that query's trials alone, but with the prior of the
  whole condition in llr = logit(pav) - logit(|T_true| / |T|), and averaged over all trials. MediaEval's tool calls it
  the lower bound of C_nxe.

QUIRK, under `compat = "mediaeval"`: the tool does not pool equal scores but takes trials one by one, in the order of
the files (`measures.file_order`). A system with one score for everything can have 0 there, by that order; pooled it
has 1. The lower bound that it prints is of scores that PAV of the whole list has overwritten, `mediaeval_pav_cnxe`
(`measures.mediaeval_tool`).

All are not defined (NaN) where C_nxe is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from swsdask.measures import cross_entropy, file_order, query_sweep, sweep
from swsdask.measures.base import Value
from swsdask.measures.censoring import Censored, censored
from swsdask.measures.file_order import Rows, trial_list
from swsdask.measures.isotonic import Blocks, isotonic_blocks
from swsdask.measures.logistic_fit import prior_entropy
from swsdask.measures.score_rows import pooled_rows, query_rows
from swsdask.measures.sweep import Sweep
from swsdask.model.settings import EvaluationSettings
from swsdask.model.trials import F64, Reference
from swsdask.statistics.base import Statistic
from swsdask.statistics.counts import Counts


class PavCalibration:
    """cnxe_min_pav, calibration_loss_pav, cnxe_query_pav."""

    names: ClassVar[tuple[str, ...]] = ("cnxe_min_pav", "calibration_loss_pav", "cnxe_query_pav")
    needs: ClassVar[tuple[type[Statistic], ...]] = tuple(
        dict.fromkeys((*cross_entropy.NEEDS, *sweep.NEEDS, *query_sweep.NEEDS, *file_order.NEEDS))
    )

    def values(
        self, statistics: Mapping[type[Statistic], Any], reference: Reference, settings: EvaluationSettings
    ) -> Iterator[Value]:
        """Overall."""
        eta = reference.prior_log_odds
        together, apart = sweep.sweeps(statistics, reference), query_sweep.query_sweeps(statistics, reference)
        for (population, line), (_, lines) in zip(together, apart, strict=True):
            trials = censored(statistics[Counts], population, settings)
            if not trials.defined:
                yield from population.overall(dict.fromkeys(self.names, np.nan))
                continue
            given = cross_entropy.given_cost(statistics, reference, population, trials)
            if settings.compat == "mediaeval":
                listed = trial_list(statistics, reference, population, settings)
                blocks, of_queries = _unpooled(listed.rows), _unpooled(listed.rows_of_queries)
            else:
                _, blocks = pooled_blocks(line, trials)
                rows = query_rows(lines, trials)
                of_queries = isotonic_blocks(rows.target, rows.nontarget, rows.offsets)
            pooled, by_query = (each.cost(trials.n_target, trials.n_nontarget, eta) for each in (blocks, of_queries))
            costs = (pooled, max(given - pooled, 0.0), by_query)
            prior = prior_entropy(eta)
            yield from population.overall({name: cost / prior for name, cost in zip(self.names, costs, strict=True)})


def _unpooled(rows: Rows) -> Blocks:
    return isotonic_blocks(rows.target, rows.nontarget, rows.offsets)


def pooled_blocks(line: Sweep, trials: Censored) -> tuple[F64, Blocks]:
    """The blocks of a condition by ascending score, and the lowest score of each: float64, -inf below all rungs."""
    rows = pooled_rows(line, trials)
    blocks = isotonic_blocks(rows.target, rows.nontarget)
    return rows.lowest[blocks.first], blocks
