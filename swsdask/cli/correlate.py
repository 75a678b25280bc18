"""`swsdask correlate`."""

from __future__ import annotations

import click

from swsdask.cli.options import writable_place


@click.command(short_help="Compute the rank correlation between measures.")
@click.argument("results")
@click.option("--measures", metavar="A,B", help="Only these measures, e.g. atwv,cnxe,map,twv@0.5.")
@click.option("--condition", metavar="NAME", default="all", help="The condition whose numbers rank systems (all).")
@click.option(
    "--out",
    metavar="DIRECTORY",
    callback=writable_place,
    help="Write rank_correlation.parquet and rank_correlation.html into a directory or URL.",
)
def command(results: str, measures: str | None, condition: str, out: str | None) -> None:
    """Compare the rankings of systems under each pair of measures, from RESULTS, which `swsdask score --out` wrote.

    Kendall's tau-b is 1 where two measures rank systems alike and -1 where one reverses the other; tau_AP weighs the
    top of the ranking. Without --measures the requested ones, or, where all were, those that weigh misses
    against false alarms.
    """
    from swsdask.comparison.rank_correlation import rank_correlation
    from swsdask.model.leaderboard import board
    from swsdask.render.outputs import read_outputs
    from swsdask.render.rank_correlation import print_rank_correlation, write_rank_correlation

    result = read_outputs(results)
    names = [name.strip().lower() for name in measures.split(",") if name.strip()] if measures else None
    found = rank_correlation(result, names, condition)
    scores = board(result.table, result.asked)
    signature = str(result.manifest.get("signature", ""))
    print_rank_correlation(found, scores)
    click.echo(f"\nSignature: {signature}")
    if out is not None:
        write_rank_correlation(found, scores, out, signature)
        click.echo(f"\nWritten to {out}: rank_correlation.parquet, rank_correlation.html")
