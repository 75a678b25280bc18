"""What an installed swsdask must be, outside the checkout: `make wheel` runs this where the wheel is installed."""

from __future__ import annotations

import sys
from importlib.metadata import metadata
from importlib.resources import files
from pathlib import Path

import swsdask


def check(demo: Path) -> None:
    """Raise AssertionError unless the package is whole and scores the runs of a demo as its command line did."""
    package = Path(str(files("swsdask")))
    assert "site-packages" in package.parts, package
    assert (package / "py.typed").is_file()
    assert (package / "conf" / "kwseval.toml").is_file()
    assert metadata("swsdask")["License-Expression"] == "Apache-2.0"
    assert all(hasattr(swsdask, name) for name in swsdask.__all__)
    result = swsdask.score(swsdask.open(str(demo / "archive")), ["atwv"])
    assert len(result.scores) > 0


if __name__ == "__main__":
    check(Path(sys.argv[1]))
