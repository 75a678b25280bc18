"""`swsdask report`."""

from __future__ import annotations

import os

import click


@click.command(short_help="Write report.html from the results of a score.")
@click.argument("results")
@click.argument("page", required=False)
def command(results: str, page: str | None) -> None:
    """Write a PAGE (RESULTS/report.html) from the directory that `swsdask score --out` wrote."""
    import swsdask as sws
    from swsdask.places.reading import joined
    from swsdask.render.outputs import read_outputs

    own = joined(results, "report.html")
    if page is None or os.path.abspath(page) == os.path.abspath(own):
        sws.renew_report(results)
    else:
        sws.report(read_outputs(results), page)
    click.echo(f"Written: {page or own}")
