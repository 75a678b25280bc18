"""trec_eval: what it printed for topics and averages, to the last digit."""

from __future__ import annotations

from pathlib import Path

import pytest

import swsdask as sws
from swsdask.cli import main

CASES = Path(__file__).resolve().parents[1] / "cases" / "trec_eval"
RANKS = (1, 3, 5, 20, 200)
RECALLS = tuple(tenths / 10 for tenths in range(11))
NAMES = {"num_q": "map_n_averaged", "map": "map", "Rprec": "r_precision"}
NAMES |= {"bpref": "bpref", "infAP": "inferred_ap", "map_cut_5": "ap_at_rank@5", "map_cut_20": "ap_at_rank@20"}
NAMES |= {f"P_{rank}": f"precision_at_rank@{rank}" for rank in RANKS}
NAMES |= {f"iprec_at_recall_{recall:.2f}": f"precision_at_recall@{recall!r}" for recall in RECALLS}


@pytest.mark.parametrize(
    ("report", "missing", "preset"),
    [
        ("ids/retrieved.out", "skip", "trec"),
        ("ids/complete.out", "zero", "trec"),
        ("ids/version10.out", "zero", "trec10"),
        ("averages/retrieved.out", "skip", "trec"),
        ("averages/retrieved.out", "skip", "trec10"),
        ("terms/retrieved.out", "skip", "trec"),
        ("terms/retrieved.out", "skip", "trec10"),
    ],
)
def test_printed_numbers(report: str, missing: str, preset: str) -> None:
    folder = (CASES / report).parent
    qrels, run = folder / "judgments.qrels", folder / "run.trec"
    chosen = {"evaluation": {"average_precision": {"missing": missing, "ranks": RANKS}}}
    evaluation = sws.open(qrels=qrels, collection=run, preset=preset, settings=chosen)
    result = sws.score(evaluation, ["ap", *NAMES.values()], runs=run)
    found = {(row["query"] or "all", row["measure"]): row["value"] for row in result.table.to_pylist()}
    for line in (CASES / report).read_text().splitlines():
        name, topic, printed = line.split()
        ours = found[topic, "ap" if name == "map" and topic != "all" else NAMES[name]]
        assert f"{ours:.{len(printed.partition('.')[2])}f}" == printed, line


GRADED = CASES / "graded"
ALL_TREC = [
    "num_q",
    "num_ret",
    "num_rel",
    "num_rel_ret",
    "map",
    "ap",
    "gm_map",
    "Rprec",
    "bpref",
    "recip_rank",
    "infAP",
]
ALL_TREC += ["gm_bpref", "utility", "11pt_avg", "binG", "G", "ndcg", "ndcg_rel", "Rndcg", "set_P", "set_relative_P"]
ALL_TREC += ["set_recall", "set_map", "set_F", "num_nonrel_judged_ret", *(f"success_{cut}" for cut in (1, 5, 10))]
ALL_TREC += [f"iprec_at_recall_{recall!r}" for recall in RECALLS]
ALL_TREC += [f"Rprec_mult_{fifths / 5!r}" for fifths in range(1, 11)]
ALL_TREC += [
    f"{family}_{cut}"
    for family in ("P", "recall", "ndcg_cut", "map_cut", "relative_P")
    for cut in (5, 10, 15, 20, 30, 100, 200, 500, 1000)
]


@pytest.mark.parametrize(
    ("expected", "measures", "missing", "preset"),
    [
        ("official.out", None, "skip", "trec"),
        ("complete.out", None, "zero", "trec"),
        ("complete10.out", None, "zero", "trec10"),
        ("all_trec.out", ",".join(ALL_TREC), "skip", "trec"),
    ],
)
def test_the_lines_of_the_tool(
    tmp_path: Path, expected: str, measures: str | None, missing: str, preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--qrels", str(GRADED / "judgments.qrels"), str(GRADED / "run.trec"), "--preset", preset, "--trec-output"]
    given += ["--set", f"average_precision.missing={missing}", "--out", str(tmp_path)]
    main(["score", *given, *(["--measures", measures] if measures else [])])
    written = (tmp_path / "graded.trec_eval.txt").read_text()
    assert written == (GRADED / expected).read_text()
    assert "graded.trec_eval.txt" in capsys.readouterr().out
