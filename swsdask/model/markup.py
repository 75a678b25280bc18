"""Tables for papers and notebooks: Markdown, LaTeX and HTML. The first row is the heading, the first column names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Markup:
    """A language of markup: how it writes any text (`plain`), how it emphasises, and a table of texts so written."""

    plain: Callable[[str], str]
    bold: Callable[[str], str]
    table: Callable[[Rows, str], str]


_LATEX = str.maketrans(
    {each: "\\" + each for each in "&%$#_{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
)

_SIGNS = re.compile(r"[\\`*~<&|\[]|(?<![^\W_])_|_(?![^\W_])")
"""What Markdown takes for a sign; a _ between letters is none."""


def _in_markdown(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", text)


def _in_latex(text: str) -> str:
    """Return the text for a table; a [ at its beginning would be an argument of the row's end before it."""
    return re.sub(r"^\[", "{[}", text.translate(_LATEX))


def _markdown_table(rows: Rows, caption: str) -> str:
    heading, *lines = rows
    rule = ["---", *["---:"] * (len(heading) - 1)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in (heading, rule, *lines))
    return f"**{caption}**\n\n{table}" if caption else table


def _latex_table(rows: Rows, caption: str) -> str:
    heading, *lines = (" & ".join(row) + r" \\" for row in rows)
    begin = [rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}", r"\toprule", heading, r"\midrule"]
    table = "\n".join([*begin, *lines, r"\bottomrule", r"\end{tabular}"])
    return f"% {caption}\n{table}" if caption else table


def _html_table(rows: Rows, caption: str) -> str:
    heading, *lines = rows
    cells = ["".join(f"<th>{text}</th>" for text in heading)]
    cells += [f"<th>{line[0]}</th>" + "".join(f"<td>{text}</td>" for text in line[1:]) for line in lines]
    titled = f"<caption>{caption}</caption>" if caption else ""
    return f"<table>{titled}{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


MARKDOWN = Markup(_in_markdown, "**{}**".format, _markdown_table)

LATEX = Markup(_in_latex, r"\textbf{{{}}}".format, _latex_table)
"""The table needs the package booktabs."""

HTML = Markup(escape, "<b>{}</b>".format, _html_table)
