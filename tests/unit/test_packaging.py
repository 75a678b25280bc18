"""What is packed, and what it says of itself."""

from __future__ import annotations

import tomllib
from pathlib import Path

import swsdask

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_the_source_distribution_has_all_that_the_tests_and_their_commands_read() -> None:
    packed = PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert {path for path in packed if not (ROOT / path).exists()} == set()
    read = {"swsdask", "conf", "tests", "docs", "examples", "deploy", ".ci", "mkdocs.yml", "Makefile"}
    assert {*read, "LICENSE", "CITATION.cff"} <= set(packed)
    assert {path.name for path in ROOT.glob("*.md")} <= set(packed)


def test_one_version() -> None:
    assert PROJECT["project"]["version"] == swsdask.__version__
    assert f"\nversion: {swsdask.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_types_and_licence_are_packed() -> None:
    assert (Path(swsdask.__file__).parent / "py.typed").is_file()
    assert "Apache License" in (ROOT / "LICENSE").read_text()
    assert PROJECT["project"]["license"] == "Apache-2.0"
