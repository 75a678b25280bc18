"""`swsdask simulate`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from swsdask.cli.options import Engine, engine_options, format_option, print_written, writable_directory, writable_place

if TYPE_CHECKING:
    from swsdask.execution.executor import Executor


@click.group()
def simulate() -> None:
    """Simulate systems, to learn how measures behave, or to have files to try."""


@simulate.command("gap", short_help="Which penalty function GAP should have.")
@click.option("--seed", type=click.IntRange(0), default=2006, help="Another seed, other systems (2006).")
@click.option("--replicates", type=click.IntRange(1, 100_000), default=60, help="How often to simulate (60).")
@click.option("--points", type=click.IntRange(15, 100_000), default=600, help="M, the points of a topic (600).")
@click.option("--systems", type=click.IntRange(2, 10_000), default=100, help="How many systems are ranked (100).")
@click.option(
    "--p", type=click.FloatRange(0, 1), default=0.5, help="How often a point is meant to be near an onset (.5)."
)
@click.option("--sigma", type=click.FloatRange(0, 1000, min_open=True), default=3.0, help="How near, in points (3).")
@click.option("--cutoff", type=click.IntRange(0, 10_000), default=9, help="The farthest such point from an onset (9).")
@engine_options
@click.option("--out", metavar="DIRECTORY", callback=writable_place, help="Write gap.html, gap.json, gap.parquet.")
@format_option
def gap(
    seed: int,
    replicates: int,
    points: int,
    systems: int,
    p: float,
    sigma: float,
    cutoff: int,
    engine: Engine,
    out: str | None,
    form: str,
) -> None:
    """Compare the rankings of simulated systems by mean GAP under 28 penalty functions.

    It is the Monte Carlo study of Liu and Oard (SIGIR 2006), once per replicate: which function ranks systems as most
    of the others do, and how far each goes from them. The same seed gives the same bits on any executor.
    """
    from swsdask import __version__
    from swsdask.render.gap_study import print_study, study_json, write_study
    from swsdask.simulate.gap_study import Model, study

    model = Model(points, systems, p, sigma, cutoff)
    with _workers(engine, "replicates", replicates, model.points_per_replicate) as (workers, done):
        made = study(seed, replicates, workers, done=done, model=model)
    signature = f"swsdask {__version__} simulate gap seed={seed} replicates={replicates}{model.chosen}"
    written = [] if out is None else write_study(made, out, signature)
    if form == "json":
        click.echo(study_json(made, signature), nl=False)
    else:
        print_study(made)
        _print_end(signature, out, written)


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


@simulate.command("compare", short_help="How often intervals cover the truth, and tests reject it.")
@click.option("--seed", type=click.IntRange(0), default=1993, help="Another seed, other evaluations (1993).")
@click.option("--evaluations", type=click.IntRange(1, 100_000), default=4000, help="How many are simulated (4000).")
@click.option("--queries", type=click.IntRange(2), default=200, help="How many queries each has (200).")
@click.option("--replicates", type=click.IntRange(1), default=500, help="How often queries are drawn again (500).")
@engine_options
@click.option("--out", metavar="DIRECTORY", callback=writable_place, help="Write compare.html, compare.json.")
@format_option
def compare(
    seed: int,
    evaluations: int,
    queries: int,
    replicates: int,
    engine: Engine,
    out: str | None,
    form: str,
) -> None:
    """Check `swsdask compare` on simulated evaluations with a known true value.

    How often intervals of ATWV and MAP hold the true value, and how often tests reject that two systems are equal which
    are. The same seed gives the same bits on any executor.
    """
    from swsdask import __version__
    from swsdask.comparison.interval_study import study
    from swsdask.render.interval_study import print_study, study_json, write_study

    with _workers(engine, "evaluations", evaluations, queries * replicates) as (workers, done):
        made = study(seed, evaluations, workers, n_queries=queries, replicates=replicates, done=done)
    signature = f"swsdask {__version__} simulate compare seed={seed} evaluations={evaluations} queries={queries}"
    signature += f" replicates={replicates}"
    written = [] if out is None else write_study(made, out, signature)
    if form == "json":
        click.echo(study_json(made, signature), nl=False)
    else:
        print_study(made)
        _print_end(signature, out, written)


def _print_end(signature: str, out: str | None, written: list[str]) -> None:
    click.echo(f"\nSignature: {signature}")
    if out is not None:
        print_written(out, written)


@contextmanager
def _workers(engine: Engine, things: str, n: int, rows_each: int) -> Iterator[tuple[Executor, Callable[[int], None]]]:
    """Open the executor of n parts of a study; also give a callback for the end of each part."""
    from swsdask.cli.progress import progress
    from swsdask.execution.open import open_executor
    from swsdask.model.settings import build_settings

    settings = build_settings(explicit={"engine": engine.settings()})
    with progress(things) as shown, open_executor(settings.engine, n * rows_each, shown) as workers:
        shown.begin("simulating", n)
        yield workers, lambda _: shown.advance(1)
