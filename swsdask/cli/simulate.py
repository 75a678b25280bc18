"""`swsdask simulate`."""

from __future__ import annotations

from pathlib import Path

import click

from swsdask.cli.options import (
    Engine,
    engine_options,
    format_option,
    writable_directory,
    writable_place,
)


@click.group()
def simulate() -> None:
    """Simulate systems, to learn how measures behave, or to have files to try."""


@simulate.command("gap", short_help="Which penalty function GAP should have.")
@click.option("--seed", type=click.IntRange(0), default=2006, help="Another seed, other systems (2006).")
@click.option("--replicates", type=click.IntRange(1, 100_000), default=60, help="How often to simulate (60).")
@engine_options
@click.option("--out", metavar="DIRECTORY", callback=writable_place, help="Write gap.html, gap.json, gap.parquet.")
@format_option
def gap(
    seed: int,
    replicates: int,
    engine: Engine,
    out: str | None,
    form: str,
) -> None:
    """Compare the rankings of 100 simulated systems by mean GAP under 28 penalty functions.

    It is the Monte Carlo study of Liu and Oard (SIGIR 2006), once per replicate: which function ranks systems as most
    of the others do, and how far each goes from them. The same seed gives the same bits on any executor.
    """
    from swsdask import __version__
    from swsdask.cli.progress import progress
    from swsdask.execution.open import open_executor
    from swsdask.model.settings import build_settings
    from swsdask.render.gap_study import print_study, study_json, write_study
    from swsdask.simulate.gap_study import POINTS_PER_REPLICATE, study

    settings = build_settings(explicit={"engine": engine.settings()})
    with (
        progress("replicates") as shown,
        open_executor(settings.engine, replicates * POINTS_PER_REPLICATE, shown) as open_workers,
    ):
        shown.begin("simulating", replicates)
        made = study(seed, replicates, open_workers, done=lambda _: shown.advance(1))
    signature = f"swsdask {__version__} simulate gap seed={seed} replicates={replicates}"
    if out is not None:
        write_study(made, out, signature)
    if form == "json":
        click.echo(study_json(made, signature), nl=False)
    else:
        print_study(made)
        click.echo(f"\nSignature: {signature}")
        if out is not None:
            click.echo(f"Written to {out}: gap.html, gap.json, gap.parquet")


@simulate.command("discovery", short_help="A corpus, and what systems discovered in it, as files.")
@click.option("--out", metavar="DIRECTORY", callback=writable_directory, required=True, help="Where to.")
@click.option("--seed", type=click.IntRange(0), default=2015, help="Another seed, another corpus (2015).")
@click.option("--phones", type=click.IntRange(1), default=20_000, help="How many phones are spoken (20000).")
def discovery(out: Path, seed: int, phones: int) -> None:
    """Make a corpus for term discovery and what four systems find in it, in the official formats.

    OUT gets sim.phn, sim.wrd, sim.split, sim.speakers and SYSTEM.classes. `swsdask discover` scores them.
    """
    from swsdask.model.errors import counted
    from swsdask.simulate.discovery import DISCOVERERS, simulate_classes, simulate_corpus, write_classes, write_corpus

    corpus = simulate_corpus(seed, n_phones=phones)
    write_corpus(corpus, out)
    click.echo(f"{out}: {counted(len(corpus.phones), 'phones')}, {counted(len(corpus.words), 'words')}")
    for number, system in enumerate(DISCOVERERS):
        found = simulate_classes(corpus, system, number)
        if not found.classes:
            where = f"in {counted(len(corpus.phones), 'phones')}"
            raise click.UsageError(f"The system {system.name} finds nothing {where}: simulate more --phones.")
        write_classes(found, out)
        told = f"{counted(len(found.classes), 'classes')}, {counted(len(found.fragments), 'fragments')}"
        click.echo(f"  {system.name}.classes: {told}")
