"""The page of term discovery in a real browser that reaches no network."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdask.render.discovery import page
from tests.browser.chromium import CHROMIUM, POLICY, open_page, played
from tests.results import discovery_result

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: the page is not opened")


def test_it_opens_and_its_script_is_let_run(tmp_path: Path) -> None:
    opened = open_page(page(discovery_result()), tmp_path)
    assert opened.console == []
    assert 'class="scripted"' in opened.dom


def test_what_was_read_sorts(tmp_path: Path) -> None:
    clicked = POLICY.sub("", page(discovery_result())).replace(
        "</body>", "<script>document.querySelector('table.sortable th button').click()</script></body>"
    )
    assert 'aria-sort="ascending"' in open_page(clicked, tmp_path).dom


def test_saved_columns_are_named_by_their_measures(tmp_path: Path) -> None:
    script = """
        const made = [];
        URL.createObjectURL = (content) => { made.push(content); return "#"; };
        [".discovered", ".classes"].forEach((table) =>
          document.querySelector(table).parentElement.nextElementSibling.querySelector("button").click());
        await new Promise((done) => setTimeout(done));
        return (await Promise.all(made.map((each) => each.text()))).join("|").replaceAll("\\n", "/");
    """
    measures, classes = played(script, page(discovery_result()), tmp_path).split("|")
    heading = measures.split("/")[0].split(",")
    assert {"token_precision", "token_recall", "ned"} <= {*heading}
    assert len({*heading}) == len(heading)
    assert classes.split("/")[1].split(",")[1] == "0.25"
