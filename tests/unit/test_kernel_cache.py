"""Compiled kernels are kept where one can write, never used for other sources; compiling is reported."""

from __future__ import annotations

import ast
import fcntl
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np
import pytest

from swsdask.kernels import compilation
from swsdask.kernels.entropy import sigmoid
from swsdask.model.trials import F64

PACKAGE = Path(compilation.__file__).parents[1]
OWN_RUNG = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from swsdask.kernels.ladder import find_own_rungs


def own_rung(score):
    rungs = np.array([0.0, 1.0, 2.0])
    return find_own_rungs(np.zeros(1, np.int32), np.array([score]), np.array([0, 3]), rungs).item()


if __name__ == "__main__":
    with ProcessPoolExecutor(1, get_context("spawn")) as workers:
        print(own_rung(1.0), workers.submit(own_rung, 1.0).result())
"""


def test_an_edit_of_a_helper_moves_the_number(tmp_path: Path) -> None:
    """first_not_below is in another file than the cached kernel that calls it: numba alone would not see the edit."""
    shutil.copytree(PACKAGE, tmp_path / "swsdask", ignore=shutil.ignore_patterns("__pycache__"))
    script = tmp_path / "own_rung.py"
    script.write_text(OWN_RUNG)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    environment[compilation._HELPER] = "1"

    def here_and_in_a_worker() -> str:
        return subprocess.check_output([sys.executable, script], text=True, cwd=tmp_path, env=environment)

    assert here_and_in_a_worker() == "1 1\n"
    helper = tmp_path / "swsdask" / "kernels" / "rows.py"
    source, end = helper.read_text(), "if ascending[middle] < number:"
    assert source.count(end) == 1
    helper.write_text(source.replace(end, "if ascending[middle] <= number:", 1))
    assert here_and_in_a_worker() == "2 2\n"
    assert len(list(tmp_path.glob("kept/swsdask-*"))) == 2


def imported_by_kernels() -> Iterator[tuple[str, str]]:
    for file in (PACKAGE / "kernels").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("swsdask.kernels"):
                yield from ((node.module or "", each.name) for each in node.names)
            elif isinstance(node, ast.Import):
                yield from ((each.name, "") for each in node.names)


def test_all_that_kernels_are_compiled_from_is_known() -> None:
    known = {".".join(("swsdask", *file.relative_to(PACKAGE).with_suffix("").parts)) for file in compilation.SOURCES}
    types = {("swsdask.model.trials", name) for name in ("I8", "I16", "I32", "I64", "F64", "Bool")}
    others = {(module, name) for module, name in imported_by_kernels() if module.split(".")[0] == "swsdask"}
    uncompiled = {("swsdask.model.limits", name) for name in ("check_addresses", "check_threads")}
    assert {(module, name) for module, name in others if module not in known} <= types | uncompiled
    assert known == {f"swsdask.kernels.{file.stem}" for file in (PACKAGE / "kernels").glob("*.py")} | {
        "swsdask.model.ranked_measures",
        "swsdask.model.units",
    }


@pytest.mark.parametrize("what", ["source", "numpy", "python", "processor"])
def test_all_that_code_is_made_from_is_in_its_version(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = compilation.version()
    assert compilation.version() == before
    if what == "source":
        (tmp_path / "more.py").touch()
        monkeypatch.setattr(compilation, "SOURCES", (*compilation.SOURCES, tmp_path / "more.py"))
    elif what == "numpy":
        monkeypatch.setattr(compilation.np, "__version__", "1.0")
    elif what == "python":
        monkeypatch.setattr(compilation.sys, "version", "3.99")
    else:
        codegen = compilation.cpu_target.target_context.codegen()
        monkeypatch.setattr(type(codegen), "magic_tuple", lambda _: ("triple", "another", ""))
    assert compilation.version() != before


def test_folders_that_nobody_uses_are_removed_but_for_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1e9
    monkeypatch.setattr(compilation.time, "time", lambda: now)

    def used(n: int, seconds_ago: float) -> None:
        for number in range(n):
            folder = tmp_path / f"swsdask-{seconds_ago}-{number}"
            folder.mkdir()
            os.utime(folder, (now - seconds_ago,) * 2)

    def left() -> list[str]:
        return sorted(folder.name for folder in tmp_path.iterdir())

    (tmp_path / "another").mkdir()
    used(10, 60)
    used(1, 7200)
    compilation._remove_unused(tmp_path)
    assert left() == ["another", *(f"swsdask-60-{number}" for number in range(10))]
    now += 7200
    compilation._remove_unused(tmp_path)
    assert left() == ["another", *(f"swsdask-60-{number}" for number in range(2, 10))]


def test_every_kernel_that_is_kept_is_compiled_when_it_is_called() -> None:
    """One that is compiled when its module is imported costs every start, and no other process waits for it."""
    kept = [file.name for file in (PACKAGE / "kernels").glob("*.py") if "njit" in file.read_text()]
    assert kept == ["compilation.py"]


def test_nothing_is_compiled_when_modules_are_loaded() -> None:
    """What is compiled then is compiled in every process, for it is not kept."""
    code = """
