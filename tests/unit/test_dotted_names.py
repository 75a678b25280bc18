"""Dotted names in docstrings, comments and ARCHITECTURE.md are those of something that exists."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import swsdask
from swsdask.model.settings import Settings

ROOT = Path(__file__).parents[2]
CODE = sorted((ROOT / "swsdask").rglob("*.py"))
PAGES = [ROOT / "ARCHITECTURE.md"]
REFERENCE = re.compile(r"`([a-z_]\w*(?:\.\w+)+)`")
FILES = (
    "csv",
    "html",
    "json",
    "jsonl",
    "md",
    "parquet",
    "prom",
    "py",
    "pyi",
    "toml",
    "tsv",
    "txt",
    "xml",
    "yaml",
    "yml",
)


@cache
def modules() -> dict[str, set[str]]:
    """The modules of the package, without its name, and every name that each defines at any depth."""
    found = {"": set(dir(swsdask))}
    for path in CODE:
        name = ".".join(path.relative_to(ROOT / "swsdask").with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        imported = {
            each.asname or each.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for each in node.names
        }
        found[name.removesuffix(".__init__")] = defined | stored | imported
    return found


@cache
def settings() -> frozenset[str]:
    """The dotted names of all settings, and those that begin in one of their tables."""

    def names(table: object, prefix: str) -> Iterator[str]:
        for name in getattr(type(table), "model_fields", ()):
            yield f"{prefix}{name}"
            yield from names(getattr(table, name), f"{prefix}{name}.")

    every = set(names(Settings(), ""))
    return frozenset(every | {name.partition(".")[2] for name in every})


def text_of_code(path: Path) -> str:
    """The docstrings, and texts that stand as statements, and the comments of a file."""
    content = path.read_text(encoding="utf-8")
    stated = (node.value for node in ast.walk(ast.parse(content)) if isinstance(node, ast.Expr))
    texts = [node.value for node in stated if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    tokens = tokenize.generate_tokens(io.StringIO(content).readline)
    return "\n".join([*texts, *(token.string for token in tokens if token.type == tokenize.COMMENT)])


def is_there(name: str, code: str) -> bool:
    """Whether a dotted name is a file, a setting, one of this package or of another, or is read by the code itself."""
    first, _, _ = name.partition(".")
    parts = name.removeprefix("swsdask.").split(".")
    if parts[-1] in FILES or name in settings() or name in code.replace(f"`{name}`", ""):
        return True
    for length in range(len(parts), -1, -1):
        head, rest = ".".join(parts[:length]), parts[length:]
        for module, defined in modules().items():
            if (module == head or (head and module.endswith(f".{head}"))) and all(each in defined for each in rest):
                return True
    return first != "swsdask" and first not in {module.split(".")[0] for module in modules()} and bool(find_spec(first))


@pytest.mark.parametrize("path", [*CODE, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_a_dotted_name_is_that_of_something(path: Path) -> None:
    code = path.read_text(encoding="utf-8") if path.suffix == ".py" else ""
    text = text_of_code(path) if path.suffix == ".py" else path.read_text(encoding="utf-8")
    assert [name for name in dict.fromkeys(REFERENCE.findall(text)) if not is_there(name, code)] == []


def test_names_that_are_gone_are_found() -> None:
    assert not is_there("strata.class_layers", "")
    assert not is_there("measures.twv.class_layers_of_old", "")
    assert not is_there("swsdask.strata", "")
    assert is_there("statistics.counts.class_layers", "")
    assert is_there("evaluation.operating_point.alpha", "")
    assert is_there("operating_point.alpha", "")
