"""How the command with worker processes ends by a signal: one line, its exit code, no process and no file left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.cluster

RESTORE_SIGNALS = """
import os, signal, sys

for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)
os.execv(sys.executable, [sys.executable, "-m", "swsdask", *sys.argv[1:]])
"""
"""The command as a terminal starts it, also where the tests were started with signals ignored (nohup, a batch job)."""


@pytest.mark.parametrize(
    ("number", "when", "times", "line"),
    [
        (signal.SIGINT, "simulating", 2, "swsdask: interrupted"),
        (signal.SIGTERM, "simulating", 1, "swsdask: terminated"),
        (signal.SIGHUP, "starting", 2, "swsdask: the terminal is gone"),
    ],
)
def test_a_signal_to_the_whole_group(tmp_path: Path, number: signal.Signals, when: str, times: int, line: str) -> None:
    """As a terminal sends Ctrl-C, and a batch system SIGTERM."""
    command = ["simulate", "gap", "--replicates", "5000", "--executor", "processes", "--workers", "2"]
    begun = subprocess.Popen(
        [sys.executable, "-c", RESTORE_SIGNALS, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert begun.stderr is not None
    try:
        while when not in (said := begun.stderr.readline()):
            assert said, "the command ended by itself"
        processes = psutil.Process(begun.pid).children(recursive=True)
        for _ in range(times):
            os.killpg(begun.pid, number)
        out, err = begun.communicate(timeout=120)
    finally:
        begun.kill()
    assert begun.returncode == 128 + number
    assert out == ""
    assert [each for each in err.splitlines() if not each.startswith("swsdask: simulating: ")] == [line]
    assert list(tmp_path.iterdir()) == []
    assert psutil.wait_procs(processes, timeout=60)[1] == []


DROPPED = """
import signal, sys, time
from swsdask import ending

class Finalised:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

def in_a_finaliser():
    Finalised()

def in_a_library():
    try:
        signal.raise_signal(signal.SIGTERM)
    except BaseException:
        pass

signal.signal(signal.SIGTERM, signal.SIG_DFL)
ending.end_orderly()
try:
    try:
        {where}()
        time.sleep(20)
    finally:
        time.sleep(1)  # what is done at the end is not interrupted again
        print("left")
except ending.Ended as ended:
    ending.has_arrived(ended)
    sys.exit(ended.exit_code)
"""


@pytest.mark.parametrize("where", ["in_a_finaliser", "in_a_library"])
def test_a_signal_whose_exception_is_dropped(where: str) -> None:
    """As while kernels are loaded, with which runs often begin."""
    ended = subprocess.run(
        [sys.executable, "-c", DROPPED.format(where=where)], capture_output=True, text=True, timeout=60
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (143, "left\n", "")


ENDED_LATE = """
import os, signal
from swsdask import ending

for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
    signal.signal(number, signal.SIG_DFL)

class Late:
    def __del__(self, kill=os.kill, me=os.getpid(), number=signal.SIGTERM):
        kill(me, number)

late = Late()
ending.end_orderly()
"""


def test_a_signal_after_the_work_changes_nothing() -> None:
    """What a module holds is finalised when the interpreter has given up its handlers."""
    assert subprocess.run([sys.executable, "-c", ENDED_LATE], check=False).returncode == 0


WHILE_A_CLASS_IS_MADE = """
import signal
import swsdask.cli
from swsdask import ending

class Striking:
    def __set_name__(self, owner, name):
        signal.raise_signal(signal.SIGINT)

def make_a_class(*_, **__):
    class Made:
        struck = Striking()

signal.signal(signal.SIGINT, signal.SIG_DFL)
ending.end_orderly()
swsdask.cli.cli.main = make_a_class
swsdask.cli.main([])
"""


def test_a_signal_while_a_class_is_made() -> None:
    """As while a command's modules are loaded: Python raises an error of its own then."""
    ended = subprocess.run(
        [sys.executable, "-c", WHILE_A_CLASS_IS_MADE], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "swsdask: interrupted\n")
