"""`swsdask simulate`: studies of measures on simulated systems, and simulated files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from swsdask import __version__
from swsdask.cli.options import EngineOptions, FiniteRange, engine_options, writable_directory, writable_place
from swsdask.cli.outputs import format_option, print_written
from swsdask.model.wording import counted

if TYPE_CHECKING:
    from swsdask.execution.executor import Executor


@click.group()
def simulate() -> None:
    """Simulate systems, to study how measures behave, or to get example files."""


@simulate.command("gap", short_help="Compare penalty functions of GAP.")
@click.option("--seed", type=click.IntRange(0), default=2006, help="The seed of the random systems (2006).")
@click.option("--replicates", type=click.IntRange(1, 100_000), default=60, help="Number of replicates (60).")
@click.option("--points", type=click.IntRange(15, 100_000), default=600, help="M, the points of a topic (600).")
@click.option("--systems", type=click.IntRange(2, 10_000), default=100, help="Number of systems that are ranked (100).")
@click.option("--p", type=FiniteRange(0, 1), default=0.5, help="Probability that a point is near an onset (.5).")
@click.option(
    "--sigma",
    type=FiniteRange(0, 1000, min_open=True),
    default=3.0,
    help="Standard deviation of its distance, in points (3).",
)
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
    engine: EngineOptions,
    out: str | None,
    form: str,
) -> None:
    """Compare the rankings of simulated systems by mean GAP under 28 penalty functions.

    Each replicate repeats the Monte Carlo study of Liu and Oard (SIGIR 2006), which finds the function whose ranking
    agrees most with the others, and how far each deviates. The same seed gives the same bits on any executor.
    """
    from swsdask.comparison.gap_study import GapModel, gap_study
    from swsdask.render.studies import gap_json, print_gap_study, write_gap_study

    model = GapModel(points, systems, p, sigma, cutoff)
    with _workers(engine, "replicates", replicates, model.points_per_replicate) as (workers, done):
        made = gap_study(seed, replicates, workers, done=done, model=model)
    signature = f"swsdask {__version__} simulate gap seed={seed} replicates={replicates}{model.chosen}"
    written = [] if out is None else write_gap_study(made, out, signature)
    if form == "json":
        click.echo(gap_json(made, signature), nl=False)
    else:
        print_gap_study(made)
        _print_end(signature, out, written)


@simulate.command("discovery", short_help="Write a simulated corpus for term discovery, with systems.")
@click.option(
    "--out", metavar="DIRECTORY", callback=writable_directory, required=True, help="The directory to write into."
)
@click.option("--seed", type=click.IntRange(0), default=2015, help="The seed of the random corpus (2015).")
@click.option("--phones", type=click.IntRange(1), default=20_000, help="Number of phones in the corpus (20000).")
def discovery(out: Path, seed: int, phones: int) -> None:
    """Make a corpus for term discovery, and the classes that four systems find, in the official formats.

    OUT gets sim.phn, sim.wrd, sim.split, sim.speakers and SYSTEM.classes. `swsdask discover` scores them.
    """
    from swsdask.places.writing import together
    from swsdask.simulate.discovery import DISCOVERERS, simulate_classes, simulate_corpus, write_classes, write_corpus

    corpus = simulate_corpus(seed, n_phones=phones)
    lines = [f"{out}: {counted(len(corpus.phones), 'phones')}, {counted(len(corpus.words), 'words')}"]
    with together(out) as written:
        write_corpus(corpus, written)
        for number, system in enumerate(DISCOVERERS):
            found = simulate_classes(corpus, system, number)
            if not found.classes:
                where = f"in {counted(len(corpus.phones), 'phones')}"
                raise click.UsageError(f"The system {system.name} finds nothing {where}: increase --phones.")
            write_classes(found, written)
            sizes = f"{counted(len(found.classes), 'classes')}, {counted(len(found.fragments), 'fragments')}"
            lines.append(f"  {system.name}.classes: {sizes}")
    click.echo("\n".join(lines))


@simulate.command("compare", short_help="Check the coverage of intervals and the error rate of tests.")
@click.option("--seed", type=click.IntRange(0), default=1993, help="The seed of the random evaluations (1993).")
@click.option(
    "--evaluations", type=click.IntRange(1, 100_000), default=4000, help="Number of simulated evaluations (4000)."
)
@click.option("--queries", type=click.IntRange(2), default=200, help="Number of queries of each evaluation (200).")
@click.option("--replicates", type=click.IntRange(1), default=500, help="Number of bootstrap replicates (500).")
@engine_options
@click.option("--out", metavar="DIRECTORY", callback=writable_place, help="Write compare.html, compare.json.")
@format_option
def compare(
    seed: int,
    evaluations: int,
    queries: int,
    replicates: int,
    engine: EngineOptions,
    out: str | None,
    form: str,
) -> None:
    """Check `swsdask compare` on simulated evaluations with a known true value.

    It estimates the coverage of the intervals of ATWV and MAP, and the rate at which tests reject the equality of
    equal systems. The same seed gives the same bits on any executor.
    """
    from swsdask.comparison.coverage_study import coverage_study
    from swsdask.render.studies import coverage_json, print_coverage_study, write_coverage_study

    with _workers(engine, "evaluations", evaluations, queries * replicates) as (workers, done):
        made = coverage_study(seed, evaluations, workers, n_queries=queries, replicates=replicates, done=done)
    signature = f"swsdask {__version__} simulate compare seed={seed} evaluations={evaluations} queries={queries}"
    signature += f" replicates={replicates}"
    written = [] if out is None else write_coverage_study(made, out, signature)
    if form == "json":
        click.echo(coverage_json(made, signature), nl=False)
    else:
        print_coverage_study(made)
        _print_end(signature, out, written)


def _print_end(signature: str, out: str | None, written: list[str]) -> None:
    click.echo(f"\nSignature: {signature}")
    if out is not None:
        print_written(out, written)


@contextmanager
def _workers(
    engine: EngineOptions, things: str, n: int, rows_each: int
) -> Iterator[tuple[Executor, Callable[[int], None]]]:
    """Open the executor of n parts of a study; also give a callback for the end of each part."""
    from swsdask.cli.progress import progress
    from swsdask.execution.open import open_executor
    from swsdask.model.layers import build_settings

    settings = build_settings(explicit={"engine": engine.settings()})
    with progress(things) as shown, open_executor(settings.engine, n * rows_each, shown) as workers:
        shown.begin("simulating", n)
        yield workers, lambda _: shown.advance(1)
