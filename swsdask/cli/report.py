"""`swsdask report`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Write report.html from the results of a score.")
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("page", type=click.Path(path_type=Path, dir_okay=False), required=False)
def command(results: Path, page: Path | None) -> None:
    """Write a PAGE (RESULTS/report.html) from the directory that `swsdask score --out` wrote."""
    import swsdask as sws
    from swsdask.render.outputs import read_outputs

    own = results / "report.html"
    if page is None or page.resolve() == own.resolve():
        sws.renew_report(results)
    else:
        sws.report(read_outputs(results), page)
    click.echo(f"Written: {page or own}")
