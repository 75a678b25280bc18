"""What is imported when: a start costs nothing that the work does not need."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from swsdask.simulate.evaluation import simulate, write

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


CALLED = """
import sys
from swsdask.cli import console

for line in {commands!r}:
    sys.argv = ["swsdask", *line.split()]
    console()
"""


def test_commands_do_without_pandas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(simulate(1, hours=0.1, n_queries=4), tmp_path / "files")
    commands = [
        "score files files/runs --out results",
        "ingest archive files --run files/runs",
        "compare archive --measures mtwv --replicates 50",
        "errors archive weak",
        "bench archive --measures atwv --format json",
    ]
    assert "pandas" not in imported(CALLED.format(commands=commands))
    assert "pandas" in imported(f"{CALLED.format(commands=commands[:1])}\nsys.meta_path.pop(0)\nimport pandas")


def test_python_dash_m_is_the_command() -> None:
    ended = subprocess.run([sys.executable, "-m", "swsdask", "--version"], capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("swsdask")
