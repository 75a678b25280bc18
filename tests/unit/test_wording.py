"""Sentences of the package: numbers of things, and words that are not used because a plainer one says it."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import swsdask
from swsdask.model.wording import counted


@pytest.mark.parametrize(
    ("number", "things", "form", "said"),
    [
        (0, "rows", ",", "0 rows"),
        (1, "rows", ",", "1 row"),
        (1234, "rows", ",", "1,234 rows"),
        (1, "queries without targets", ",", "1 query without targets"),
        (2, "queries without targets", ",", "2 queries without targets"),
        (1, "rounded times", ",", "1 rounded time"),
        (1, "records of other types", ",", "1 record of other types"),
        (1.0000001, "false alarms", ".6g", "1 false alarm"),
        (1.5, "seconds", "g", "1.5 seconds"),
        (1, "classes", ",", "1 class"),
        (2, "classes", ",", "2 classes"),
    ],
)
def test_one_thing_and_more(number: float, things: str, form: str, said: str) -> None:
    assert counted(number, things, form) == said


AVOIDED = {
    r"[Tt]old": "reported, said",
    r"[Tt]ells? (apart|what|how|which|whether|where|by)": "distinguish, say",
    r"[Aa]sk(s|ed)? for": "requested",
    r"[Hh]eed\w*": "handled",
    r"[Mm]end(s|ed)?": "correct",
    r"[Ll]et go of": "release",
    r"[Bb]ecomes of": "how ... is treated",
    r"stands? (in|at|behind|there|for|beside)": "is in, represents",
}


PACKAGE, TESTS = Path(swsdask.__file__).parent, Path(__file__).parents[1]


def texts(root: Path = PACKAGE, *, kernels: bool = False) -> Iterator[tuple[str, int, str]]:
    """The comments and strings of the package, if requested those of kernels too: file, line and text.

    Of tests (another root) also their names, as words.
    """
    kinds = {tokenize.STRING, tokenize.COMMENT, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for file in sorted(root.rglob("*.py")):
        if kernels or file.parent.name != "kernels":
            with file.open() as source:
                for token in tokenize.generate_tokens(source.readline):
                    if token.type in kinds:
                        yield file.relative_to(root).as_posix(), token.start[0], token.string
                    elif root is TESTS and token.string.startswith("test_"):
                        yield file.relative_to(root).as_posix(), token.start[0], token.string.replace("_", " ")


@pytest.mark.parametrize("root", [PACKAGE, TESTS], ids=["package", "tests"])
def test_plain_words_are_used(root: Path) -> None:
    words = re.compile("|".join(rf"(?<![\w{{_.]){word}\b" for word in AVOIDED))
    found = [
        (file, line, match.group())
        for file, line, text in texts(root, kernels=True)
        if file != "unit/test_wording.py"  # it has the words themselves
        for match in words.finditer(text)
    ]
    assert not found, f"use other words ({AVOIDED}): {found}"


def test_docstrings_name_what_they_describe() -> None:
    """They begin as "The number of rows" or "Return the rows", not with the question that they answer."""
    questions = re.compile(r'r?"""(What|Which|Who|Whose|How|Where|When|Those|As)\b')
    found = [(file, line, text[:60]) for file, line, text in texts(kernels=True) if questions.match(text)]
    assert found == []


def test_each_class_has_a_name_of_its_own() -> None:
    """One concept, one class; another concept, another name."""
    root = Path(swsdask.__file__).parent
    modules: dict[str, list[str]] = {}
    for file in sorted(root.rglob("*.py")):
        for statement in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(statement, ast.ClassDef):
                modules.setdefault(statement.name, []).append(file.relative_to(root).as_posix())
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def test_modules_that_texts_name_exist() -> None:
    """`measures.twv`, `archive.protocols.Archive`: a package, a module, and perhaps a name that the module has."""
    root = Path(swsdask.__file__).parent
    documents = [Path(__file__).parents[2] / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")]
    packages = {path.name for path in root.iterdir() if (path / "__init__.py").exists()}
    missing = []
    for file in (*root.rglob("*.py"), *documents):
        for name in re.findall(r"`(?:swsdask\.)?([a-z_]+(?:\.\w+)+)`", file.read_text(encoding="utf-8")):
            package, module, *rest = name.split(".")
            if package not in packages or f".{module}" in (".parquet", ".json", ".csv"):
                continue
            while rest and (root / package / module).is_dir():
                package, module = f"{package}/{module}", rest.pop(0)
            found = next(
                (p for p in (root / package / f"{module}.py", root / package / module / "__init__.py") if p.exists()),
                None,
            )
            if found is None or (rest and not re.search(rf"\b{rest[0]}\b", found.read_text(encoding="utf-8"))):
                missing.append((file.name, name))
    assert missing == []
