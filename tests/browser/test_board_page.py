"""The board of 300 systems and 400 nights in a real browser. Skips, and says so, where there is no Chromium."""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from swsdask.archive.nights import HISTORY, CommittedNight, History
from swsdask.model.leaderboard import NEW, REPLACED, Move, Record, Refused
from swsdask.model.name_columns import coded
from swsdask.nightly.board import board_page
from swsdask.nightly.settings import NightlyEvaluation
from swsdask.render.nightly import EvaluationState, index, overview
from tests.browser.chromium import CHROMIUM, POLICY, open_page

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: the page is not opened")

SYSTEMS, NIGHTS = 300, 400
MEASURES = ("atwv", "mtwv", "cnxe_min", "map")
WIDTHS = (390, 1400)
DARK = "--blink-settings=preferredColorScheme=0"

SCRIPT = """
    const look = (frame) => {
        const page = frame.contentDocument, root = page.documentElement;
        const box = (element) => element.getBoundingClientRect();
        const board = page.querySelector("table.leaderboard");
        const held = [...board.querySelectorAll("svg.trend")].every((svg) => {
            const line = box(svg.querySelector("path")), outer = box(svg);
            return line.top >= outer.top - 1 && line.bottom <= outer.bottom + 1;
        });
        const text = (selector) => page.querySelector(selector);
        const first = box(text("section table.numbers tbody tr").cells[1]);
        const colour = (element, of) => getComputedStyle(element)[of].match(/\\d+/g).map(Number).slice(0, 3);
        const light = (rgb) => rgb[0] + rgb[1] + rgb[2];
        return {
            fits: root.scrollWidth <= root.clientWidth, rows: board.tBodies[0].rows.length, held,
            number_is_seen: first.right <= root.clientWidth,
            dark: light(colour(page.body, "backgroundColor")) < light(colour(page.body, "color")),
        };
    };
    window.addEventListener("load", () => {
        document.title = JSON.stringify([...document.querySelectorAll("iframe")].map(look));
    });
"""


def history() -> History:
    """All systems in the first night, then a few a night; the last has everything that a board can show."""
    chance = random.Random(7)
    names = [f"fusion-of-six-systems-with-a-long-name-{k:03d}" if k % 5 else f"dtw-{k:03d}" for k in range(SYSTEMS)]
    standing = {name: chance.random() for name in names}
    nights = []
    for number in range(1, NIGHTS + 1):
        scored = names if number == 1 else chance.sample(names, 30 if number == NIGHTS else chance.randint(1, 3))
        moves, rows = [], []
        for system in scored:
            was = standing[system] if number > 1 else math.nan
            standing[system] += chance.gauss(0, 0.01)
            reason, baseline = (NEW, None) if number == 1 else (REPLACED, f"{system} (night {number - 1})")
            moves.append(Move(system, reason, baseline, "atwv", standing[system], was, chance.random()))
            common = {"night": number, "date": "2026-01-01", "version": number, "content": f"{number:032x}"}
            rows += [
                {**common, "system": system, "signature": "s", "condition": "all", "measure": m, "value": was_or_is}
                for m, was_or_is in ((m, standing[system]) for m in MEASURES)
            ]
        url = f"/evaluations/inbox/system-{number}/run.kwslist.xml"
        problem = f"{url}:17: expected a score, a finite number; found 'nan'. Give it a score."
        refused = (Refused(url, f"system-{number}", (problem,) * 5, 900),) if number % 20 == 0 else ()
        gates = (f"gate 'atwv drops .02' failed: atwv of {names[1]} is 0.1, of {names[2]} 0.2: 0.1 lower.",) * 3
        stamps = dict.fromkeys((each.url for each in refused), "1 1")
        record = Record(number, "2026-01-01", number, "0", stamps, refused, tuple(moves), gates, ("A note.",))
        nights.append(CommittedNight(record, coded(pa.Table.from_pylist(rows, HISTORY), HISTORY)))
    return History(nights)


def test_the_page_of_all_evaluations(tmp_path: Path) -> None:
    best = "a-system-with-a-long-name-of-fusions"
    state = EvaluationState("", "0/index.html", "", 400, "2026-01-01", best, "ATWV", "0.5123", 300, 1, 1, ("g.",))
    made = overview(
        [replace(state, name=f"an-evaluation-{number}") for number in range(20)]
        + [EvaluationState("later", None, "s3://somewhere/else/in/a/bucket")]
    )
    assert open_page(made, tmp_path).console == []
    script = SCRIPT.replace("table.leaderboard", "table.evaluations").replace("cells[1]", "cells[0]")
    for options in ((), (DARK,)):
        assert opened(made, script, tmp_path, *options) == [
            {"fits": True, "rows": 21, "held": True, "number_is_seen": True, "dark": bool(options)}
        ] * len(WIDTHS)


def test_the_board_of_many_systems_and_nights(tmp_path: Path) -> None:
    asked = NightlyEvaluation(name="n", archive="a", out="o", inbox=("i",), reference="r", measures=MEASURES)
    made = index(board_page(asked, history()))
    assert len(made) < 400_000
    assert '<td class="text">line 17: expected a score' in made
    assert open_page(made, tmp_path).console == []
    for options in ((), (DARK,)):
        right = {"fits": True, "rows": SYSTEMS, "held": True, "number_is_seen": True, "dark": bool(options)}
        assert opened(made, SCRIPT, tmp_path, *options) == [right] * len(WIDTHS)


def opened(made: str, script: str, folder: Path, *options: str) -> Any:
    """What the script sees of a page, in each width."""
    frames = "".join(
        f'<iframe style="width:{width}px;height:2000px" srcdoc="{escape(POLICY.sub("", made))}"></iframe>'
        for width in WIDTHS
    )
    dom = open_page(f"<title></title><script>{script}</script>{frames}", folder, *options).dom
    found = re.search(r"<title>(.*?)</title>", dom, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))
