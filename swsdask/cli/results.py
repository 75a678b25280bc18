"""`swsdask correlate`, `report` and `plot`: showing the results in a directory."""

from __future__ import annotations

import os

import click

from swsdask.api.results import FIGURES
from swsdask.cli.options import measures_option, named_place, split_names
from swsdask.cli.outputs import out_option, print_written, records_format_option
from swsdask.model.safe_text import one_line
from swsdask.model.tables import records_as
from swsdask.places.reading import join_path


@click.command("report")
@click.argument("results")
@click.argument("page", required=False, callback=named_place)
def report(results: str, page: str | None) -> None:
    """Write a PAGE (RESULTS/report.html) from the directory that `swsdask score --out` wrote."""
    import swsdask as sws

    own = join_path(results, "report.html")
    if page is None or os.path.abspath(page) == os.path.abspath(own):
        sws.renew_report(results)
    else:
        sws.report(results, page)
    click.echo(f"Written: {one_line(str(page or own))}")


@click.command("plot")
@click.argument("results")
@click.argument("figure")
@click.option(
    "--kind", type=click.Choice(FIGURES), default="det", show_default=True, help="The curve or picture to draw."
)
@click.option(
    "--systems", type=split_names, metavar="A,B", help="Draw these systems, in this order. Default: the first ten."
)
@click.option("--condition", metavar="NAME", default="all", help="The condition whose numbers are drawn (all).")
@click.option(
    "--measure", metavar="NAME", help="The measure of --kind leaderboard. Default: the one that ranks systems."
)
def plot(results: str, figure: str, kind: str, systems: list[str] | None, condition: str, measure: str | None) -> None:
    """Draw a FIGURE, such as det.svg, of RESULTS, a directory that `swsdask score --out` wrote.

    This needs matplotlib: pip install 'swsdask[plot]'.
    """
    import swsdask as sws

    sws.plot(results, figure, kind, systems=systems, condition=condition, measure=measure)
    click.echo(f"Written: {one_line(str(figure))}")


@click.command("correlate")
@click.argument("results")
@measures_option("Only these measures, e.g. atwv,cnxe,map,twv@0.5.")
@click.option("--condition", metavar="NAME", default="all", help="The condition whose numbers rank systems (all).")
@out_option("Write rank_correlation.parquet and rank_correlation.html into a directory or URL.")
@records_format_option
def correlate(results: str, measures: list[str] | None, condition: str, out: str | None, form: str) -> None:
    """Compare how each pair of measures ranks the systems of RESULTS, a directory that `swsdask score --out` wrote.

    Kendall's tau-b is 1 if two measures rank systems alike, and -1 if one reverses the other. tau_AP emphasises the
    top of the ranking. --measures defaults to the measures requested when scoring or, if all were requested, to those
    that weigh misses against false alarms.
    """
    import swsdask as sws
    from swsdask.comparison.rank_correlation import rank_correlation
    from swsdask.render.rank_correlation import print_rank_correlation, write_rank_correlation

    result = sws.read_result(results)
    found = rank_correlation(result, measures, condition)
    scores = result.numbers
    signature = str(result.manifest.get("signature", ""))
    if form == "text":
        print_rank_correlation(found, scores)
        click.echo(f"\nSignature: {signature}")
    else:
        click.echo(records_as(form, found.table.to_pylist()))
    if out is not None:
        write_rank_correlation(found, scores, out, signature)
        if form == "text":
            print_written(out, ["rank_correlation.parquet", "rank_correlation.html"])
