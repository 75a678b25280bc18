"""Notebooks run cell by cell as Jupyter runs them, without its server.

A cell's outputs are what it prints, its last expression (as `_repr_html_` where it has one), and the figures that it
leaves open. ``python -m tests.notebooks`` runs the notebooks of `examples/` and stores their outputs in them.
"""

from __future__ import annotations

import ast
import json
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib import pyplot

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))

Output = dict[str, Any]


def load(notebook: Path) -> dict[str, Any]:
    """The notebook as its JSON says."""
    content: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    return content


def code_cells(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells with code."""
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def outputs(content: dict[str, Any]) -> Iterator[list[Output]]:
    """Run the cells, one after the other in one namespace, and yield what Jupyter would show below each."""
    matplotlib.use("agg")
    pyplot.close("all")
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(code_cells(content), 1):
        body = ast.parse("".join(cell["source"]), f"cell {number}")
        last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
        printed, value = StringIO(), None
        with redirect_stdout(printed):
            exec(compile(body, f"cell {number}", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
        shown = [{"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())}]
        yield [
            *(shown if printed.getvalue() else []),
            *([] if value is None else [_result(value, number)]),
            *_figures(),
        ]


def lines(text: str) -> list[str]:
    """Text as notebooks store it."""
    return text.splitlines(keepends=True)


def _result(value: Any, number: int) -> Output:
    data = {"text/plain": lines(repr(value))}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = lines(value._repr_html_())
    return {"output_type": "execute_result", "execution_count": number, "metadata": {}, "data": data}


def _figures() -> Iterator[Output]:
    for number in pyplot.get_fignums():
        image = BytesIO()
        pyplot.figure(number).savefig(image, format="png", dpi=72, metadata={"Software": None})
        data = {"image/png": b64encode(image.getvalue()).decode(), "text/plain": ["<Figure>"]}
        yield {"output_type": "display_data", "metadata": {}, "data": data}
    pyplot.close("all")


def renew(notebook: Path) -> None:
    """Run a notebook in an empty folder, and store its outputs in it."""
    content = load(notebook)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for number, (cell, found) in enumerate(zip(code_cells(content), outputs(content), strict=True), 1):
            cell["execution_count"], cell["outputs"] = number, found
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in NOTEBOOKS:
        renew(each)
