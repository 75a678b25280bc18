"""`swsdask settings`."""

from __future__ import annotations

import click


@click.command(short_help="List the settings, or explain some.")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the settings with their defaults, or explain those whose names begin with NAME, such as evaluation.gap."""
    import swsdask as sws

    if name is None:
        for setting in sws.list_settings():
            click.echo(f"{setting.setting:48} {setting.default or '-'}")
        return
    for number, setting in enumerate(sws.list_settings(name)):
        click.echo("\n" if number else "", nl=False)
        click.echo(f"{setting.setting} = {setting.default or '(not set)'}")
        click.echo(f"    {setting.meaning}")
        click.echo(f"    Values: {setting.type}")
        if setting.presets:
            by_value: dict[str, list[str]] = {}
            for preset, value in setting.presets.items():
                by_value.setdefault(value, []).append(preset)
            for value, presets in by_value.items():
                click.echo(f"    {value} in {', '.join(presets)}")
