"""The documentation's tables of differences from the official tools name settings that exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import click
import pytest

from swsdask.cli import cli
from swsdask.cli.options import settings_of_options
from swsdask.model.discovery import DiscoverySettings
from swsdask.model.layers import build_settings, load_preset
from swsdask.model.settings import Compat

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "differences.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith("| tool |")]
COMMANDS = [command for row in ROWS for command in re.findall(r"`([^`]*--[^`]*)`", row.rpartition(" | ")[2])]


def option(command: str, name: str) -> str | None:
    found = re.search(rf"--{name} (\S+)", command)
    return found and found[1]


def test_the_tables_have_rows() -> None:
    assert len(ROWS) >= 25
    assert len(COMMANDS) >= 20


@pytest.mark.parametrize("command", [command for command in COMMANDS if re.search("--(preset|compat|set)", command)])
def test_its_settings_exist(command: str) -> None:
    assignments = tuple(re.findall(r"--set (\S+)", command))
    if command.startswith("discover "):
        DiscoverySettings(**dict(assignment.split("=") for assignment in assignments))
        return
    preset = option(command, "preset")
    explicit = settings_of_options(None, assignments)
    settings = build_settings(load_preset(preset) if preset else None, option(command, "compat"), explicit)
    assert settings.evaluation.compat == option(command, "compat") or "--compat" not in command


@pytest.mark.parametrize("command", COMMANDS)
def test_its_options_exist(command: str) -> None:
    name = "discover" if command.startswith("discover ") else "score"
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    known = {option for parameter in found.params for option in parameter.opts}
    assert set(re.findall(r"--[a-z-]+", command)) <= known


TOOLS = (*get_args(Compat)[1:], "trec", "trec10", "kws-assessment", "simplekwseval", "tde2015", "tdev2")


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_a_row(tool: str) -> None:
    assert any(re.search(rf"(?<![\w-]){tool}(?![\w-])", row.rpartition(" | ")[2]) for row in ROWS)
