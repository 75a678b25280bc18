"""`swsdask plot`."""

from __future__ import annotations

import click

from swsdask.api.writing import FIGURES


@click.command(short_help="Draw DET and other curves as SVG, PDF or PNG.")
@click.argument("results")
@click.argument("figure")
@click.option("--kind", type=click.Choice(FIGURES), default="det", show_default=True, help="What is drawn.")
@click.option("--systems", metavar="A,B", help="These systems, in this order; default: the first ten.")
@click.option("--condition", metavar="NAME", default="all", help="The condition whose numbers are drawn (all).")
@click.option("--measure", metavar="NAME", help="With --kind leaderboard: the measure; default: what ranks systems.")
def command(results: str, figure: str, kind: str, systems: str | None, condition: str, measure: str | None) -> None:
    """Draw a FIGURE, such as det.svg, of RESULTS, which `swsdask score --out` wrote.

    It needs matplotlib: pip install 'swsdask[plot]'.
    """
    import swsdask as sws
    from swsdask.render.outputs import read_outputs

    names = [name.strip() for name in systems.split(",")] if systems else None
    sws.plot(read_outputs(results), figure, kind, systems=names, condition=condition, measure=measure)
    click.echo(f"Written: {figure}")
