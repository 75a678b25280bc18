"""The notebooks of `examples` run, and show what is stored in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.notebooks import NOTEBOOKS, Output, code_cells, load, outputs


def said(found: Iterable[Output]) -> list[str]:
    """What is printed, and the tables that a result shows; not DataFrames, whose look is pandas'."""
    shown = []
    for output in found:
        if output["output_type"] == "stream":
            shown += output["text"]
        elif any(text.startswith("<Result") for text in output["data"]["text/plain"]):
            shown += output["data"]["text/html"]
    return [re.sub(r"\b[0-9a-f]{16}\b", "HASH", text) for text in shown]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_notebook_shows_what_is_stored_in_it(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = load(notebook)
    for cell, found in zip(code_cells(content), outputs(content), strict=True):
        stored = cell["outputs"]
        assert [output["output_type"] for output in found] == [output["output_type"] for output in stored]
        assert said(found) == said(stored)


def test_two_dataframes_become_a_table_and_a_figure_in_ten_cells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notebook,) = (each for each in NOTEBOOKS if each.stem == "two_dataframes")
    stored = [output for cell in code_cells(load(notebook)) for output in cell["outputs"]]
    assert len(code_cells(load(notebook))) == 10
    assert any("\\toprule\n" in output.get("text", ()) for output in stored)
    assert any("image/png" in output.get("data", ()) for output in stored)
