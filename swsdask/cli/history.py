"""`swsdask history`."""

from __future__ import annotations

import click


@click.command(short_help="Print how the numbers of an archive moved, night by night.")
@click.argument("archive")
@click.argument("system", required=False)
@click.option("--measure", metavar="NAME", help="The measure (default: the one that ranks).")
@click.option("--condition", metavar="NAME", default="all", show_default=True, help="The condition.")
def command(archive: str, system: str | None, measure: str | None, condition: str) -> None:
    """Print the numbers of an ARCHIVE night by night: of all systems a line each, of one SYSTEM a table and a plot."""
    from swsdask.archive.storage import Storage
    from swsdask.model.errors import SettingsError
    from swsdask.nightly.history import read_history
    from swsdask.render.history import print_history, print_system

    past = read_history(Storage(archive))
    if not past.nights:
        raise SettingsError(f"{archive}: expected a history; found none. `swsdask nightly` makes one.")
    found = past.board()
    measure = (measure or next(iter(found.by), "")).lower()
    rows = past.rows_of(measure, condition)
    if not rows:
        raise SettingsError(
            f"{archive}: no night has {measure!r} in the condition {condition!r}. Measures: "
            f"{', '.join(found.measures)}. Conditions: {', '.join(found.conditions)}."
        )
    if system is None:
        print_history(rows, measure, len(past.nights))
        return
    own = [row for row in rows if row["system"] == system]
    if not own:
        raise SettingsError(f"{archive}: no night has {system!r}. Systems: {', '.join(found.systems)}.")
    print_system(own, measure, len(past.nights))
