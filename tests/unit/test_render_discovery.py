"""The page, the tables and the pictures of term discovery."""

from __future__ import annotations

import io
from html.parser import HTMLParser
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from swsdask.model.results import SCORES, Result
from swsdask.render.discovery import Scores, page, spread_panels
from swsdask.render.html import page as report
from swsdask.render.terminal import print_discovery
from tests.results import discovery_result


def printed(what: Result) -> str:
    console = Console(file=io.StringIO(), width=200, highlight=False, markup=False, emoji=False)
    print_discovery(what, console)
    made = console.file.getvalue()  # type: ignore[attr-defined]
    return str(made)


class Text(HTMLParser):
    """The text of a page without scripts and styles, and how its tags nest."""

    VOID = frozenset({"meta", "br", "input", "rect", "circle", "path", "line", "use"})

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] not in ("script", "style"):
            self.text.append(" ".join(data.split()))


def text_of(page_text: str) -> str:
    parser = Text()
    parser.feed(page_text)
    assert parser.stack == []
    return " ".join(part for part in parser.text if part)


def test_the_page_has_everything() -> None:
    text = text_of(report(discovery_result()))
    for told in ("2 systems", "1,000 phones", "0.300 ± 0.100", "1,234", "a note with <script>", "All, 2 folds"):
        assert told in text
    for told in ("17 <b>", "a b <i>", "\u00d7 3", "(none)", "and 8 others", "Dropped: outside speech", "not defined"):
        assert told in text


def test_nothing_of_the_result_is_markup() -> None:
    evil = '"><script>alert(1)</script>'
    made = page(discovery_result((evil, "beta")))
    assert "<script>alert(1)" not in made
    assert made.count("<script") == 2
    assert "17 <b>" not in made
    text_of(made)


def test_equal_results_give_equal_pages() -> None:
    assert page(discovery_result()) == page(discovery_result())


def test_spreads_lie_on_their_axis() -> None:
    found = Scores.of(discovery_result().table)
    marks = {system: {"number": n, "colour": n} for n, system in enumerate(found.systems)}
    ned, recall = spread_panels(found, "all", marks, [("ned", "NED"), ("token_recall", "R")])
    at = {tick["label"]: tick["at"] for tick in ned["ticks"]}
    assert list(at) == ["0", "0.1", "0.2", "0.3", "0.4"]
    row = ned["rows"][0]
    assert row["folds"] == [at["0.2"], at["0.4"]] == list(row["range"])
    assert row["mean"] == at["0.3"]
    assert [round(x, 1) for x in row["deviation"]] == [at["0.2"], at["0.4"]]
    assert [row["mean"] for row in recall["rows"]] == [None, None]


def test_no_folds_no_spreads() -> None:
    whole = discovery_result(definition="tdev2")
    kept = [r for r in whole.table.to_pylist() if "/" not in r["condition"] and r["measure"][-4:] not in ENDS]
    bare = Result.of(pa.Table.from_pylist(kept, schema=SCORES), whole.curve_table, whole.manifest)
    assert "Over folds" not in text_of(page(bare))
    beta = pa.Table.from_pylist([r for r in kept if r["system"] == "beta"], schema=SCORES)
    one = printed(Result.of(beta, whole.curve_table, whole.manifest))
    assert [line.split() for line in one.splitlines()[:4:3]] == [["all", "beta"], ["NED", "0.300"]]


ENDS = ("_std", "_min", "_max")


def test_one_system_in_a_terminal() -> None:
    lines = [line.split() for line in printed(discovery_result(("alpha",))).splitlines()]
    assert lines[0] == ["all", "alpha", "2", "folds"]
    assert ["NED", "0.300", "0.100", "0.200", "0.400"] in lines
    assert ["Token", "recall", "-", "-", "-", "-"] in lines
    assert ["Classes", "1,234"] in lines


def test_several_systems_in_a_terminal() -> None:
    lines = [line.split() for line in printed(discovery_result()).splitlines()]
    assert ["alpha", "0.300", "0.600", "-", "0.600", "1,234"] in lines
    assert ["Note:", "a", "note", "with", "<script>"] in lines


@pytest.mark.parametrize("count", [1, 30])
def test_pages_of_few_and_of_many_systems(count: int) -> None:
    text = text_of(page(discovery_result(tuple(f"s{number}" for number in range(count)))))
    assert f"s{count - 1}" in text
