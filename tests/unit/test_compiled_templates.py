"""Compiled templates are kept, and used only where they are what would be compiled."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment

from swsdask.render import compiled
from swsdask.render.compiled import Compiled
from swsdask.render.environment import TEMPLATES, compile_templates, environment


def rendered(kept: Path, source: str) -> str:
    made = Environment(loader=DictLoader({"a.j2": source}), autoescape=True, bytecode_cache=Compiled(kept))
    return made.get_template("a.j2").render(x=1)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources that were compiled."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    found: list[str] = []
    generate = Environment._generate

    def counted(self: Environment, *arguments: object, **named: object) -> str:
        found.append("one")
        return generate(self, *arguments, **named)

    monkeypatch.setattr(Environment, "_generate", counted)
    return found


def test_a_template_is_compiled_once(tmp_path: Path, compilations: list[str]) -> None:
    kept = tmp_path / "kept"
    assert [rendered(kept, "{{ x }}a") for _ in range(3)] == ["1a"] * 3
    assert len(compilations) == 1
    assert [path.name for path in kept.iterdir()] == [f"a.j2.{sys.implementation.cache_tag}.pyc"]
    assert rendered(kept, "{{ x }}b") == "1b"
    assert len(compilations) == 2


def test_what_is_damaged_or_of_another_release_is_compiled_again(
    tmp_path: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered(tmp_path, "{{ x }}a")
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for number, damaged in enumerate((b"", whole[:-1], whole[:40] + b"\xff" + whole[41:], b"\xff" + whole[1:]), 2):
        file.write_bytes(damaged)
        assert rendered(tmp_path, "{{ x }}a") == "1a"
        assert len(compilations) == number
        assert file.read_bytes() == whole
    monkeypatch.setattr(compiled, "version", lambda _: "99")
    assert rendered(tmp_path, "{{ x }}a") == "1a"
    assert len(compilations) == 6


def test_where_nothing_can_be_kept_it_is_compiled_each_time(
    tmp_path: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a file").touch()
    assert [rendered(tmp_path / "a file", "{{ x }}a") for _ in range(2)] == ["1a"] * 2
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert rendered(tmp_path / "kept", "{{ x }}a") == "1a"
    assert len(compilations) == 3
    assert not (tmp_path / "kept").exists()


def test_every_template_is_compiled_ahead(tmp_path: Path, compilations: list[str]) -> None:
    made = environment()
    made.bytecode_cache, before = Compiled(tmp_path), made.bytecode_cache
    try:
        assert made.cache is not None
        made.cache.clear()
        compile_templates()
    finally:
        made.bytecode_cache = before
    names = {path.name for path in TEMPLATES.glob("*.j2")}
    assert {path.name for path in tmp_path.iterdir()} == {
        f"{each}.{sys.implementation.cache_tag}.pyc" for each in names
    }
    assert len(compilations) == len(names)
