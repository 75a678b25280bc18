"""The page of term discovery in a real browser that reaches no network."""

from __future__ import annotations

from pathlib import Path

import pytest

from swsdask.render.discovery import page
from tests.browser.chromium import CHROMIUM, POLICY, open_page
from tests.unit.test_render_discovery import result

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: the page is not opened")


def test_it_opens_and_its_script_is_let_run(tmp_path: Path) -> None:
    opened = open_page(page(result()), tmp_path)
    assert opened.console == []
    assert 'class="scripted"' in opened.dom


def test_what_was_read_sorts(tmp_path: Path) -> None:
    clicked = POLICY.sub("", page(result())).replace(
        "</body>", "<script>document.querySelector('table.sortable th button').click()</script></body>"
    )
    assert 'aria-sort="ascending"' in open_page(clicked, tmp_path).dom
