"""README's commands and its Python do what README shows; digits may differ with the versions of libraries."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("readme")
    run(made, ["swsdask", "demo"])
    return made


def run(folder: Path, words: list[str]) -> str:
    program = Path(sys.executable).with_name(words[0])
    done = subprocess.run([str(program), *words[1:]], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def outline(text: str) -> list[str]:
    """Lines with every number as #, and spaces and rules as one."""
    lines = [re.sub(r"[\s─]+", " ", re.sub(r"[0-9a-f]{16}|[\d.,]*\d", "#", line)).strip() for line in text.splitlines()]
    return [line for line in lines if line]


def matches(printed: str, shown: str) -> bool:
    """Whether `printed` looks as README shows it, where a line of three dots stands for any lines."""
    pattern = "\n".join(".*" if line == "..." else re.escape(line) for line in outline(shown))
    return re.fullmatch(pattern, "\n".join(outline(printed)), re.DOTALL) is not None


CONSOLES = re.findall(r"```console\n\$ (.+)\n((?:.*\n)*?)```", README)


@pytest.mark.parametrize(("command", "shown"), CONSOLES)
def test_commands(folder: Path, command: str, shown: str) -> None:
    """One after the other, as a reader runs them: some need the files that others made."""
    printed = run(folder, command.split())
    assert matches(printed, shown), printed


PYTHON = re.findall(r"```python\n((?:.*\n)*?)```\n\n```\n((?:.*\n)*?)```", README)


def test_every_python_block_has_its_output() -> None:
    assert len(PYTHON) == README.count("```python") == 3
    assert len([line for line in PYTHON[0][0].splitlines() if line]) <= 12


@pytest.mark.parametrize(("script", "shown"), PYTHON)
def test_python(folder: Path, script: str, shown: str) -> None:
    assert matches(run(folder, ["python", "-c", script]), shown)


@pytest.mark.parametrize("command", re.findall(r"^swsdask score .*$", README, re.MULTILINE))
def test_other_commands(folder: Path, command: str) -> None:
    run(folder, command.split())


def test_first_screen() -> None:
    assert len(CONSOLES) == 10
    first = README.splitlines()[:24]
    assert any(line.startswith("make demo") for line in first)
    assert any(line.startswith("make test") for line in first)
