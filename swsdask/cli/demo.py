"""`swsdask demo`."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import click

from swsdask.cli.options import writable_directory


@click.command(short_help="Make a synthetic evaluation, score it, write a report.")
@click.option("--out", metavar="DIRECTORY", callback=writable_directory, default="demo", help="Where to (demo).")
@click.option("--seed", type=int, default=2013, help="Another seed, another evaluation (2013).")
@click.option("--hours", type=click.FloatRange(0.1), default=20.0, help="Hours of speech (20).")
@click.option("--queries", "n_queries", type=click.IntRange(1), default=500, help="How many queries (500).")
def command(out: Path, seed: int, hours: float, n_queries: int) -> None:
    """Simulate an evaluation of the size of SWS 2013 and score it, all the way from official files.

    OUT/files gets the ECF, RTTM, query list and runs; OUT/archive the tables; OUT/results the numbers and report.html.
    An earlier demo there is replaced.
    """
    import swsdask as sws
    from swsdask.archive.store import is_archive
    from swsdask.cli.progress import progress
    from swsdask.render.text import print_leaderboard
    from swsdask.simulate.evaluation import simulate
    from swsdask.simulate.files import write

    files, archive, results = out / "files", out / "archive", out / "results"
    if is_archive(str(archive)):
        rmtree(archive)
    with progress() as shown:
        shown.begin("simulating", 0)
        write(simulate(seed, hours=hours, n_queries=n_queries), files)
        shown.begin("ingesting", 0)
        sws.ingest(archive, files, runs=str(files / "runs"), preset="sws2013", replace_runs=True)
        result = sws.score(archive, progress=shown)
    sws.write(result, results)
    print_leaderboard(result)
    click.echo(f"\nThe same again, by hand:\n  swsdask score {files} {files / 'runs'} --preset sws2013 --out {results}")
    click.echo(f"\nReport: {results / 'report.html'}")
