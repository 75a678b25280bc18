"""`swsdask presets`."""

from __future__ import annotations

import click


@click.command()
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """List the presets, or print the settings file of one."""
    from swsdask.model.settings import conf_directory, load_preset, preset_names

    if name is not None:
        load_preset(name)
        for each in name.split(","):
            click.echo((conf_directory() / f"{each}.toml").read_text(encoding="utf-8"), nl=False)
        return
    for preset in preset_names():
        about = (conf_directory() / f"{preset}.toml").read_text(encoding="utf-8").partition("\n")[0]
        click.echo(f"{preset:26} {about.removeprefix('# ')}")
