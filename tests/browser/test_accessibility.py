"""Every page against the rules of axe-core (WCAG 2.2 and good practice), at two widths, light and dark.

`make accessibility` takes axe-core from npm and says in `AXE` where it is; the other tests do without it.
"""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.browser.chromium import POLICY, open_page

pytestmark = pytest.mark.accessibility

WIDTHS = (390, 1400)
SCHEMES = {"light": (), "dark": ("--blink-settings=preferredColorScheme=0",)}

COMMANDS = """
demo --hours 1 --queries 20 --out demo
compare demo/results --replicates 200 --out demo/results
correlate demo/results --out correlate
demo --nightly --out nights
simulate discovery --phones 3000 --out discovery
discover --phones discovery/sim.phn --words discovery/sim.wrd discovery/*.classes --out discover
simulate gap --replicates 2 --out gap
simulate compare --evaluations 4 --replicates 50 --out study
"""

PAGES = (
    "demo/results/report.html",
    "correlate/rank_correlation.html",
    "nights/board/index.html",
    "nights/board/nights/00000003.html",
    "discover/report.html",
    "gap/gap.html",
    "study/compare.html",
)

SCRIPT = """
    axe.run(document, {resultTypes: ["violations"]}).then((found) => {
        const reported = document.createElement("pre");
        reported.id = "axe";
        reported.textContent = JSON.stringify(found.violations.flatMap((rule) =>
            rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")}: ${rule.help}`)));
        document.body.append(reported);
    });
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which every command that makes pages was run."""
    folder = tmp_path_factory.mktemp("pages")
    for line in COMMANDS.strip().splitlines():
        subprocess.run([sys.executable, "-m", "swsdask", *line.split()], cwd=folder, capture_output=True, timeout=600)
    return folder


def violations(page: str, folder: Path, *options: str) -> Sequence[str]:
    """What axe-core finds wrong with a page, a line for each element."""
    axe = Path(os.environ["AXE"]).read_text(encoding="utf-8")
    looked_at = POLICY.sub("", page).replace("</body>", f"<script>{axe}</script><script>{SCRIPT}</script></body>")
    opened = open_page(looked_at, folder, *options)
    reported = re.search(r'<pre id="axe">(.*?)</pre>', opened.dom, re.DOTALL)
    assert reported is not None, opened.console
    found: list[str] = json.loads(html.unescape(reported.group(1)))
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_wrong(page: str, width: int, scheme: str, pages: Path, tmp_path: Path) -> None:
    text = (pages / page).read_text(encoding="utf-8")
    assert violations(text, tmp_path, f"--window-size={width},1200", *SCHEMES[scheme]) == []


def test_wrongs_are_found(pages: Path, tmp_path: Path) -> None:
    text = (pages / PAGES[0]).read_text(encoding="utf-8").replace("</main>", '<img src="data:,"></main>')
    assert [line.split(":")[0] for line in violations(text, tmp_path)] == ["image-alt"]
