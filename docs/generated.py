"""Pages of the site that follow from the package: measures, settings, presets, commands; and files that it shares.

A hook of MkDocs. The pages are made when the site is built, and are not stored.
"""

from __future__ import annotations

import re
import sys
from ast import get_docstring, parse
from collections.abc import Iterator
from html import escape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from formulas import mathml

import swsdask as sws
from swsdask.api.catalogue import SettingDescription, families
from swsdask.model.layers import COMPAT_IMPLIES, conf_directory, preset_names
from swsdask.model.measures import Description

ROOT = Path(__file__).resolve().parents[1]
DIRECTION = {1: "higher", -1: "lower", 0: "neither"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for path, text in pages():
        files.append(File.generated(config, path, content=text))
    return files


def pages() -> Iterator[tuple[str, str]]:
    """The path and the Markdown of each generated page."""
    yield from _measures()
    yield from _settings()
    yield "presets.md", "\n\n".join(["# Presets", _PRESETS, *map(_preset, preset_names())])
    yield "commands.md", "\n\n".join(_commands())
    yield "clusters.md", "\n\n".join(_cluster_files())
    yield "nightly-file.md", "\n\n".join([_NIGHTLY_FILE, _fenced(conf_directory() / "nightly" / "example.toml")])
    for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY"):
        text = (ROOT / f"{name}.md").read_text(encoding="utf-8")
        yield f"{name.lower()}.md", text.replace("](docs/", "](")
    yield "performance.md", _performance()


_MEASURES = """# Measures

Each page has the formula, its source, the official tools that print the measure, and the definition, which is the
docstring of the module that computes it. `swsdask measures NAME` prints the same in a terminal. A name that ends in `@`
takes a point: `twv@0.5`.

"Document" is the measures document of MediaEval's Spoken Web Search 2013. QUIRK marks rules that apply under `compat`.
"""

_PRESETS = """`--preset NAME` takes one of these settings files; several are joined by commas, and later ones win. The
[settings](settings/index.md) have a column for each. `--settings FILE` reads a file of your own, of the same form."""


_NIGHTLY_FILE = """# Nightly files

The file that [`swsdask nightly`](tutorials/nightly.md) reads, with every key. `swsdask nightly --example` prints it."""


def _cluster_files() -> Iterator[str]:
    yield "# Cluster files"
    for module, heading in (("open", ""), ("slurm", "## SLURM")):
        text = (ROOT / "swsdask" / "execution" / f"{module}.py").read_text(encoding="utf-8")
        _, _, keys = (get_docstring(parse(text)) or "").partition("\n\n")  # The first line is about the module.
        yield f"{heading}\n\n{_docstring(keys)}"
    for file in sorted((conf_directory() / "cluster").glob("*.toml")):
        yield f"## conf/cluster/{file.name}\n\n{_fenced(file)}"


def _fenced(file: Path) -> str:
    return f"```toml\n{file.read_text(encoding='utf-8')}```"


def _measures() -> Iterator[tuple[str, str]]:
    index = [_MEASURES]
    for family in families():
        (definition,) = {sws.define_measure(row.name) for row in family}
        index.append(f"## {_heading(definition)}\n\n| measure | | better |\n|---|---|---|")
        index[-1] += "".join(
            f"\n| [`{row.name}`]({_file(row)}) | {_prose(row.title)} | {DIRECTION[row.better]} |" for row in family
        )
        for row in family:
            yield f"measures/{_file(row)}", _measure(row, family, definition)
    yield "measures/index.md", "\n\n".join(index)


def _heading(definition: str) -> str:
    return _prose(re.split(r"[.:]\s", definition.replace("\n", " "), maxsplit=1)[0].rstrip("."))


def _file(row: Description) -> str:
    return f"{row.name.replace('@', '_at')}.md"


def _measure(row: Description, family: tuple[Description, ...], definition: str) -> str:
    facts = [
        ("Heading", _prose(row.heading)),
        ("Better", DIRECTION[row.better]),
        ("Values", row.span and _interval(row.span)),
        ("Source", row.source),
        ("Printed by", row.printed.replace("; ", "<br>")),
        ("Beside it", ", ".join(f"[`{other.name}`]({_file(other)})" for other in family if other != row)),
    ]
    parts = [
        f"# {_prose(row.name)}\n\n{_prose(row.title)}.",
        _formula(row.formula) if row.formula else "",
        "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in facts if value),
        f"## Definition\n\n{_docstring(definition)}",
    ]
    return "\n\n".join(part for part in parts if part)


def _interval(span: str) -> str:
    low, _, high = (part.strip() for part in span.partition(".."))
    return f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"


def _formula(text: str) -> str:
    return f'<div class="formula">{mathml(text)}</div>'


def _docstring(text: str) -> str:
    """Plain text as Markdown: indented lines are formulas, names with an underscore have an index."""
    blocks = re.split(r"\n\n+", text)
    return "\n\n".join(
        _formula(" ".join(block.split()))
        if len(lines := block.split("\n")) == 1 and lines[0].startswith("    ")
        else "\n\n".join(_formula(line.strip().rstrip(",")) for line in block.split("\n"))
        if block.startswith("    ")
        else _prose(block)
        for block in blocks
    )


def _prose(text: str) -> str:
    """Text outside backticks: indices typeset, and nothing that Markdown or HTML would take for its own."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else _indexed(part) for part in parts)


_INDEXED = re.compile(r"\b([A-Za-z]{1,4}|flat|goldclus)_([A-Za-z0-9]+|\([^()]*\))")


def _indexed(text: str) -> str:
    def index(found: re.Match[str]) -> str:
        below = found[2].strip("()")
        return f"<i>{found[1]}</i><sub>{below}</sub>"

    plain = re.sub(r"([*_|\\])", lambda sign: f"&#{ord(sign[1])};", escape(text, quote=False))
    plain = re.sub(r"(?m)^(\s*)- ", r"\1- ", plain)
    return _INDEXED.sub(index, plain.replace("&#95;", "_")).replace("_", "&#95;")


def _settings() -> Iterator[tuple[str, str]]:
    by_table: dict[str, list[SettingDescription]] = {}
    for each in sws.list_settings():
        by_table.setdefault(each.setting.rpartition(".")[0], []).append(each)
    index = ["# Settings", _SETTINGS]
    for table, settings in by_table.items():
        yield f"settings/{table}.md", "\n\n".join(_table(table, settings))
        rows = [
            f"| [`{_last(each)}`]({table}.md#{_last(each)}) | {each.meaning} | {_code(each.default)} |"
            for each in settings
        ]
        index.append(f"## [{table}]({table}.md)\n\n| setting | meaning | default |\n|---|---|---|\n" + "\n".join(rows))
    yield "settings/index.md", "\n\n".join(index)


_SETTINGS = """A setting comes from its default, `--preset`, `--compat`, `--settings FILE` and `--set KEY=VALUE`; later
ones win. An archive keeps the settings that it was made with. Settings that can change a number are in `[evaluation]`
or `[discovery]` and in the signature; `[engine]` says how the work runs and never changes a number. `swsdask settings
NAME` prints the same in a terminal."""


def _last(each: SettingDescription) -> str:
    return each.setting.rpartition(".")[2]


def _code(value: str) -> str:
    return f"`{value}`" if value else ""


def _table(table: str, settings: list[SettingDescription]) -> Iterator[str]:
    yield f"# {table}"
    layers = [name for name in preset_names() if any(name in each.presets for each in settings)]
    tools = [tool for tool in COMPAT_IMPLIES if any(_implied(tool, each) for each in settings)]
    if layers or tools:
        head = ["setting", "default", *(f"compat {tool}" for tool in tools), *layers]
        rows = [
            [
                f"[`{_last(each)}`](#{_last(each)})",
                _code(each.default),
                *(_code(_implied(tool, each)) for tool in tools),
                *(_code(each.presets.get(name, "")) for name in layers),
            ]
            for each in settings
        ]
        lines = [f"| {' | '.join(cells)} |" for cells in [head, ["---"] * len(head), *rows]]
        yield "Values that presets and `--compat` set; empty where they keep the default.\n\n" + "\n".join(lines)
    for each in settings:
        yield f"## {_last(each)}\n\n`{each.setting}`: {each.meaning}\n\nValues: `{each.type}`. " + (
            f"Default: `{each.default}`." if each.default else "Not set by default."
        )


def _implied(tool: str, each: SettingDescription) -> str:
    value: object = {"evaluation": COMPAT_IMPLIES[tool]}
    for part in each.setting.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return "" if value is None else f'"{value}"'


def _preset(name: str) -> str:
    return f"## {name}\n\n```toml\n{(conf_directory() / f'{name}.toml').read_text(encoding='utf-8')}```"


def _commands() -> Iterator[str]:
    import click

    from swsdask.cli import cli

    yield "# Commands\n\nThis page has the output of `swsdask COMMAND --help`."
    top = click.Context(cli, info_name="swsdask")
    for name in cli.list_commands(top):
        command = cli.get_command(top, name)
        if command is not None:
            yield f"## {name}"
            yield from _help(command, click.Context(command, parent=top, info_name=name))


def _help(command: object, context: object) -> Iterator[str]:
    import click

    if isinstance(command, click.Command) and isinstance(context, click.Context):
        yield f"```text\n{command.get_help(context)}\n```"
        if isinstance(command, click.Group):
            for name, below in command.commands.items():
                yield from _help(below, click.Context(below, parent=context, info_name=name))


def _performance() -> str:
    results = (ROOT / "tests/bench/RESULTS.md").read_text(encoding="utf-8")
    return (Path(__file__).parent / "performance.txt").read_text(encoding="utf-8") + results.partition("\n")[2]