from importlib import import_module
from pkgutil import iter_modules
from numba.core import event
import swsdask.kernels

with event.install_recorder("numba:compile") as recorder:
    for module in iter_modules(swsdask.kernels.__path__, "swsdask.kernels."):
        import_module(module.name)
print(len(recorder.buffer))
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "0"


def test_a_kernel_cannot_call_another_one() -> None:
    """Of a kernel that is loaded there is nothing that could be compiled into a caller."""

    @numba.njit  # type: ignore[untyped-decorator]
    def caller(values: F64) -> F64:
        return sigmoid(values)

    with pytest.raises(numba.TypingError, match="Cannot determine Numba type"):
        caller(np.zeros(1))


def test_functions_of_others_are_left_to_numba() -> None:
    assert compilation._Locator.from_function(test_functions_of_others_are_left_to_numba, __file__) is None


def test_kernels_are_kept_in_the_first_place_that_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(compilation, "_parents", lambda: iter([tmp_path / "file", tmp_path / "a" / "b", tmp_path]))
    assert compilation.kept_in.__wrapped__() == tmp_path / "a" / "b" / f"swsdask-{compilation.version()}"


def test_a_whole_folder_is_used_though_nobody_can_write_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilation, "_parents", lambda: iter([tmp_path / "image", tmp_path / "private"]))
    monkeypatch.setattr(compilation, "_is_writable", lambda folder: folder.parent.name == "private")
    image = tmp_path / "image" / f"swsdask-{compilation.version()}"
    image.mkdir(parents=True)
    assert compilation.kept_in.__wrapped__().parent.name == "private"
    (image / "whole").touch()
    assert compilation.kept_in.__wrapped__() == image


def test_a_place_is_found_where_the_user_has_no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(compilation.os.path, "expanduser", lambda path: path)
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr(compilation.tempfile, "gettempdir", lambda: str(tmp_path))
    package, private = compilation._parents()
    assert package == PACKAGE / "kernels" / "__pycache__"
    assert private.parent == tmp_path
    assert private.stat().st_mode & 0o777 == 0o700


SLOW_KERNEL = """
import time

from numba import int64

from swsdask.kernels.compilation import kernel

time.sleep(1)


@kernel(int64(int64))
def twice(x):
    return 2 * x
"""


def write_two_kernels(package: Path) -> None:
    another = SLOW_KERNEL[SLOW_KERNEL.index("@kernel") :].replace("twice", "thrice").replace("2 * x", "3 * x")
    (package / "swsdask" / "kernels" / "slow.py").write_text(f"{SLOW_KERNEL}\n\n{another}")


SAID = "compiling kernels, once for this machine\n"
ALONE = {compilation._HELPER: "1"}


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package that has one kernel."""
    shutil.copytree(PACKAGE, tmp_path / "swsdask", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "swsdask" / "kernels"
    for file in kernels.glob("*.py"):
        if file.name not in ("__init__.py", "compilation.py"):
            file.unlink()
    (kernels / "slow.py").write_text(SLOW_KERNEL)
    return tmp_path


def started(package: Path, *command: str, **more: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(package), "NUMBA_CACHE_DIR": str(package / "kept"), **more}
    return subprocess.Popen(
        [sys.executable, *command], cwd=package, env=environment, text=True, stdin=-1, stdout=-1, stderr=-1
    )


def test_of_two_processes_one_compiles(package: Path) -> None:
    both = [started(package, "-m", "swsdask", "warm-up") for _ in range(2)]
    told = [process.communicate(timeout=120) for process in both]
    (kept,) = (package / "kept").iterdir()
    assert [out for out, _ in told] == [f"{kept}\n"] * 2
    assert all(err in ("", SAID) for _, err in told), "each that had to wait says so, once"
    assert sorted(file.suffix for file in kept.iterdir()) == ["", ".lock", ".nbc", ".nbi"]
    (lock,) = kept.glob("*.lock")
    assert lock.read_bytes() == b"kept\n", "a line for each compilation"


HELP = "from swsdask.kernels.compilation import help_to_compile; help_to_compile(['slow.twice'])"
NAMES = "from swsdask.kernels import compilation, slow; print(slow.twice._lock)"


def test_a_helper_compiles_what_nobody_has_begun_with(package: Path) -> None:
    helping = {compilation._HELPER: "1"}
    lock = Path(started(package, "-c", NAMES, **helping).communicate()[0].strip())
    with lock.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        helper = started(package, "-c", HELP, **helping)
        assert helper.wait(timeout=60) == 0
        helper.communicate()
    assert lock.stat().st_size == 0
    helper = started(package, "-c", HELP, **helping)
    assert helper.wait(timeout=60) == 0
    helper.communicate()
    assert lock.read_bytes() == b"kept\n"
    _, said = started(package, "-m", "swsdask", "warm-up").communicate()
    assert "compiling" not in said


def test_a_helper_ends_with_the_process_that_it_helps(package: Path) -> None:
    (package / "swsdask" / "kernels" / "slow.py").write_text("import time; time.sleep(3600)")
    helper = started(package, "-c", HELP)
    helper.communicate(timeout=60)
    assert helper.returncode == 0


def test_the_place_lasts(tmp_path: Path) -> None:
    assert compilation._private_folder(tmp_path) == compilation._private_folder(tmp_path)


def test_a_place_that_others_can_write_is_not_used(tmp_path: Path) -> None:
    compilation._private_folder(tmp_path).chmod(0o777)
    assert compilation._private_folder(tmp_path).parent != tmp_path
    ask = "import pathlib, sys; from swsdask.kernels import compilation as c; "
    ask += "print(c._private_folder(pathlib.Path(sys.argv[1])))"
    used = subprocess.run(
        [sys.executable, "-c", ask, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout.strip()
    assert Path(used).name.startswith("swsdask-kernels-")
    assert not Path(used).exists()


def test_compiling_is_reported_once(package: Path) -> None:
    """On a terminal also how far it is: the records of a lower level."""
    code = """
