"""The documentation's measure of one's own is scored beside the measures of the package."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import swsdask as sws
from tests.small_evaluation import Files

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "howto" / "extend.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def own() -> sws.Measure:
    """The measure that the page shows, without the line that scores it."""
    found = re.search(r"```python\n(.*?)^print\(", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    names: dict[str, Any] = {}
    exec(found[1], names)
    measure = names["F2"]()
    assert isinstance(measure, sws.Measure)
    return measure


def overall(result: sws.Result) -> dict[str, float]:
    rows = result.table.to_pylist()
    return {row["measure"]: row["value"] for row in rows if row["query"] is None and row["condition"] == "all"}


def test_a_measure_of_ones_own_beside_others(files: Files, own: sws.Measure) -> None:
    found = overall(sws.score(files.reference, ["precision", "recall", own], runs=files.run))
    assert list(found) == ["precision", "recall", "f2"]
    precision, recall = found["precision"], found["recall"]
    assert found["f2"] == pytest.approx(5 * precision * recall / (4 * precision + recall), abs=1e-15)


def test_a_measure_of_ones_own_alone(files: Files, own: sws.Measure) -> None:
    result = sws.score(files.reference, own, runs=files.run)
    assert list(overall(result)) == ["f2"]
    assert result.manifest["measures"] == ["f2"]


def test_a_name_that_is_taken_is_refused(files: Files, own: sws.Measure) -> None:
    with pytest.raises(sws.SettingsError, match="'f2' is the name of another measure"):
        sws.score(files.reference, [own, own], runs=files.run)


def test_a_measure_that_fails_is_named_with_its_system(files: Files) -> None:
    class Broken:
        names = ("broken",)
        needs = ()

        def values(self, scored: sws.Scored) -> Iterator[sws.Values]:
            yield scored.populations[0].overall({"broken": 1 // len(self.needs)})

    with pytest.raises(sws.ExecutionError, match=r"^system \w+: ZeroDivisionError: "):
        sws.score(files.reference, Broken(), runs=files.run)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"names": "mine"}, r"Odd\.names is 'mine'; expected a tuple of names"),
        ({"names": (1,)}, r"Odd\.names is \(1,\); expected a tuple of names"),
        ({"needs": sws.Executor}, r"Odd\.needs is .*Executor.*; expected a tuple of statistics"),
        ({"needs": ("counts",)}, r"Odd\.needs is \('counts',\); expected a tuple of statistics"),
        ({"names": ("others",)}, r"the measure Odd yields 'mine'; its names are others\."),
    ],
)
def test_a_malformed_measure_is_refused(files: Files, attributes: dict[str, Any], said: str) -> None:
    def values(_self: object, scored: sws.Scored) -> Iterator[sws.Values]:
        yield scored.whole.overall({"mine": 1.0})

    odd = type("Odd", (), {"names": ("mine",), "needs": (), "values": values, **attributes})()
    with pytest.raises(sws.SettingsError, match=said):
        sws.score(files.reference, odd, runs=files.run)
