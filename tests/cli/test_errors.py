"""`swsdask errors`: a table, JSON and files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from swsdask.simulate.evaluation import simulate, write
from swsdask.simulate.speech import SYSTEMS
from tests.command_line import Outcome


def test_errors(swsdask: Callable[..., Outcome], tmp_path: Path) -> None:
    write(simulate(12, hours=0.3, n_queries=8, systems=SYSTEMS[:2]), tmp_path)
    ended = swsdask("errors", tmp_path, tmp_path / "runs", "--top", "2", "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert ended.out.startswith(f"{SYSTEMS[0].name}\nCost of a query: P_miss + 999.9 P_fa\n")
    assert "further queries not listed." in ended.out
    assert f"Written to {tmp_path / 'out'}: queries.parquet, events.parquet" in ended.out
    assert (tmp_path / "out" / f"{SYSTEMS[1].name}.ctm").is_file()
    found = json.loads(swsdask("errors", tmp_path, tmp_path / "runs", "--top", "2", "--format", "json").out)
    assert [row["rank"] for row in found["queries"]] == [1, 2, 1, 2]
    assert {row["event"] for row in found["events"]} == {"false_alarm", "miss"}
    parts = swsdask("errors", tmp_path, tmp_path / "runs", "--top", "1", "--by", "oov").out
    assert f"{SYSTEMS[0].name}, oov=true\nCost of a query:" in parts
    assert swsdask("errors").code == 2
