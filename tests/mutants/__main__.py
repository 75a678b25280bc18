"""Apply each mutant in a scratch copy, run the tests that should fail, and print whether it was killed or survived."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from tests.mutants.mutants import MUTANTS, ROOT, Mutant

COPIED = ("swsdask", "tests", "conf", "pyproject.toml")


def copy_to(folder: Path) -> None:
    """Copy the sources with the times of their files, so that compiled kernels are found again."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        else:
            shutil.copy2(source, folder / name)


def run_tests(tests: Sequence[str], folder: Path, expected: Collection[int]) -> int:
    """Run tests and return the exit code of pytest. Raises `RuntimeError` if it is not one of those expected."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if ran.returncode not in expected:
        raise RuntimeError(f"{tests}: pytest ended with {ran.returncode}:\n{ran.stdout[-2000:]}{ran.stderr}")
    return ran.returncode


def is_killed(mutant: Mutant, folder: Path) -> bool:
    """Whether a test fails. Raises `RuntimeError` if tests could not run."""
    file = folder / mutant.file
    before = file.read_text()
    file.write_text(mutant.applied(before))
    try:
        return run_tests(mutant.tests, folder, (0, 1)) == 1
    finally:
        file.write_text(before)


def main() -> int:
    """Try the mutants whose names contain a word of the command line, or all; 1 if any survives."""
    chosen = [each for each in MUTANTS if not sys.argv[1:] or any(word in each.name for word in sys.argv[1:])]
    killed = 0
    with tempfile.TemporaryDirectory(prefix="swsdask-mutants-") as name:
        copy_to(Path(name))
        for tests in dict.fromkeys(mutant.tests for mutant in chosen):
            run_tests(tests, Path(name), (0,))  # A test that fails without a mutant would kill every mutant.
        for mutant in chosen:
            dead = is_killed(mutant, Path(name))
            killed += dead
            print(f"{'killed' if dead else 'SURVIVED'}: {mutant.name}", flush=True)
    print(f"{killed} of {len(chosen)} mutants killed")
    return 0 if killed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
