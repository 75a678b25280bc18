"""Tables of archives in a terminal: versions, runs, systems of term discovery, and the phases of a benchmark.

Each function prints one row for each record; the commands print the same records as csv and json.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from swsdask.model.tables import Row
from swsdask.render.console import standard_console, standard_table

_WIDTH, _WIDTH_OF_PHASES = 160, 80
"""Columns of a table if stdout is not a terminal."""


def print_versions(records: Iterable[Row]) -> None:
    """Print versions, with the numbers of systems that each has, added, replaced and removed."""
    headings = ("Version", "Committed (UTC)", "Systems", "Added", "Replaced", "Removed", "Settings changed")
    table = standard_table(headings, ("Committed (UTC)",))
    for version in records:
        changes = (version[name] for name in ("added", "replaced", "removed", "settings"))
        table.add_row(
            f"{version['version']}",
            f"{datetime.fromisoformat(version['committed']):%Y-%m-%d %H:%M:%S}",
            f"{version['systems']:,}",
            *("" if count is None else f"{count:,}" for count in changes),
        )
    standard_console(_WIDTH).print(table)


def print_runs(records: Iterable[Row]) -> None:
    """Print runs of detections, with counts of what was dropped or rounded."""
    headings = (
        "System",
        "Detections",
        "Decisions",
        "Scores",
        "Outside",
        "Unknown documents",
        "Unknown queries",
        "Rounded",
    )
    table = standard_table(headings, ("System",))
    for run in records:
        table.add_row(
            run["system"],
            f"{run['detections']:,}",
            "yes" if run["decisions"] else "no",
            f"{run['lowest']:g} .. {run['highest']:g}" if run["detections"] else "",
            f"{run['outside']:,}",
            f"{run['unknown_documents']:,}",
            f"{run['unknown_queries']:,}",
            f"{run['rounded']:,}",
        )
    standard_console(_WIDTH).print(table)


def print_discoverers(records: Iterable[Row]) -> None:
    """Print systems of term discovery, with their classes and fragments."""
    headings = ("System", "Classes", "Fragments", "Content", "Read from")
    table = standard_table(headings, ("System", "Content", "Read from"))
    for each in records:
        sizes = (f"{each[name]:,}" for name in ("n_classes", "n_fragments"))
        table.add_row(each["system"], *sizes, each["content"], each["read_from"])
    standard_console(_WIDTH).print(table)


def print_phases(records: Iterable[Row]) -> None:
    """Print the phases of a benchmark."""
    headings = ("Phase", "Where", "Rows", "Seconds", "CPU", "Rows/s", "x the read")
    table = standard_table(headings, ("Phase", "Where"))
    for phase in records:
        table.add_row(
            phase["phase"],
            "workers" if phase["workers"] else "here",
            f"{phase['rows']:,}" if phase["rows"] else "",
            f"{phase['seconds']:.3f}",
            f"{phase['cpu_seconds']:.3f}",
            f"{phase['rows_per_second']:,.0f}" if phase["rows"] else "",
            f"{phase['of_read']:.2f}",
        )
    standard_console(_WIDTH_OF_PHASES).print(table)
