"""Public names: one list, types that resolve, and every type of a signature among them."""

from __future__ import annotations

import ast
import builtins
import collections.abc
import inspect
import re
import typing
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import swsdask as sws

PUBLIC = [name for name in sws.__all__ if name != "__version__"]
FUNCTIONS = [name for name in PUBLIC if inspect.isfunction(getattr(sws, name))]


def functions(name: str) -> Iterator[Callable[..., Any]]:
    """A public function; or the methods and properties of a public class that are written in it, not generated."""
    public = getattr(sws, name)
    members = vars(public).values() if inspect.isclass(public) else [public]
    for member in members:
        behind = getattr(member, "fget", None) or getattr(member, "func", None) or inspect.unwrap(member)
        behind = getattr(behind, "__func__", behind)
        if inspect.isfunction(behind) and behind.__module__ == public.__module__:
            yield behind


@pytest.mark.parametrize("name", PUBLIC)
def test_types_resolve(name: str) -> None:
    if inspect.isclass(getattr(sws, name)):
        typing.get_type_hints(getattr(sws, name))
    for function in functions(name):
        assert typing.get_type_hints(function).keys() == function.__annotations__.keys()


def test_the_type_of_scores_is_that_of_pandas() -> None:
    import pandas as pd

    scores = sws.Result.scores
    assert isinstance(scores, property)
    assert typing.get_type_hints(scores.fget)["return"] is pd.DataFrame


@pytest.mark.parametrize("name", FUNCTIONS)
def test_types_of_signatures_are_public(name: str) -> None:
    elsewhere = {*dir(builtins), *dir(collections.abc), *dir(typing)}
    for annotation in getattr(sws, name).__annotations__.values():
        bare = re.sub(r"Literal\[[^]]*\]|\b(pd|os)\.\w+", "", annotation)
        assert set(re.findall(r"\w+", bare)) - elsewhere <= set(sws.__all__)


def test_every_name_is_listed_once_and_found() -> None:
    assert len(PUBLIC) == len(set(PUBLIC))
    assert set(dir(sws)) == {*PUBLIC, "__version__"}
    starred: dict[str, Any] = {}
    exec("from swsdask import *", starred)
    assert set(sws.__all__) <= starred.keys()
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        _ = sws.scores


def test_no_constant_of_a_module_is_bound_twice() -> None:
    """The later one would count in all functions, also in those that were written with the earlier in view."""
    twice = []
    for file in sorted(Path(sws.__file__).parent.rglob("*.py")):
        bound: Counter[str] = Counter()
        for statement in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                names = (each for target in targets for each in ast.walk(target) if isinstance(each, ast.Name))
                bound.update(each.id for each in names if isinstance(each.ctx, ast.Store))
        twice += [f"{file.name}: {name}" for name, count in bound.items() if count > 1]
    assert twice == []
