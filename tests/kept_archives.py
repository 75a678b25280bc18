"""Archives of both kinds that other versions of this package and of its libraries wrote, and their numbers.

`python -m tests.kept_archives NAME` writes those of the versions that run it to tests/cases/archives/NAME. They are
never written again: what was once committed must stay readable.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from importlib.metadata import version
from pathlib import Path

import swsdask as sws

CASES = Path(os.path.relpath(Path(__file__).parent / "cases"))
"""Relative: an archive keeps the names of the files that it was made of."""
ARCHIVES = CASES / "archives"
EVALUATION = CASES / "kwseval" / "words"
CORPUS = ARCHIVES / "corpus"
MEASURES = ("n_target", "n_hit", "atwv", "mtwv", "otwv", "stwv", "map", "eer", "cnxe", "cnxe_min")
DISCOVERY_MEASURES = ("ned", "coverage", "grouping", "type", "token", "boundary")
_LIBRARIES = ("swsdask", "pyarrow", "numpy", "pandas")


def evaluation_numbers(folder: Path) -> dict[str, float]:
    """Numbers of the detections in an archive, under the settings that it keeps."""
    return _by_name(sws.score(sws.open(folder / "detections"), MEASURES))


def discovery_numbers(folder: Path) -> dict[str, float]:
    """Numbers of the term discovery in an archive, under the settings that it keeps."""
    return _by_name(sws.discover(archive=folder / "discovery", measures=DISCOVERY_MEASURES))


def write(folder: Path) -> None:
    """Write an archive of each kind and their numbers."""
    shutil.rmtree(folder, ignore_errors=True)
    sws.ingest(
        folder / "detections",
        ecf=EVALUATION / "ecf.xml",
        rttm=EVALUATION / "ref.rttm",
        queries=EVALUATION / "kwlist.xml",
        runs={"ä first": EVALUATION / "kwslist.xml", "second": CORPUS / "run.tsv"},
        preset="openkws13",
        buckets=2,
    )
    files = {role: CORPUS / f"corpus.{ending}" for role, ending in {"phones": "phn", "words": "wrd"}.items()}
    sws.ingest_discovery(folder / "discovery", CORPUS / "system.classes", **files, definition="tdev2")
    said = {
        "written by": {name: version(name) for name in _LIBRARIES},
        "detections": evaluation_numbers(folder),
        "discovery": discovery_numbers(folder),
    }
    (folder / "numbers.json").write_text(json.dumps(said, indent=1) + "\n")


def _by_name(result: sws.Result) -> dict[str, float]:
    """Every number by what it is of, to twelve digits: libraries may differ in the last ones."""
    return {
        " ".join(str(of) for name, of in row.items() if name != "value" and of is not None): float(f"{value:.12g}")
        for row in result.table.to_pylist()
        if not math.isnan(value := row["value"])
    }


if __name__ == "__main__":
    write(ARCHIVES / sys.argv[1])
