"""What is imported when: a start costs nothing that the work does not need."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

PYARROW = int(version("pyarrow").partition(".")[0])

LATE = ("numba", "distributed", "dask", "pandas", "pyarrow", "rich", "scipy", "jinja2")


def imported(code: str) -> set[str]:
    """The top-level packages that a fresh interpreter holds after some code."""
    ask = f"{code}\nimport sys\nsys.stderr.write(' '.join(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in ended.stderr.split()}


@pytest.mark.parametrize(
    "code",
    [
        "import swsdask",
        "import swsdask; dir(swsdask); swsdask.InputError",
        "from swsdask.cli import main\ntry: main(['--help'])\nexcept SystemExit: pass",
        "from swsdask.cli import main\ntry: main(['score', '--help'])\nexcept SystemExit: pass",
    ],
)
def test_a_start_is_light(code: str) -> None:
    assert imported(code).isdisjoint(LATE)


def test_the_api_waits_with_pandas_and_dask() -> None:
    # Before version 26, pyarrow imports pandas with its first array.
    late = {"distributed", "dask"} | ({"pandas"} if PYARROW >= 26 else set())
    assert imported("import swsdask\nswsdask.score").isdisjoint(late)


def test_python_dash_m_is_the_command() -> None:
    ended = subprocess.run([sys.executable, "-m", "swsdask", "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("swsdask")
