"""Three nights of an inbox: what arrives, made of the runs of a simulated evaluation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import copyfile

SETTINGS = """\
[[evaluation]]
name = "demo"
reference = "files"
archive = "archive"
out = "board"
inbox = ["inbox"]
preset = "sws2013"
measures = ["atwv", "mtwv", "otwv", "stwv", "cnxe", "cnxe_min", "map"]
baseline = "previous"
gates = ["atwv drops .02 with p < .05"]
"""


def nights(runs: Path, inbox: Path) -> list[tuple[str, Callable[[], None]]]:
    """Return, for each night, a description of the change before it and the function that makes it.

    `runs` is the folder of the runs of `simulate.evaluation`; `inbox` gets a folder for each system.
    """

    def arrive(system: str, of: str) -> None:
        (inbox / system).mkdir(parents=True, exist_ok=True)
        copyfile(runs / f"{of}.kwslist.xml", inbox / system / "run.kwslist.xml")

    def first() -> None:
        for system in ("weak", "middling", "overconfident"):
            arrive(system, system)

    def second() -> None:
        arrive("keyword-specific", "keyword-specific")
        arrive("weak", "calibrated")

    def third() -> None:
        arrive("middling", "weak")
        arrive("calibrated", "calibrated")
        broken = inbox / "calibrated" / "run.kwslist.xml"
        content = broken.read_bytes()
        broken.write_bytes(content[: len(content) // 2])

    return [
        ("three systems arrive", first),
        ("a new system, and a better run of weak", second),
        ("a worse run of middling, and a file that breaks off", third),
    ]
