"""The lowest versions that pyproject.toml declares, as pip constraints: `python tests/floors.py > constraints.txt`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def floors() -> list[str]:
    """`name==version` of every dependency of the package, s3fs among them."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    declared = [
        *project["dependencies"],
        *(each for extra in ("plot", "s3") for each in project["optional-dependencies"][extra]),
    ]
    return [each.replace(">=", "==") for each in declared]


if __name__ == "__main__":
    sys.stdout.write("\n".join(floors()) + "\n")
