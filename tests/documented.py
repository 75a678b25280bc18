"""The code blocks of a page of documentation, run in order as a reader would, and compared with what the page shows.

Blocks by their language:

- `console`: lines that begin with `$ ` are commands, what follows them is their standard output. A command without
  output must succeed; `# exit code N` at its end names another code.
- `python`: run in one namespace for the whole page; a block `text` right after it is its output.
- with `title="NAME"`: written to that file.
- `sh`: for a reader's own machine, not run: installation and schedulers only.

In output a line of three dots represents any lines; spaces, rules of tables and hashes may differ, numbers may not.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from swsdask.cli import main

ROOT = Path(__file__).resolve().parents[1]

_BLOCK = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_ON_ONES_OWN = ("make", "python3", "pip", ".venv/bin/pip", "swsdask demo", "swsdask completion", "crontab", "#")
"""How the lines of `sh` blocks may begin."""


@dataclass(frozen=True)
class Block:
    """A code block: its language, its title, its text, and the block `text` right after it."""

    language: str
    title: str
    text: str
    output: str | None = None


def blocks(page: str) -> Iterator[Block]:
    """The code blocks of a page in Markdown."""
    found = list(_BLOCK.finditer(page))
    shown = {id(after) for before, after in pairwise(found) if _is_output(page, before, after)}
    for at, block in enumerate(found):
        if id(block) in shown:
            continue
        language, _, rest = block[2].strip().partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        text = re.sub(rf"(?m)^{block[1]}", "", block[3])
        after = found[at + 1] if at + 1 < len(found) and id(found[at + 1]) in shown else None
        yield Block(language, title[1] if title else "", text, after[3] if after else None)


def _is_output(page: str, before: re.Match[str], after: re.Match[str]) -> bool:
    languages = before[2].partition(" ")[0], after[2].strip()
    return languages == ("python", "text") and not page[before.end() : after.start()].strip()


def run_page(page: str, folder: Path) -> None:
    """Run the blocks of a page in `folder`. Raises `AssertionError` with what came and what the page shows."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.title:
            path = folder / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for command, shown in commands(block.text):
                check(command, run(command, folder), shown)
        elif block.language == "python":
            check(block.text, _python(block.text, names, folder), block.output or "...")
        elif block.language == "sh":
            strange = [line for line in block.text.splitlines() if not line.startswith(_ON_ONES_OWN)]
            assert not strange, f"make this a console block, which is run: {strange}"
        else:
            assert block.language in ("text", "toml"), f"a block of {block.language or 'no language'}: {block.text}"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with the output that is shown for it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown or "..."


def check(what: str, came: str, shown: str) -> None:
    """Compare an output with the one that a page shows."""
    assert matches(came, shown), f"{what}\nprinted\n{came}\nwhere the page shows\n{shown}"


def run(command: str, folder: Path) -> str:
    """Run a command in `folder`: ours in this process, others by the shell. Its standard output."""
    command, _, expected = command.partition("  # exit code ")
    words = shlex.split(command)
    if words[0] == "swsdask" and not set(words) & set("|<>;&"):
        out, err, code = _swsdask(words[1:], folder)
    else:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": path},
        )
        out, err, code = done.stdout, done.stderr, done.returncode
    assert code == int(expected or 0), f"{command}: exit code {code}\n{out}{err}"
    return out


def _swsdask(words: list[str], folder: Path) -> tuple[str, str, int]:
    out, err, code = io.StringIO(), io.StringIO(), 0
    with chdir(folder), redirect_stdout(out), redirect_stderr(err):
        try:
            main(words)
        except SystemExit as stop:
            code = int(stop.code or 0)
    return out.getvalue(), err.getvalue(), code


def _python(text: str, names: dict[str, Any], folder: Path) -> str:
    out = io.StringIO()
    with chdir(folder), redirect_stdout(out):
        exec(compile(text, "page", "exec"), names)
    return out.getvalue()


def outline(text: str) -> list[str]:
    """Lines with every hash as #, and spaces and rules as one."""
    lines = [re.sub(r"[\s─]+", " ", re.sub(r"\b[0-9a-f]{16,}\b", "#", line)).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def matches(printed: str, shown: str) -> bool:
    """Whether `printed` looks as a page shows it, where a line of three dots represents any lines."""
    pattern = "\n".join(".*" if line == "..." else re.escape(line) for line in outline(shown))
    return re.fullmatch(pattern, "\n".join(outline(printed)), re.DOTALL) is not None
