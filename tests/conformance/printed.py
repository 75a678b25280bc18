"""The official tools' printed reports, read back: cells as they were printed."""

from __future__ import annotations

import re
from pathlib import Path


def rows(text: str) -> list[list[str]]:
    """The cells of every line of a report that is a table row."""
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines() if "|" in line]


def kwseval_summary(text: str) -> list[str]:
    """The one row of KWSEval's summary report: title and number of keywords first.

    The report leaves out the number where it is one.
    """
    header, row = (
        next(row for row in rows(text) if row[0] in first) for first in (["Title"], ["Occurrence", "Segment"])
    )
    return row if "#Keyword" in header else [row[0], "1", *row[1:]]


def kwseval_conditions(text: str) -> dict[str, list[str]]:
    """KWSEval's conditional summary report: a condition to its cells from the number of keywords on."""
    table = rows(text)
    header = next(row for row in table if row[0] == "Title")
    first = header.index("#Keyword")
    below = table[table.index(header) + 1 :]
    return {row[0]: row[first:] for row in below if len(row) == len(header)}


def kwseval_queries(text: str) -> dict[str, list[str]]:
    """KWSEval's block summary report: a query id to its cells after the text."""
    found = {}
    for row in rows(text):
        match = re.fullmatch(r"(?:Keyword\s+)?(\S+)", row[0])
        if match and len(row) > 5 and match[1] not in ("Text", "Means", "TWV", "Title", "Occurrence", "Segment"):
            found[match[1]] = row[2:]
    return found


def stdeval_queries(path: Path) -> dict[str, list[str]]:
    """STDEval's report: a query id to the cells of its last (ALL) block: Ref Corr FA Miss Value P(FA) P(Mis)."""
    found = {}
    for row in rows(path.read_text()):
        if len(row) == 3 and row[0] and row[2] and row[2].split()[0].isdigit():
            found[row[0].split()[0]] = row[2].split()
    return {query: cells for query, cells in found.items() if query not in ("Totals,", "Means", "Number", "Total")}


def stdeval_report(text: str) -> dict[tuple[str, str], list[str]]:
    """STDEval's report: a block (ALL or a source type) and a term's id, "Totals", "Means" or "maximum", to cells.

    Cells of terms, totals and means: Ref Corr FA Miss Value P(FA) P(Mis); of the maximum: its value, the actual value,
    P(FA), P(Miss), score. A maximum that is not printed is not there.
    """
    found: dict[tuple[str, str], list[str]] = {}
    blocks: list[str] = []
    for row in rows(text):
        if row[0].endswith("Search"):
            blocks = row[1:]
        elif len(row) == 4 and row[0] in blocks and row[1] != "N/A":
            found[row[0], "maximum"] = [row[1], row[2], *row[3].split()]
        elif len(row) == len(blocks) + 1 and all(len(cell.split()) == 7 for cell in row[1:]):
            title = row[0].split()[0].rstrip(",")
            found |= {(block, title): cell.split() for block, cell in zip(blocks, row[1:], strict=True)}
    return {key: cells for key, cells in found.items() if key[1] != "TermID"}


def as_printed(value: float, printed: str) -> str:
    """`value` with as many decimals as `printed` has."""
    decimals = len(printed.partition(".")[2])
    return f"{value:.{decimals}f}"
