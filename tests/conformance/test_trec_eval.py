"""trec_eval: what it printed for topics and averages, to the last digit."""

from __future__ import annotations

from pathlib import Path

import pytest

import swsdask as sws

CASE = Path(__file__).resolve().parents[1] / "cases" / "trec_eval" / "ids"
RANKS = (1, 3, 5)
RECALLS = tuple(tenths / 10 for tenths in range(11))
NAMES = {"num_q": "map_n_averaged", "map": "map", "Rprec": "r_precision"}
NAMES |= {f"P_{rank}": f"precision_at_rank@{rank}" for rank in RANKS}
NAMES |= {f"iprec_at_recall_{recall:.2f}": f"precision_at_recall@{recall!r}" for recall in RECALLS}


@pytest.mark.parametrize(("report", "missing"), [("retrieved.out", "skip"), ("complete.out", "zero")])
def test_printed_numbers(report: str, missing: str) -> None:
    qrels, run = CASE / "judgments.qrels", CASE / "run.trec"
    chosen = {"evaluation": {"average_precision": {"missing": missing, "ranks": RANKS}}}
    evaluation = sws.open(qrels=qrels, collection=run, preset="trec", settings=chosen)
    result = sws.score(evaluation, ["ap", *NAMES.values()], runs=run)
    found = {(row["query"] or "all", row["measure"]): row["value"] for row in result.table.to_pylist()}
    for line in (CASE / report).read_text().splitlines():
        name, topic, printed = line.split()
        ours = found[topic, "ap" if name == "map" and topic != "all" else NAMES[name]]
        assert f"{ours:.{len(printed.partition('.')[2])}f}" == printed, line
