"""`swsdask measures`, `settings`, `presets`, `completion` and `warm-up`: the contents and the set-up of swsdask."""

from __future__ import annotations

import click

from swsdask.cli import cli


@click.command("measures")
@click.argument("name", required=False)
def measures(name: str | None) -> None:
    """List the measures, or print the definition of one: formula, source, and how official tools differ."""
    from swsdask.api.catalogue import define_measure, describe_measure, families
    from swsdask.measures.names import measure_name

    if name is None:
        for number, family in enumerate(families()):
            click.echo("\n" if number else "", nl=False)
            for row in family:
                click.echo(f"{row.name:26} {row.title}")
        return
    row = describe_measure(measure_name(name))
    direction = {1: "higher is better", -1: "lower is better", 0: ""}[row.better]
    click.echo(f"{row.name}: {row.title}")
    span = row.span and f"values {row.span}"
    click.echo("; ".join(each for each in (f"heading {row.heading}", direction, span, row.source) if each))
    for label, text in (("Formula", row.formula), ("Printed by", row.printed)):
        if text:
            click.echo(f"{label}: {text}")
    click.echo(f"\n{define_measure(row.name)}")


@click.command("settings")
@click.argument("name", required=False)
def settings(name: str | None) -> None:
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


@click.command("presets")
@click.argument("name", required=False)
def presets(name: str | None) -> None:
    """List the presets, or print the settings file of one."""
    from swsdask.model.layers import conf_directory, load_preset, preset_names

    if name is not None:
        load_preset(name)
        for each in name.split(","):
            click.echo((conf_directory() / f"{each}.toml").read_text(encoding="utf-8"), nl=False)
        return
    for preset in preset_names():
        about = (conf_directory() / f"{preset}.toml").read_text(encoding="utf-8").partition("\n")[0]
        click.echo(f"{preset:26} {about.removeprefix('# ')}")


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands, options and presets, for `eval "$(swsdask completion bash)"`."""
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "swsdask", "_SWSDASK_COMPLETE").source())


@click.command("warm-up")
def warm_up() -> None:
    """Compile kernels and templates, and print the folder of the kernels. Existing ones are not compiled again.

    Use it for container images and shared environments: other users find everything compiled, even without permission
    to write. If several calls run at once, one compiles, and the others wait for it.
    """
    from swsdask.kernels.compilation import load_kernels
    from swsdask.render.environment import compile_templates

    click.echo(load_kernels())
    compile_templates()
