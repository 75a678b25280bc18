"""`swsdask measures`."""

from __future__ import annotations

import click


@click.command(short_help="List the measures, or define one.")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the measures, or print the definition of one: formula, source, and how official tools differ."""
    from swsdask.api.catalogue import define_measure, describe_measure, families

    if name is None:
        for number, family in enumerate(families()):
            click.echo("\n" if number else "", nl=False)
            for row in family:
                click.echo(f"{row.name:26} {row.title}")
        return
    row = describe_measure(name.lower())
    direction = {1: "higher is better", -1: "lower is better", 0: ""}[row.better]
    click.echo(f"{row.name}: {row.title}")
    click.echo("; ".join(each for each in (f"heading {row.heading}", direction, row.source) if each))
    click.echo(f"\n{define_measure(row.name)}")
