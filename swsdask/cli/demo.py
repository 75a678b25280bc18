"""`swsdask demo` and `warm-up`: what is called first after the installation."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import click

from swsdask.cli.options import writable_directory


@click.command("demo")
@click.option("--out", metavar="DIRECTORY", callback=writable_directory, default="demo", help="Where to (demo).")
@click.option("--seed", type=int, default=2013, help="Another seed, another evaluation (2013).")
@click.option("--hours", type=click.FloatRange(0.1), default=20.0, help="Hours of speech (20).")
@click.option("--queries", "n_queries", type=click.IntRange(1), default=500, help="How many queries (500).")
@click.option("--nightly", is_flag=True, help="Instead of one scoring, three nights: OUT/nightly.toml, OUT/board.")
def demo(out: Path, seed: int, hours: float, n_queries: int, nightly: bool) -> None:
    """Simulate an evaluation of the size of SWS 2013 and score it, all the way from official files.

    OUT/files gets the ECF, RTTM, query list and runs; OUT/archive the tables; OUT/results the numbers and report.html.
    An earlier demo there is replaced.
    """
    if nightly:
        _nights(out, seed, hours, n_queries)
        return
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


def _nights(out: Path, seed: int, hours: float, n_queries: int) -> None:
    """Simulate three nights."""
    from datetime import date, timedelta

    from swsdask.nightly.settings import load_nightly
    from swsdask.nightly.steps import run_night
    from swsdask.render.nightly import night_lines
    from swsdask.simulate.evaluation import NIGHTLY_SETTINGS, nights, simulate
    from swsdask.simulate.files import write

    for folder in ("archive", "inbox", "board"):
        rmtree(out / folder, ignore_errors=True)
    files, settings = out / "files", out / "nightly.toml"
    write(simulate(seed, hours=hours, n_queries=n_queries), files)
    settings.write_text(NIGHTLY_SETTINGS, encoding="utf-8")
    (asked,) = load_nightly(settings).evaluation
    for number, (told, happen) in enumerate(nights(files / "runs", out / "inbox")):
        happen()
        record = run_night(asked, date(2013, 10, 18) + timedelta(days=number)).record
        if record is not None:
            click.echo(f"\n{told}:")
            click.echo("\n".join(night_lines(asked.name, str(out / "board"), record)))
    click.echo(f"\nThe next night, by hand:\n  swsdask nightly {settings}\n  swsdask history {out / 'archive'}")


@click.command("warm-up")
def warm_up() -> None:
    """Compile the kernels, and print the folder that they are kept in. What is there already is not compiled again.

    For images of containers and environments that many share: whoever runs swsdask there finds everything compiled,
    also without the right to write. Of several calls at once one compiles, and the others wait for it.
    """
    from swsdask.kernels.compilation import load_kernels

    click.echo(load_kernels())