import logging
import sys

from swsdask.kernels import slow

logging.basicConfig(format="%(levelname)s %(message)s", stream=sys.stderr)
logging.getLogger("swsdask").setLevel(logging.DEBUG)
print(slow.twice(1), slow.twice(2), slow.thrice(3))
"""
    write_two_kernels(package)
    out, said = started(package, "-c", code, **ALONE).communicate(timeout=120)
    assert out == "2 4 9\n"
    progress = "DEBUG compiling kernels, once for this machine, "
    steps = ("0 of 1", "1 of 1", "1 of 2", "2 of 2")
    assert said == f"WARNING {SAID}" + "".join(f"{progress}{step}\n" for step in steps)
    assert started(package, "-c", code, **ALONE).communicate(timeout=120) == (out, "")


def test_who_has_to_wait_compiles_another_kernel(package: Path) -> None:
    """The second kernel is one that a score needs: it is compiled while the first one is waited for."""
    write_two_kernels(package)
    code = """
from swsdask.kernels import compilation
compilation.LONGEST_FIRST = ("slow.twice", "slow.thrice")
from swsdask.kernels import slow
print(slow.twice._lock, flush=True)
input()
print(slow.twice(1), "compiled" in vars(slow.thrice))
"""
    waiting = started(package, "-c", code, **ALONE)
    assert waiting.stdin is not None
    assert waiting.stdout is not None
    lock = Path(waiting.stdout.readline().strip())
    with lock.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting.stdin.write("go\n")
        waiting.stdin.flush()
        other = lock.with_name("slow.thrice.lock")
        while not (other.exists() and other.stat().st_size):
            assert waiting.poll() is None
            time.sleep(0.05)
        assert held.tell() == 0
    assert waiting.communicate(timeout=120)[0] == "2 True\n"


SCORED = """
import sys
from pathlib import Path

import swsdask as sws
from swsdask.kernels.compilation import LONGEST_FIRST, Kernel
from swsdask.simulate.evaluation import simulate, write

files = Path(sys.argv[1])
write(simulate(1, hours=0.5, n_queries=10), files)
sws.score(sws.open(files, preset="sws2013"), runs=files / "runs")
used = {each.name for each in Kernel.known if "compiled" in vars(each)}
called_by_others = {"assignment.assign", "assignment.settle"}
print(sorted(used - called_by_others - set(LONGEST_FIRST)), sorted(set(LONGEST_FIRST) - used))
"""


def test_all_that_a_score_needs_is_compiled_and_nothing_else(tmp_path: Path) -> None:
    """The kernels of `LONGEST_FIRST` are those that a score of every measure calls, but for its reader's."""
    told = subprocess.check_output([sys.executable, "-c", SCORED, tmp_path / "files"], text=True)
    assert told == "['xml.scan_rows'] []\n"


LOADED = """
import sys

from swsdask.kernels.align import align
from swsdask.kernels.compilation import load_common_kernels, load_kernels

load_kernels()
load_common_kernels()
(loaded,) = align.compiled.overloads.values()
(function,) = loaded.library._get_module_for_linking().functions
print(function.name == loaded.fndesc.llvm_cpython_wrapper_name)
print(sorted({"numba.np.linalg", "numba.np.npyimpl", "numba.typed.typeddict"} & set(sys.modules)))
"""


def test_kernels_are_loaded_without_what_only_compiling_needs() -> None:
    """What numba declares for its compiler, and bitcode, would take longer than to load the code of all kernels."""
    subprocess.run([sys.executable, "-m", "swsdask", "warm-up"], check=True, capture_output=True)
    assert subprocess.check_output([sys.executable, "-c", LOADED], text=True) == "True\n[]\n"
