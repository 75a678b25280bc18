"""The report's section on calibration, laid out by a real browser. Skips, and says so, where there is no Chromium."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdask.render.html import page
from tests.browser.chromium import CHROMIUM, played
from tests.results import calibrated_systems

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: the page is not opened")


def found(script: str, folder: Path) -> str:
    return played(script, page(calibrated_systems()), folder)


def test_plots_are_drawn_where_they_can_be_read(tmp_path: Path) -> None:
    said = found(
        """
        const plots = [...document.querySelectorAll(".condition:not([hidden]) .ece")];
        const box = (element) => element.getBoundingClientRect();
        const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
        const clear = plots.every((plot) => {
          const texts = [...plot.querySelectorAll("text")].map(box);
          return texts.every((a, i) => texts.slice(i + 1).every((b) => apart(a, b)));
        });
        const inside = plots.every((plot) => box(plot).right <= document.documentElement.clientWidth);
        const wide = plots.every((plot) => box(plot).width > 200);
        return [plots.length, clear, inside, wide].join();
        """,
        tmp_path,
    )
    assert said == "12,true,true,true"


def test_plots_are_side_by_side_each_above_its_downloads(tmp_path: Path) -> None:
    said = found(
        """
        const box = (element) => element.getBoundingClientRect();
        const plots = [...document.querySelectorAll(".condition:not([hidden]) .ece")];
        const lefts = plots.filter((_, place) => place % 2 === 0);
        const pairs = lefts.map((left, pair) => [box(left), box(plots[2 * pair + 1])]);
        const beside = pairs.every(([left, right]) => left.top === right.top && left.right <= right.left);
        const below = plots.every((plot) => {
          const line = plot.nextElementSibling;
          return line.className.includes("downloads") && box(line).top >= box(plot).bottom;
        });
        return [beside, below].join();
        """,
        tmp_path,
    )
    assert said == "true,true"


def test_its_table_sorts(tmp_path: Path) -> None:
    said = found(
        """
        const table = document.querySelector(".calibration table");
        const column = () => [...table.tBodies[0].rows].map((row) => Number(row.cells[1].dataset.value));
        table.querySelectorAll("thead button")[1].click();
        const values = column();
        return [values.length, String(values) === String([...values].sort((a, b) => b - a))].join();
        """,
        tmp_path,
    )
    assert said == "3,true"
