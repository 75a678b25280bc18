"""Scorers of lists of events, kws-assessment and SimpleKwsEval: the AP and MAP that they printed, to the last digit."""

from __future__ import annotations

import re
from pathlib import Path

import swsdask as sws


def ap_and_map(qrels: Path, preset: str, run: Path) -> dict[str, float]:
    result = sws.score(sws.open(qrels=qrels, preset=preset), ["ap", "map"], runs=run)
    return {row["measure"]: row["value"] for row in result.table.to_pylist() if row["query"] is None}


def test_kws_assessment(own_cases: Path, tmp_path: Path) -> None:
    case = own_cases / "kws-assessment" / "negatives"
    lines = ["document query relevance score", *(case / "events.dat").read_text().splitlines(), ""]
    table = tmp_path / "events.tsv"
    table.write_text("\n".join(lines).replace(" ", "\t"))
    found = ap_and_map(table, "kws-assessment", table)
    printed = dict(re.findall(r"\b(AP|MAP) = (\S+)", (case / "report.out").read_text()))
    assert {name.upper(): f"{value:.9f}" for name, value in found.items()} == printed


def test_simplekwseval(own_cases: Path, tmp_path: Path) -> None:
    case = own_cases / "simplekwseval" / "single-precision"
    relevant = [line.split() for line in (case / "references.txt").read_text().splitlines()]
    retrieved = [line.split() for line in (case / "hypotheses.txt").read_text().splitlines()]
    pairs = [*relevant, *(pair for *pair, _ in retrieved if pair not in relevant)]
    qrels, run = tmp_path / "judged.qrels", tmp_path / "run.tsv"
    qrels.write_text(
        "".join(f"{query} 0 {document} {int([query, document] in relevant)}\n" for query, document in pairs)
    )
    run.write_text("query\tdocument\tscore\n" + "".join("\t".join(row) + "\n" for row in retrieved))
    found = ap_and_map(qrels, "simplekwseval", run)
    printed = dict(re.findall(r"\b([gm]AP) = (\S+)", (case / "report.out").read_text()))
    assert {"gAP": f"{found['ap']:.6g}", "mAP": f"{found['map']:.6g}"} == printed
