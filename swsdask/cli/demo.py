"""`swsdask demo`: a simulated evaluation, scored once or in three nights.

A demo replaces an earlier one in its folder, and nothing else. It recognises a demo by the file `demo.txt`, and what a
demo made in the folders that are removed by the names of files and of systems.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from shlex import join
from shutil import rmtree

import click

from swsdask.cli.options import FiniteRange, writable_directory

SIGN = "demo.txt"
_FIRST_LINE = "`swsdask demo` made this folder, and the next demo in it replaces what it made.\n"

_REMOVED = {
    "archive": r"manifest-\d+\.json|(tables|detections|kept|temporary|history|nightly)/.+",
    "inbox": r"({systems})/run\.kwslist\.xml",
    "board": r"index\.html|feed\.xml|metrics\.prom|latest\.json|nights/.+",
}
"""The folders that are removed before a demo, and the names of the files that a demo makes in each."""
_UNFINISHED = r"(\.[0-9a-f]{16}\.part)?"


@click.command("demo")
@click.option(
    "--out",
    metavar="DIRECTORY",
    callback=writable_directory,
    default="demo",
    help="The directory to write into (demo).",
)
@click.option("--seed", type=click.IntRange(0), default=2013, help="The seed of the random evaluation (2013).")
@click.option("--hours", type=FiniteRange(0.1, 10_000), default=20.0, help="Hours of speech (20).")
@click.option("--queries", "n_queries", type=click.IntRange(1), default=500, help="Number of queries (500).")
@click.option("--nightly", is_flag=True, help="Run three nights instead of scoring once: OUT/nightly.toml, OUT/board.")
def demo(out: Path, seed: int, hours: float, n_queries: int, nightly: bool) -> None:
    """Simulate an evaluation of the size of SWS 2013, and score it from official files.

    OUT/files gets the ECF, RTTM, query list and runs, OUT/archive the tables, OUT/results the numbers and report.html.
    An earlier demo in OUT is replaced. If OUT has files of these names that no demo made, nothing is changed.
    """
    if nightly:
        _nights(out, seed, hours, n_queries)
        return
    import swsdask as sws
    from swsdask.cli.progress import progress
    from swsdask.render.terminal import print_leaderboard

    files, archive, results = out / "files", out / "archive", out / "results"
    with progress() as shown:
        shown.begin("simulating", 0)
        _begin(out, seed, hours, n_queries, ["files", "archive", "results"])
        shown.begin("ingesting", 0)
        sws.ingest(archive, files, runs=str(files / "runs"), preset="sws2013", replace=True)
        result = sws.score(archive, progress=shown)
    sws.write(result, results)
    print_leaderboard(result)
    by_hand = ["swsdask", "score", str(files), str(files / "runs"), "--preset", "sws2013", "--out", str(results)]
    click.echo(f"\nThe same by hand:\n  {join(by_hand)}")
    click.echo(f"\nReport: {results / 'report.html'}")


def _nights(out: Path, seed: int, hours: float, n_queries: int) -> None:
    """Simulate three nights."""
    from swsdask.nightly.settings import load_nightly
    from swsdask.nightly.steps import run_night
    from swsdask.render.nightly import night_lines
    from swsdask.simulate.evaluation import NIGHTLY_SETTINGS, nights

    settings = out / "nightly.toml"
    _begin(out, seed, hours, n_queries, ["files", "archive", "inbox", "board", settings.name])
    settings.write_text(NIGHTLY_SETTINGS, encoding="utf-8")
    (job,) = load_nightly(settings).evaluation
    for number, (heading, happen) in enumerate(nights(out / "files" / "runs", out / "inbox")):
        happen()
        record = run_night(job, date(2013, 10, 18) + timedelta(days=number)).record
        if record is not None:
            click.echo(f"\n{heading}:")
            click.echo("\n".join(night_lines(job.name, str(out / "board"), record)))
    by_hand = [["swsdask", "nightly", str(settings)], ["swsdask", "history", str(out / "archive")]]
    click.echo("\n".join(["\nThe next night, by hand:", *(f"  {join(command)}" for command in by_hand)]))


def _begin(out: Path, seed: int, hours: float, n_queries: int, places: Sequence[str]) -> None:
    """Write the files of an evaluation. Nothing is removed before they are simulated.

    `places` are what the demo will write in its folder. Raises `click.UsageError` if no demo made what is there.
    """
    from swsdask.places.writing import together
    from swsdask.simulate.evaluation import simulate, write

    _check_replaceable(out, places)
    evaluation = simulate(seed, hours=hours, n_queries=n_queries)
    for name in places:
        if name in _REMOVED and (out / name).exists():
            rmtree(out / name)
    out.mkdir(parents=True, exist_ok=True)
    (out / SIGN).write_text(_FIRST_LINE, encoding="utf-8")
    with together(out / "files") as files:
        write(evaluation, files)


def _check_replaceable(out: Path, places: Sequence[str]) -> None:
    """Raise `click.UsageError` if no demo made what is at one of the places in a folder."""
    remedy = "Move it elsewhere or remove it, or give another --out. Nothing was changed."
    there = [name for name in (SIGN, *places) if os.path.lexists(out / name)]
    if there and not _is_demo(out):
        raise click.UsageError(
            f"{out / there[0]}: expected nothing, or what an earlier demo made; found something else, as {out / SIGN} "
            f"is not there or not from a demo. {remedy}"
        )
    for name in there:
        if name in _REMOVED and (other := _of_others(out, name)) is not None:
            raise click.UsageError(f"{other}: expected only what an earlier demo made; found something else. {remedy}")


def _is_demo(out: Path) -> bool:
    try:
        return (out / SIGN).read_bytes().startswith(_FIRST_LINE.encode())
    except OSError:
        return False


def _of_others(out: Path, name: str) -> str | None:
    """Return a file, or a run of an archive, that no demo makes in a folder; None if there is none."""
    from swsdask.archive.store import is_archive, open_archive
    from swsdask.simulate.speech import SYSTEMS

    systems = [system.name for system in SYSTEMS]
    folder = out / name
    if folder.is_symlink() or not folder.is_dir():
        return str(folder)
    made = re.compile(f"(?:{_REMOVED[name].format(systems='|'.join(systems))}){_UNFINISHED}")
    for path in sorted(folder.rglob("*")):
        is_folder = path.is_dir() and not path.is_symlink()
        if not is_folder and not made.fullmatch(path.relative_to(folder).as_posix()):
            return str(path)
    runs = open_archive(str(folder)).runs if name == "archive" and is_archive(str(folder)) else ()
    return next((f"{folder}, run {run.system!r}" for run in runs if run.system not in systems), None)
