"""Pages in a headless Chromium that reaches no network."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next((found for name in BROWSERS if (found := shutil.which(name))), None)

POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')


@dataclass(frozen=True)
class Opened:
    """The page after its script ran, and what the browser's console said."""

    dom: str
    console: list[str]


def open_page(text: str, folder: Path, *options: str) -> Opened:
    """Open a page of this text, as `open_file`."""
    path = folder / "page.html"
    path.write_text(text, encoding="utf-8")
    return open_file(path, *options)


def open_file(path: Path, *options: str) -> Opened:
    """Open a page with every request but those to files refused, and with further options of the browser."""
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--proxy-server=http://127.0.0.1:9",
            "--proxy-bypass-list=<-loopback>",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={path.parent / 'profile'}",
            "--enable-logging=stderr",
            "--virtual-time-budget=5000",
            *options,
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return Opened(done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line])


def played(script: str, page: str, folder: Path) -> str:
    """The value that the body of a JavaScript function returns once the page is whole, as text."""
    acting = f"setTimeout(async () => {{ document.title = String(await (async () => {{ {script} }})()); }})"
    whole = f'<script>addEventListener("load", () => {acting})</script></body>'
    opened = open_page(POLICY.sub("", page).replace("</body>", whole), folder)
    assert opened.console == []
    title = re.search(r"<title>(.*?)</title>", opened.dom, re.DOTALL)
    assert title is not None
    return title.group(1)
