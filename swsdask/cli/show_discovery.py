"""`swsdask show` of an archive of term discovery."""

from __future__ import annotations

import sys

import click
import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import Console
from rich.table import Table

from swsdask.archive.discovery import open_discovery
from swsdask.model.layers import KEPT_NONE
from swsdask.model.ticks import TICKS_PER_SECOND
from swsdask.model.wording import counted


def show_discovery(url: str, version: int | None) -> None:
    """Print what an archive holds: its corpus, and its systems as they were read, whatever a definition drops."""
    archive = open_discovery(url, version)
    tables = archive.tables
    phones, words = tables.phones, tables.words
    click.echo(f"{url}, version {archive.version}, of term discovery")
    kept = {} if archive.kept is None else archive.kept.settings().discovery.told()
    click.echo(f"  settings: {' '.join(f'{name}={value}' for name, value in kept.items()) or KEPT_NONE}")
    click.echo(
        f"  {counted(_distinct(phones, 'file'), 'files')}, {counted(len(phones), 'phones')} "
        f"({counted(_distinct(phones, 'label'), 'labels')}) in {_hours(phones)}, "
        f"{counted(len(words), 'words')} ({counted(_distinct(words, 'label'), 'labels')})"
    )
    if tables.split is not None:
        click.echo(f"  split: {counted(len(tables.split), 'stretches')} of speech, {_hours(tables.split)}")
    for role, folds in (("folds", tables.folds), ("within", tables.within)):
        if folds is not None:
            stretches = f"{counted(len(folds), 'stretches')}, {_hours(folds)}"
            click.echo(f"  {role}: {counted(_distinct(folds, 'fold'), 'folds')} of {stretches}")
    if tables.speakers is not None:
        of = counted(len(tables.speakers), "files")
        click.echo(f"  speakers: {counted(_distinct(tables.speakers, 'speaker'), 'speakers')} of {of}")
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for heading in ("System", "Classes", "Fragments", "Content", "Read from"):
        shown.add_column(heading, justify="right" if heading in ("Classes", "Fragments") else "left")
    for each in archive.systems:
        shown.add_row(each.system, f"{each.n_classes:,}", f"{each.n_fragments:,}", each.content, each.read_from)
    width = None if sys.stdout.isatty() else 160
    Console(width=width, highlight=False, markup=False).print(shown)


def _distinct(table: pa.Table, column: str) -> int:
    return int(pc.count_distinct(table[column].cast(pa.string())).as_py())


def _hours(table: pa.Table) -> str:
    ticks = pc.sum(pc.subtract(table["end"].cast(pa.int64()), table["start"].cast(pa.int64()))).as_py() or 0
    return f"{ticks / TICKS_PER_SECOND / 3600:.2f} h"
