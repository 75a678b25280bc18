"""kws-assessment: the AP and MAP that it printed, to the last digit."""

from __future__ import annotations

import re
from pathlib import Path

import swsdask as sws

CASE = Path(__file__).resolve().parents[1] / "cases" / "kws-assessment" / "negatives"


def test_printed_numbers(tmp_path: Path) -> None:
    lines = ["document query relevance score", *(CASE / "events.dat").read_text().splitlines(), ""]
    table = tmp_path / "events.tsv"
    table.write_text("\n".join(lines).replace(" ", "\t"))
    result = sws.score(sws.open(qrels=table, preset="kws-assessment"), ["ap", "map"], runs=table)
    found = {row["measure"]: row["value"] for row in result.table.to_pylist() if row["query"] is None}
    printed = dict(re.findall(r"\b(AP|MAP) = (\S+)", (CASE / "report.out").read_text()))
    assert {name.upper(): f"{value:.9f}" for name, value in found.items()} == printed
