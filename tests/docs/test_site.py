"""The documentation: every code block runs and prints what its page shows, and the site builds strictly and offline."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.dom.minidom import parseString

import pytest

import swsdask as sws
from swsdask.model.discovery import DISCOVERY
from swsdask.model.layers import preset_names
from swsdask.model.measures import TABLE
from tests.browser.chromium import CHROMIUM, open_file
from tests.documented import ROOT, run, run_page

DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))

pytestmark = pytest.mark.docs


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages read."""
    made = tmp_path_factory.mktemp("docs")
    run("swsdask demo", made)
    return made / "demo"


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs(page: str, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    shutil.copytree(demo, tmp_path / "demo")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    run_page((DOCS / page).read_text(encoding="utf-8"), tmp_path)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with every broken link an error."""
    made = tmp_path_factory.mktemp("site")
    program = Path(sys.executable).with_name("mkdocs")
    done = subprocess.run(
        [str(program), "build", "--strict", "--quiet", "--site-dir", str(made)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return made


def html(site: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(site.rglob("*.html")):
        yield path.relative_to(site).as_posix(), path.read_text(encoding="utf-8")


def test_pages_fetch_nothing(site: Path) -> None:
    fetched = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//[^\"' >]*")
    assert [(name, match.group()) for name, text in html(site) for match in fetched.finditer(text)] == []
    assert not re.search(r"url\([\"']?https?:", "".join(p.read_text("utf-8") for p in site.rglob("*.css")))


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine: the site is not searched")
def test_search_finds_pages_from_the_disk(site: Path, tmp_path: Path) -> None:
    """A query is typed as a reader would, in a browser that reaches no network."""
    typed = """<script>
      const later = (ms) => new Promise((done) => setTimeout(done, ms));
      (async () => {
        await later(2000);
        const query = document.querySelector("[data-md-component=search-query]");
        query.focus();
        query.value = "Wilcoxon";
        query.dispatchEvent(new Event("input", { bubbles: true }));
        query.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
        await later(4000);
        const found = [...document.querySelectorAll("a.md-search-result__link")];
        document.title = found.map((link) => new URL(link.href).pathname.split("/site/").at(-1)).join();
      })();
    </script></body>"""
    shutil.copytree(site, tmp_path / "site")
    page = tmp_path / "site" / "index.html"
    page.write_text(page.read_text(encoding="utf-8").replace("</body>", typed), encoding="utf-8")
    opened = open_file(page, "--virtual-time-budget=15000")
    title = re.search("<title>(.*?)</title>", opened.dom)
    assert title is not None
    assert "howto/compare.html" in title[1].split(",")


def test_every_measure_and_setting_has_its_place(site: Path) -> None:
    pages = dict(html(site))
    for row in (*TABLE, *DISCOVERY):
        page = pages[f"measures/{row.name.replace('@', '_at')}.html"]
        assert (row.formula == "") == ('<div class="formula"><math' not in page.partition('id="definition"')[0])
        assert all(each.partition(":")[2].strip() in page for each in row.printed.split("; ") if "&" not in each)
    for each in sws.list_settings():
        table, _, name = each.setting.rpartition(".")
        assert f'id="{name}"' in pages[f"settings/{table}.html"]
        assert all(f"<th>{preset}</th>" in pages[f"settings/{table}.html"] for preset in each.presets)
    assert all(f'id="{name}"' in pages["presets.html"] for name in preset_names())


def test_every_public_name_and_command_is_described(site: Path) -> None:
    pages = dict(html(site))
    public = [name for name in sws.__all__ if name != "__version__"]
    assert [name for name in public if f'id="swsdask.{name}"' not in pages["api.html"]] == []
    commands = re.findall(r"^  (\w+)  ", run("swsdask --help", ROOT).partition("Commands:")[2], re.MULTILINE)
    assert [name for name in commands if f'id="{name}"' not in pages["commands.html"]] == []


def test_formulas_are_mathml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    from formulas import mathml  # type: ignore[import-not-found]

    assert mathml("2 H / (A + R)") == (
        '<math display="block"><mfrac><mrow><mn>2</mn><mspace width="0.2em"/><mi>H</mi></mrow>'
        "<mrow><mi>A</mi><mo>+</mo><mi>R</mi></mrow></mfrac></math>"
    )
    for row in (*TABLE, *DISCOVERY):
        parseString(mathml(row.formula))
