"""The matrix of rank correlations, laid out by a real browser. Skips, and says so, where there is no Chromium."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from swsdask.comparison.rank_correlation import rank_correlation
from swsdask.model.leaderboard import leaderboard_of
from swsdask.model.measures import BALANCED
from swsdask.render.rank_correlation import page
from tests.browser.chromium import CHROMIUM, open_page, played
from tests.rank_correlations import of_numbers

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: the page is not opened")


def test_numbers_lie_in_their_boxes_and_the_page_is_no_wider_than_the_window(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    names = [f"{name}0.5" if name.endswith("@") else name for name in BALANCED]
    result = of_numbers({name: rng.integers(0, 5, 8).tolist() for name in names}, [f"system-{k}" * 3 for k in range(8)])
    script = """
        const box = (element) => element.getBoundingClientRect();
        const held = (inner, outer) => inner.left >= outer.left && inner.right <= outer.right && inner.top >= outer.top && inner.bottom <= outer.bottom;
        const groups = [...document.querySelectorAll(".matrix-plot > g")];
        const drawn = groups.filter((g) => g.querySelector("text, circle"));
        const inside = drawn.every((g) => [...g.querySelectorAll("text, circle")].every((t) => held(box(t), box(g.querySelector(".box")))));
        const plot = box(document.querySelector(".matrix-plot"));
        const labels = [...document.querySelectorAll(".matrix-plot > text")].every((t) => held(box(t), plot));
        const fits = document.documentElement.scrollWidth <= document.documentElement.clientWidth;
        return [groups.length, drawn.length, inside, labels, fits].join();
    """  # noqa: E501
    made = page(rank_correlation(result), leaderboard_of(result.table), "s")
    assert open_page(made, tmp_path).console == []
    assert played(script, made, tmp_path) == f"{len(names) ** 2},{len(names) ** 2},true,true,true"


@pytest.mark.parametrize("n_systems", [20, 120, 1_020])
def test_numbers_of_any_length_lie_in_their_discs(tmp_path: Path, n_systems: int) -> None:
    rising = [float(k) for k in range(n_systems)]
    result = of_numbers({"atwv": rising, "ap": rising[::-1]}, [f"s{k}" for k in range(n_systems)])
    script = """
        const width = (element) => element.getBoundingClientRect().width;
        return [...document.querySelectorAll(".matrix-plot circle")].flatMap((disc) =>
          [disc.nextElementSibling.textContent, width(disc.nextElementSibling) < 0.95 * width(disc)]).join();
    """
    made = page(rank_correlation(result, ["atwv", "ap"]), leaderboard_of(result.table), "s")
    assert played(script, made, tmp_path) == f"1,true,{n_systems},true"
