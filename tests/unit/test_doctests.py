"""The docstrings of public names: NumPy's sections, every parameter, and examples that run."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

import pytest

import swsdask as sws
from swsdask.cli import main

NAMES = [name for name in sws.__all__ if inspect.isclass(getattr(sws, name)) or inspect.isfunction(getattr(sws, name))]
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(sws, name))]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo and the corpus that examples name."""
    made = tmp_path_factory.mktemp("examples")
    main(["demo", "--out", str(made / "demo"), "--hours", "1", "--queries", "20"])
    main(["simulate", "discovery", "--out", str(made / "corpus"), "--phones", "2000"])
    return made


def sections(docstring: str) -> dict[str, str]:
    """The text of each section by its heading; the summary and what follows it has none."""
    parts = re.split(r"^(\w+)\n-+\n", docstring, flags=re.MULTILINE)
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


@pytest.mark.parametrize("name", ["", *NAMES])
def test_examples_run(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    shown = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=shown)
    described = getattr(sws, name) if name else sws
    for example in doctest.DocTestFinder().find(described, name or "swsdask"):
        failures: list[str] = []
        runner.run(example, out=failures.append)
        assert not failures, "".join(failures)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_describe_every_parameter_and_show_an_example(name: str) -> None:
    function = getattr(sws, name)
    found = sections(inspect.getdoc(function) or "")
    described = re.findall(r"^(\w+(?:, \w+)*) : ", found.get("Parameters", ""), re.MULTILINE)
    assert [each for line in described for each in line.split(", ")] == list(inspect.signature(function).parameters)
    assert re.fullmatch(r".+\.\n(\n.*)?", found[""], re.DOTALL)
    assert ">>> " in found["Examples"]
    returns = function.__annotations__["return"]
    assert ("Returns" in found or "Yields" in found) == (returns != "None")


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_described(name: str) -> None:
    summary = (inspect.getdoc(getattr(sws, name)) or "").split("\n")[0]
    assert summary.endswith(".")
