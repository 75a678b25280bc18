"""Run the benches, all or the named ones; print their table, and write it to RESULTS.md if all ran at full size.

RESULTS.md from its second heading on is written by hand, and stays.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from importlib import import_module
from pathlib import Path

BENCHES = (
    "scoring",
    "cross_entropy",
    "document_trials",
    "ranking",
    "peers",
    "alignment",
    "xml_rows",
    "ingesting",
    "workers",
    "many",
    "commands",
    "distant",
    "nightly",
    "scale",
    "comparing",
    "discovery",
    "small",
    "pages",
    "massive",
)

RESULTS = Path(__file__).with_name("RESULTS.md")

INTRODUCTION = """\
# What scoring costs

Ratios of one run of `make bench`, on generated data. Seconds are CPU seconds (user and system, of all processes) where
nothing else is said, each side in a process of its own, the median of some repeats; peaks are resident memory.
"""


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument(
        "bench",
        nargs="*",
        choices=[*BENCHES, []],
        help=f"of {', '.join(BENCHES)}; all if none is named",
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of every size")
    asked = parser.parse_args()

    from tests.bench.data import Data
    from tests.bench.machine import machine
    from tests.bench.table import HEADER, markdown

    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # whose processes compile every module anew
    lines: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory(prefix="swsdask-bench-") as folder:
        data = Data(Path(folder), 0.1 if asked.quick else 1.0)
        for bench in asked.bench or BENCHES:
            for row in import_module(f"tests.bench.{bench}").rows(data):
                lines.append(row.cells(bench))
                print("  ".join(cell for cell in lines[-1] if cell), flush=True)
    text = f"{machine()}\n\n{markdown(HEADER, lines)}\n"
    print(f"\n{text}")
    if not asked.bench and not asked.quick:
        _, heading, by_hand = RESULTS.read_text(encoding="utf-8").partition("\n## ")
        RESULTS.write_text(f"{INTRODUCTION}\n{text}{heading}{by_hand}", encoding="utf-8")
        print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
